// The assignment problem that a strategy graph is solved as: whole numbers, so that sums and bounds are exact.
//
// A variable takes one of its values. A plan costs the sum of its values' own costs and of a table's entry for each
// edge. Variables occupy memory: a residence says how much of it each value takes in a range of rows (a row is a point
// of time), and no row may hold more than its capacity.
//
//   Model model;
//   model.costs = {{3, 1}, {0, 2}};                                          // two variables of two values
//   model.edges = {{0, 1, tableOf({0, 5, 5, 0})}};                           // equal values are free, others cost 5
//   model.residences = {{{0, 1, {4, 9}}}, {}};                               // variable 0 in row 0
//   model.capacity = {8};                                                    // so value 1 of variable 0 is out
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft::assign {

using Cost = int64_t;

// A value or a pair of values that cannot be chosen; what contains one costs as much.
inline constexpr Cost kForbidden = Cost{1} << 60;
// The greatest cost of one plan, and of all costs of a model added; messages between variables are bounded by a small
// multiple of it, so that sums of them stay within 64 bits.
inline constexpr Cost kMostCost = Cost{1} << 50;

inline Cost plus(Cost a, Cost b) {
  return a >= kForbidden || b >= kForbidden ? kForbidden : a + b;
}

// Shared: graphs repeat few tables very often.
using Table = std::shared_ptr<const std::vector<Cost>>;

inline Table tableOf(std::vector<Cost> costs) {
  return std::make_shared<const std::vector<Cost>>(std::move(costs));
}

// Between two distinct variables; row-major, a row for each value of the first.
struct Edge {
  int first = 0;
  int second = 0;
  Table costs;
};

// What each value of a variable takes in rows [first, last).
struct Residence {
  int first = 0;
  int last = 0;
  std::vector<int64_t> usage;
};

struct Model {
  std::vector<std::vector<Cost>> costs;            // of each variable: of each of its values
  std::vector<Edge> edges;                         // several may join the same two variables
  std::vector<std::vector<Residence>> residences;  // of each variable
  std::vector<int64_t> capacity;                   // of each row
  // Of each row: its number in the model that was asked about, where rows have gone since. Empty: none have.
  std::vector<int> rowNumbers;

  int variables() const { return static_cast<int>(costs.size()); }
  int valuesOf(int variable) const { return static_cast<int>(costs[variable].size()); }
};

// A table as seen from one of its two variables.
struct TableView {
  const Cost* costs = nullptr;
  int mine = 0;   // from one value of this variable to the next
  int other = 0;  // and of the other one
  Cost at(int x, int y) const { return costs[static_cast<int64_t>(x) * mine + static_cast<int64_t>(y) * other]; }
};

inline TableView viewOf(const Model& model, const Edge& edge, int variable) {
  const int row = model.valuesOf(edge.second);
  return variable == edge.first ? TableView{edge.costs->data(), row, 1} : TableView{edge.costs->data(), 1, row};
}

// kForbidden where the plan takes something that cannot be chosen. Rows are not looked at.
Cost costOf(const Model& model, const std::vector<int>& values);

// Counted work: entries of tables that were looked at. Budgets are counted, never timed, so that the answer is the same
// on a slow machine and on a fast one.
class Ticks {
 public:
  explicit Ticks(int64_t budget) : budget_(budget) {}
  void spend(int64_t ticks) { used_ += ticks; }
  bool left() const { return used_ < budget_; }
  int64_t used() const { return used_; }
  int64_t remaining() const { return budget_ - used_; }

 private:
  int64_t budget_;
  int64_t used_ = 0;
};

}  // namespace weft::assign
