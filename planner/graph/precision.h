// A program with 16-bit values, as a change of its graph: how it would be stored and computed, for prices. The compiler
// makes no such program yet.
//
// Mixed precision (Micikevicius et al., "Mixed precision training", 2018), stored as Megatron-LM stores it: 18 bytes
// for each trained parameter.
//
//   parameter      f32 -> 16 bits                               2 bytes
//   gradient       finished, reduced and accumulated in f32     4
//   master         `master.NAME`, new: the parameter in f32     4   lies as the optimizer's state, so ZeRO splits it
//   Adam's moments f32, as before                               8
//
//   adam(w, dw, m, v) -> w, m, v    becomes    adam(master, dw, m, v) -> master, m, v;  cast(master) -> w
//
// An f32 value that an operator of the forward or backward pass makes has 16 bits, but for
//   - finished gradients of parameters: a product adds up in f32 and writes that;
//   - statistics: results after the first that have fewer dimensions than it (mean and rstd of layer norm, the
//     log-sum-exp of attention and cross-entropy);
//   - what sums over a dimension and is no product (losses, means, norms): kernels add up in f32, and the result is
//   small;
//   - what is made of f32 operands alone, or is a scalar.
// Inputs, the user's own states and what the update computes with stay as they are; other types, too. The loss is not
// scaled: for f16 that would be one more product for each gradient.
#pragma once

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"

namespace weft {

// `type`: kBF16 or kF16. Operators keep their ids, arguments their numbers; masters come after them. Errors: a rule
// that does not fit, a defect.
absl::StatusOr<ProgramGraph> inPrecision(const ProgramGraph& graph, DType type);

}  // namespace weft
