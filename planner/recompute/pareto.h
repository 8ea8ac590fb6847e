// All sensible choices of what one interval keeps: the exact trade of bytes for seconds.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "planner/recompute/graph.h"

namespace weft::recompute {

struct Point {
  int64_t bytes = 0;       // kept of one micro-batch
  Picoseconds time = 0;    // run again in the backward pass
  std::vector<bool> keep;  // operators whose results are kept

  friend bool operator==(const Point&, const Point&) = default;
};

inline constexpr int kMaxCandidates = 14;

// How many operators are worth deciding about.
int countCandidates(const Graph& graph);
// Those operators, of one group together. Left out, because a best choice needs them not:
//   views and constants        to make them again takes no time and no memory;
//   what only one operator needs whose results are no greater: keeping that one's results saves its time as well
//                              (a sum before its bias, the input of a cast).
// Where more than `most` remain, those with the fewest bytes are decided together with their nearest reader, or with
// what they read: the choice is exact up to `most`, above it an approximation that still has both ends.
std::vector<std::vector<int>> candidatesOf(const Graph& graph, int most = kMaxCandidates);

// The Pareto front of all subsets of the candidates in (bytes, seconds), by falling bytes. The first keeps
// everything that may be kept. Cost of a subset: outcomeOf, so an operator whose operands are dropped pulls those.
std::vector<Point> paretoPoints(const Graph& graph, int most = kMaxCandidates);

// The fronts of graphs, each found once: plans of one program have the same intervals again and again.
class KnownFronts {
 public:
  // paretoPoints; it stays where it is.
  const std::vector<Point>& of(const Graph& graph, int most = kMaxCandidates);

 private:
  absl::node_hash_map<std::pair<Graph, int>, std::vector<Point>> known_;
};

}  // namespace weft::recompute
