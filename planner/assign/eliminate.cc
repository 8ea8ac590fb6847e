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

// A variable that is gone: which of its values is best for each combination of its neighbors'.
struct Eliminated {
  int variable = 0;
  std::vector<int> neighbors;
  std::vector<int> best;
};

class Elimination {
 public:
  Elimination(const AssignmentProblem& problem, int64_t mostEntries)
      : values_(problem.values),
        mostEntries_(mostEntries),
        at_(values_.size(), 0),
        neighbors_(values_.size()),
        tablesOf_(values_.size()) {
    for (const CostTable& table : problem.tables) {
      add(table);
    }
  }

  Assignment run() {
    for (size_t v = 0; v < values_.size(); ++v) {
      order_.insert(rankOf(static_cast<int>(v)));
    }
    while (!order_.empty()) {
      const bool fits = std::get<0>(*order_.begin()) <= mostEntries_;
      const int next = std::get<2>(fits ? *order_.begin() : *order_.rbegin());
      const std::set<int> around = neighbors_[next];
      order_.erase(rankOf(next));
      for (const int other : around) {
        order_.erase(rankOf(other));
      }
      if (fits) {
        remove(next);
      } else {
        keep(next);
      }
      for (const int other : around) {
        order_.insert(rankOf(other));
      }
      exact_ = exact_ && fits;
    }
    for (auto gone = gone_.rbegin(); gone != gone_.rend(); ++gone) {
      at_[gone->variable] = gone->best[entry(gone->neighbors)];
    }
    return {at_, exact_};
  }

 private:
  // The entries that a variable's elimination looks at, its neighbors, itself.
  using Rank = std::tuple<int64_t, size_t, int>;
  Rank rankOf(int variable) const { return {entriesWithout(variable), neighbors_[variable].size(), variable}; }

  // Tables over the same variables, which lie ascending, become one.
  void add(const CostTable& given) {
    CostTable table = ascending(given);
    const auto [known, isNew] = numbers_.try_emplace(table.variables, static_cast<int>(tables_.size()));
    if (!isNew) {
      std::vector<Picoseconds>& sums = tables_[known->second].costs;
      std::transform(sums.begin(), sums.end(), table.costs.begin(), sums.begin(), plus);
      return;
    }
    const int number = known->second;
    for (const int variable : table.variables) {
      tablesOf_[variable].push_back(number);
      for (const int other : table.variables) {
        if (other != variable) {
          neighbors_[variable].insert(other);
        }
      }
    }
    tables_.push_back(std::move(table));
  }

  CostTable ascending(const CostTable& given) {
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

  // Of the table that is minimized over a variable, and of that which remains.
  int64_t entriesWithout(int variable) const {
    int64_t entries = values_[variable];
    for (const int other : neighbors_[variable]) {
      entries = std::min(entries * values_[other], mostEntries_ + 1);
    }
    return entries;
  }

  // Replaces the tables of a variable by one over its neighbors: the least of their sum.
  void remove(int variable) {
    Eliminated gone{variable, {neighbors_[variable].begin(), neighbors_[variable].end()}, {}};
    int64_t entries = 1;
    for (const int other : gone.neighbors) {
      entries *= values_[other];
    }
    CostTable rest{gone.neighbors, std::vector<Picoseconds>(entries)};
    gone.best.resize(entries);
    const std::vector<Reading> readings = readingsOf(variable);
    std::vector<Picoseconds> sums(values_[variable]);
    place(gone.neighbors, 0);
    for (int64_t i = 0; i < entries; ++i, advance(gone.neighbors)) {
      std::fill(sums.begin(), sums.end(), 0);
      for (const Reading& reading : readings) {
        const Picoseconds* cost = reading.costs + reading.offset(at_);
        for (Picoseconds& sum : sums) {
          sum = plus(sum, *cost);
          cost += reading.stride;
        }
      }
      const auto least = std::min_element(sums.begin(), sums.end());
      rest.costs[i] = *least;
      gone.best[i] = *least < kImpossible ? static_cast<int>(least - sums.begin()) : 0;
    }
    forget(variable);
    add(rest);
    gone_.push_back(std::move(gone));
  }

  // Leaves a variable at value 0.
  void keep(int variable) {
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
    forget(variable);
    for (const CostTable& table : rest) {
      add(table);
    }
    gone_.push_back({variable, {}, {0}});
  }

  // Takes the tables of a variable away.
  void forget(int variable) {
    for (const int table : tablesOf_[variable]) {
      numbers_.erase(tables_[table].variables);
      tables_[table].costs = {};
    }
    for (const int other : neighbors_[variable]) {
      neighbors_[other].erase(variable);
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

  // From one entry of a table over `variables` to the next.
  void advance(const std::vector<int>& variables) {
    for (auto variable = variables.rbegin(); variable != variables.rend(); ++variable) {
      if (++at_[*variable] < values_[*variable]) {
        return;
      }
      at_[*variable] = 0;
    }
  }

  // How the table of a variable is read, value by value, where the others stand as `at` says.
  struct Reading {
    const Picoseconds* costs = nullptr;
    int64_t stride = 0;                            // from one value to the next
    std::vector<std::pair<int, int64_t>> strides;  // of the other variables

    int64_t offset(const std::vector<int>& at) const {
      int64_t sum = 0;
      for (const auto& [variable, step] : strides) {
        sum += step * at[variable];
      }
      return sum;
    }
  };

  std::vector<Reading> readingsOf(int variable) const {
    std::vector<Reading> readings;
    for (const int table : tablesOf_[variable]) {
      Reading& made = readings.emplace_back(Reading{tables_[table].costs.data(), 0, {}});
      int64_t stride = 1;
      const std::vector<int>& variables = tables_[table].variables;
      for (auto other = variables.rbegin(); other != variables.rend(); ++other) {
        if (*other == variable) {
          made.stride = stride;
        } else {
          made.strides.emplace_back(*other, stride);
        }
        stride *= values_[*other];
      }
    }
    return readings;
  }

  std::vector<int> values_;
  int64_t mostEntries_;
  bool exact_ = true;
  std::vector<int> at_;  // a value of each variable
  std::vector<CostTable> tables_;
  std::map<std::vector<int>, int> numbers_;  // of tables, by their variables
  std::set<Rank> order_;                     // of the variables that are left
  std::vector<std::set<int>> neighbors_;     // of each variable that is left
  std::vector<std::vector<int>> tablesOf_;   // of each variable that is left
  std::vector<Eliminated> gone_;             // in order
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

Assignment eliminate(const AssignmentProblem& problem, int64_t mostEntries) {
  Assignment assignment = Elimination(problem, mostEntries).run();
  assignment.cost = costOf(problem, assignment.values);
  assignment.bound = assignment.exact ? assignment.cost : 0;
  return assignment;
}

}  // namespace weft
