#include "planner/assign/reduce.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/assign/memory_rows.h"

namespace weft::assign {
namespace {

// A table between two neighbors of a variable that is minimized out may have as many entries as the larger of the two
// it comes from, or these.
constexpr int64_t kMostEntries = 1 << 14;

class Reducer {
 public:
  Reducer(Model model, const Reductions& reductions, Ticks& ticks)
      : model_(std::move(model)),
        reductions_(reductions),
        ticks_(ticks),
        alive_(model_.variables()),
        edgesOf_(model_.variables()),
        gone_(model_.variables(), 0) {}

  Reduced run() {
    taken_.assign(model_.capacity.size() + 1, 0);
    std::vector<Edge> edges = std::move(model_.edges);
    model_.edges.clear();
    for (int v = 0; v < model_.variables(); ++v) {
      reduced_.sizes.push_back(model_.valuesOf(v));
      for (int x = 0; x < model_.valuesOf(v); ++x) {
        if (model_.costs[v][x] < kForbidden) {
          alive_[v].push_back(x);
        }
      }
      reduced_.possible = reduced_.possible && !alive_[v].empty();
      touch(v);
    }
    for (const Edge& edge : edges) {
      join(edge);
    }
    while (reduced_.possible && (tighten() || settle() || dropDominated())) {
    }
    finish();
    return std::move(reduced_);
  }

 private:
  const Edge& edgeOf(int v, int w) const { return model_.edges[edgesOf_[v].at(w)]; }
  TableView view(int v, int w) const { return viewOf(model_, edgeOf(v, w), v); }

  void touch(int v) { variables_.insert(v); }
  void touchEdges(int v) {
    touch(v);
    for (const auto& [w, edge] : edgesOf_[v]) {
      edges_.insert(edge);
    }
  }

  // Adds a table between two variables to the one that joins them, if any does.
  void join(const Edge& edge) {
    const auto [found, isNew] = edgesOf_[edge.first].try_emplace(edge.second, static_cast<int>(model_.edges.size()));
    if (isNew) {
      edgesOf_[edge.second][edge.first] = found->second;
      model_.edges.push_back(edge);
    } else {
      Edge& old = model_.edges[found->second];
      std::vector<Cost> sum = *old.costs;
      const TableView added = viewOf(model_, edge, old.first);
      const int columns = model_.valuesOf(old.second);
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] = plus(sum[i], added.at(static_cast<int>(i) / columns, static_cast<int>(i) % columns));
      }
      ticks_.spend(static_cast<int64_t>(sum.size()));
      old.costs = tableOf(std::move(sum));
    }
    edges_.insert(found->second);
    touch(edge.first);
    touch(edge.second);
  }

  void part(int v, int w) {
    const int edge = edgesOf_[v].at(w);
    edgesOf_[v].erase(w);
    edgesOf_[w].erase(v);
    edges_.erase(edge);
    model_.edges[edge].costs = nullptr;
    touch(v);
    touch(w);
  }

  // Works off what has changed. Is a value or a variable gone?
  bool settle() {
    bool changed = false;
    while (reduced_.possible && !(edges_.empty() && variables_.empty())) {
      if (!edges_.empty()) {
        const int edge = *edges_.begin();
        edges_.erase(edges_.begin());
        changed = settleEdge(model_.edges[edge].first, model_.edges[edge].second) || changed;
      } else {
        const int v = *variables_.begin();
        variables_.erase(variables_.begin());
        changed = (gone_[v] == 0 && settleVariable(v)) || changed;
      }
    }
    return changed;
  }

  bool settleEdge(int v, int w) {
    ticks_.spend(4 * static_cast<int64_t>(alive_[v].size() * alive_[w].size()));
    if (dropUnsupported(v, w) || dropUnsupported(w, v)) {
      return true;  // the edge is looked at again
    }
    if (reductions_.sums && takeSum(v, w)) {
      return true;
    }
    if (!reductions_.followers) {
      return false;
    }
    // Of two that follow each other the one with fewer neighbors goes.
    if (edgesOf_[v].size() < edgesOf_[w].size()) {
      std::swap(v, w);
    }
    return follow(v, w) || follow(w, v);
  }

  // Drops the values of v that all values of w forbid.
  bool dropUnsupported(int v, int w) {
    const TableView table = view(v, w);
    const size_t dropped = std::erase_if(alive_[v], [&](int x) {
      return std::all_of(alive_[w].begin(), alive_[w].end(), [&](int y) { return table.at(x, y) >= kForbidden; });
    });
    reduced_.possible = reduced_.possible && !alive_[v].empty();
    if (dropped > 0) {
      touchEdges(v);
    }
    return dropped > 0;
  }

  // A table that is the sum of a row's and a column's costs joins nothing.
  bool takeSum(int v, int w) {
    const TableView table = view(v, w);
    const int x0 = alive_[v][0];
    const int y0 = alive_[w][0];
    for (const int x : alive_[v]) {
      for (const int y : alive_[w]) {
        if (table.at(x, y) >= kForbidden || table.at(x, y) - table.at(x0, y) != table.at(x, y0) - table.at(x0, y0)) {
          return false;
        }
      }
    }
    for (const int x : alive_[v]) {
      model_.costs[v][x] = plus(model_.costs[v][x], table.at(x, y0));
    }
    for (const int y : alive_[w]) {
      model_.costs[w][y] = plus(model_.costs[w][y], table.at(x0, y) - table.at(x0, y0));
    }
    part(v, w);
    return true;
  }

  // Makes w a part of v if each value of v leaves w one.
  bool follow(int v, int w) {
    const TableView table = view(v, w);
    std::vector<int> value(model_.valuesOf(v), alive_[w][0]);
    for (const int x : alive_[v]) {
      int allowed = 0;
      for (const int y : alive_[w]) {
        if (table.at(x, y) < kForbidden) {
          value[x] = y;
          ++allowed;
        }
      }
      if (allowed != 1) {
        return false;
      }
    }
    for (const int x : alive_[v]) {
      model_.costs[v][x] = plus(plus(model_.costs[v][x], model_.costs[w][value[x]]), table.at(x, value[x]));
    }
    part(v, w);
    for (const auto& [z, edge] : std::map<int, int>(edgesOf_[w])) {
      const Table moved = rowsOf(viewOf(model_, model_.edges[edge], w), value, model_.valuesOf(z));
      part(w, z);
      join({v, z, moved});
    }
    for (const Residence& residence : model_.residences[w]) {
      Residence moved{residence.first, residence.last, std::vector<int64_t>(value.size(), 0)};
      for (const int x : alive_[v]) {
        moved.usage[x] = residence.usage[value[x]];
      }
      model_.residences[v].push_back(std::move(moved));
    }
    remove({w, {v}, std::move(value)});
    return true;
  }

  Table rowsOf(const TableView& table, const std::vector<int>& rows, int columns) {
    std::vector<Cost> costs;
    costs.reserve(rows.size() * columns);
    for (const int row : rows) {
      for (int y = 0; y < columns; ++y) {
        costs.push_back(table.at(row, y));
      }
    }
    ticks_.spend(static_cast<int64_t>(costs.size()));
    return tableOf(std::move(costs));
  }

  void remove(Gone gone) {
    gone_[gone.variable] = 1;
    variables_.erase(gone.variable);
    model_.residences[gone.variable].clear();
    for (const int neighbor : gone.neighbors) {
      touchEdges(neighbor);
    }
    reduced_.gone.push_back(std::move(gone));
  }

  bool settleVariable(int v) {
    const size_t dropped = std::erase_if(alive_[v], [&](int x) { return model_.costs[v][x] >= kForbidden; });
    if (alive_[v].empty()) {
      reduced_.possible = false;
      return true;
    }
    if (dropped > 0) {
      touchEdges(v);
    }
    if (alive_[v].size() == 1 && reductions_.oneValue) {
      takeOneValue(v);
      return true;
    }
    const bool occupies = !model_.residences[v].empty() && !takesTheSame(v);
    const size_t neighbors = edgesOf_[v].size();
    if (!occupies && ((neighbors == 0) || (neighbors == 1 && reductions_.oneNeighbor) ||
                      (neighbors == 2 && reductions_.twoNeighbors && keepsSmall(v)))) {
      minimizeOut(v);
      return true;
    }
    return dropped > 0;
  }

  bool takesTheSame(int v) const {
    return std::all_of(model_.residences[v].begin(), model_.residences[v].end(), [&](const Residence& residence) {
      return std::all_of(alive_[v].begin(), alive_[v].end(),
                         [&](int x) { return residence.usage[x] == residence.usage[alive_[v][0]]; });
    });
  }

  // Drops the values that take more than a row has for them, whatever the other variables take. Is one gone?
  bool tighten() {
    if (model_.capacity.empty()) {
      return false;
    }
    takeFromRows();
    reduced_.possible = compressRows(model_);
    taken_.assign(model_.capacity.size() + 1, 0);
    std::vector<int64_t> excess;
    for (const int64_t capacity : model_.capacity) {
      excess.push_back(-capacity);
    }
    const UsageProfile empty(excess);
    bool changed = false;
    for (int v = 0; v < model_.variables() && reduced_.possible; ++v) {
      const size_t dropped = std::erase_if(alive_[v], [&](int x) {
        return std::any_of(model_.residences[v].begin(), model_.residences[v].end(), [&](const Residence& residence) {
          return residence.usage[x] > 0 && empty.excess(residence.first, residence.last) + residence.usage[x] > 0;
        });
      });
      if (dropped > 0) {
        changed = true;
        reduced_.possible = !alive_[v].empty();
        touchEdges(v);
      }
    }
    return changed;
  }

  // What variables that are gone take comes off the capacities, and values that are gone take no more than others.
  void takeFromRows() {
    int64_t taken = 0;
    for (size_t row = 0; row < model_.capacity.size(); ++row) {
      taken += taken_[row];
      model_.capacity[row] -= taken;
    }
    for (int v = 0; v < model_.variables(); ++v) {
      for (Residence& residence : model_.residences[v]) {
        std::vector<int64_t> usage(residence.usage.size(), INT64_MAX);
        for (const int x : alive_[v]) {
          usage[x] = residence.usage[x];
        }
        const int64_t least = *std::min_element(usage.begin(), usage.end());
        std::replace(usage.begin(), usage.end(), int64_t{INT64_MAX}, least);
        residence.usage = std::move(usage);
      }
    }
  }

  // What a variable takes whichever value it has is no longer there for others.
  void takeMemory(int v) {
    for (const Residence& residence : model_.residences[v]) {
      taken_[residence.first] += residence.usage[alive_[v][0]];
      taken_[residence.last] -= residence.usage[alive_[v][0]];
    }
  }

  void takeOneValue(int v) {
    const int x = alive_[v][0];
    for (const auto& [w, edge] : std::map<int, int>(edgesOf_[v])) {
      const TableView table = view(v, w);
      for (const int y : alive_[w]) {
        model_.costs[w][y] = plus(model_.costs[w][y], table.at(x, y));
      }
      part(v, w);
    }
    reduced_.constant += model_.costs[v][x];
    takeMemory(v);
    remove({v, {}, {x}});
  }

  bool keepsSmall(int v) const {
    const int a = edgesOf_[v].begin()->first;
    const int b = edgesOf_[v].rbegin()->first;
    const auto entries = static_cast<int64_t>(model_.valuesOf(a)) * model_.valuesOf(b);
    const auto most = static_cast<int64_t>(model_.valuesOf(v)) * std::max(model_.valuesOf(a), model_.valuesOf(b));
    return entries <= std::max(most, kMostEntries);
  }

  // Replaces a variable with up to two neighbors by the least over its values.
  void minimizeOut(int v) {
    Gone gone{v, {}, {}};
    std::vector<TableView> tables;
    std::vector<int> sizes = {1, 1};
    for (const auto& [w, edge] : edgesOf_[v]) {
      sizes[gone.neighbors.size()] = model_.valuesOf(w);
      gone.neighbors.push_back(w);
      tables.push_back(view(v, w));
    }
    std::vector<Cost> least;
    for (int y = 0; y < sizes[0]; ++y) {
      for (int z = 0; z < sizes[1]; ++z) {
        std::pair<Cost, int> best = {kForbidden, alive_[v][0]};
        for (const int x : alive_[v]) {
          Cost cost = model_.costs[v][x];
          cost = tables.empty() ? cost : plus(cost, tables[0].at(x, y));
          cost = tables.size() < 2 ? cost : plus(cost, tables[1].at(x, z));
          best = cost < best.first ? std::pair(cost, x) : best;
        }
        least.push_back(best.first);
        gone.value.push_back(best.second);
      }
    }
    ticks_.spend(static_cast<int64_t>(least.size() * alive_[v].size()));
    takeMemory(v);
    for (const int w : gone.neighbors) {
      part(v, w);
    }
    if (gone.neighbors.empty()) {
      reduced_.constant += least[0];
    } else if (gone.neighbors.size() == 1) {
      std::vector<Cost>& costs = model_.costs[gone.neighbors[0]];
      for (size_t y = 0; y < costs.size(); ++y) {
        costs[y] = plus(costs[y], least[y]);
      }
    } else {
      join({gone.neighbors[0], gone.neighbors[1], tableOf(std::move(least))});
    }
    remove(std::move(gone));
  }

  // Looks at every variable once. Is a value gone?
  bool dropDominated() {
    bool changed = false;
    for (int v = 0; reductions_.dominated && v < model_.variables() && ticks_.left(); ++v) {
      if (gone_[v] != 0) {
        continue;
      }
      std::vector<int>& values = alive_[v];
      for (size_t i = values.size(); i-- > 0;) {
        const bool goes = std::any_of(values.begin(), values.end(),
                                      [&](int other) { return other != values[i] && standsIn(v, other, values[i]); });
        if (goes) {
          values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
          touchEdges(v);
          changed = true;
        }
      }
    }
    return changed;
  }

  // May value `x` of v be taken wherever `worse` is, at no more cost and memory?
  bool standsIn(int v, int x, int worse) {
    for (const Residence& residence : model_.residences[v]) {
      if (residence.usage[x] > residence.usage[worse]) {
        return false;
      }
    }
    Cost more = model_.costs[v][x] - model_.costs[v][worse];
    for (const auto& [w, edge] : edgesOf_[v]) {
      const TableView table = view(v, w);
      Cost most = -kForbidden;
      for (const int y : alive_[w]) {
        const Cost from = table.at(worse, y);
        const Cost to = table.at(x, y);
        if (from < kForbidden) {
          most = std::max(most, to >= kForbidden ? kForbidden : to - from);
        }
      }
      ticks_.spend(static_cast<int64_t>(alive_[w].size()));
      if (most >= kForbidden) {
        return false;
      }
      more += std::max(most, -kMostCost);
    }
    return more <= 0;
  }

  // The model of what is left, with values numbered anew.
  void finish() {
    Model model;
    takeFromRows();
    model.rowNumbers = model_.rowNumbers;
    model.capacity = model_.capacity;
    std::vector<int> numbers(model_.variables(), -1);
    for (int v = 0; v < model_.variables() && reduced_.possible; ++v) {
      if (gone_[v] != 0) {
        continue;
      }
      numbers[v] = model.variables();
      reduced_.variables.push_back(v);
      reduced_.values.push_back(alive_[v]);
      model.costs.push_back(selected(model_.costs[v], alive_[v]));
      std::vector<Residence>& residences = model.residences.emplace_back();
      for (const Residence& residence : model_.residences[v]) {
        residences.push_back({residence.first, residence.last, selected(residence.usage, alive_[v])});
      }
    }
    for (const Edge& edge : model_.edges) {
      if (edge.costs != nullptr && reduced_.possible) {
        model.edges.push_back({numbers[edge.first], numbers[edge.second], selectedTable(edge)});
      }
    }
    reduced_.possible = reduced_.possible && compressRows(model);
    reduced_.model = std::move(model);
  }

  static std::vector<int64_t> selected(const std::vector<int64_t>& all, const std::vector<int>& values) {
    std::vector<int64_t> selected;
    for (const int x : values) {
      selected.push_back(all[x]);
    }
    return selected;
  }

  Table selectedTable(const Edge& edge) const {
    const std::vector<int>& rows = alive_[edge.first];
    const std::vector<int>& columns = alive_[edge.second];
    if (rows.size() * columns.size() == edge.costs->size()) {
      return edge.costs;
    }
    const TableView table = viewOf(model_, edge, edge.first);
    std::vector<Cost> costs;
    for (const int x : rows) {
      for (const int y : columns) {
        costs.push_back(table.at(x, y));
      }
    }
    return tableOf(std::move(costs));
  }

  Model model_;  // values keep their numbers, edges that are gone have no table
  const Reductions& reductions_;
  Ticks& ticks_;
  std::vector<std::vector<int>> alive_;      // values of each variable that are left
  std::vector<std::map<int, int>> edgesOf_;  // of each variable: by neighbor
  std::vector<char> gone_;                   // variables
  std::set<int> variables_;                  // to look at
  std::set<int> edges_;                      // to look at
  std::vector<int64_t> taken_;               // memory: from each row on, more than in the row before
  Reduced reduced_;
};

}  // namespace

std::vector<int> Reduced::expand(const std::vector<int>& left) const {
  std::vector<int> at(sizes.size(), 0);
  for (size_t i = 0; i < variables.size(); ++i) {
    at[variables[i]] = values[i][left[i]];
  }
  for (auto it = gone.rbegin(); it != gone.rend(); ++it) {
    size_t entry = 0;
    for (const int neighbor : it->neighbors) {
      entry = entry * sizes[neighbor] + at[neighbor];
    }
    at[it->variable] = it->value[entry];
  }
  return at;
}

Reduced reduce(Model model, const Reductions& reductions, Ticks& ticks) {
  return Reducer(std::move(model), reductions, ticks).run();
}

}  // namespace weft::assign
