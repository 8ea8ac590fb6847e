// Element-wise functions beyond arithmetic: powers, rounding, logic, activations. See weft/ops.h.
#pragma once

#include <optional>

#include "weft/ops_base.h"

namespace weft {

Tensor abs(const Tensor& x, SourceLine at = SourceLine::current());
// -1, 0 or 1. No gradient flows through it, nor through floor and ceil.
Tensor sign(const Tensor& x, SourceLine at = SourceLine::current());
Tensor floor(const Tensor& x, SourceLine at = SourceLine::current());
Tensor ceil(const Tensor& x, SourceLine at = SourceLine::current());
Tensor erf(const Tensor& x, SourceLine at = SourceLine::current());
Tensor sin(const Tensor& x, SourceLine at = SourceLine::current());
Tensor cos(const Tensor& x, SourceLine at = SourceLine::current());
// a^b; a or b may be a number. NaN for a negative a where b is not whole. Gradients: b a^(b-1), 0 where b = 0; and
// a^b log(a), 0 where a = 0.
Tensor pow(const Operand& a, const Operand& b, SourceLine at = SourceLine::current());
// x x; 1 / x.
Tensor square(const Tensor& x, SourceLine at = SourceLine::current());
Tensor reciprocal(const Tensor& x, SourceLine at = SourceLine::current());
// x, but at least `low` and at most `high`; one of them may be absent: clamp(x, 0, {}). The gradient is that of x where
// low <= x <= high, else 0.
Tensor clamp(const Tensor& x, std::optional<double> low, std::optional<double> high,
             SourceLine at = SourceLine::current());

// --- bool ---
Tensor logicalAnd(const Tensor& a, const Tensor& b, SourceLine at = SourceLine::current());
Tensor logicalOr(const Tensor& a, const Tensor& b, SourceLine at = SourceLine::current());
Tensor logicalXor(const Tensor& a, const Tensor& b, SourceLine at = SourceLine::current());
Tensor logicalNot(const Tensor& x, SourceLine at = SourceLine::current());
// weft::select by numpy's name: a where condition holds, else b; one of these may be a number.
Tensor where(const Tensor& condition, const Operand& a, const Operand& b, SourceLine at = SourceLine::current());

// --- activations ---
// 1 / (1 + e^-x).
Tensor sigmoid(const Tensor& x, SourceLine at = SourceLine::current());
// x sigmoid(x) (Elfwing et al. 2017; swish).
Tensor silu(const Tensor& x, SourceLine at = SourceLine::current());
// log(1 + e^x).
Tensor softplus(const Tensor& x, SourceLine at = SourceLine::current());
// x where x > 0, else slope x (Maas et al. 2013).
Tensor leakyRelu(const Tensor& x, double slope = 0.01, SourceLine at = SourceLine::current());
// x where x > 0, else alpha (e^x - 1) (Clevert et al. 2015).
Tensor elu(const Tensor& x, double alpha = 1.0, SourceLine at = SourceLine::current());
// x min(max(x + 3, 0), 6) / 6 (Howard et al. 2019).
Tensor hardSwish(const Tensor& x, SourceLine at = SourceLine::current());

}  // namespace weft
