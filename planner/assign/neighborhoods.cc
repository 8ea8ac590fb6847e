#include "planner/assign/neighborhoods.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace weft::assign {
namespace {

// Of the variables of a neighborhood, those that a row gives: with their neighbors they are all.
constexpr size_t kOfRow = 3;

}  // namespace

Neighborhoods::Neighborhoods(const Model& model) : model_(model), neighbors_(model.variables()), residents_(model) {
  for (int e = 0; e < static_cast<int>(model.edges.size()); ++e) {
    neighbors_[model.edges[e].first].push_back({e, model.edges[e].second});
    neighbors_[model.edges[e].second].push_back({e, model.edges[e].first});
  }
}

std::vector<int> Neighborhoods::choose(size_t size, const std::vector<int>& rows) {
  std::vector<int> queue;
  if (!rows.empty() && random(2) == 0) {
    const std::vector<int> residents = residents_.of(rows[random(rows.size())]);
    for (size_t i = 0; i < size / kOfRow && !residents.empty(); ++i) {
      queue.push_back(residents[random(residents.size())]);
    }
  }
  if (queue.empty()) {
    queue.push_back(random(static_cast<size_t>(model_.variables())));
  }
  std::set<int> chosen(queue.begin(), queue.end());
  for (size_t next = 0; next < queue.size() && chosen.size() < size; ++next) {
    const std::vector<Neighbor>& around = neighbors_[queue[next]];
    for (size_t i = 0; i < around.size() && chosen.size() < size; ++i) {
      const int other = around[around.size() <= size ? i : random(around.size())].other;
      if (chosen.insert(other).second) {
        queue.push_back(other);
      }
    }
  }
  return {chosen.begin(), chosen.end()};
}

// The rows in which any of the variables may be, numbered anew.
void Neighborhoods::addMemory(const std::vector<int>& variables, const std::vector<int>& plan,
                              const std::vector<int64_t>& excess, Model& part) const {
  std::vector<std::pair<int, int>> ranges;
  for (const int v : variables) {
    for (const Residence& residence : model_.residences[v]) {
      ranges.emplace_back(residence.first, residence.last);
    }
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<int> rows;
  for (const auto& [first, last] : ranges) {
    for (int row = rows.empty() ? first : std::max(first, rows.back() + 1); row < last; ++row) {
      rows.push_back(row);
      part.rowNumbers.push_back(model_.rowNumbers[row]);
      part.capacity.push_back(-excess[row]);
    }
  }
  const auto numberOf = [&](int row) {
    return static_cast<int>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
  };
  for (const int v : variables) {
    std::vector<Residence>& residences = part.residences.emplace_back();
    for (const Residence& residence : model_.residences[v]) {
      residences.push_back({numberOf(residence.first), numberOf(residence.last), residence.usage});
      for (int row = residences.back().first; row < residences.back().last; ++row) {
        part.capacity[row] += residence.usage[plan[v]];
      }
    }
  }
}

Model Neighborhoods::around(const std::vector<int>& variables, const std::vector<int>& plan,
                            const std::vector<int64_t>& excess) const {
  Model part;
  std::map<int, int> numbers;
  for (const int v : variables) {
    numbers[v] = part.variables();
    part.costs.push_back(model_.costs[v]);
  }
  addMemory(variables, plan, excess, part);
  for (const int v : variables) {
    for (const Neighbor& neighbor : neighbors_[v]) {
      const auto other = numbers.find(neighbor.other);
      const Edge& edge = model_.edges[neighbor.edge];
      if (other == numbers.end()) {
        const TableView table = viewOf(model_, edge, v);
        std::vector<Cost>& costs = part.costs[numbers[v]];
        for (int x = 0; x < static_cast<int>(costs.size()); ++x) {
          costs[x] = plus(costs[x], table.at(x, plan[neighbor.other]));
        }
      } else if (edge.first == v) {
        part.edges.push_back({numbers[v], other->second, edge.costs});
      }
    }
  }
  return part;
}

}  // namespace weft::assign
