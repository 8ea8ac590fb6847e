#include "planner/assign/reduce.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "planner/assign/shrinking_model.h"

namespace weft::assign {
namespace {

// A table between two neighbors of a variable that is minimized out may have as many entries as the larger of the two
// it comes from, or these.
constexpr int64_t kMostEntries = 1 << 14;

class Reducer {
 public:
  Reducer(Model model, const Reductions& reductions, Ticks& ticks)
      : model_(std::move(model), ticks), reductions_(reductions), ticks_(ticks) {}

  Reduced run() {
    for (int v = 0; v < model_.variables(); ++v) {
      reduced_.sizes.push_back(model_.valuesOf(v));
    }
    while (!model_.isImpossible() && (model_.tightenRows() || settle() || dropDominated())) {
    }
    reduced_.model = model_.rest();
    reduced_.possible = !model_.isImpossible();
    for (int v = 0; v < model_.variables() && reduced_.possible; ++v) {
      if (!model_.isGone(v)) {
        reduced_.variables.push_back(v);
        reduced_.values.push_back(model_.alive(v));
      }
    }
    return std::move(reduced_);
  }

 private:
  // Works off what has changed. Is a value or a variable gone?
  bool settle() {
    Changed& changed = model_.changed();
    bool any = false;
    while (!model_.isImpossible() && !(changed.edges.empty() && changed.variables.empty())) {
      if (!changed.edges.empty()) {
        const Edge edge = model_.edge(changed.edges.extract(changed.edges.begin()).value());
        any = settleEdge(edge.first, edge.second) || any;
      } else {
        const int v = changed.variables.extract(changed.variables.begin()).value();
        any = (!model_.isGone(v) && settleVariable(v)) || any;
      }
    }
    return any;
  }

  bool settleEdge(int v, int w) {
    ticks_.spend(4 * static_cast<int64_t>(model_.alive(v).size() * model_.alive(w).size()));
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
    if (model_.edgesOf(v).size() < model_.edgesOf(w).size()) {
      std::swap(v, w);
    }
    return follow(v, w) || follow(w, v);
  }

  // Drops the values of v that all values of w forbid.
  bool dropUnsupported(int v, int w) {
    const TableView table = model_.view(v, w);
    const std::vector<int>& others = model_.alive(w);
    return model_.dropValues(v, [&](int x) {
      return std::all_of(others.begin(), others.end(), [&](int y) { return table.at(x, y) >= kForbidden; });
    }) > 0;
  }

  // A table that is the sum of a row's and a column's costs joins nothing.
  bool takeSum(int v, int w) {
    const TableView table = model_.view(v, w);
    const int x0 = model_.alive(v)[0];
    const int y0 = model_.alive(w)[0];
    for (const int x : model_.alive(v)) {
      for (const int y : model_.alive(w)) {
        if (table.at(x, y) >= kForbidden || table.at(x, y) - table.at(x0, y) != table.at(x, y0) - table.at(x0, y0)) {
          return false;
        }
      }
    }
    for (const int x : model_.alive(v)) {
      model_.addCost(v, x, table.at(x, y0));
    }
    for (const int y : model_.alive(w)) {
      model_.addCost(w, y, table.at(x0, y) - table.at(x0, y0));
    }
    model_.part(v, w);
    return true;
  }

  // Makes w a part of v if each value of v leaves w one.
  bool follow(int v, int w) {
    const TableView table = model_.view(v, w);
    std::vector<int> values(model_.valuesOf(v), model_.alive(w)[0]);
    for (const int x : model_.alive(v)) {
      int allowed = 0;
      for (const int y : model_.alive(w)) {
        if (table.at(x, y) < kForbidden) {
          values[x] = y;
          ++allowed;
        }
      }
      if (allowed != 1) {
        return false;
      }
    }
    for (const int x : model_.alive(v)) {
      model_.addCost(v, x, plus(model_.cost(w, values[x]), table.at(x, values[x])));
    }
    model_.part(v, w);
    while (!model_.edgesOf(w).empty()) {
      const int z = model_.edgesOf(w).begin()->first;
      const Table moved = rowsOf(model_.view(w, z), values, model_.valuesOf(z));
      model_.part(w, z);
      model_.join({v, z, moved});
    }
    model_.moveMemory(w, v, values);
    remove({w, {v}, std::move(values)});
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
    model_.remove(gone.variable);
    reduced_.gone.push_back(std::move(gone));
  }

  bool settleVariable(int v) {
    const size_t dropped = model_.dropValues(v, [&](int x) { return model_.cost(v, x) >= kForbidden; });
    if (model_.isImpossible()) {
      return true;
    }
    if (model_.alive(v).size() == 1 && reductions_.oneValue) {
      takeOneValue(v);
      return true;
    }
    const size_t neighbors = model_.edgesOf(v).size();
    if (model_.takesTheSame(v) && (neighbors == 0 || (neighbors == 1 && reductions_.oneNeighbor) ||
                                   (neighbors == 2 && reductions_.twoNeighbors && keepsSmall(v)))) {
      minimizeOut(v);
      return true;
    }
    return dropped > 0;
  }

  void takeOneValue(int v) {
    const int x = model_.alive(v)[0];
    while (!model_.edgesOf(v).empty()) {
      const int w = model_.edgesOf(v).begin()->first;
      const TableView table = model_.view(v, w);
      for (const int y : model_.alive(w)) {
        model_.addCost(w, y, table.at(x, y));
      }
      model_.part(v, w);
    }
    reduced_.constant += model_.cost(v, x);
    remove({v, {}, {x}});
  }

  bool keepsSmall(int v) const {
    const int a = model_.valuesOf(model_.edgesOf(v).begin()->first);
    const int b = model_.valuesOf(model_.edgesOf(v).rbegin()->first);
    const int64_t most = static_cast<int64_t>(model_.valuesOf(v)) * std::max(a, b);
    return static_cast<int64_t>(a) * b <= std::max(most, kMostEntries);
  }

  // Replaces a variable with up to two neighbors by the least over its values.
  void minimizeOut(int v) {
    Gone gone{v, {}, {}};
    std::vector<TableView> tables;
    std::vector<int> sizes = {1, 1};
    for (const auto& [w, edge] : model_.edgesOf(v)) {
      sizes[gone.neighbors.size()] = model_.valuesOf(w);
      gone.neighbors.push_back(w);
      tables.push_back(model_.view(v, w));
    }
    std::vector<Cost> least;
    for (int y = 0; y < sizes[0]; ++y) {
      for (int z = 0; z < sizes[1]; ++z) {
        std::pair<Cost, int> best = {kForbidden, model_.alive(v)[0]};
        for (const int x : model_.alive(v)) {
          Cost cost = model_.cost(v, x);
          cost = tables.empty() ? cost : plus(cost, tables[0].at(x, y));
          cost = tables.size() < 2 ? cost : plus(cost, tables[1].at(x, z));
          best = cost < best.first ? std::pair(cost, x) : best;
        }
        least.push_back(best.first);
        gone.value.push_back(best.second);
      }
    }
    ticks_.spend(static_cast<int64_t>(least.size() * model_.alive(v).size()));
    for (const int w : gone.neighbors) {
      model_.part(v, w);
    }
    if (gone.neighbors.empty()) {
      reduced_.constant += least[0];
    } else if (gone.neighbors.size() == 1) {
      for (int y = 0; y < sizes[0]; ++y) {
        model_.addCost(gone.neighbors[0], y, least[y]);
      }
    } else {
      model_.join({gone.neighbors[0], gone.neighbors[1], tableOf(std::move(least))});
    }
    remove(std::move(gone));
  }

  // Looks at every variable once. Is a value gone?
  bool dropDominated() {
    bool changed = false;
    for (int v = 0; reductions_.dominated && v < model_.variables(); ++v) {
      if (!model_.isGone(v)) {
        changed = dropDominated(v) || changed;
      }
    }
    return changed;
  }

  bool dropDominated(int v) {
    const std::vector<Beside> beside = besideOf(v);
    const Samples samples = samplesOf(v, beside);
    const std::vector<int> values = model_.alive(v);
    bool changed = false;
    for (auto worse = values.rbegin(); worse != values.rend() && ticks_.left(); ++worse) {
      const std::vector<int>& others = model_.alive(v);
      const bool goes = std::any_of(others.begin(), others.end(), [&](int other) {
        return other != *worse && maySave(v, samples, other, *worse) && standsIn(v, beside, other, *worse);
      });
      changed = (goes && model_.dropValues(v, [&](int x) { return x == *worse; }) > 0) || changed;
    }
    return changed;
  }

  // The edges of a variable whose values are compared, with the values of its neighbors that are left.
  struct Beside {
    TableView table;
    std::span<const int> values;
  };
  std::vector<Beside> besideOf(int v) const {
    std::vector<Beside> beside;
    for (const auto& [w, edge] : model_.edgesOf(v)) {
      beside.push_back({model_.view(v, w), model_.alive(w)});
    }
    return beside;
  }

  // What each value costs beside two values of each neighbor, one value after the other.
  struct Samples {
    size_t edges = 0;
    std::vector<std::array<Cost, 2>> costs;

    const std::array<Cost, 2>* of(int x) const { return costs.data() + static_cast<size_t>(x) * edges; }
  };
  Samples samplesOf(int v, const std::vector<Beside>& beside) const {
    Samples samples = {beside.size(), {}};
    samples.costs.resize(static_cast<size_t>(model_.valuesOf(v)) * beside.size());
    for (const int x : model_.alive(v)) {
      for (size_t i = 0; i < beside.size(); ++i) {
        const auto& [table, values] = beside[i];
        samples.costs[static_cast<size_t>(x) * beside.size() + i] = {table.at(x, values.front()),
                                                                     table.at(x, values.back())};
      }
    }
    return samples;
  }

  // Does it look, beside a few values of each neighbor, as if value `x` stood in for `worse`? Mostly that is enough to
  // say no.
  bool maySave(int v, const Samples& samples, int x, int worse) {
    for (const Residence& residence : model_.residencesOf(v)) {
      if (residence.usage[x] > residence.usage[worse]) {
        return false;
      }
    }
    const std::array<Cost, 2>* const from = samples.of(worse);
    const std::array<Cost, 2>* const to = samples.of(x);
    Cost more = model_.cost(v, x) - model_.cost(v, worse);
    for (size_t i = 0; i < samples.edges; ++i) {
      const Cost most = std::max(moreThan(from[i][0], to[i][0]), moreThan(from[i][1], to[i][1]));
      if (most >= kForbidden) {
        ticks_.spend(2 * static_cast<int64_t>(i + 1));
        return false;
      }
      more += std::max(most, -kMostCost);
    }
    ticks_.spend(2 * static_cast<int64_t>(samples.edges));
    return more <= 0;
  }

  // May value `x` of v be taken wherever `worse` is, at no more cost? As maySave, beside all values.
  bool standsIn(int v, const std::vector<Beside>& beside, int x, int worse) {
    Cost more = model_.cost(v, x) - model_.cost(v, worse);
    for (const auto& [table, values] : beside) {
      Cost most = -kForbidden;
      for (const int y : values) {
        most = std::max(most, moreThan(table.at(worse, y), table.at(x, y)));
      }
      ticks_.spend(static_cast<int64_t>(values.size()));
      if (most >= kForbidden) {
        return false;
      }
      more += std::max(most, -kMostCost);
    }
    return more <= 0;
  }

  // By how much the second is dearer than the first; what replaces nothing that can be chosen is not.
  static Cost moreThan(Cost from, Cost to) {
    return from >= kForbidden ? -kForbidden : to >= kForbidden ? kForbidden : to - from;
  }

  ShrinkingModel model_;
  const Reductions& reductions_;
  Ticks& ticks_;
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

std::vector<int> Reduced::project(const std::vector<int>& all) const {
  std::vector<int> left;
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto value = std::find(values[i].begin(), values[i].end(), all[variables[i]]);
    left.push_back(value == values[i].end() ? 0 : static_cast<int>(value - values[i].begin()));
  }
  return left;
}

Reduced reduce(Model model, const Reductions& reductions, Ticks& ticks) {
  return Reducer(std::move(model), reductions, ticks).run();
}

}  // namespace weft::assign
