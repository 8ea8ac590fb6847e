#include "planner/assign/dual_ascent.h"

#include <algorithm>

namespace weft::assign {
namespace {

constexpr int64_t kTicksOfEdge = 16;  // beside those of its table's entries

// usage x price, rounded down: the bound is then no greater than it may be.
Cost priceOf(int64_t usage, int64_t price, int shift) {
  return static_cast<Cost>((static_cast<__int128>(usage) * price) >> shift);
}

}  // namespace

DualAscent::DualAscent(const Model& model, Ticks& ticks)
    : model_(model),
      ticks_(ticks),
      before_(model.variables()),
      behind_(model.variables()),
      givenAt_(2 * model.edges.size()),
      priced_(model.variables()),
      costs_(model.costs) {
  int64_t size = 0;
  for (int e = 0; e < static_cast<int>(model.edges.size()); ++e) {
    const Edge& edge = model.edges[e];
    (edge.second > edge.first ? behind_ : before_)[edge.first].push_back({e, true, edge.second});
    (edge.second > edge.first ? before_ : behind_)[edge.second].push_back({e, false, edge.first});
    givenAt_[2 * e] = size;
    size += model.valuesOf(edge.first);
    givenAt_[2 * e + 1] = size;
    size += model.valuesOf(edge.second);
  }
  given_.assign(size, 0);
  size_t neighbors = 1;
  for (int v = 0; v < model.variables(); ++v) {
    neighbors = std::max(neighbors, before_[v].size() + behind_[v].size());
    priced_[v].assign(model.valuesOf(v), 0);
    rebase(v);
  }
  most_ = std::min<Cost>(4 * kMostCost, (kForbidden / 2) / static_cast<Cost>(neighbors));
}

void DualAscent::rebase(int v) {
  const Cost least = *std::min_element(costs_[v].begin(), costs_[v].end());
  constant_ += least;
  for (Cost& cost : costs_[v]) {
    cost -= least;
  }
}

void DualAscent::setPrices(const RowPrices& prices) {
  std::vector<int64_t> before(prices.ofRow.size() + 1, 0);  // sum of the prices of the rows before each
  for (size_t row = 0; row < prices.ofRow.size(); ++row) {
    before[row + 1] = before[row] + prices.ofRow[row];
  }
  for (int v = 0; v < model_.variables(); ++v) {
    if (model_.residences[v].empty()) {
      continue;
    }
    std::vector<Cost> priced(priced_[v].size(), 0);
    for (const Residence& residence : model_.residences[v]) {
      const int64_t price = before[residence.last] - before[residence.first];
      for (size_t x = 0; x < priced.size(); ++x) {
        priced[x] += std::min(kMostCost, priceOf(residence.usage[x], price, prices.shift));
      }
    }
    for (size_t x = 0; x < priced.size(); ++x) {
      priced[x] = std::min(priced[x], kMostCost);
      costs_[v][x] += priced[x] - priced_[v][x];
    }
    priced_[v] = std::move(priced);
    rebase(v);
  }
  __int128 sum = 0;
  for (size_t row = 0; row < prices.ofRow.size(); ++row) {
    sum += static_cast<__int128>(model_.capacity[row]) * prices.ofRow[row];
  }
  const __int128 units = __int128{1} << prices.shift;
  pricedCapacity_ = static_cast<Cost>(std::min<__int128>((sum + units - 1) >> prices.shift, kForbidden));
}

// Moves to each value of v what every pair of it in the table costs at least.
void DualAscent::take(int v, const Message& message) {
  const TableView table = viewOf(model_, model_.edges[message.edge], v);
  Cost* to = costsTo(message);
  const Cost* from = costsFrom(message);
  const int mine = model_.valuesOf(v);
  const int others = model_.valuesOf(message.other);
  std::vector<Cost>& costs = costs_[v];
  std::vector<Cost>& least = scratch_;
  least.assign(mine, kForbidden);
  if (table.mine == 1) {
    for (int y = 0; y < others; ++y) {
      const Cost* row = table.costs + static_cast<int64_t>(y) * table.other;
      for (int x = 0; x < mine; ++x) {
        least[x] = std::min(least[x], row[x] - from[y]);
      }
    }
  } else {
    for (int x = 0; x < mine; ++x) {
      const Cost* row = table.costs + static_cast<int64_t>(x) * table.mine;
      Cost lowest = kForbidden;
      for (int y = 0; y < others; ++y) {
        lowest = std::min(lowest, row[y] - from[y]);
      }
      least[x] = lowest;
    }
  }
  for (int x = 0; x < mine; ++x) {
    const Cost given = std::min(least[x], most_);
    costs[x] += given - to[x];
    to[x] = given;
  }
  ticks_.spend(kTicksOfEdge + static_cast<int64_t>(mine) * others);
}

// Gives one of `parts` equal parts of what v has to each edge.
void DualAscent::hand(int v, const std::vector<Message>& messages, size_t parts) {
  if (messages.empty()) {
    return;
  }
  std::vector<Cost>& costs = costs_[v];
  for (size_t x = 0; x < costs.size(); ++x) {
    const Cost part = costs[x] / static_cast<Cost>(parts);
    for (const Message& message : messages) {
      Cost& to = costsTo(message)[x];
      const Cost given = std::min(part, std::max<Cost>(0, to + most_));
      costs[x] -= given;
      to -= given;
    }
  }
}

int DualAscent::choose(int v, const std::vector<Message>& before, const std::vector<Message>& behind,
                       const std::vector<int>& plan) {
  std::vector<Cost>& sum = scratch_;
  sum = model_.costs[v];
  for (size_t x = 0; x < sum.size(); ++x) {
    sum[x] += priced_[v][x];
  }
  for (const Message& message : before) {
    const TableView table = viewOf(model_, model_.edges[message.edge], v);
    for (size_t x = 0; x < sum.size(); ++x) {
      sum[x] = plus(sum[x], table.at(static_cast<int>(x), plan[message.other]));
    }
  }
  ticks_.spend(static_cast<int64_t>(before.size() + behind.size()) * (kTicksOfEdge + model_.valuesOf(v)));
  for (const Message& message : behind) {
    const Cost* to = costsTo(message);
    for (size_t x = 0; x < sum.size(); ++x) {
      sum[x] = plus(sum[x], to[x]);
    }
  }
  return static_cast<int>(std::min_element(sum.begin(), sum.end()) - sum.begin());
}

std::vector<int> DualAscent::pass(bool forward) {
  const int count = model_.variables();
  std::vector<int> plan(count, 0);
  for (int i = 0; i < count; ++i) {
    const int v = forward ? i : count - 1 - i;
    const std::vector<Message>& before = forward ? before_[v] : behind_[v];
    const std::vector<Message>& behind = forward ? behind_[v] : before_[v];
    plan[v] = choose(v, before, behind, plan);
    for (const Message& message : before) {
      take(v, message);
    }
    rebase(v);
    hand(v, behind, std::max(before.size(), behind.size()));
  }
  return plan;
}

std::vector<Cost> DualAscent::beyond(int variable) const {
  std::vector<Cost> beyond = costs_[variable];
  for (const std::vector<Message>* messages : {&before_[variable], &behind_[variable]}) {
    for (const Message& message : *messages) {
      const TableView table = viewOf(model_, model_.edges[message.edge], variable);
      const Cost* to = costsTo(message);
      const Cost* from = costsFrom(message);
      for (int x = 0; x < model_.valuesOf(variable); ++x) {
        Cost least = kForbidden;
        for (int y = 0; y < model_.valuesOf(message.other); ++y) {
          least = std::min(least, table.at(x, y) - from[y]);
        }
        beyond[x] = plus(beyond[x], least - to[x]);
      }
    }
  }
  return beyond;
}

Model DualAscent::passed() const {
  Model model = model_;
  model.costs = costs_;
  for (int v = 0; v < model_.variables(); ++v) {
    for (size_t x = 0; x < costs_[v].size(); ++x) {
      model.costs[v][x] -= priced_[v][x];
    }
  }
  for (size_t e = 0; e < model.edges.size(); ++e) {
    Edge& edge = model.edges[e];
    std::vector<Cost> costs = *edge.costs;
    const Cost* first = &given_[givenAt_[2 * e]];
    const Cost* second = &given_[givenAt_[2 * e + 1]];
    const int columns = model_.valuesOf(edge.second);
    for (size_t i = 0; i < costs.size(); ++i) {
      costs[i] = costs[i] >= kForbidden ? kForbidden : costs[i] - first[i / columns] - second[i % columns];
    }
    edge.costs = tableOf(std::move(costs));
  }
  return model;
}

}  // namespace weft::assign
