#include "examples/t5/span_corruption.h"

#include <algorithm>
#include <cmath>

#include "runtime/io/shuffle.h"

namespace weft::examples {

SpanLengths spanLengths(int64_t window, double share, double meanSpan) {
  const auto rounded = [](double x) { return static_cast<int64_t>(std::llround(x)); };
  SpanLengths lengths{.window = window};
  lengths.dropped = std::clamp<int64_t>(rounded(static_cast<double>(window) * share), 1, window - 1);
  const int64_t most = std::min(lengths.dropped, window - lengths.dropped);
  lengths.spans = std::clamp<int64_t>(rounded(static_cast<double>(lengths.dropped) / meanSpan), 1, most);
  return lengths;
}

namespace {

// `total` as a sum of `parts` numbers of at least 1: cuts at places that a shuffle puts first.
std::vector<int64_t> randomParts(int64_t total, int64_t parts, uint64_t seed, int64_t sample) {
  std::vector<int64_t> cuts = {0, total};
  for (int64_t i = 0; i + 1 < parts; ++i) {
    cuts.push_back(1 + static_cast<int64_t>(shuffled(i, total - 1, seed, static_cast<uint32_t>(sample))));
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<int64_t> sizes;
  for (size_t i = 1; i < cuts.size(); ++i) {
    sizes.push_back(cuts[i] - cuts[i - 1]);
  }
  return sizes;
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> droppedSpans(const SpanLengths& lengths, uint64_t seed, int64_t sample) {
  const std::vector<int64_t> dropped = randomParts(lengths.dropped, lengths.spans, 2 * seed, sample);
  // What lies behind the last span may be nothing: one more than there is in one more part, which gives it back.
  const std::vector<int64_t> kept =
      randomParts(lengths.window - lengths.dropped + 1, lengths.spans + 1, 2 * seed + 1, sample);
  std::vector<std::pair<int64_t, int64_t>> spans;
  int64_t place = 0;
  for (int64_t i = 0; i < lengths.spans; ++i) {
    const int64_t begin = place + kept[i];
    place = begin + dropped[i];
    spans.emplace_back(begin, place);
  }
  return spans;
}

CorruptedRows corruptedRows(const std::vector<int32_t>& windows, int64_t first, const SpanLengths& lengths,
                            const SpanTokens& tokens, uint64_t seed) {
  CorruptedRows rows;
  const int64_t count = static_cast<int64_t>(windows.size()) / lengths.window;
  for (int64_t row = 0; row < count; ++row) {
    const auto window = windows.begin() + row * lengths.window;
    const size_t target = rows.targets.size();
    int32_t sentinel = tokens.lastSentinel;
    int64_t place = 0;
    for (const auto& [begin, end] : droppedSpans(lengths, seed, first + row)) {
      rows.inputs.insert(rows.inputs.end(), window + place, window + begin);
      rows.inputs.push_back(sentinel);
      rows.targets.push_back(sentinel);
      rows.targets.insert(rows.targets.end(), window + begin, window + end);
      place = end;
      --sentinel;
    }
    rows.inputs.insert(rows.inputs.end(), window + place, window + lengths.window);
    rows.targets.push_back(sentinel);
    rows.decoderInputs.push_back(tokens.start);
    rows.decoderInputs.insert(rows.decoderInputs.end(), rows.targets.begin() + target, rows.targets.end() - 1);
  }
  return rows;
}

}  // namespace weft::examples
