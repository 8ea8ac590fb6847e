#include "planner/assign/narrow.h"

#include <algorithm>
#include <utility>

#include "planner/assign/eliminate.h"

namespace weft::assign {
namespace {

// Entries of one table and of all tables that elimination may make.
constexpr int64_t kMostEntries = 1 << 18;
constexpr int64_t kMostEntriesInAll = 1 << 22;
constexpr int64_t kTicksOfEntry = 30;

// Of its costs none are copied: whose variables the tables are over says how much work it is.
AssignmentProblem shapeOf(const Model& model) {
  AssignmentProblem problem;
  for (int v = 0; v < model.variables(); ++v) {
    problem.values.push_back(model.valuesOf(v));
  }
  for (const Edge& edge : model.edges) {
    problem.tables.push_back({{edge.first, edge.second}, {}});
  }
  return problem;
}

int64_t entriesOf(const Model& model) {
  return entriesToEliminate(shapeOf(model), kMostEntries, kMostEntriesInAll);
}

}  // namespace

bool isNarrow(const Model& model) {
  return entriesOf(model) <= kMostEntriesInAll;
}

std::vector<int> solveNarrow(const Model& model, Ticks& ticks) {
  ticks.spend(kTicksOfEntry * entriesOf(model));
  AssignmentProblem problem = shapeOf(model);
  for (size_t e = 0; e < model.edges.size(); ++e) {
    problem.tables[e].costs = *model.edges[e].costs;
  }
  for (int v = 0; v < model.variables(); ++v) {
    problem.tables.push_back({{v}, model.costs[v]});
  }
  return eliminate(problem, kMostEntries).values;
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
