#include "planner/cost/product_families.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "planner/derive/micro_batches.h"
#include "planner/graph/iterations.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Roles = std::array<int, kRoles>;

// One for one: all loops of a role are those of one role of the forward operator, of as many elements. A loop of one
// element is split in neither.
std::optional<Roles> rolesOf(const Rule& rule, const std::vector<int>& loops, const Rule& forward) {
  constexpr int kUnknown = -1;
  Roles roles = {kUnknown, kUnknown, kUnknown, kUnknown};
  std::vector<bool> isKnown(forward.factors().size(), false);
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const int64_t size = rule.factors()[f].size;
    if (size <= 1) {
      continue;
    }
    const int same = loops[f];
    if (same == kNoFactor || isKnown[same] || forward.factors()[same].size != size ||
        !rule.splittable(static_cast<int>(f))) {
      return std::nullopt;
    }
    isKnown[same] = true;
    int& role = roles[roleIn(rule, static_cast<int>(f))];
    const int mine = roleIn(forward, same);
    if (role != kUnknown && role != mine) {
      return std::nullopt;
    }
    role = mine;
  }
  for (size_t f = 0; f < forward.factors().size(); ++f) {
    if (forward.factors()[f].size > 1 && !isKnown[f]) {
      return std::nullopt;
    }
  }
  std::array<bool, kRoles> isTaken = {};
  for (const int role : roles) {
    if (role != kUnknown && std::exchange(isTaken[role], true)) {
      return std::nullopt;
    }
  }
  for (int& role : roles) {  // those without a loop have what is left
    if (role == kUnknown) {
      role = static_cast<int>(std::find(isTaken.begin(), isTaken.end(), false) - isTaken.begin());
      isTaken[role] = true;
    }
  }
  return roles;
}

// In compound dimensions an axis may be cut between two loops.
bool isSimple(const Rule& rule) {
  const auto simple = [](const std::vector<DimFactors>& tensor) {
    return std::all_of(tensor.begin(), tensor.end(), [](const DimFactors& dim) { return dim.size() <= 1; });
  };
  return std::all_of(rule.operands().begin(), rule.operands().end(), simple) &&
         std::all_of(rule.results().begin(), rule.results().end(), simple);
}

}  // namespace

ProductRole roleIn(const Rule& rule, int factor) {
  if (!hasFactor(rule.results()[0], factor)) {
    return kSums;
  }
  if (!hasFactor(rule.operands()[1], factor)) {
    return kRows;
  }
  return hasFactor(rule.operands()[0], factor) ? kBatch : kColumns;
}

absl::StatusOr<std::vector<ProductFamily>> productFamilies(const GraphView& view,
                                                           const std::function<bool(int op)>& isProduct) {
  std::vector<Rule> rules;
  for (int op = 0; op < view.operators(); ++op) {
    WEFT_ASSIGN_OR_RETURN(rules.emplace_back(), ruleOf(view, op));
  }
  const ForwardFactors loops = forwardFactors(view, [&](int op) -> const Rule& { return rules[op]; });
  std::map<int, ProductFamily> families;  // by forward operator
  for (int op = 0; op < view.operators(); ++op) {
    const std::optional<int64_t>& id = view.op(op).forward;
    const std::optional<int> forward = id && view.op(op).gradientOf.empty() ? view.find(*id) : std::nullopt;
    if (!forward || *forward == op || !isProduct(op) || !isProduct(*forward) || !isSimple(rules[op]) ||
        !isSimple(rules[*forward])) {
      continue;
    }
    if (const std::optional<Roles> roles = rolesOf(rules[op], loops[op], rules[*forward])) {
      const auto [entry, isNew] = families.try_emplace(*forward);
      if (isNew) {
        entry->second = {{*forward}, {{kBatch, kRows, kColumns, kSums}}};
      }
      entry->second.operators.push_back(op);
      entry->second.roles.push_back(*roles);
    }
  }
  std::vector<ProductFamily> made;
  for (auto& [forward, family] : families) {
    made.push_back(std::move(family));
  }
  return made;
}

}  // namespace weft
