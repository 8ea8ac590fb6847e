#include "planner/derive/recompute_scopes.h"

#include <algorithm>
#include <set>

#include "runtime/base/names.h"

namespace weft {
namespace {

bool isForward(const GraphOperator& op) {
  return op.phase == Phase::kForward && !op.prologueOf;
}

bool mayBeRecomputed(const GraphOperator& op) {
  return isForward(op) && !op.operands.empty();
}

}  // namespace

std::vector<std::string> recomputableNames(const GraphView& view) {
  std::set<std::string> names;
  for (int op = 0; op < view.operators(); ++op) {
    if (mayBeRecomputed(view.op(op))) {
      names.insert({view.op(op).facts.kind, view.op(op).label()});
    }
  }
  return {names.begin(), names.end()};
}

bool isRecomputed(const GraphView& view, const std::vector<int64_t>& stages, int op,
                  const std::vector<std::string>& patterns) {
  const GraphOperator& node = view.op(op);
  if (!mayBeRecomputed(node)) {
    return false;
  }
  for (unsigned r = 0; r < node.results.size(); ++r) {
    for (const GraphView::Use& use : view.usesOf(view.resultOf(op, r))) {
      const bool step = use.op == GraphView::kStep;
      const bool forward = !step && isForward(view.op(use.op));
      const bool leavesScope = forward && node.recomputeScope && view.op(use.op).recomputeScope != node.recomputeScope;
      if (step || leavesScope || (forward && stages[use.op] != stages[op])) {
        return false;
      }
    }
  }
  return node.recomputeScope || std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return globMatches(pattern, node.facts.kind) || globMatches(pattern, node.label());
         });
}

}  // namespace weft
