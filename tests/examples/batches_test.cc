// What the examples ask of a language model: masked tokens (bert), dropped spans (t5); and what a model without context
// would lose.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "examples/bert/masking.h"
#include "examples/common/text.h"
#include "examples/t5/span_corruption.h"

namespace weft::examples {
namespace {

constexpr int32_t kTokens = 50;
constexpr int32_t kPad = 50;
constexpr int32_t kMask = 51;

// Rows of the text 0, 1, ..., 49, 0, 1, ...
std::vector<int32_t> windowsOf(int64_t rows, int64_t context) {
  std::vector<int32_t> windows(rows * context);
  for (size_t i = 0; i < windows.size(); ++i) {
    windows[i] = static_cast<int32_t>(i % kTokens);
  }
  return windows;
}

MaskingOptions maskingOf(int64_t context) {
  return {.context = context, .tokens = kTokens, .pad = kPad, .mask = kMask, .seed = 7};
}

// Share of 40000 draws with probability p: further off than five deviations is no accident.
void expectShare(int64_t count, int64_t of, double p) {
  const double n = static_cast<double>(of);
  EXPECT_NEAR(static_cast<double>(count), p * n, 5 * std::sqrt(n * p * (1 - p))) << count << " of " << of;
}

TEST(MaskingTest, AsksAndReplacesTheShares) {
  const int64_t context = 100;
  const std::vector<int32_t> windows = windowsOf(400, context);
  MaskingOptions options = maskingOf(context);
  options.shortRows = 0;
  const MaskedRows rows = maskedRows(windows, 3, options);
  int64_t asked = 0, masked = 0, kept = 0, other = 0;
  std::set<int32_t> others;
  for (size_t i = 0; i < windows.size(); ++i) {
    EXPECT_EQ(rows.seen[i], 1);
    if (rows.labels[i] == options.ignored) {
      EXPECT_EQ(rows.ids[i], windows[i]) << "not asked, yet changed: " << i;
      continue;
    }
    EXPECT_EQ(rows.labels[i], windows[i]);
    ++asked;
    masked += rows.ids[i] == kMask;
    kept += rows.ids[i] == windows[i];
    if (rows.ids[i] != kMask && rows.ids[i] != windows[i]) {
      ++other;
      others.insert(rows.ids[i]);
    }
  }
  expectShare(asked, static_cast<int64_t>(windows.size()), 0.15);
  expectShare(masked, asked, 0.8);
  // A random token is that of the text now and then.
  expectShare(other, asked, 0.1 * (kTokens - 1) / kTokens);
  expectShare(kept, asked, 0.1 + 0.1 / kTokens);
  EXPECT_GT(others.size(), 40u);
  EXPECT_LT(*others.rbegin(), kTokens);
}

TEST(MaskingTest, ShortRowsEndInPadding) {
  const int64_t context = 20;
  const int64_t count = 2000;
  const std::vector<int32_t> windows = windowsOf(count, context);
  const MaskingOptions options = maskingOf(context);
  const MaskedRows rows = maskedRows(windows, 0, options);
  int64_t shorter = 0;
  std::set<int64_t> lengths;
  for (int64_t row = 0; row < count; ++row) {
    const auto seen = rows.seen.begin() + row * context;
    const int64_t length = std::accumulate(seen, seen + context, int64_t{0});
    lengths.insert(length);
    shorter += length < context;
    for (int64_t place = 0; place < context; ++place) {
      const int64_t i = row * context + place;
      EXPECT_EQ(rows.seen[i], place < length ? 1 : 0);
      if (place >= length) {
        EXPECT_EQ(rows.ids[i], kPad);
        EXPECT_EQ(rows.labels[i], options.ignored);
      }
    }
  }
  // One length of 20 is the whole context.
  expectShare(shorter, count, options.shortRows * (context - 1) / context);
  EXPECT_EQ(*lengths.begin(), 1);
  EXPECT_EQ(lengths.size(), static_cast<size_t>(context));
}

TEST(MaskingTest, DependsOnSeedAndStepAlone) {
  const std::vector<int32_t> windows = windowsOf(16, 30);
  MaskingOptions options = maskingOf(30);
  const MaskedRows rows = maskedRows(windows, 5, options);
  const MaskedRows again = maskedRows(windows, 5, options);
  EXPECT_EQ(rows.ids, again.ids);
  EXPECT_EQ(rows.labels, again.labels);
  EXPECT_NE(rows.labels, maskedRows(windows, 6, options).labels);
  // Fewer rows are the first of more.
  const MaskedRows fewer = maskedRows(windowsOf(4, 30), 5, options);
  EXPECT_TRUE(std::equal(fewer.labels.begin(), fewer.labels.end(), rows.labels.begin()));
  EXPECT_TRUE(std::equal(fewer.ids.begin(), fewer.ids.end(), rows.ids.begin()));
  options.seed = 8;
  EXPECT_NE(rows.labels, maskedRows(windows, 5, options).labels);
}

// Two tokens of three to one, by hand: a token v is seen at half of 0.1 of the asked places as any token, and at 0.1
// p(v) as itself.
TEST(MaskingTest, LossWithoutContext) {
  MaskingOptions options = maskingOf(4);
  options.tokens = 2;
  const std::vector<int32_t> text = {0, 0, 0, 1};
  const double entropy = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  const auto part = [](double both, double seen) { return -both * std::log(both / seen); };
  const double seen0 = 0.05 + 0.1 * 0.75;
  const double seen1 = 0.05 + 0.1 * 0.25;
  EXPECT_NEAR(lossWithoutContext(text, options),
              0.8 * entropy + part(0.75 * 0.15, seen0) + part(0.25 * 0.05, seen0) + part(0.75 * 0.05, seen1) +
                  part(0.25 * 0.15, seen1),
              1e-12);
  options.masked = 1;
  options.random = 0;
  EXPECT_NEAR(lossWithoutContext(text, options), entropy, 1e-12);
}

TEST(SpansTest, LengthsOfTheWindow) {
  // The published setting: 15 % in spans of 3.
  const SpanLengths lengths = spanLengths(512);
  EXPECT_EQ(lengths.dropped, 77);
  EXPECT_EQ(lengths.spans, 26);
  EXPECT_EQ(lengths.inputs(), 512 - 77 + 26);
  EXPECT_EQ(lengths.targets(), 77 + 26 + 1);
  for (int64_t window = 2; window < 200; ++window) {
    const SpanLengths some = spanLengths(window);
    EXPECT_GE(some.spans, 1);
    EXPECT_LE(some.spans, some.dropped);
    EXPECT_LE(some.spans, window - some.dropped);
  }
}

TEST(SpansTest, DoNotTouch) {
  for (const int64_t window : {2, 3, 7, 20, 65, 128}) {
    const SpanLengths lengths = spanLengths(window);
    std::set<std::vector<std::pair<int64_t, int64_t>>> kinds;
    for (int64_t sample = 0; sample < 200; ++sample) {
      const auto spans = droppedSpans(lengths, 3, sample);
      kinds.insert(spans);
      ASSERT_EQ(static_cast<int64_t>(spans.size()), lengths.spans);
      int64_t end = 0;
      int64_t dropped = 0;
      for (const auto& [begin, next] : spans) {
        EXPECT_GT(begin, end == 0 ? 0 : end) << "sample " << sample;
        EXPECT_GT(next, begin);
        dropped += next - begin;
        end = next;
      }
      EXPECT_LE(end, window);
      EXPECT_EQ(dropped, lengths.dropped);
      EXPECT_EQ(spans, droppedSpans(lengths, 3, sample));
    }
    if (window >= 65) {
      EXPECT_GT(kinds.size(), 50u) << window;
    }
  }
  EXPECT_NE(droppedSpans(spanLengths(128), 3, 0), droppedSpans(spanLengths(128), 4, 0));
}

TEST(SpansTest, LastSpanMayEndTheWindowOrNot) {
  const SpanLengths lengths = spanLengths(20);
  int64_t atEnd = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    atEnd += droppedSpans(lengths, 1, sample).back().second == 20;
  }
  EXPECT_GT(atEnd, 0);
  EXPECT_LT(atEnd, 500);
}

// The spans put back where their sentinels stand give the window.
TEST(SpansTest, EveryTokenIsInInputOrTargetOnce) {
  const SpanTokens tokens = {.start = kTokens, .lastSentinel = 99};
  const int64_t window = 65;
  const int64_t count = 40;
  const SpanLengths lengths = spanLengths(window);
  const std::vector<int32_t> windows = windowsOf(count, window);
  const CorruptedRows rows = corruptedRows(windows, 11, lengths, tokens, 5);
  ASSERT_EQ(static_cast<int64_t>(rows.inputs.size()), count * lengths.inputs());
  ASSERT_EQ(static_cast<int64_t>(rows.targets.size()), count * lengths.targets());
  ASSERT_EQ(rows.decoderInputs.size(), rows.targets.size());
  for (int64_t row = 0; row < count; ++row) {
    const auto target = rows.targets.begin() + row * lengths.targets();
    const auto targetEnd = target + lengths.targets();
    const auto shifted = rows.decoderInputs.begin() + row * lengths.targets();
    EXPECT_EQ(*shifted, tokens.start);
    EXPECT_TRUE(std::equal(target, targetEnd - 1, shifted + 1));
    std::vector<int32_t> whole;
    int32_t sentinel = tokens.lastSentinel;
    auto at = target;
    for (int64_t i = 0; i < lengths.inputs(); ++i) {
      const int32_t token = rows.inputs[row * lengths.inputs() + i];
      if (token < kTokens) {
        whole.push_back(token);
        continue;
      }
      EXPECT_EQ(token, sentinel);
      EXPECT_EQ(*at, sentinel);
      for (++at; *at < kTokens; ++at) {
        whole.push_back(*at);
      }
      --sentinel;
    }
    EXPECT_EQ(*at, sentinel);
    EXPECT_EQ(at + 1, targetEnd);
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), windows.begin() + row * window)) << "row " << row;
    EXPECT_EQ(static_cast<int64_t>(whole.size()), window);
  }
}

TEST(EntropyTest, OfKnownShares) {
  EXPECT_DOUBLE_EQ(unigramEntropy({4, 4, 4}), 0);
  EXPECT_NEAR(unigramEntropy({0, 1, 2, 3}), std::log(4.0), 1e-12);
  EXPECT_NEAR(unigramEntropy({0, 0, 0, 9}), -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-12);
}

TEST(LikeliestTest, IsTheGreatestOfEachRow) {
  const std::vector<float> logits = {0, 2, 1, 5, -1, 3};
  const char* bytes = reinterpret_cast<const char*>(logits.data());
  EXPECT_THAT(likeliestTokens({bytes, bytes + sizeof(float) * logits.size()}, 2), testing::ElementsAre(1, 0));
}

}  // namespace
}  // namespace weft::examples
