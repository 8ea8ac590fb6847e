#include "planner/assign/coordinate_descent.h"

#include <algorithm>
#include <array>
#include <deque>
#include <set>

#include "runtime/base/status.h"

namespace weft {

CoordinateDescent::CoordinateDescent(const AssignmentProblem& problem, int followers)
    : problem_(problem),
      followers_(followers),
      tables_(problem.values.size()),
      followersOf_(followers),
      neighbors_(followers) {
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    for (const int variable : problem.tables[t].variables) {
      tables_[variable].push_back(static_cast<int>(t));
    }
  }
  for (int variable = 0; variable < followers; ++variable) {
    std::set<int> around;
    std::set<int> following;
    const auto meet = [&](int table) {
      for (const int other : problem.tables[table].variables) {
        (other < followers ? around : following).insert(other);
      }
    };
    std::ranges::for_each(tables_[variable], meet);
    followersOf_[variable].assign(following.begin(), following.end());
    for (const int follower : followersOf_[variable]) {
      std::ranges::for_each(tables_[follower], meet);
    }
    around.erase(variable);
    neighbors_[variable].assign(around.begin(), around.end());
  }
}

CoordinateDescent::Row CoordinateDescent::rowOf(const CostTable& table, int variable,
                                                const std::vector<int>& values) const {
  Row row;
  int64_t entry = 0;
  for (const int other : table.variables) {
    entry = entry * problem_.values[other] + (other == variable ? 0 : values[other]);
    row.stride = other == variable ? 1 : row.stride * problem_.values[other];
  }
  row.first = table.costs.data() + entry;
  return row;
}

void CoordinateDescent::add(const Row& row, std::vector<Picoseconds>& sums) {
  const Picoseconds* cost = row.first;
  for (Picoseconds& sum : sums) {
    sum = sumOfCosts(sum, *cost);
    cost += row.stride;
  }
}

std::vector<Picoseconds> CoordinateDescent::costsOf(int variable, std::vector<int>& values) const {
  const std::vector<Picoseconds> zeros(problem_.values[variable], 0);
  std::vector<Picoseconds> sums = zeros;
  for (const int table : tables_[variable]) {
    const std::vector<int>& others = problem_.tables[table].variables;
    if (std::ranges::all_of(others, [&](int other) { return other < followers_; })) {
      add(rowOf(problem_.tables[table], variable, values), sums);
    }
  }
  for (const int follower : followersOf_[variable]) {
    const int before = values[follower];
    std::array<std::vector<Picoseconds>, 2> costs = {zeros, zeros};  // by the follower's value
    for (values[follower] = 0; values[follower] < 2; ++values[follower]) {
      for (const int table : tables_[follower]) {
        add(rowOf(problem_.tables[table], variable, values), costs[values[follower]]);
      }
    }
    values[follower] = before;
    for (size_t x = 0; x < sums.size(); ++x) {
      sums[x] = sumOfCosts(sums[x], costs[1][x] < kImpossible ? costs[1][x] : costs[0][x]);
    }
  }
  return sums;
}

void CoordinateDescent::follow(int follower, std::vector<int>& values) const {
  const auto isPossible = [&](int table) {
    const Row row = rowOf(problem_.tables[table], follower, values);
    return row.first[row.stride] < kImpossible;
  };
  values[follower] = std::ranges::all_of(tables_[follower], isPossible) ? 1 : 0;
}

void CoordinateDescent::follow(std::vector<int>& values) const {
  for (int follower = followers_; follower < static_cast<int>(values.size()); ++follower) {
    follow(follower, values);
  }
}

// Where the truth is more than it seemed, the value that it was better than comes back.
absl::StatusOr<bool> CoordinateDescent::improve(int variable, const Price& price, std::vector<int>& values) const {
  const int before = values[variable];
  for (;;) {
    const std::vector<Picoseconds> costs = costsOf(variable, values);
    const auto best = static_cast<int>(std::ranges::min_element(costs) - costs.begin());
    if (costs[best] >= costs[values[variable]]) {
      return values[variable] != before;
    }
    values[variable] = best;
    for (const int follower : followersOf_[variable]) {
      follow(follower, values);
    }
    WEFT_RETURN_IF_ERROR(price(values));
  }
}

absl::Status CoordinateDescent::run(const Price& price, std::vector<int>& values) const {
  std::deque<int> queue;
  std::vector<bool> isQueued(followers_, false);
  const auto ask = [&](int variable) {
    if (problem_.values[variable] > 1 && !isQueued[variable]) {
      isQueued[variable] = true;
      queue.push_back(variable);
    }
  };
  for (int variable = 0; variable < followers_; ++variable) {
    ask(variable);
  }
  while (!queue.empty()) {
    const int variable = queue.front();
    queue.pop_front();
    isQueued[variable] = false;
    WEFT_ASSIGN_OR_RETURN(const bool isChanged, improve(variable, price, values));
    if (isChanged) {
      std::ranges::for_each(neighbors_[variable], ask);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
