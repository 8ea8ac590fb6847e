// Operators of one's own, from outside the tree: facts, the shapes of its results, its gradient written with tensors,
// and a kernel. The compiler treats it as one of its own: it is split by its rule, differentiated, recomputed, priced,
// searched, and stands in dumps and plans under its name.
//
//   weft::OwnOperator scale;
//   scale.name = "scale_rows";
//   scale.results = [](const auto& in, const auto&) { return std::vector<weft::ValueType>{in[0]}; };
//   scale.rule = [](const auto&) { return "r c, r -> r c"; };
//   scale.linear = {{0}, {1}};
//   scale.gradient = [](const weft::OwnGradient& g) { ... };
//   const weft::Tensor y = weft::apply(scale, {x, factors}).front();
//   ...
//   weft::Trainer trainer(program, {.kernels = myKernels});  // KernelRegistry::add("scale_rows", ...)
//
// Its functions are called while the graph is built, for each new combination of shapes and attributes; what they say
// stands in the graph from then on, so that a dumped program can be compiled again without them. Its kernel is called
// for a rank's part, with that part's shapes; attributes keep the values of the whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/layout.h"
#include "kernels/describe/attributes.h"
#include "kernels/describe/describe.h"
#include "weft/graph.h"

namespace weft {

struct ValueType {
  Shape shape;
  Type type = kF32;
};

// What a gradient works with; it reads no other tensors.
struct OwnGradient {
  std::vector<Tensor> operands;
  std::vector<Tensor> results;
  std::vector<Tensor> resultGradients;  // zeros where none flows; not valid for results that are no floats
  AttributeMap attributes;
};

// The place of a rank's part in the whole tensor, in one dimension.
struct OwnOrigin {
  bool ofResult = false;  // or of an operand
  size_t index = 0;       // which one
  size_t dim = 0;
};

struct OwnOperator {
  // Of its kernel, and in plans, explanations and recompute patterns: lower-case letters, digits and '_'; none of the
  // operators that there are. In one graph, operators of one name are one operator.
  std::string name;
  // From the operands and the attributes; an error is reported at the user's line.
  std::function<absl::StatusOr<std::vector<ValueType>>(const std::vector<ValueType>& operands, const AttributeMap&)>
      results;
  // The factor rule (ir/layout/rule.h): what of it may be split. "r c, r -> r c"; `!` marks a dimension that its kernel
  // needs whole, `+` one that it reduces.
  std::function<std::string(const std::vector<ValueType>& operands)> rule;
  // Lists of operands in which it is jointly linear: partial sums of these may pass through it.
  std::vector<std::vector<int64_t>> linear = {};
  double work = 1;  // floating-point operations for each element of its results, at most 2^40
  // The gradient of each operand, made of operators; not valid: it has none. Empty: the operator has no gradient.
  std::function<std::vector<Tensor>(const OwnGradient&)> gradient = {};
  // How ranks that split a `+` factor combine a result; those not listed are sums.
  std::vector<ReduceKind> reduce = {};
  // What elements of operand i that a pad adds must hold so that they change nothing where their dimension is whole
  // (`!`). None, or not listed: no such dimension is padded. In a reduced one they hold what its reduction passes over.
  std::vector<std::optional<double>> padFill = {};
  // Offsets that its kernel receives as scalars, in this order (KernelArguments::scalars).
  std::vector<OwnOrigin> origins = {};
  // Outputs that may lie in the memory of an input, where both have one type and size: the kernel reads each element
  // before it writes that of the same number.
  std::vector<InPlacePair> inPlace = {};
  // Scratch memory in bytes, an upper bound of Kernel::workspaceBytes(): whatever the shapes are, and for each element
  // of a rank's results.
  int64_t scratchBytes = 0;
  int64_t scratchBytesPerElement = 0;
};

// The operator on tensors. Attributes are its kernel's; their names have no '.'. Errors: a name that is taken or no
// name; what `results` says; a rule that does not fit the shapes; facts about operands, results or dimensions that
// there are not; a gradient of another shape than its operand, or of tensors from elsewhere.
std::vector<Tensor> apply(const OwnOperator& own, const std::vector<Tensor>& operands,
                          const AttributeMap& attributes = {}, SourceLine at = SourceLine::current());

}  // namespace weft
