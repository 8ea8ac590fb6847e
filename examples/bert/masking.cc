#include "examples/bert/masking.h"

#include <cmath>

#include "runtime/base/random.h"

namespace weft::examples {
namespace {

// Random numbers that are drawn for different ends.
enum Key : uint32_t { kIsShort = 1, kLength = 2, kIsAsked = 3, kBecomes = 4, kToken = 5 };

int64_t below(int64_t count, const RandomStream& stream, uint64_t index) {
  return static_cast<int64_t>(randomBits(stream, index) % static_cast<uint64_t>(count));
}

}  // namespace

MaskedRows maskedRows(const std::vector<int32_t>& windows, int64_t step, const MaskingOptions& options) {
  const auto stream = [&](Key key) {
    return RandomStream{.seed = options.seed, .key = key, .step = static_cast<uint32_t>(step)};
  };
  MaskedRows rows{windows, std::vector<int32_t>(windows.size(), 1),
                  std::vector<int32_t>(windows.size(), options.ignored)};
  int64_t length = options.context;
  for (size_t i = 0; i < windows.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / options.context;
    const int64_t place = static_cast<int64_t>(i) % options.context;
    if (place == 0) {
      const bool isShort = randomUniform(stream(kIsShort), row) < options.shortRows;
      length = isShort ? 1 + below(options.context, stream(kLength), row) : options.context;
    }
    if (place >= length) {
      rows.ids[i] = options.pad;
      rows.seen[i] = 0;
      continue;
    }
    if (randomUniform(stream(kIsAsked), i) >= options.asked) {
      continue;
    }
    rows.labels[i] = windows[i];
    const double becomes = randomUniform(stream(kBecomes), i);
    if (becomes < options.masked) {
      rows.ids[i] = options.mask;
    } else if (becomes < options.masked + options.random) {
      rows.ids[i] = static_cast<int32_t>(below(options.tokens, stream(kToken), i));
    }
  }
  return rows;
}

double lossWithoutContext(const std::vector<int32_t>& tokens, const MaskingOptions& options) {
  std::vector<double> share(options.tokens);
  for (const int32_t token : tokens) {
    share[token] += 1.0 / static_cast<double>(tokens.size());
  }
  const double anyToken = options.random / options.tokens;
  const double stays = 1 - options.masked - options.random;
  double loss = 0;
  for (int32_t seen = 0; seen < options.tokens; ++seen) {
    // How often `seen` stands at an asked place: instead of any token, or of itself.
    const double often = anyToken + stays * share[seen];
    for (int32_t label = 0; label < options.tokens; ++label) {
      const double both = share[label] * (anyToken + (label == seen ? stays : 0));
      loss -= both > 0 ? both * std::log(both / often) : 0;
    }
    loss -= share[seen] > 0 ? options.masked * share[seen] * std::log(share[seen]) : 0;
  }
  return loss;
}

}  // namespace weft::examples
