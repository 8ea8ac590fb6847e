#include "planner/assign/shrinking_model.h"

#include <algorithm>

#include "planner/assign/memory_rows.h"

namespace weft::assign {
namespace {

std::vector<int64_t> selected(const std::vector<int64_t>& all, const std::vector<int>& values) {
  std::vector<int64_t> selected;
  for (const int x : values) {
    selected.push_back(all[x]);
  }
  return selected;
}

}  // namespace

ShrinkingModel::ShrinkingModel(Model model, Ticks& ticks)
    : model_(std::move(model)),
      ticks_(ticks),
      alive_(model_.variables()),
      edgesOf_(model_.variables()),
      gone_(model_.variables(), 0),
      taken_(model_.capacity.size() + 1, 0) {
  for (int v = 0; v < variables(); ++v) {
    for (int x = 0; x < valuesOf(v); ++x) {
      if (model_.costs[v][x] < kForbidden) {
        alive_[v].push_back(x);
      }
    }
    touch(v);
  }
  const std::vector<Edge> edges = std::move(model_.edges);
  model_.edges.clear();
  for (const Edge& edge : edges) {
    join(edge);
  }
}

void ShrinkingModel::touch(int v) {
  impossible_ = impossible_ || alive_[v].empty();
  changed_.variables.insert(v);
  for (const auto& [w, edge] : edgesOf_[v]) {
    changed_.edges.insert(edge);
  }
}

void ShrinkingModel::join(const Edge& edge) {
  const auto [found, isNew] = edgesOf_[edge.first].try_emplace(edge.second, static_cast<int>(model_.edges.size()));
  if (isNew) {
    edgesOf_[edge.second][edge.first] = found->second;
    model_.edges.push_back(edge);
  } else {
    Edge& old = model_.edges[found->second];
    std::vector<Cost> sum = *old.costs;
    const TableView added = viewOf(model_, edge, old.first);
    const int columns = valuesOf(old.second);
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] = plus(sum[i], added.at(static_cast<int>(i) / columns, static_cast<int>(i) % columns));
    }
    ticks_.spend(static_cast<int64_t>(sum.size()));
    old.costs = tableOf(std::move(sum));
  }
  changed_.edges.insert(found->second);
  changed_.variables.insert({edge.first, edge.second});
}

void ShrinkingModel::part(int v, int w) {
  const int edge = edgesOf_[v].at(w);
  edgesOf_[v].erase(w);
  edgesOf_[w].erase(v);
  changed_.edges.erase(edge);
  model_.edges[edge].costs = nullptr;
  changed_.variables.insert({v, w});
}

void ShrinkingModel::remove(int v) {
  for (const Residence& residence : model_.residences[v]) {
    taken_[residence.first] += residence.usage[alive_[v][0]];
    taken_[residence.last] -= residence.usage[alive_[v][0]];
  }
  model_.residences[v].clear();
  gone_[v] = 1;
  changed_.variables.erase(v);
}

void ShrinkingModel::moveMemory(int v, int to, const std::vector<int>& values) {
  for (const Residence& residence : model_.residences[v]) {
    Residence moved{residence.first, residence.last, std::vector<int64_t>(values.size(), 0)};
    for (const int x : alive_[to]) {
      moved.usage[x] = residence.usage[values[x]];
    }
    model_.residences[to].push_back(std::move(moved));
  }
  model_.residences[v].clear();
}

bool ShrinkingModel::takesTheSame(int v) const {
  return std::all_of(model_.residences[v].begin(), model_.residences[v].end(), [&](const Residence& residence) {
    return std::all_of(alive_[v].begin(), alive_[v].end(),
                       [&](int x) { return residence.usage[x] == residence.usage[alive_[v][0]]; });
  });
}

// What variables that are gone take comes off the capacities, and values that are gone take no more than others.
void ShrinkingModel::settleRows() {
  int64_t taken = 0;
  for (size_t row = 0; row < model_.capacity.size(); ++row) {
    taken += taken_[row];
    model_.capacity[row] -= taken;
  }
  for (int v = 0; v < variables(); ++v) {
    for (Residence& residence : model_.residences[v]) {
      const std::vector<int64_t> usage = selected(residence.usage, alive_[v]);
      residence.usage.assign(residence.usage.size(), *std::min_element(usage.begin(), usage.end()));
      for (size_t i = 0; i < usage.size(); ++i) {
        residence.usage[alive_[v][i]] = usage[i];
      }
    }
  }
  impossible_ = impossible_ || !compressRows(model_);
  taken_.assign(model_.capacity.size() + 1, 0);
}

bool ShrinkingModel::tightenRows() {
  if (model_.capacity.empty() || impossible_) {
    return false;
  }
  settleRows();
  std::vector<int64_t> excess;
  for (const int64_t capacity : model_.capacity) {
    excess.push_back(-capacity);
  }
  const UsageProfile empty(excess);
  size_t dropped = 0;
  for (int v = 0; v < variables() && !impossible_; ++v) {
    dropped += dropValues(v, [&](int x) {
      return std::any_of(model_.residences[v].begin(), model_.residences[v].end(), [&](const Residence& residence) {
        return residence.usage[x] > 0 && empty.excess(residence.first, residence.last) + residence.usage[x] > 0;
      });
    });
  }
  return dropped > 0;
}

Model ShrinkingModel::rest() {
  Model rest;
  if (!impossible_) {
    settleRows();
  }
  if (impossible_) {
    return rest;
  }
  rest.rowNumbers = model_.rowNumbers;
  rest.capacity = model_.capacity;
  std::vector<int> numbers(variables(), -1);
  for (int v = 0; v < variables(); ++v) {
    if (isGone(v)) {
      continue;
    }
    numbers[v] = rest.variables();
    rest.costs.push_back(selected(model_.costs[v], alive_[v]));
    std::vector<Residence>& residences = rest.residences.emplace_back();
    for (const Residence& residence : model_.residences[v]) {
      residences.push_back({residence.first, residence.last, selected(residence.usage, alive_[v])});
    }
  }
  for (const Edge& edge : model_.edges) {
    if (edge.costs != nullptr) {
      rest.edges.push_back({numbers[edge.first], numbers[edge.second], selectedTable(edge)});
    }
  }
  return rest;
}

Table ShrinkingModel::selectedTable(const Edge& edge) const {
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

}  // namespace weft::assign
