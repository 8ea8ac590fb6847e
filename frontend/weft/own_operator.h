// Operators of one's own, from outside the tree: facts, the shapes of its results, its gradient written with tensors,
// and a kernel. The compiler treats it as one of its own: it is split by its rule, differentiated, recomputed, priced,
// and stands in plans under its name.
//
//   weft::OwnOperator scale;
//   scale.name = "scale_rows";
//   scale.results = [](const auto& in, const auto&) { return std::vector<weft::ValueType>{in[0]}; };
//   scale.rule = [](const auto&) { return "r c, r -> r c"; };
//   scale.linear = {{0}, {1}};
//   scale.gradient = [&](const weft::OwnGradient& g) { ... };
//   const weft::Tensor y = weft::apply(scale, {x, factors}).front();
//   ...
//   weft::Trainer trainer(program, {.kernels = myKernels});  // KernelRegistry::add("scale_rows", ...)
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/describe/attributes.h"
#include "weft/graph.h"

namespace weft {

struct ValueType {
  Shape shape;
  Type type = kF32;
};

// What a gradient works with.
struct OwnGradient {
  std::vector<Tensor> operands;
  std::vector<Tensor> results;
  std::vector<Tensor> resultGradients;  // not valid where none flows
  AttributeMap attributes;
};

struct OwnOperator {
  // Of its kernel, and in plans, explanations and recompute patterns: lower-case letters, digits and '_'; none of the
  // operators that there are.
  std::string name;
  // From the operands and the attributes; an error is reported at the user's line.
  std::function<absl::StatusOr<std::vector<ValueType>>(const std::vector<ValueType>& operands, const AttributeMap&)>
      results;
  // The factor rule (ir/layout/rule.h): what of it may be split. "r c, r -> r c"; `!` marks a dimension that its kernel
  // needs whole.
  std::function<std::string(const std::vector<ValueType>& operands)> rule;
  // Lists of operands in which it is jointly linear: partial sums of these may pass through it.
  std::vector<std::vector<int64_t>> linear = {};
  double work = 1;  // floating-point operations for each element of its results
  // The gradient of each operand, made of operators; not valid: it has none. Empty: the operator has no gradient.
  std::function<std::vector<Tensor>(const OwnGradient&)> gradient = {};
};

// The operator on tensors. Attributes are its kernel's; their names have no '.'. Errors: a name that is taken or no
// name; what `results` says; a rule that does not fit the shapes.
std::vector<Tensor> apply(const OwnOperator& own, const std::vector<Tensor>& operands,
                          const AttributeMap& attributes = {}, SourceLine at = SourceLine::current());

}  // namespace weft
