#include "planner/derive/recompute_scopes.h"

#include <algorithm>
#include <set>

#include "planner/graph/segments.h"
#include "planner/request.h"
#include "runtime/base/names.h"

namespace weft {
namespace {

bool isForward(const GraphOperator& op) {
  return op.phase == Phase::kForward && !op.prologueOf;
}

using Scopes = std::vector<std::optional<int64_t>>;  // of each operator

Scopes userScopes(const GraphView& view) {
  Scopes scopes;
  for (int op = 0; op < view.operators(); ++op) {
    scopes.push_back(view.op(op).recomputeScope);
  }
  return scopes;
}

// Each segment but the last, which the backward pass needs at once. Layers that are split differently, by the user or
// by a search, are layers still.
Scopes segmentScopes(const GraphView& view) {
  const Segments segments = segmentsOf(view, LayoutWords::kIgnored);
  const int last = static_cast<int>(segments.classOf.size()) - 1;
  Scopes scopes(view.operators());
  for (int op = 0; op < view.operators(); ++op) {
    const int segment = segments.of[op];
    if (segment != Segments::kNone && (segment < last || last == 0)) {
      scopes[op] = segment;
    }
  }
  return scopes;
}

// Does something read a result that cannot wait for it to be computed again: the step, another stage, another scope?
bool isKept(const GraphView& view, const std::vector<int64_t>& stages, const Scopes& scopes, int op) {
  for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
    for (const GraphView::Use& use : view.usesOf(view.resultOf(op, r))) {
      if (use.op == GraphView::kStep) {
        return true;
      }
      const bool leavesScope = scopes[op] && scopes[op] != kRecomputedAlone && scopes[use.op] != scopes[op];
      if (isForward(view.op(use.op)) && (leavesScope || stages[use.op] != stages[op])) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> recomputableNames(const GraphView& view) {
  std::set<std::string> names;
  for (int op = 0; op < view.operators(); ++op) {
    if (isForward(view.op(op))) {
      names.insert({view.op(op).facts.kind, view.op(op).label()});
    }
  }
  return {names.begin(), names.end()};
}

std::vector<bool> recomputedOps(const GraphView& view, const std::vector<int64_t>& stages, const std::string& option) {
  std::vector<std::string> patterns = recomputePatterns(option);
  Scopes scopes = userScopes(view);
  const bool all = std::erase(patterns, "*") > 0;
  const bool bySegments = all && std::none_of(scopes.begin(), scopes.end(), [](const auto& scope) { return scope; });
  if (bySegments) {
    scopes = segmentScopes(view);
    patterns.clear();
  }
  std::vector<bool> recomputed(view.operators(), false);
  for (int op = 0; op < view.operators(); ++op) {
    const GraphOperator& node = view.op(op);
    const bool isNamed = scopes[op] == kRecomputedAlone ||
                         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
                           return globMatches(pattern, node.facts.kind) || globMatches(pattern, node.label());
                         });
    const bool isMeant = !node.operands.empty() && (scopes[op] || (all && !bySegments));
    recomputed[op] = (isNamed || isMeant) && isForward(node) && !isKept(view, stages, scopes, op);
  }
  return recomputed;
}

}  // namespace weft
