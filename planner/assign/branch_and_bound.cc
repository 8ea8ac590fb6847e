#include "planner/assign/branch_and_bound.h"

#include <algorithm>
#include <utility>

namespace weft::assign {
namespace {

// Of one value of one variable, where the next variable is chosen.
constexpr int64_t kTicksOfValue = 4;

std::vector<int64_t> emptyRows(const Model& model) {
  std::vector<int64_t> excess = model.capacity;
  for (int64_t& row : excess) {
    row = -row;
  }
  return excess;
}

}  // namespace

BranchAndBound::BranchAndBound(const Model& model, std::vector<std::vector<Cost>> priced, Cost base, Ticks& ticks)
    : model_(model),
      ticks_(ticks),
      base_(base),
      neighbors_(model.variables()),
      costs_(std::move(priced)),
      values_(model.variables(), -1),
      profile_(emptyRows(model)) {
  for (int e = 0; e < static_cast<int>(model.edges.size()); ++e) {
    neighbors_[model.edges[e].first].push_back({e, model.edges[e].second});
    neighbors_[model.edges[e].second].push_back({e, model.edges[e].first});
  }
  for (const std::vector<Cost>& costs : costs_) {
    least_.push_back(*std::min_element(costs.begin(), costs.end()));
    valuesInAll_ += static_cast<int64_t>(costs.size());
  }
}

bool BranchAndBound::run(Cost upper, Cost unit) {
  upper_ = upper;
  unit_ = unit;
  Cost bound = base_;
  for (const Cost least : least_) {
    bound += least;
  }
  return search(bound, 0);
}

// The variable with the fewest values that may be part of a better plan; of equal ones that with the most neighbors.
int BranchAndBound::choose(Cost bound) const {
  int chosen = -1;
  std::pair<int, int> best;
  for (int v = 0; v < model_.variables(); ++v) {
    if (values_[v] >= 0) {
      continue;
    }
    const Cost most = upper_ - bound + least_[v];
    const auto count =
        static_cast<int>(std::count_if(costs_[v].begin(), costs_[v].end(), [&](Cost cost) { return cost < most; }));
    const std::pair<int, int> rank = {count, -static_cast<int>(neighbors_[v].size())};
    if (chosen < 0 || rank < best) {
      chosen = v;
      best = rank;
    }
  }
  return chosen;
}

// False: the budget ended.
bool BranchAndBound::search(Cost bound, int assigned) {
  if (bound >= upper_) {
    return true;
  }
  if (assigned == model_.variables()) {
    const Cost cost = costOf(model_, values_);
    if (cost < upper_) {
      best_ = values_;
      upper_ = cost - unit_ + 1;
    }
    return true;
  }
  if (!ticks_.left()) {
    return false;
  }
  ticks_.spend(kTicksOfValue * valuesInAll_);
  const int v = choose(bound);
  std::vector<std::pair<Cost, int>> order;
  for (int x = 0; x < model_.valuesOf(v); ++x) {
    order.emplace_back(costs_[v][x], x);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [cost, x] : order) {
    if (bound - least_[v] + cost >= upper_) {
      break;
    }
    std::vector<std::vector<Cost>> before;
    for (const Neighbor& neighbor : neighbors_[v]) {
      before.push_back(costs_[neighbor.other]);
    }
    const Cost next = assign(v, x, bound);
    const bool complete = !profile_.fits() || search(next, assigned + 1);
    withdraw(v, std::move(before));
    if (!complete) {
      return false;
    }
  }
  return true;
}

Cost BranchAndBound::assign(int v, int x, Cost bound) {
  bound += costs_[v][x] - least_[v];
  values_[v] = x;
  for (const Residence& residence : model_.residences[v]) {
    profile_.add(residence.first, residence.last, residence.usage[x]);
  }
  for (const Neighbor& neighbor : neighbors_[v]) {
    const int w = neighbor.other;
    if (values_[w] >= 0) {
      continue;
    }
    const TableView table = viewOf(model_, model_.edges[neighbor.edge], w);
    for (int y = 0; y < model_.valuesOf(w); ++y) {
      costs_[w][y] = plus(costs_[w][y], table.at(y, x));
    }
    const Cost least = *std::min_element(costs_[w].begin(), costs_[w].end());
    bound = std::min(kForbidden, bound + least - least_[w]);
    least_[w] = least;
    ticks_.spend(model_.valuesOf(w));
  }
  return bound;
}

void BranchAndBound::withdraw(int v, std::vector<std::vector<Cost>> before) {
  for (const Residence& residence : model_.residences[v]) {
    profile_.add(residence.first, residence.last, -residence.usage[values_[v]]);
  }
  values_[v] = -1;
  for (size_t i = 0; i < neighbors_[v].size(); ++i) {
    const int w = neighbors_[v][i].other;
    costs_[w] = std::move(before[i]);
    least_[w] = *std::min_element(costs_[w].begin(), costs_[w].end());
  }
}

}  // namespace weft::assign
