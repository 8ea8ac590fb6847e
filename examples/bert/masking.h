// Rows for the masked-language training of BERT (Devlin et al., "BERT", 2019, section 3.1 and appendix A.1).
#pragma once

#include <cstdint>
#include <vector>

namespace weft::examples {

struct MaskingOptions {
  int64_t context = 0;  // tokens of a row
  int32_t tokens = 0;   // those of the text are 0 .. tokens - 1
  int32_t pad = 0;
  int32_t mask = 0;
  uint64_t seed = 0;
  double asked = 0.15;      // part of the positions that are asked
  double masked = 0.8;      // of these the part that becomes `mask`
  double random = 0.1;      // ... and that becomes any token of the text; the rest stays
  double shortRows = 0.25;  // part of the rows that are shorter than `context`: any length from 1
  int32_t ignored = -100;   // label where nothing is asked
};

// Rows one after another, [rows, context] each.
struct MaskedRows {
  std::vector<int32_t> ids;
  std::vector<int32_t> seen;    // 1, and 0 where there is only padding
  std::vector<int32_t> labels;  // the token that was there, at positions that are asked
};

// The rows of a step from `windows` [rows, context] of the text. What happens to a place depends on (seed, step, row,
// place) alone.
MaskedRows maskedRows(const std::vector<int32_t>& windows, int64_t step, const MaskingOptions& options);

// What a model loses per asked token (in nats) that sees nothing but the token at its place: the entropy of the text
// where that is `mask`; less where it is a token, which often is the right one. `tokens`: the text.
double lossWithoutContext(const std::vector<int32_t>& tokens, const MaskingOptions& options);

}  // namespace weft::examples
