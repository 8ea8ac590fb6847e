#include "planner/assign/local_search.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace weft::assign {
namespace {

constexpr int64_t kTicksOfChange = 50;  // of one range of rows
constexpr int64_t kTicksOfEdge = 16;    // beside those of its table's entries

}  // namespace

LocalSearch::LocalSearch(const Model& model, Ticks& ticks)
    : model_(model), ticks_(ticks), neighbors_(model.variables()), residents_(model), profile_({}) {
  for (int e = 0; e < static_cast<int>(model.edges.size()); ++e) {
    neighbors_[model.edges[e].first].push_back({e, model.edges[e].second});
    neighbors_[model.edges[e].second].push_back({e, model.edges[e].first});
  }
  for (const std::vector<Cost>& costs : model.costs) {
    begin_.push_back(own_.size());
    for (const Cost cost : costs) {
      own_.emplace_back().add(cost, 1);
    }
  }
}

void LocalSearch::start(std::vector<int> values) {
  values_ = std::move(values);
  at_ = own_;
  now_ = {};
  for (int v = 0; v < model_.variables(); ++v) {
    const State& own = own_[begin_[v] + values_[v]];
    now_.forbidden += own.forbidden;
    now_.cost += own.cost;
  }
  for (const Edge& edge : model_.edges) {
    const TableView table = viewOf(model_, edge, edge.first);
    const int x = values_[edge.first];
    const int y = values_[edge.second];
    now_.add(table.at(x, y), 1);
    State* first = &at_[begin_[edge.first]];
    for (int other = 0; other < model_.valuesOf(edge.first); ++other) {
      first[other].add(table.at(other, y), 1);
    }
    State* second = &at_[begin_[edge.second]];
    for (int other = 0; other < model_.valuesOf(edge.second); ++other) {
      second[other].add(table.at(x, other), 1);
    }
    ticks_.spend(kTicksOfEdge + model_.valuesOf(edge.first) + model_.valuesOf(edge.second));
  }
  profile_ = UsageProfile(excessOf(model_, values_));
}

void LocalSearch::occupy(int v, int x, int sign) {
  for (const Residence& residence : model_.residences[v]) {
    profile_.add(residence.first, residence.last, sign * residence.usage[x]);
  }
  ticks_.spend(kTicksOfChange * static_cast<int64_t>(model_.residences[v].size()));
}

void LocalSearch::set(int v, int x) {
  const int old = values_[v];
  const State difference = change(v, x);
  now_.forbidden += difference.forbidden;
  now_.cost += difference.cost;
  values_[v] = x;
  for (const Neighbor& neighbor : neighbors_[v]) {
    const TableView table = viewOf(model_, model_.edges[neighbor.edge], neighbor.other);
    State* states = &at_[begin_[neighbor.other]];
    for (int y = 0; y < model_.valuesOf(neighbor.other); ++y) {
      states[y].add(table.at(y, old), -1);
      states[y].add(table.at(y, x), 1);
    }
    ticks_.spend(kTicksOfEdge + model_.valuesOf(neighbor.other));
  }
  for (const Residence& residence : model_.residences[v]) {
    profile_.add(residence.first, residence.last, residence.usage[x] - residence.usage[old]);
  }
  ticks_.spend(kTicksOfChange * static_cast<int64_t>(model_.residences[v].size()));
}

// Changes a variable unless more memory is then taken where there is none.
bool LocalSearch::setIfItFits(int v, int x) {
  const int old = values_[v];
  std::vector<const Residence*> grown;
  for (const Residence& residence : model_.residences[v]) {
    if (residence.usage[x] > residence.usage[old]) {
      grown.push_back(&residence);
      if (profile_.excess(residence.first, residence.last) + residence.usage[x] - residence.usage[old] > 0 &&
          model_.residences[v].size() == 1) {
        return false;
      }
    }
  }
  if (grown.empty()) {
    set(v, x);
    return true;
  }
  occupy(v, old, -1);
  occupy(v, x, 1);
  const bool fits = std::all_of(grown.begin(), grown.end(), [&](const Residence* residence) {
    return profile_.excess(residence->first, residence->last) <= 0;
  });
  occupy(v, x, -1);
  occupy(v, old, 1);
  if (fits) {
    set(v, x);
  }
  return fits;
}

bool LocalSearch::improve(int v) {
  std::vector<std::tuple<int64_t, Cost, int>> better;
  for (int x = 0; x < model_.valuesOf(v); ++x) {
    const State possible = change(v, x);
    if (x != values_[v] && possible.isBetter()) {
      better.emplace_back(possible.forbidden, possible.cost, x);
    }
  }
  ticks_.spend(model_.valuesOf(v));
  std::sort(better.begin(), better.end());
  for (const auto& [forbidden, cost, x] : better) {
    if (setIfItFits(v, x)) {
      return true;
    }
  }
  return false;
}

void LocalSearch::descend() {
  std::queue<int> queue;
  std::vector<char> queued(model_.variables(), 1);
  for (int v = 0; v < model_.variables(); ++v) {
    queue.push(v);
  }
  while (!queue.empty() && ticks_.left()) {
    const int v = queue.front();
    queue.pop();
    queued[v] = 0;
    if (!improve(v)) {
      continue;
    }
    for (const Neighbor& neighbor : neighbors_[v]) {
      if (queued[neighbor.other] == 0) {
        queued[neighbor.other] = 1;
        queue.push(neighbor.other);
      }
    }
  }
}

bool LocalSearch::makeRoom() {
  while (!profile_.fits() && ticks_.left()) {
    if (!lighten(profile_.fullest())) {
      return false;
    }
  }
  return profile_.fits();
}

// Makes changes until the row holds what is in it; false: there are none that help.
bool LocalSearch::lighten(int row) {
  struct Candidate {
    double price;  // of what one unit costs that it frees
    int variable;
    int value;
    bool operator<(const Candidate& other) const {  // a queue has its greatest in front
      return std::tie(other.price, other.variable, other.value) < std::tie(price, variable, value);
    }
  };
  const auto candidate = [&](int v, int x) -> Candidate {
    int64_t freed = 0;
    for (const Residence& residence : model_.residences[v]) {
      if (residence.first <= row && row < residence.last) {
        freed += residence.usage[values_[v]] - residence.usage[x];
      }
    }
    const State possible = change(v, x);
    const bool helps = freed > 0 && possible.forbidden <= 0;
    // Of changes that cost nothing, or less, those that free most.
    const auto cost = static_cast<double>(possible.cost);
    return {helps ? (cost > 0 ? cost / static_cast<double>(freed) : cost - static_cast<double>(freed)) : -1.0,
            helps ? v : -1, x};
  };
  std::priority_queue<Candidate> queue;
  std::vector<int> residents = residents_.of(row);
  residents.erase(std::unique(residents.begin(), residents.end()), residents.end());
  for (const int v : residents) {
    for (int x = 0; x < model_.valuesOf(v); ++x) {
      const Candidate next = candidate(v, x);
      if (next.variable >= 0) {
        queue.push(next);
      }
    }
    ticks_.spend(static_cast<int64_t>(model_.residences[v].size()) * model_.valuesOf(v));
  }
  bool changed = false;
  while (!queue.empty() && profile_.excess(row, row + 1) > 0 && ticks_.left()) {
    const Candidate next = queue.top();
    queue.pop();
    const Candidate now = candidate(next.variable, next.value);
    if (now.variable < 0) {
      continue;
    }
    if (now.price > next.price) {
      queue.push(now);
    } else {
      changed = setIfItFits(next.variable, next.value) || changed;
    }
  }
  return changed && profile_.excess(row, row + 1) <= 0;
}

}  // namespace weft::assign
