#include "planner/derive/alike_layers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weft {
namespace {

class Finder {
 public:
  Finder(const SettledGraph& graph, const Candidates& candidates, const Shardings& shardings,
         const std::vector<bool>& depends, const std::vector<std::vector<int>>& backward)
      : graph_(graph),
        view_(graph.view),
        candidates_(candidates),
        shardings_(shardings),
        depends_(depends),
        backward_(backward) {}

  AlikeLayers run() {
    AlikeLayers made;
    made.operators.assign(view_.operators(), 0);
    std::map<std::pair<int64_t, int64_t>, int> first;  // by the operator that they are alike to, and the mesh
    for (int op = 0; op < view_.operators(); ++op) {
      made.decidedBy.push_back(op);
      if (const std::optional<int64_t>& alike = view_.op(op).alike; alike && candidates_.of[op].size() > 1) {
        const int decides = first.try_emplace({*alike, graph_.placement.meshNumber(op)}, op).first->second;
        made.decidedBy[op] = haveSameChoice(op, decides) ? decides : op;
      }
      ++made.operators[made.decidedBy[op]];
    }
    made.values.assign(view_.values(), 0);
    std::map<std::vector<int64_t>, int> known;
    for (int value = 0; value < view_.values(); ++value) {
      ++made.values[known.try_emplace(costOf(value, made), value).first->second];
    }
    return made;
  }

 private:
  const Rule& ruleOf(int op) const { return shardings_.operators[op].rule; }

  bool haveSameSizes(int a, int b) const {
    const std::vector<Factor>& x = ruleOf(a).factors();
    const std::vector<Factor>& y = ruleOf(b).factors();
    return view_.op(a).facts.kind == view_.op(b).facts.kind && ruleOf(a).text() == ruleOf(b).text() &&
           std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Factor& s, const Factor& t) { return s.size == t.size; });
  }

  bool haveSameChoice(int a, int b) const {
    return a == b || (candidates_.of[a] == candidates_.of[b] && haveSameSizes(a, b) &&
                      shardings_.operators[a].fixed == shardings_.operators[b].fixed &&
                      std::equal(backward_[a].begin(), backward_[a].end(), backward_[b].begin(), backward_[b].end(),
                                 [&](int x, int y) { return haveSameSizes(x, y); }));
  }

  // All that its reshards depend on. What the user says of a value is its own.
  std::vector<int64_t> costOf(int value, const AlikeLayers& alike) const {
    const std::optional<int> producer = view_.producerOf(value);
    std::vector<int64_t> cost = {static_cast<int64_t>(view_.typeOf(value).type), depends_[value]};
    if (isSaid(value)) {
      return {-1, value};
    }
    if (producer) {
      cost.push_back(alike.decidedBy[*producer]);
      cost.push_back(view_.indexOf(value));
    } else {
      cost.push_back(-1 - static_cast<int64_t>(view_.graph().arguments[value].kind));
      cost.push_back(graph_.zeroLevelOf(value));
    }
    for (const int64_t size : graph_.stored.of(value)) {
      cost.push_back(size);
    }
    for (const GraphView::Use& use : view_.usesOf(value)) {
      if (use.op != GraphView::kStep && view_.op(use.op).phase == Phase::kForward) {
        cost.push_back(alike.decidedBy[use.op]);
        cost.push_back(use.operand);
      }
    }
    return cost;
  }

  bool isSaid(int value) const {
    if (const std::optional<int> producer = view_.producerOf(value)) {
      return !shardings_.operators[*producer].wanted.empty();
    }
    const std::map<int64_t, ArgumentSharding>& meshes = shardings_.arguments[value];
    return std::any_of(meshes.begin(), meshes.end(), [](const auto& entry) { return entry.second.layout.has_value(); });
  }

  const SettledGraph& graph_;
  const GraphView& view_;
  const Candidates& candidates_;
  const Shardings& shardings_;
  const std::vector<bool>& depends_;
  const std::vector<std::vector<int>>& backward_;
};

}  // namespace

AlikeLayers alikeLayers(const SettledGraph& graph, const Candidates& candidates, const Shardings& shardings,
                        const std::vector<bool>& depends, const std::vector<std::vector<int>>& backward) {
  return Finder(graph, candidates, shardings, depends, backward).run();
}

}  // namespace weft
