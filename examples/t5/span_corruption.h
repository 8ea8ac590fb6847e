// Rows for the training of T5 by span corruption (Raffel et al., "Exploring the limits of transfer learning", 2020,
// sections 3.1.4 and 3.3.4): spans of a window are dropped from the input, each replaced by a sentinel; the answer is
// the spans, each behind its sentinel, and a last sentinel.
//
//   window   Thank you for inviting me to your party last week .
//   input    Thank you <0> me to your party <1> week .
//   target   <0> for inviting <1> last <2>
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weft::examples {

// How many tokens are dropped from a window, in how many spans: the same for every window, so that all inputs are of
// one length, and all targets.
struct SpanLengths {
  int64_t window = 0;
  int64_t dropped = 0;
  int64_t spans = 0;

  int64_t inputs() const { return window - dropped + spans; }
  int64_t targets() const { return dropped + spans + 1; }
  int64_t sentinels() const { return spans + 1; }
};
// A part `share` of the window's tokens in spans of `meanSpan` on average, both rounded; at least one token is dropped,
// and one left. `window` is at least 2.
SpanLengths spanLengths(int64_t window, double share = 0.15, double meanSpan = 3.0);

// First token and end of each span of window number `sample`, ascending; between two spans, and before the first, lies
// at least one token. Depends on (seed, sample) alone: the lengths of spans are any that add up to `dropped`, those
// between them any that add up to the rest, all choices alike.
std::vector<std::pair<int64_t, int64_t>> droppedSpans(const SpanLengths& lengths, uint64_t seed, int64_t sample);

struct SpanTokens {
  int32_t start = 0;         // first token of the decoder's input
  int32_t lastSentinel = 0;  // sentinel i is lastSentinel - i, as in the published vocabulary
};

// Rows one after another.
struct CorruptedRows {
  std::vector<int32_t> inputs;         // [rows, lengths.inputs()]
  std::vector<int32_t> decoderInputs;  // [rows, lengths.targets()], the targets shifted right behind `start`
  std::vector<int32_t> targets;        // [rows, lengths.targets()]
};

// Of windows number `first` and on, [rows, lengths.window].
CorruptedRows corruptedRows(const std::vector<int32_t>& windows, int64_t first, const SpanLengths& lengths,
                            const SpanTokens& tokens, uint64_t seed);

}  // namespace weft::examples
