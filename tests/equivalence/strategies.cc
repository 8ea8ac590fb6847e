#include "tests/equivalence/strategies.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/nn/operator_interface.h"
#include "ir/registry.h"

namespace weft::testing {

absl::StatusOr<TargetRule> targetRule(mlir::Operation* op) {
  const mlir::FailureOr<Rule> rule = ir::ruleOf(mlir::cast<ir::OperatorInterface>(op));
  if (mlir::failed(rule)) {
    return absl::InternalError("an operator has no rule");
  }
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  return TargetRule{*rule, ir::resultShapes(op), registry.expansion(op) != nullptr};
}

bool oneBlock(const TargetRule& target, const Parts& parts) {
  for (const auto* tensors : {&target.rule.operands(), &target.rule.results()}) {
    for (const auto& dims : *tensors) {
      for (const DimFactors& dim : dims) {
        bool open = false;
        for (const int f : dim) {
          if (parts[f] > 1 && open) {
            return false;
          }
          open = open || parts[f] != target.rule.factors()[f].size;
        }
      }
    }
  }
  return true;
}

std::vector<Parts> legalParts(const TargetRule& target, int64_t ranks, bool whole) {
  std::vector<Parts> all = {{}};
  const std::vector<Factor>& factors = target.rule.factors();
  for (size_t f = 0; f < factors.size(); ++f) {
    std::vector<Parts> longer;
    const bool open =
        target.rule.splittable(static_cast<int>(f)) || (whole && target.expands && factors[f].mayExpand());
    for (const Parts& head : all) {
      int64_t used = 1;
      for (const int64_t part : head) {
        used *= part;
      }
      for (int64_t part = 1; part <= (open ? ranks : 1); ++part) {
        if (factors[f].size % part == 0 && ranks % (used * part) == 0) {
          longer.push_back(head);
          longer.back().push_back(part);
        }
      }
    }
    all = std::move(longer);
  }
  std::erase_if(all, [&](const Parts& parts) { return !oneBlock(target, parts); });
  return all;
}

std::string splitsText(const std::vector<std::vector<DimFactors>>& tensors, const Parts& parts) {
  std::vector<std::string> lists;
  for (const auto& dims : tensors) {
    std::vector<int64_t> list;
    for (const DimFactors& dim : dims) {
      list.push_back(1);
      for (const int f : dim) {
        list.back() *= parts[f];
      }
    }
    lists.push_back(absl::StrCat("[", absl::StrJoin(list, ", "), "]"));
  }
  return absl::StrCat("[", absl::StrJoin(lists, ", "), "]");
}

}  // namespace weft::testing
