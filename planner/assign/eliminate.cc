#include "planner/assign/eliminate.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace weft {
namespace {

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

// The sum of tables over a variable and its neighbors, minimized over the variable: for each combination of the
// neighbors' values, the last one's changing fastest. A table is added as soon as the values of its neighbors are set,
// so once for all values of those that change faster.
class Minimizer {
 public:
  // `neighborValues`: how many each neighbor has.
  Minimizer(int values, std::vector<int> neighborValues)
      : values_(values),
        neighborValues_(std::move(neighborValues)),
        readings_(neighborValues_.size() + 1),
        sums_(neighborValues_.size() + 1, std::vector<Picoseconds>(values, 0)),
        at_(neighborValues_.size(), 0) {}

  // `costs` outlive it. `variables`: of its table, the numbers of neighbors and kItself.
  void add(const Picoseconds* costs, const std::vector<int>& variables) {
    Reading reading = {costs, 0, {}};
    int64_t stride = 1;
    size_t set = 0;  // so many neighbors
    for (auto other = variables.rbegin(); other != variables.rend(); ++other) {
      if (*other == kItself) {
        reading.stride = stride;
        stride *= values_;
      } else {
        reading.strides.emplace_back(*other, stride);
        set = std::max(set, static_cast<size_t>(*other) + 1);
        stride *= neighborValues_[*other];
      }
    }
    readings_[set].push_back(std::move(reading));
  }

  void run() {
    int64_t entries = 1;
    for (const int values : neighborValues_) {
      entries *= values;
    }
    costs.reserve(entries);
    best.reserve(entries);
    const size_t known = readings_[0].size();
    for (size_t i = 0; i < known; ++i) {
      addReading(readings_[0][i], sums_[0].data(), sums_[0].data());
    }
    visit(0);
  }

  static constexpr int kItself = -1;
  std::vector<Picoseconds> costs;
  std::vector<int> best;  // the value of the variable

 private:
  struct Reading {
    const Picoseconds* costs = nullptr;
    int64_t stride = 0;                            // from one value of the variable to the next
    std::vector<std::pair<int, int64_t>> strides;  // likewise of neighbors
  };

  // Of the first value of the variable, at the values of the neighbors that are set.
  const Picoseconds* firstOf(const Reading& reading) const {
    const Picoseconds* cost = reading.costs;
    for (const auto& [neighbor, stride] : reading.strides) {
      cost += stride * at_[neighbor];
    }
    return cost;
  }

  void addReading(const Reading& reading, const Picoseconds* before, Picoseconds* sums) const {
    const Picoseconds* cost = firstOf(reading);
    for (int value = 0; value < values_; ++value, cost += reading.stride) {
      sums[value] = sumOfCosts(before[value], *cost);
    }
  }

  // The least of sums with the costs of the last reading added.
  void take(const Reading& reading, const Picoseconds* sums) {
    const Picoseconds* cost = firstOf(reading);
    Picoseconds least = kImpossible;
    int which = 0;
    for (int value = 0; value < values_; ++value, cost += reading.stride) {
      const Picoseconds sum = sums[value] + *cost;
      which = sum < least ? value : which;
      least = std::min(least, sum);
    }
    costs.push_back(least);
    best.push_back(which);
  }

  // Each neighbor is in some table, and the last of those that are set in those that are read here.
  void visit(size_t set) {
    if (set == neighborValues_.size()) {  // without neighbors
      take({sums_[set].data(), 1, {}}, zeros());
      return;
    }
    const std::vector<Reading>& readings = readings_[set + 1];
    const bool isLast = set + 1 == neighborValues_.size();
    const size_t added = readings.size() - (isLast ? 1 : 0);
    for (at_[set] = 0; at_[set] < neighborValues_[set]; ++at_[set]) {
      const Picoseconds* sums = sums_[set].data();
      for (size_t i = 0; i < added; ++i) {
        addReading(readings[i], sums, sums_[set + 1].data());
        sums = sums_[set + 1].data();
      }
      if (isLast) {
        take(readings[added], sums);
      } else {
        if (added == 0) {
          sums_[set + 1] = sums_[set];
        }
        visit(set + 1);
      }
    }
  }

  const Picoseconds* zeros() {
    zeros_.assign(values_, 0);
    return zeros_.data();
  }

  int values_;
  std::vector<int> neighborValues_;
  std::vector<std::vector<Reading>> readings_;  // by how many neighbors must have their values
  std::vector<std::vector<Picoseconds>> sums_;  // likewise: for each value of the variable
  std::vector<int> at_;
  std::vector<Picoseconds> zeros_;
};

}  // namespace

namespace internal {

struct Minimum {
  int costs = 0;  // number of the contents
  std::vector<int> best;
};

// Contents of tables, each under one number, and what was found of them. Tables of equal contents are one question:
// equal layers of a program are minimized once.
class KnownTables {
 public:
  using Costs = std::vector<Picoseconds>;

  int numberOf(const Costs& costs) {
    const uint64_t hash = hashOf(costs);
    const auto known = find(hash, costs);
    return known ? *known : add(hash, Costs(costs));
  }
  int numberOf(Costs&& costs) {
    const uint64_t hash = hashOf(costs);
    const auto known = find(hash, costs);
    return known ? *known : add(hash, std::move(costs));
  }

  const Costs& of(int number) const { return contents_[number]; }
  int64_t entries() const { return entries_; }

  int sumOf(int a, int b) {
    const auto known = sums_.find({a, b});
    if (known != sums_.end()) {
      return known->second;
    }
    Costs sums = contents_[a];
    std::transform(sums.begin(), sums.end(), contents_[b].begin(), sums.begin(), sumOfCosts);
    const int number = numberOf(std::move(sums));
    sums_.emplace(std::pair(a, b), number);
    return number;
  }

  // `question` says all that `find` depends on.
  template <typename Find>
  const Minimum& minimumOf(const std::vector<int>& question, const Find& find) {
    const auto known = minima_.find(question);
    if (known != minima_.end()) {
      return known->second;
    }
    Minimizer least = find();
    Minimum made = {numberOf(std::move(least.costs)), std::move(least.best)};
    entries_ += static_cast<int64_t>(made.best.size());
    return minima_.emplace(question, std::move(made)).first->second;
  }

 private:
  static uint64_t mixed(uint64_t hash, uint64_t number) {
    hash = (hash ^ number) * 0x9E3779B97F4A7C15;
    return hash ^ (hash >> 29);
  }
  // In four lanes, whose products do not wait for one another.
  template <typename Numbers>
  static uint64_t hashOf(const Numbers& numbers) {
    constexpr size_t kLanes = 4;
    std::array<uint64_t, kLanes> lanes = {1, 2, 3, 4};
    size_t i = 0;
    for (; i + kLanes <= numbers.size(); i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = mixed(lanes[lane], static_cast<uint64_t>(numbers[i + lane]));
      }
    }
    uint64_t hash = numbers.size();
    for (; i < numbers.size(); ++i) {
      hash = mixed(hash, static_cast<uint64_t>(numbers[i]));
    }
    for (const uint64_t lane : lanes) {
      hash = mixed(hash, lane);
    }
    return hash;
  }
  struct Hash {
    size_t operator()(const std::vector<int>& question) const { return hashOf(question); }
  };

  std::optional<int> find(uint64_t hash, const Costs& costs) const {
    const auto found = byHash_.find(hash);
    for (const int number : found == byHash_.end() ? std::span<const int>() : std::span<const int>(found->second)) {
      if (contents_[number] == costs) {
        return number;
      }
    }
    return std::nullopt;
  }

  int add(uint64_t hash, Costs costs) {
    const auto number = static_cast<int>(contents_.size());
    byHash_[hash].push_back(number);
    entries_ += static_cast<int64_t>(costs.size());
    contents_.push_back(std::move(costs));
    return number;
  }

  std::deque<Costs> contents_;
  absl::flat_hash_map<uint64_t, std::vector<int>> byHash_;
  absl::flat_hash_map<std::pair<int, int>, int> sums_;
  std::unordered_map<std::vector<int>, Minimum, Hash> minima_;
  int64_t entries_ = 0;
};

}  // namespace internal

namespace {

using internal::KnownTables;
using internal::Minimum;

// A table whose contents are known by a number.
struct Table {
  std::vector<int> variables;
  int costs = 0;
};

// A variable that is gone: which of its values is best for each combination of its neighbors'.
struct Eliminated {
  int variable = 0;
  std::vector<int> neighbors;
  const std::vector<int>* best = nullptr;  // none: it keeps its value
};

class Elimination {
 public:
  Elimination(const AssignmentProblem& problem, int64_t mostEntries, KnownTables& known)
      : values_(problem.values),
        mostEntries_(mostEntries),
        known_(known),
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
      at_[gone->variable] = gone->best != nullptr ? (*gone->best)[entry(gone->neighbors)] : 0;
    }
    return {at_, exact_};
  }

 private:
  // Tables over the same variables, which lie ascending, become one.
  void add(const CostTable& given) {
    if (std::is_sorted(given.variables.begin(), given.variables.end())) {
      add(Table{given.variables, known_.numberOf(given.costs)});
      return;
    }
    CostTable table = ascending(given);
    add(Table{std::move(table.variables), known_.numberOf(std::move(table.costs))});
  }

  void add(Table table) {
    const auto [known, isNew] = numbers_.try_emplace(table.variables, static_cast<int>(tables_.size()));
    if (!isNew) {
      int& sum = tables_[known->second].costs;
      sum = known_.sumOf(sum, table.costs);
      return;
    }
    const int number = known->second;
    for (const int variable : table.variables) {
      tablesOf_[variable].push_back(number);
    }
    tables_.push_back(std::move(table));
  }

  CostTable ascending(const CostTable& given) {
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
    std::vector<int> values;  // of the neighbors
    for (const int neighbor : neighbors) {
      values.push_back(values_[neighbor]);
    }
    std::vector<std::vector<int>> read;  // of each table: its variables, as numbers of neighbors
    std::vector<int> question = {values_[variable], static_cast<int>(values.size())};
    question.insert(question.end(), values.begin(), values.end());
    for (const int table : tablesOf_[variable]) {
      std::vector<int>& mine = read.emplace_back();
      for (const int other : tables_[table].variables) {
        const auto neighbor = std::lower_bound(neighbors.begin(), neighbors.end(), other) - neighbors.begin();
        mine.push_back(other == variable ? Minimizer::kItself : static_cast<int>(neighbor));
      }
      question.push_back(tables_[table].costs);
      question.push_back(static_cast<int>(mine.size()));
      question.insert(question.end(), mine.begin(), mine.end());
    }
    const Minimum& least = known_.minimumOf(question, [&] {
      Minimizer minimizer(values_[variable], values);
      for (size_t i = 0; i < read.size(); ++i) {
        minimizer.add(known_.of(tables_[tablesOf_[variable][i]].costs).data(), read[i]);
      }
      minimizer.run();
      return minimizer;
    });
    forget(variable, neighbors);
    add(Table{neighbors, least.costs});
    gone_.push_back({variable, neighbors, &least.best});
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
        kept.costs.push_back(known_.of(tables_[table].costs)[entry(tables_[table].variables)]);
      }
    }
    forget(variable, neighbors);
    for (const CostTable& table : rest) {
      add(table);
    }
    gone_.push_back({variable, {}, nullptr});
  }

  // Takes the tables of a variable away.
  template <typename Variables>
  void forget(int variable, const Variables& neighbors) {
    for (const int table : tablesOf_[variable]) {
      numbers_.erase(tables_[table].variables);
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
  KnownTables& known_;
  bool exact_ = true;
  std::vector<int> at_;  // a value of each variable
  std::vector<Table> tables_;
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
    sum = sumOfCosts(sum, table.costs[entry]);
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

EliminationMemo::EliminationMemo() : tables_(std::make_unique<internal::KnownTables>()) {}
EliminationMemo::~EliminationMemo() = default;

internal::KnownTables& EliminationMemo::tables() {
  if (tables_->entries() > kMostKept) {
    tables_ = std::make_unique<internal::KnownTables>();
  }
  return *tables_;
}

Assignment eliminate(const AssignmentProblem& problem, int64_t mostEntries, EliminationMemo* memo) {
  EliminationMemo own;
  KnownTables& known = (memo != nullptr ? memo : &own)->tables();
  Assignment assignment = Elimination(problem, mostEntries, known).run();
  assignment.cost = costOf(problem, assignment.values);
  assignment.bound = assignment.exact ? assignment.cost : 0;
  return assignment;
}

}  // namespace weft
