// Repeated parts of the forward pass, found by structure: the layers of a transformer, the blocks of a residual
// network.
//
// Two operators are alike if they have the same kind, rule, sizes and attributes, and the same words for layouts unless
// those are ignored; names, numbers and seeds do not matter. In the program's order, the stretch that a period of alike
// operators covers furthest is cut into its repeats, then what lies before and behind it in the same way. Of the
// possible borders those are taken over which fewest bytes pass. What repeats nothing is a segment of its own.
#pragma once

#include <vector>

#include "planner/graph/graph_view.h"

namespace weft {

struct Segments {
  static constexpr int kNone = -1;
  std::vector<int> of;       // of each operator: its segment; kNone outside of the forward pass
  std::vector<int> classOf;  // of each segment, in program order; equal ones have alike operators, joined alike
};

// Do strategies and constraints tell operators apart?
enum class LayoutWords { kCompared, kIgnored };

Segments segmentsOf(const GraphView& view, LayoutWords words = LayoutWords::kCompared);

// Marks the operators of each stretch of alike segments but for its first two and its last two, which have other
// neighbors: GraphOperator::alike is the id of the one that stands at its place in the third or fourth of them, by
// turns, since the layers of a chain of products are best split by turns along columns and along rows.
void markAlike(ProgramGraph& graph);

}  // namespace weft
