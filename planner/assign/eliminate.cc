#include "planner/assign/eliminate.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace weft {
namespace {

Picoseconds plus(Picoseconds a, Picoseconds b) {
  return std::min(kImpossible, a + b);
}

// The variables that are left, in the order of elimination: that first whose elimination looks at the fewest entries,
// those of its neighbors times its own, of equal ones that with the fewest neighbors.
class EliminationOrder {
 public:
  // `values`: of each variable, outlives it. `mostEntries`: more are counted as one more.
  EliminationOrder(const std::vector<int>& values, int64_t mostEntries)
      : values_(values), mostEntries_(mostEntries), neighbors_(values.size()) {}

  // All pairs of `variables` share a table.
  void connect(const std::vector<int>& variables) {
    for (const int variable : variables) {
      for (const int other : variables) {
        if (other != variable) {
          neighbors_[variable].insert(other);
        }
      }
    }
  }

  // Once all are connected.
  void begin() {
    for (size_t v = 0; v < values_.size(); ++v) {
      left_.insert(rankOf(static_cast<int>(v)));
    }
  }

  bool isEmpty() const { return left_.empty(); }
  int64_t fewestEntries() const { return std::get<0>(*left_.begin()); }
  int first() const { return std::get<2>(*left_.begin()); }
  int last() const { return std::get<2>(*left_.rbegin()); }
  const std::set<int>& neighborsOf(int variable) const { return neighbors_[variable]; }

  // Takes a variable away; `connects`: its neighbors share a table from then on.
  void take(int variable, bool connects) {
    const std::vector<int> around(neighbors_[variable].begin(), neighbors_[variable].end());
    left_.erase(rankOf(variable));
    for (const int other : around) {
      left_.erase(rankOf(other));
    }
    for (const int other : around) {
      neighbors_[other].erase(variable);
    }
    if (connects) {
      connect(around);
    }
    for (const int other : around) {
      left_.insert(rankOf(other));
    }
  }

 private:
  using Rank = std::tuple<int64_t, size_t, int>;

  Rank rankOf(int variable) const {
    int64_t entries = values_[variable];
    for (const int other : neighbors_[variable]) {
      entries = std::min(entries * values_[other], mostEntries_ + 1);
    }
    return {entries, neighbors_[variable].size(), variable};
  }

  const std::vector<int>& values_;
  int64_t mostEntries_;
  std::set<Rank> left_;
  std::vector<std::set<int>> neighbors_;  // of each variable: that are left
};

// A variable that is gone: which of its values is best for each combination of its neighbors'.
struct Eliminated {
  int variable = 0;
  std::vector<int> neighbors;
  std::vector<int> best;
};

// The sum of tables over a variable and its neighbors, minimized over the variable: for each combination of the
// neighbors' values, the last one's changing fastest. A table is added as soon as the values of its neighbors are set,
// so once for all values of those that change faster.
class Minimizer {
 public:
  Minimizer(const std::vector<int>& values, int variable, const std::vector<int>& neighbors)
      : values_(values),
        variable_(variable),
        neighbors_(neighbors),
        readings_(neighbors.size() + 1),
        sums_(neighbors.size() + 1, std::vector<Picoseconds>(values[variable], 0)),
        at_(neighbors.size(), 0) {}

  // `table` outlives it and has the variable; its variables lie ascending.
  void add(const CostTable& table) {
    Reading reading = {table.costs.data(), 0, {}};
    int64_t stride = 1;
    size_t set = 0;  // so many neighbors
    for (auto other = table.variables.rbegin(); other != table.variables.rend(); ++other) {
      if (*other == variable_) {
        reading.stride = stride;
      } else {
        const size_t neighbor = std::lower_bound(neighbors_.begin(), neighbors_.end(), *other) - neighbors_.begin();
        reading.strides.emplace_back(neighbor, stride);
        set = std::max(set, neighbor + 1);
      }
      stride *= values_[*other];
    }
    readings_[set].push_back(std::move(reading));
  }

  void run() {
    int64_t entries = 1;
    for (const int neighbor : neighbors_) {
      entries *= values_[neighbor];
    }
    costs.reserve(entries);
    best.reserve(entries);
    addReadings(0);
    visit(0);
  }

  std::vector<Picoseconds> costs;
  std::vector<int> best;  // the value of the variable

 private:
  struct Reading {
    const Picoseconds* costs = nullptr;
    int64_t stride = 0;                               // from one value of the variable to the next
    std::vector<std::pair<size_t, int64_t>> strides;  // likewise of neighbors
  };

  // Adds what is known once the first `set` neighbors have their values.
  void addReadings(size_t set) {
    std::vector<Picoseconds>& sums = sums_[set];
    for (const Reading& reading : readings_[set]) {
      const Picoseconds* cost = reading.costs;
      for (const auto& [neighbor, stride] : reading.strides) {
        cost += stride * at_[neighbor];
      }
      for (Picoseconds& sum : sums) {
        sum = plus(sum, *cost);
        cost += reading.stride;
      }
    }
  }

  void visit(size_t set) {
    if (set == neighbors_.size()) {
      const auto least = std::min_element(sums_[set].begin(), sums_[set].end());
      costs.push_back(*least);
      best.push_back(*least < kImpossible ? static_cast<int>(least - sums_[set].begin()) : 0);
      return;
    }
    for (at_[set] = 0; at_[set] < values_[neighbors_[set]]; ++at_[set]) {
      std::copy(sums_[set].begin(), sums_[set].end(), sums_[set + 1].begin());
      addReadings(set + 1);
      visit(set + 1);
    }
  }

  const std::vector<int>& values_;
  int variable_;
  const std::vector<int>& neighbors_;
  std::vector<std::vector<Reading>> readings_;  // by how many neighbors must have their values
  std::vector<std::vector<Picoseconds>> sums_;  // likewise: for each value of the variable
  std::vector<int> at_;
};

class Elimination {
 public:
  Elimination(const AssignmentProblem& problem, int64_t mostEntries)
      : values_(problem.values),
        mostEntries_(mostEntries),
        at_(values_.size(), 0),
        order_(values_, mostEntries),
        tablesOf_(values_.size()) {
    for (const CostTable& table : problem.tables) {
      order_.connect(table.variables);
      add(table);
    }
  }

  Assignment run() {
    order_.begin();
    while (!order_.isEmpty()) {
      const bool fits = order_.fewestEntries() <= mostEntries_;
      const int next = fits ? order_.first() : order_.last();
      const std::set<int> around = order_.neighborsOf(next);
      order_.take(next, fits);
      fits ? remove(next, {around.begin(), around.end()}) : keep(next, around);
      exact_ = exact_ && fits;
    }
    for (auto gone = gone_.rbegin(); gone != gone_.rend(); ++gone) {
      at_[gone->variable] = gone->best[entry(gone->neighbors)];
    }
    return {at_, exact_};
  }

 private:
  // Tables over the same variables, which lie ascending, become one.
  void add(CostTable given) {
    CostTable table = ascending(std::move(given));
    const auto [known, isNew] = numbers_.try_emplace(table.variables, static_cast<int>(tables_.size()));
    if (!isNew) {
      std::vector<Picoseconds>& sums = tables_[known->second].costs;
      std::transform(sums.begin(), sums.end(), table.costs.begin(), sums.begin(), plus);
      return;
    }
    const int number = known->second;
    for (const int variable : table.variables) {
      tablesOf_[variable].push_back(number);
    }
    tables_.push_back(std::move(table));
  }

  CostTable ascending(CostTable given) {
    if (std::is_sorted(given.variables.begin(), given.variables.end())) {
      return given;
    }
    CostTable table = given;
    std::sort(table.variables.begin(), table.variables.end());
    for (size_t i = 0; i < table.costs.size(); ++i) {
      place(table.variables, static_cast<int64_t>(i));
      table.costs[i] = given.costs[entry(given.variables)];
    }
    return table;
  }

  // Index into a table of these variables, at the values of `at_`.
  int64_t entry(const std::vector<int>& variables) const {
    int64_t index = 0;
    for (const int variable : variables) {
      index = index * values_[variable] + at_[variable];
    }
    return index;
  }

  // Replaces the tables of a variable by one over its neighbors: the least of their sum.
  void remove(int variable, const std::vector<int>& neighbors) {
    Minimizer least(values_, variable, neighbors);
    for (const int table : tablesOf_[variable]) {
      least.add(tables_[table]);
    }
    least.run();
    forget(variable, neighbors);
    add({neighbors, std::move(least.costs)});
    gone_.push_back({variable, neighbors, std::move(least.best)});
  }

  // Leaves a variable at value 0.
  void keep(int variable, const std::set<int>& neighbors) {
    at_[variable] = 0;
    std::vector<CostTable> rest;
    for (const int table : tablesOf_[variable]) {
      CostTable& kept = rest.emplace_back(CostTable{tables_[table].variables, {}});
      std::erase(kept.variables, variable);
      int64_t entries = 1;
      for (const int other : kept.variables) {
        entries *= values_[other];
      }
      for (int64_t i = 0; i < entries; ++i) {
        place(kept.variables, i);
        kept.costs.push_back(tables_[table].costs[entry(tables_[table].variables)]);
      }
    }
    forget(variable, neighbors);
    for (CostTable& table : rest) {
      add(std::move(table));
    }
    gone_.push_back({variable, {}, {0}});
  }

  // Takes the tables of a variable away.
  template <typename Variables>
  void forget(int variable, const Variables& neighbors) {
    for (const int table : tablesOf_[variable]) {
      numbers_.erase(tables_[table].variables);
      tables_[table].costs = {};
    }
    for (const int other : neighbors) {
      std::erase_if(tablesOf_[other], [&](int table) {
        const std::vector<int>& variables = tables_[table].variables;
        return std::find(variables.begin(), variables.end(), variable) != variables.end();
      });
    }
  }

  // Sets `variables` to the values of entry `index` of a table over them.
  void place(const std::vector<int>& variables, int64_t index) {
    for (auto variable = variables.rbegin(); variable != variables.rend(); ++variable) {
      at_[*variable] = static_cast<int>(index % values_[*variable]);
      index /= values_[*variable];
    }
  }

  std::vector<int> values_;
  int64_t mostEntries_;
  bool exact_ = true;
  std::vector<int> at_;  // a value of each variable
  std::vector<CostTable> tables_;
  std::map<std::vector<int>, int> numbers_;  // of tables, by their variables
  EliminationOrder order_;
  std::vector<std::vector<int>> tablesOf_;  // of each variable that is left
  std::vector<Eliminated> gone_;            // in order
};

}  // namespace

Picoseconds costOf(const AssignmentProblem& problem, const std::vector<int>& values) {
  Picoseconds sum = 0;
  for (const CostTable& table : problem.tables) {
    int64_t entry = 0;
    for (const int variable : table.variables) {
      entry = entry * problem.values[variable] + values[variable];
    }
    sum = plus(sum, table.costs[entry]);
  }
  return sum;
}

int64_t entriesToEliminate(const AssignmentProblem& problem, int64_t mostEach, int64_t mostInAll) {
  EliminationOrder order(problem.values, mostEach);
  for (const CostTable& table : problem.tables) {
    order.connect(table.variables);
  }
  order.begin();
  int64_t all = 0;
  while (!order.isEmpty()) {
    all += order.fewestEntries();
    if (order.fewestEntries() > mostEach || all > mostInAll) {
      return mostInAll + 1;
    }
    order.take(order.first(), true);
  }
  return all;
}

Assignment eliminate(const AssignmentProblem& problem, int64_t mostEntries) {
  Assignment assignment = Elimination(problem, mostEntries).run();
  assignment.cost = costOf(problem, assignment.values);
  assignment.bound = assignment.exact ? assignment.cost : 0;
  return assignment;
}

}  // namespace weft
