#include "planner/step/repeats.h"

#include "absl/strings/str_cat.h"

namespace weft {

std::string howOfMask(int64_t dim) {
  return absl::StrCat("mask ", dim);
}

Repeats::Repeats(const Decisions& decisions) {
  for (const OperatorDecision& op : decisions.operators) {
    operators_[op.id] = op.recompute;
  }
  for (const ReshardDecision& entry : decisions.reshards) {
    moves_[keyOf(entry)] = entry.recompute;
  }
}

bool Repeats::ofOperator(int64_t id, const Place& place, bool partialOverTime) const {
  const auto decided = operators_.find(id);
  return place.where == RunsIn::kForward && !partialOverTime && decided != operators_.end() && decided->second;
}

bool Repeats::ofMove(const ReshardDecision& name, const Place& place, bool partialOverTime, bool follows) const {
  const bool isForward = place.where == RunsIn::kForward;
  if ((!isForward && place.where != RunsIn::kBackward) || partialOverTime) {
    return false;
  }
  const auto decided = moves_.find(keyOf(name));
  return decided == moves_.end() ? isForward && follows : decided->second;
}

}  // namespace weft
