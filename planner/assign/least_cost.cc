#include "planner/assign/least_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/assign/solve.h"

namespace weft {
namespace {

// For a search where elimination is not exact: a tenth of a second or two. Such questions are asked for one mesh after
// the other.
constexpr int64_t kTicks = 50 * 1000 * 1000;
constexpr int kMostBits = 20;  // behind the point: so that whole costs can be shared out

// Costs of a model are whole multiples of 2^-bits picoseconds, rounded down.
int bitsOf(const AssignmentProblem& problem) {
  double sum = 1;
  for (const CostTable& table : problem.tables) {
    Picoseconds most = 0;
    for (const Picoseconds cost : table.costs) {
      most = cost < kImpossible ? std::max(most, std::abs(cost)) : most;
    }
    sum += static_cast<double>(most);
  }
  return std::min(kMostBits, static_cast<int>(std::floor(std::log2(static_cast<double>(assign::kMostCost) / sum))));
}

class ModelOfProblem {
 public:
  explicit ModelOfProblem(const AssignmentProblem& problem) : problem_(problem), bits_(bitsOf(problem)) {
    for (const int values : problem.values) {
      model_.costs.emplace_back(values, 0);
    }
    for (const CostTable& table : problem.tables) {
      add(table);
    }
    model_.residences.resize(model_.costs.size());
  }

  const assign::Model& model() const { return model_; }
  int bits() const { return bits_; }

  assign::Cost scaled(Picoseconds cost) const {
    if (cost >= kImpossible) {
      return assign::kForbidden;
    }
    return bits_ >= 0 ? cost * (Picoseconds{1} << bits_) : cost >> -bits_;
  }
  // A plan of the model for an assignment of the problem.
  std::vector<int> planOf(std::vector<int> values) const {
    for (const CostTable& table : problem_.tables) {
      if (table.variables.empty()) {
        values.push_back(0);
      } else if (table.variables.size() > 2) {
        int entry = 0;
        for (const int variable : table.variables) {
          entry = entry * problem_.values[variable] + values[variable];
        }
        values.push_back(entry);
      }
    }
    return values;
  }

  // Rounded up where costs are whole: no sum of them lies between.
  Picoseconds unscaled(assign::Cost bound) const {
    const Picoseconds part = Picoseconds{1} << std::abs(bits_);
    return bits_ < 0 ? bound * part : bound / part + (bound % part > 0 ? 1 : 0);
  }

 private:
  void add(const CostTable& table) {
    std::vector<assign::Cost> costs(table.costs.size());
    std::transform(table.costs.begin(), table.costs.end(), costs.begin(), [&](Picoseconds c) { return scaled(c); });
    switch (table.variables.size()) {
      case 0:
        model_.costs.push_back(std::move(costs));  // of a variable with one value
        break;
      case 1:
        for (size_t x = 0; x < costs.size(); ++x) {
          assign::Cost& sum = model_.costs[table.variables[0]][x];
          sum = assign::plus(sum, costs[x]);
        }
        break;
      case 2:
        model_.edges.push_back({table.variables[0], table.variables[1], assign::tableOf(std::move(costs))});
        break;
      default:
        addMany(table, std::move(costs));
    }
  }

  // A table over more than two variables is a variable of its own, whose value says the values of these.
  void addMany(const CostTable& table, std::vector<assign::Cost> costs) {
    const auto entries = static_cast<int64_t>(costs.size());
    const auto number = static_cast<int>(model_.costs.size());
    model_.costs.push_back(std::move(costs));
    int64_t stride = entries;
    for (const int variable : table.variables) {
      const int values = problem_.values[variable];
      stride /= values;
      std::vector<assign::Cost> agrees(entries * values, assign::kForbidden);
      for (int64_t entry = 0; entry < entries; ++entry) {
        agrees[entry * values + entry / stride % values] = 0;
      }
      model_.edges.push_back({number, variable, assign::tableOf(std::move(agrees))});
    }
  }

  const AssignmentProblem& problem_;
  int bits_;
  assign::Model model_;
};

}  // namespace

Assignment leastCost(const AssignmentProblem& problem, int64_t mostEntries, EliminationMemo* memo,
                     const KnownAssignment& known) {
  Assignment kept =
      known.isElimination ? Assignment{.values = known.values, .exact = false} : eliminate(problem, mostEntries, memo);
  kept.cost = costOf(problem, kept.values);
  if (kept.exact || kept.cost >= kImpossible) {
    return kept;
  }
  if (!known.isElimination && !known.values.empty()) {
    const Picoseconds cost = costOf(problem, known.values);
    if (cost < kept.cost) {
      kept.values = known.values;
      kept.cost = cost;
    }
  }
  kept.searched = true;
  const ModelOfProblem scaled(problem);
  assign::SolveOptions options;
  options.ticks = known.isElimination ? kTicks / 4 : kTicks;
  options.unit = assign::Cost{1} << std::max(scaled.bits(), 0);
  options.start = scaled.planOf(kept.values);
  if (!known.isElimination) {
    options.upper = scaled.scaled(kept.cost) - options.unit + 1;
  }
  assign::Solution solution = solve(scaled.model(), options);
  if (solution.isPossible()) {
    solution.values.resize(problem.values.size());
    const Picoseconds cost = costOf(problem, solution.values);
    if (cost < kept.cost) {
      kept.values = std::move(solution.values);
      kept.cost = cost;
    }
  }
  const bool isClosed = scaled.bits() >= 0 && solution.bound >= options.upper;
  kept.bound = isClosed ? kept.cost : std::min(kept.cost, scaled.unscaled(std::min(solution.bound, options.upper)));
  kept.exact = kept.bound == kept.cost;
  return kept;
}

}  // namespace weft
