// Propagation: axes flow from what is known to open factors, along the edges of the graph, to a fixpoint.
//
// Priorities, highest first: what the user wrote (strategies.h); backward operators start with their forward operator's
// factors; what flows along edges, operands before results, larger tensors first; the default (defaults.h). An axis
// flows into a factor only if nothing else of the operator uses it, the factor may be split, and its stored size
// divides. Where two sources disagree the first wins and the other is noted as a conflict (it costs a reshard).
//
//   x [{dp},{}]    in matmul "m k+, k+ n -> m n" gives m the axis dp; its reader finds dp on its own rows.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "planner/derive/shardings.h"

namespace weft {

class Propagation {
 public:
  // Changes `shardings` from what stands in it.
  Propagation(const SettledGraph& graph, Shardings& shardings) : graph_(graph), view_(graph.view), of_(shardings) {}

  // To a fixpoint over the operators of one phase.
  void run(Phase phase);

 private:
  bool sweep(Phase phase);
  bool inherit(int op);
  bool fromOperands(int op);
  bool fromReaders(int op);
  // Gives an open factor its axes, if it can have them. Has anything changed?
  bool assign(int op, int factor, const std::vector<Axis>& axes, const std::string& origin);
  bool fits(int op, int factor, const std::vector<Axis>& axes);
  void noteConflict(int op, int factor, const std::vector<Axis>& axes, const std::string& origin);
  // The layout of a value on the mesh of `reader`.
  std::optional<Layout> layoutAt(int value, int reader) const;

  const SettledGraph& graph_;
  const GraphView& view_;
  Shardings& of_;
  std::set<std::string> noted_;  // conflicts
};

}  // namespace weft
