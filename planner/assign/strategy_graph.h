// A strategy graph from elsewhere, in the form of the contest on intra-operator parallelism of ASPLOS 2025 (IOPDDL):
//
//   {"problem": {"nodes": {"intervals": [[0, 2], [1, 3]], "costs": [[3, 1], [0, 2]], "usages": [[4, 9], [2, 2]]},
//                "edges": {"nodes": [[0, 1]], "costs": [[0, 5, 5, 0]]},
//                "usage_limit": 10}}
//
// Each node takes one strategy. A choice costs the sum of its strategies' costs and, for each edge, of the entry of its
// pair of strategies (row-major). A node is live from the first number of its interval until before the second; at no
// time may the usages of live nodes exceed the limit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/assign/model.h"

namespace weft::assign {

// What costs as much, or more, cannot be chosen: such graphs write 1e18 for "impossible". Sums of smaller whole numbers
// are exact in a double as long as they are below 2^53.
inline constexpr double kImpossibleCost = 1e15;

// Lists of different lengths, one behind the other.
template <typename Value>
struct Rows {
  std::vector<Value> values;
  std::vector<size_t> begins = {0};  // of each list; the last is where the next one would begin

  size_t size() const { return begins.size() - 1; }
  size_t sizeOf(size_t row) const { return begins[row + 1] - begins[row]; }
  const Value* of(size_t row) const { return values.data() + begins[row]; }
};

struct StrategyGraph {
  Rows<int64_t> intervals;  // of each node: two
  Rows<double> costs;       // of each node: of each strategy
  Rows<int64_t> usages;
  Rows<int64_t> edges;  // of each edge: two nodes
  Rows<double> edgeCosts;
  std::optional<int64_t> usageLimit;

  size_t nodes() const { return costs.size(); }
};

// Errors name the list and the entry, both values, and what was expected. Other names in the objects are passed over; a
// missing or null limit, and missing edges, are none.
absl::StatusOr<StrategyGraph> parseStrategyGraph(const std::string& text);

struct StrategyChoice {
  bool feasible = false;
  bool provenInfeasible = false;  // else, if not feasible: none was found within the budget
  std::vector<int> strategies;
  double cost = 0;
  double bound = 0;  // no choice costs less
  double gap = 0;    // (cost - bound) / |cost|
  int64_t peakUsage = 0;
  int64_t ticks = 0;
};

// `effort` scales the budget: 1 is about as many nanoseconds of one core as SolveOptions::ticks says. Errors: usages or
// costs whose sums are beyond 64 bits.
absl::StatusOr<StrategyChoice> chooseStrategies(const StrategyGraph& graph, double effort);

}  // namespace weft::assign
