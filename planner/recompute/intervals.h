// Cuts the stages' graphs into intervals, and finds the equal ones.
//
// A cut is possible where a single value passes from the operators before it to those after it: the residual stream of
// a transformer, a chain's link. That value is kept when anything needs it, so intervals can be decided one by one.
// Beside it may pass what many layers read, as an encoder's output or a mask: it is kept as well. The smallest
// intervals between cuts are joined again, the most frequent pair of neighbors first, while the joined interval has few
// enough candidates for an exact choice: halves of layers become layers, layers that do little become pairs.
#pragma once

#include <vector>

#include "planner/recompute/graph.h"

namespace weft::recompute {

// Operators first, ..., last - 1 of a stage's graph.
struct Interval {
  int stage = 0;  // index of the graph
  int first = 0;
  int last = 0;
  int intervalClass = 0;  // index into the classes
};

struct Intervals {
  std::vector<Interval> intervals;  // in order
  std::vector<Graph> classes;       // what an interval of each class looks like
};

Intervals cutIntoIntervals(const std::vector<Graph>& stages);

// Operators first, ..., last - 1 as a graph of their own. What they read of others counts as kept by those where the
// backward pass reads it too, or where it is `shared` (of each value; empty: none is): it is kept once for all
// intervals that read it. What others read of them must be there: its operator may not be repeated.
Graph intervalOf(const Graph& stage, int first, int last, const std::vector<bool>& shared = {});

}  // namespace weft::recompute
