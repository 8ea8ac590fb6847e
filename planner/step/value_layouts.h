// In which layout each value of a step lies, and in which each operator reads its operands: what follows from the
// decisions and the operators' rules, with nothing left to choose.
//
// Each operator's factor axes say in which layout it reads its operands and leaves its results. Where a value lies
// otherwise than it is read, reshards move it (reshard_paths.h).
//
// Partial sums. A result reduced over a split factor is partial. Cheap operators that are linear in it pass the sum on
// (reshape, scaling, adding two sums partial over the same axes), products of a gradient do where what they make is
// reduced over the same ranks anyway; everything else reads it reduced. What several operators read is reduced once
// before them (planner/graph/sums.h).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/rule.h"
#include "planner/decisions.h"
#include "planner/derive/pads.h"
#include "planner/graph/graph_view.h"
#include "planner/step/place.h"

namespace weft {

struct OperatorLayouts {
  Place place;
  Rule rule;                  // over stored shapes
  FactorAxes axes;            // the time axis included
  std::vector<Layout> reads;  // of each operand, on the mesh of the operator's stage
};

// All layouts are canonical and have pads.
struct StepLayouts {
  StoredShapes stored;
  std::vector<Layout> values;  // as its operator leaves it, or as the argument lies
  std::vector<Layout> seen;    // as readers on its mesh find it: as an out strategy asks, where there is one
  std::vector<OperatorLayouts> operators;  // in the order of the graph
};

// `decisions` is a record of this graph, which has the record's rewrites already. Errors, at the line of an operator:
// pads that do not go together, a rule that does not fit them, an operator or argument that the record does not know.
absl::StatusOr<StepLayouts> layoutsOf(const GraphView& view, const Decisions& decisions);

// The axes of an operator's factors: what was decided, and the time axis where it runs for each micro-batch.
FactorAxes factorAxes(const Rule& rule, const OperatorDecision& decision, const Mesh& mesh);

// The layout that an out strategy asks of a result, with the pads and the micro-batches that its operator leaves.
Layout askedLayout(Layout asked, const Layout& left, const Mesh& mesh);

}  // namespace weft
