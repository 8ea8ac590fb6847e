// Propagation: axes flow from what is known to open factors, along the edges of the graph, to a fixpoint.
//
// Priorities, highest first: what the user wrote of operators and inputs (strategies.h); the default of an input's
// batch (defaults.h); what the user wrote of parameters, which says how they are stored; backward operators start with
// the axes of the same loops of their forward operator (planner/graph/iterations.h); what flows along edges, operands
// before results, larger tensors first. An axis flows into a factor only if nothing else of the operator uses it, the
// factor may be split, and its stored size divides. Of a list of axes each goes its way: those in use elsewhere are
// left out, and a later list that begins with what a factor has adds its rest. Where two sources disagree the first
// wins and the other is noted as a conflict (it costs a reshard).
//
// Operands that are sums partial over an axis are added as they are, and their sum is reduced once: an operator that
// passes sums on is not split over an axis that all its operands are partial over.
//
//   x [{dp},{}]    in matmul "m k+, k+ n -> m n" gives m the axis dp; its reader finds dp on its own rows.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/derive/shardings.h"

namespace weft {

class Propagation {
 public:
  // Changes `shardings` from what stands in it.
  Propagation(const SettledGraph& graph, Shardings& shardings)
      : graph_(graph), view_(graph.view), of_(shardings), sums_(graph.view.values()) {}

  // Do parameters' layouts flow? From the start they do not.
  void hearParameters() { parameters_ = true; }
  // To a fixpoint over the operators of one phase.
  void run(Phase phase);

  // The axes over which a value is a partial sum, sorted.
  const AxisList& sumOf(int value) const { return sums_[value]; }

 private:
  bool sweep(Phase phase);
  bool inherit(int op);
  bool fromOperands(int op);
  bool fromReaders(int op);
  // Gives a factor the axes that it can have and has not. Has anything changed?
  bool assign(int op, int factor, const AxisList& axes, const std::string& origin);
  // Could the factor of an operator be split over `axis`, behind `before`?
  enum class Fit : uint8_t { kYes, kInUse, kNo };
  Fit fit(int op, int factor, const AxisList& before, const Axis& axis) const;
  void noteConflict(int op, int factor, const AxisList& axes, const std::string& origin);
  void noteExpansion(int op, int factor);
  // Are operands partial over the axis which the operator adds before the sum is reduced?
  bool addsSums(int op, const Axis& axis) const;
  bool isPartial(int value, const Axis& axis) const;
  // What `sums_` says of the results of an operator, from its operands and axes.
  void noteSums(int op);
  // Does an operator pass on the sum over `axis` that these operands are?
  bool passes(int op, const std::vector<unsigned>& operands, const Axis& axis) const;
  // The layout of a value on the mesh of `reader`.
  std::optional<Layout> layoutAt(int value, int reader) const;
  std::optional<Layout> layoutForForward(int argument, int reader) const;

  const SettledGraph& graph_;
  const GraphView& view_;
  Shardings& of_;
  bool parameters_ = false;
  std::vector<AxisList> sums_;   // of each value
  std::set<std::string> noted_;  // conflicts
};

}  // namespace weft
