// Operators as functions on tensors; families of them stand in headers of their own, all included here. Shapes follow
// numpy: element-wise operators broadcast from the right.
// Each takes the user's source line as a default argument. Wrong shapes are remembered as the graph's error.
#pragma once

#include <string>
#include <vector>

#include "weft/ops_attention.h"
#include "weft/ops_base.h"
#include "weft/ops_elementwise.h"
#include "weft/ops_image.h"
#include "weft/ops_index.h"
#include "weft/ops_losses.h"
#include "weft/ops_reduction.h"
#include "weft/ops_shape.h"

namespace weft {

// Operators do not convert element types but of numbers: i32 + f32 is an error, cast(i, kF32) + f its remedy.

// --- element-wise; shapes broadcast; a or b may be a number ---
Tensor add(const Operand& a, const Operand& b, SourceLine at = SourceLine::current());
Tensor sub(const Operand& a, const Operand& b, SourceLine at = SourceLine::current());
Tensor mul(const Operand& a, const Operand& b, SourceLine at = SourceLine::current());
Tensor div(const Operand& a, const Operand& b, SourceLine at = SourceLine::current());
Tensor maximum(const Operand& a, const Operand& b, SourceLine at = SourceLine::current());
Tensor minimum(const Operand& a, const Operand& b, SourceLine at = SourceLine::current());
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator-(const Operand& x);

// Predicates: "eq", "ne", "lt", "le", "gt", "ge". Result: bool.
Tensor compare(const Operand& a, const Operand& b, const std::string& predicate, SourceLine at = SourceLine::current());
// a where condition holds, else b; one of these may be a number.
Tensor select(const Tensor& condition, const Operand& a, const Operand& b, SourceLine at = SourceLine::current());

Tensor neg(const Tensor& x, SourceLine at = SourceLine::current());
Tensor exp(const Tensor& x, SourceLine at = SourceLine::current());
Tensor log(const Tensor& x, SourceLine at = SourceLine::current());
Tensor sqrt(const Tensor& x, SourceLine at = SourceLine::current());
Tensor rsqrt(const Tensor& x, SourceLine at = SourceLine::current());
Tensor tanh(const Tensor& x, SourceLine at = SourceLine::current());
Tensor relu(const Tensor& x, SourceLine at = SourceLine::current());
enum class Gelu : uint8_t { kTanh, kErf };
Tensor gelu(const Tensor& x, Gelu form = Gelu::kTanh, SourceLine at = SourceLine::current());
// x in another element type; to integers towards zero, from bool 0 and 1.
Tensor cast(const Tensor& x, Type type, SourceLine at = SourceLine::current());

// --- contractions ---
struct MatmulOptions {
  bool transposeA = false;
  bool transposeB = false;
};
// a [batch..., m, k] with b [batch..., k, n]: batch dimensions broadcast, whichever operand has more of them. A vector
// is a row on the left and a column on the right, without that dimension in the result. Transposes exchange the last
// two dimensions.
Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {}, SourceLine at = SourceLine::current());
// The sum, over all letters that the result lacks, of products: einsum("btk,kqn->btqn", x, w). A letter is a dimension;
// one that an operand has twice takes its diagonal. Several operands are multiplied two at a time, in the order of
// least arithmetic (of more than six the cheapest pair first): einsum("ab,bc,cd->ad", {x, y, z}).
Tensor einsum(const std::string& spec, const std::vector<Tensor>& operands, SourceLine at = SourceLine::current());
Tensor einsum(const std::string& spec, const Tensor& a, const Tensor& b, SourceLine at = SourceLine::current());

// --- shape ---
Tensor reshape(const Tensor& x, const Shape& shape, SourceLine at = SourceLine::current());  // one size may be -1
// Negative dimensions count from the end here, too.
Tensor transpose(const Tensor& x, const Shape& permutation, SourceLine at = SourceLine::current());
Tensor slice(const Tensor& x, const Shape& offsets, const Shape& sizes, SourceLine at = SourceLine::current());
Tensor concat(const std::vector<Tensor>& xs, int64_t dim, SourceLine at = SourceLine::current());
Tensor broadcastTo(const Tensor& x, const Shape& shape, SourceLine at = SourceLine::current());

// --- reductions; no dims = all ---
Tensor sum(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());
Tensor mean(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());
Tensor max(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());

// --- normalization, losses, attention ---
Tensor softmax(const Tensor& x, SourceLine at = SourceLine::current());  // over the last dimension
// Over any dimension, negative counted from the end. It may be split: ranks then exchange two numbers for each row.
Tensor softmax(const Tensor& x, int64_t dim, SourceLine at = SourceLine::current());
struct LayerNormOptions {
  Shape dims = {};  // normalized together, negative counted from the end; none: the last one
  double epsilon = 1e-5;
};
// gamma and beta have the sizes of `dims`. Splits of the other dimensions stay.
Tensor layerNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const LayerNormOptions& options = {},
                 SourceLine at = SourceLine::current());
// Mean and variance of each channel that a model keeps from step to step: states [c] of the graph.
struct RunningStatistics {
  Tensor mean = {};
  Tensor variance = {};
  double momentum = 0.1;  // weight of a new statistic
};
// gamma (x - mean) / sqrt(variance + epsilon) + beta for x [n, c, ...] and gamma, beta [c]: mean and variance (divided
// by the number of elements) of each channel over the whole micro-batch, on all ranks; padded rows do not count. Which
// rows form a micro-batch depends on the mesh: with dp = d and M micro-batches the p-th M-th part of each of d blocks.
Tensor batchNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon = 1e-5,
                 SourceLine at = SourceLine::current());
// The same; a training step then also moves the running statistics, for each micro-batch in order, towards its mean and
// its variance (divided by the number of elements less one).
Tensor batchNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const RunningStatistics& running,
                 double epsilon = 1e-5, SourceLine at = SourceLine::current());
// Batch norm as a trained model applies it: with the running statistics instead of those of the batch.
Tensor normalize(const Tensor& x, const Tensor& gamma, const Tensor& beta, const RunningStatistics& running,
                 double epsilon = 1e-5, SourceLine at = SourceLine::current());
// Rows of table [V, C] at ids.
Tensor embedding(const Tensor& table, const Tensor& ids, SourceLine at = SourceLine::current());
// Per-token loss of logits [..., V] against labels [...]; 0 where the label is `ignoreIndex`.
Tensor softmaxCrossEntropy(const Tensor& logits, const Tensor& labels, int64_t ignoreIndex = -100,
                           SourceLine at = SourceLine::current());
// sum(loss) / max(1, number of labels that are not ignored), over the whole batch.
Tensor meanValid(const Tensor& loss, const Tensor& labels, int64_t ignoreIndex = -100,
                 SourceLine at = SourceLine::current());
// Zeroes elements with probability `rate` and divides the others by 1 - rate; x itself where it is 0. The mask depends
// on (seed, call, step, global index) only. A model that is evaluated is built with rate 0.
Tensor dropout(const Tensor& x, double rate, int64_t seed = 0, SourceLine at = SourceLine::current());

// --- gradients ---
// d y / d x for each x of `xs`, values of the graph like any other: for updates of one's own (Graph::assign,
// Graph::update), penalties on gradients, or as outputs. y is a scalar; x is a parameter, an input or any value from
// which y was made, of y's element type; where y does not depend on it, zeros. The gradient of a parameter is that of
// the whole batch, also in micro-batches. Errors: an operator between x and y that has no gradient, with its line, when
// the graph is compiled. A gradient can be differentiated again where all operators that it is made of have gradients.
std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, SourceLine at = SourceLine::current());

// --- words for the compiler ---
// The value in this layout, "[{dp},{tp},{}]"; its gradient too.
Tensor constrain(const Tensor& x, const std::string& layout, SourceLine at = SourceLine::current());
// The value, through which no gradient flows.
Tensor stopGradient(const Tensor& x, SourceLine at = SourceLine::current());
// Makes x an output of the program.
Tensor inspect(const Tensor& x, const std::string& name, SourceLine at = SourceLine::current());

}  // namespace weft
