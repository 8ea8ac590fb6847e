#include "planner/assign/narrow.h"

#include <algorithm>
#include <set>
#include <utility>

#include "planner/assign/eliminate.h"

namespace weft::assign {
namespace {

// Entries of one table and of all tables that elimination may make.
constexpr int64_t kMostEntries = 1 << 18;
constexpr int64_t kMostEntriesInAll = 1 << 22;
constexpr int64_t kTicksOfEntry = 30;

// The entries of all tables together; more than kMostEntriesInAll where one of them is too large.
int64_t entriesOf(const Model& model) {
  std::vector<std::set<int>> neighbors(model.variables());
  std::set<std::pair<size_t, int>> order;
  for (const Edge& edge : model.edges) {
    neighbors[edge.first].insert(edge.second);
    neighbors[edge.second].insert(edge.first);
  }
  for (int v = 0; v < model.variables(); ++v) {
    order.insert({neighbors[v].size(), v});
  }
  int64_t all = 0;
  while (!order.empty()) {
    const int v = order.begin()->second;
    order.erase(order.begin());
    int64_t entries = model.valuesOf(v);
    for (const int w : neighbors[v]) {
      entries *= model.valuesOf(w);
      if (entries > kMostEntries) {
        return kMostEntriesInAll + 1;
      }
    }
    all += entries;
    if (all > kMostEntriesInAll) {
      return kMostEntriesInAll + 1;
    }
    for (const int w : neighbors[v]) {
      order.erase({neighbors[w].size(), w});
      neighbors[w].insert(neighbors[v].begin(), neighbors[v].end());
      neighbors[w].erase(v);
      neighbors[w].erase(w);
      order.insert({neighbors[w].size(), w});
    }
  }
  return all;
}

}  // namespace

bool isNarrow(const Model& model) {
  return entriesOf(model) <= kMostEntriesInAll;
}

std::vector<int> solveNarrow(const Model& model, Ticks& ticks) {
  AssignmentProblem problem;
  for (int v = 0; v < model.variables(); ++v) {
    problem.values.push_back(model.valuesOf(v));
    problem.tables.push_back({{v}, model.costs[v]});
  }
  for (const Edge& edge : model.edges) {
    problem.tables.push_back({{edge.first, edge.second}, *edge.costs});
  }
  ticks.spend(kTicksOfEntry * entriesOf(model));
  return eliminate(problem, INT64_MAX / 2).values;
}

std::vector<std::vector<int>> partsOf(const Model& model) {
  std::vector<int> part(model.variables());
  for (int v = 0; v < model.variables(); ++v) {
    part[v] = v;
  }
  const auto find = [&](int v) {
    while (part[v] != v) {
      v = part[v] = part[part[v]];
    }
    return v;
  };
  for (const Edge& edge : model.edges) {
    const int a = find(edge.first);
    const int b = find(edge.second);
    part[std::max(a, b)] = std::min(a, b);
  }
  std::vector<std::vector<int>> members(model.variables());
  for (int v = 0; v < model.variables(); ++v) {
    members[find(v)].push_back(v);
  }
  std::erase_if(members, [](const std::vector<int>& part) { return part.empty(); });
  return members;
}

}  // namespace weft::assign
