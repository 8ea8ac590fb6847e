// Attention, its normalization and its positions. See weft/ops.h.
#pragma once

#include <optional>

#include "weft/ops_base.h"

namespace weft {

// gamma x / sqrt(mean of x^2 + epsilon) over the last dimension (Zhang and Sennrich, "Root mean square layer
// normalization", 2019); gamma has its size. Splits of the other dimensions stay.
Tensor rmsNorm(const Tensor& x, const Tensor& gamma, double epsilon = 1e-6, SourceLine at = SourceLine::current());
struct AttentionOptions {
  bool causal = false;               // query t sees keys 0 to t
  std::optional<double> scale = {};  // 1 / sqrt(width) unless given
  Tensor mask = {};                  // bool: true where a query sees a key; a query that sees none gets zeros
  Tensor bias = {};                  // added to the scores
  double dropout = 0;                // rate; see weft::dropout
  int64_t seed = 0;                  // of dropout
};
// softmax(scale q k^T + bias) v for q [B, H, T, D], k and v [B, G, S, D] -> [B, H, T, D]. G divides H: heads of q in a
// row share a head of k and v ("grouped" heads; G = 1 is multi-query attention). mask and bias broadcast against the
// scores [B, H, T, S], of which they have S. One operator that keeps no scores; with `dropout`, which zeroes elements
// of the softmax, several that do.
Tensor scaledDotProductAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                                 const AttentionOptions& options = {}, SourceLine at = SourceLine::current());
// Position embedding by rotation (Su et al., "RoFormer", 2021) of x [..., T, D]: pair i of row t is turned by the angle
// whose cosine and sine stand in cos and sin [T, D / 2]. Pairs are (i, i + D / 2), as in LLaMA's published weights, or
// (2 i, 2 i + 1) where `interleaved`.
Tensor rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved = false,
              SourceLine at = SourceLine::current());
// The constants cos and sin of t base^(-2 i / width) for t < rows, i < width / 2.
struct RotaryTables {
  Tensor cos;
  Tensor sin;
};
RotaryTables rotaryTables(Graph& g, int64_t rows, int64_t width, double base = 10000, Type type = kF32,
                          SourceLine at = SourceLine::current());

}  // namespace weft
