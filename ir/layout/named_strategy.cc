// The user's splits by axis names, one layout for each operand, to axes of factors.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/layout/rule.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

bool stands(int factor, const std::vector<DimFactors>& dims) {
  return std::any_of(dims.begin(), dims.end(),
                     [&](const DimFactors& dim) { return std::find(dim.begin(), dim.end(), factor) != dim.end(); });
}

}  // namespace

absl::StatusOr<NamedStrategy> resolveNames(const Rule& rule, const std::vector<Layout>& in, const Mesh& mesh) {
  if (in.size() != rule.operands().size()) {
    return absl::InvalidArgumentError(absl::StrCat("the strategy has ", in.size(), " operands, the operator ",
                                                   rule.operands().size(),
                                                   "; give one list of axis names per operand"));
  }
  NamedStrategy strategy{FactorAxes(rule.factors().size()), std::vector<bool>(rule.factors().size(), false)};
  std::vector<size_t> from(rule.factors().size(), 0);
  for (size_t i = 0; i < in.size(); ++i) {
    const Rule::Projection projected = rule.projectOperand(i, in[i]);
    if (!projected.overflow.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " as ", in[i].print(mesh),
                       " splits a dimension that the operator sees as several, across their border; use fewer parts"));
    }
    for (size_t f = 0; f < strategy.axes.size(); ++f) {
      if (!stands(static_cast<int>(f), rule.operands()[i])) {
        continue;
      }
      if (strategy.said[f] && strategy.axes[f] != projected.axes[f]) {
        return absl::InvalidArgumentError(absl::StrCat("dimension '", rule.factors()[f].name, "' is split over ",
                                                       Layout({strategy.axes[f]}).print(mesh), " in operand ", from[f],
                                                       " but over ", Layout({projected.axes[f]}).print(mesh),
                                                       " in operand ", i, "; write the same axes in both"));
      }
      strategy.axes[f] = projected.axes[f];
      strategy.said[f] = true;
      from[f] = i;
    }
  }
  return strategy;
}

}  // namespace weft
