#include "planner/cost/alternative_kernels.h"

#include <algorithm>
#include <utility>

#include "kernels/describe/kernel_spec.h"
#include "planner/graph/flops.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Has it a kernel in the pass of the operator that it may stand for?
bool hasKernel(const AlternativeOperator& op) {
  return op.facts.view == ViewKind::kNone && !op.facts.isConstant && !op.phase;
}

// The operators of the body without which none of the results that are read can be made.
std::vector<bool> neededParts(const Alternative& alternative, const std::vector<bool>& read) {
  std::vector<bool> needed(alternative.body.size(), false);
  const auto need = [&needed](const GraphValue& value) {
    if (!value.isArgument()) {
      needed[static_cast<size_t>(value.producer)] = true;
    }
  };
  for (size_t r = 0; r < read.size(); ++r) {
    if (read[r]) {
      need(alternative.results[r]);
    }
  }
  for (size_t part = needed.size(); part > 0; --part) {
    if (needed[part - 1]) {
      std::ranges::for_each(alternative.body[part - 1].operands, need);
    }
  }
  return needed;
}

}  // namespace

bool takesNothing(const Alternative& alternative) {
  return std::none_of(alternative.body.begin(), alternative.body.end(), hasKernel);
}

std::optional<AddedSum> perhapsAdded(const OperatorFacts& facts) {
  return facts.kind == kContractKernel ? std::optional(AddedSum{0, kContractAccumulateKernel}) : std::nullopt;
}

AlternativeKernels::AlternativeKernels(const GraphView& view, std::vector<bool> sized)
    : view_(view), sized_(std::move(sized)) {
  for (int op = 0; op < view.operators(); ++op) {
    const GraphOperator& node = view.op(op);
    for (unsigned r = 0; r < node.results.size() && node.facts.mustExpand && !node.alternatives.empty(); ++r) {
      const Alternative& alternative = node.alternatives.front();
      const GraphValue& made = alternative.results[r];
      if (!made.isArgument()) {
        types_[view.resultOf(op, r)] = alternative.body[static_cast<size_t>(made.producer)].results[made.index];
      }
    }
  }
}

// `sizedParts`: of each operator of the body, has what it makes an element for each micro-batch?
AlternativeKernels::Operand AlternativeKernels::operandOf(int op, const Alternative& alternative,
                                                          const GraphValue& value,
                                                          const std::vector<bool>& sizedParts) const {
  if (!value.isArgument()) {
    const auto producer = static_cast<size_t>(value.producer);
    return {alternative.body[producer].results[value.index], sizedParts[producer]};
  }
  const int operand = view_.operandOf(op, value.index);
  const auto expanded = types_.find(operand);
  return {expanded == types_.end() ? view_.typeOf(operand) : expanded->second, sized_[operand]};
}

absl::StatusOr<std::vector<KernelWork>> AlternativeKernels::of(int op, const Alternative& alternative,
                                                               const std::vector<bool>& read) const {
  const std::vector<bool> needed = neededParts(alternative, read);
  std::vector<bool> sized(alternative.body.size(), false);
  std::vector<KernelWork> kernels;
  for (size_t p = 0; p < alternative.body.size(); ++p) {
    const AlternativeOperator& part = alternative.body[p];
    std::vector<Shape> operands;
    std::vector<Shape> results;
    std::vector<DType> types;
    std::vector<int64_t> bytes;  // of operands, then of results
    for (const GraphValue& value : part.operands) {
      const Operand operand = operandOf(op, alternative, value, sized);
      sized[p] = sized[p] || operand.isSized;
      operands.push_back(operand.type.shape);
      types.push_back(operand.type.type);
      bytes.push_back(operand.type.bytes());
    }
    for (const TensorType& type : part.results) {
      results.push_back(type.shape);
      bytes.push_back(type.bytes());
    }
    WEFT_ASSIGN_OR_RETURN(const Rule rule, Rule::parse(part.facts.rule, operands, results));
    if (sized[p] && !rule.namesMicroBatches()) {
      continue;
    }
    sized[p] = std::ranges::any_of(rule.results(), [&](const auto& dims) { return rule.hasMicroBatches(dims); });
    if (!needed[p] || !hasKernel(part)) {
      continue;
    }
    KernelWork work = arithmeticOf(part.facts, rule, FactorAxes(rule.factors().size()));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const bool isOperand = i < operands.size();
      work.bytes +=
          rule.hasMicroBatches(isOperand ? rule.operands()[i] : rule.results()[i - operands.size()]) ? 0 : bytes[i];
    }
    work.kernel = part.facts.kind;
    work.sum = perhapsAdded(part.facts);
    work.type = arithmeticType(types, part.results[0].type);
    kernels.push_back(std::move(work));
  }
  return kernels;
}

}  // namespace weft
