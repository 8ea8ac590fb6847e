#include "tests/equivalence/operator_strategies.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/derive/shardings.h"

namespace weft::testing {

std::vector<UserStrategy> strategiesOf(const GraphView& view, int op, const Mesh& mesh) {
  const StoredShapes shapes(view);
  const absl::StatusOr<Rule> rule = ruleOf(view, shapes, op);
  std::vector<UserStrategy> strategies;
  if (!rule.ok()) {
    return strategies;
  }
  const std::vector<NamedAxis> axes = mesh.axes();
  const size_t choices = rule->factors().size() + 1;
  size_t all = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    all *= choices;
  }
  for (size_t number = 0; number < all; ++number) {
    FactorAxes chosen(rule->factors().size());
    size_t rest = number;
    for (const NamedAxis& axis : axes) {
      if (rest % choices > 0) {
        chosen[rest % choices - 1].push_back(axis.axis);
      }
      rest /= choices;
    }
    if (!rule->check(chosen, mesh).ok()) {
      continue;
    }
    UserStrategy& strategy = strategies.emplace_back();
    strategy.byName = true;
    for (size_t i = 0; i < rule->operands().size(); ++i) {
      std::vector<std::string>& dims = strategy.inNames.emplace_back();
      const Layout layout = rule->operandLayout(i, chosen);
      for (const AxisList& dim : layout.dims()) {
        dims.push_back(absl::StrJoin(dim, ",", [&](std::string* out, const Axis& a) { out->append(mesh.name(a)); }));
      }
    }
  }
  return strategies;
}

std::string printed(const UserStrategy& strategy) {
  return absl::StrJoin(strategy.inNames, " ", [](std::string* out, const std::vector<std::string>& dims) {
    absl::StrAppend(out, "(", absl::StrJoin(dims, "|"), ")");
  });
}

}  // namespace weft::testing
