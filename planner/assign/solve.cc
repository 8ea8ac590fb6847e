#include "planner/assign/solve.h"

#include <algorithm>
#include <set>
#include <utility>

#include "planner/assign/branch_and_bound.h"
#include "planner/assign/dual_ascent.h"
#include "planner/assign/least_cost.h"
#include "planner/assign/local_search.h"
#include "planner/assign/memory_rows.h"
#include "planner/assign/row_prices.h"

namespace weft::assign {
namespace {

// Entries of one table and of all tables that elimination may make.
constexpr int64_t kMostEntries = 1 << 18;
constexpr int64_t kMostEntriesInAll = 1 << 22;
constexpr int kMostRounds = 400;  // passes there and back
constexpr int kFewestRounds = 12;
constexpr int kWindow = 10;  // rounds in which the bound must grow by kGrowth of the gap
constexpr double kGrowth = 0.02;
constexpr double kAscentShare = 0.5;  // of the ticks that are left
constexpr double kDropped = 0.1;      // part of the values that must go for another round of reductions
constexpr int kMostDepth = 12;        // of such rounds
constexpr int kMostSearched = 2000;   // variables of a search to the end
constexpr int kSqueezes = 60;

struct Found {
  std::vector<int> values;
  Cost cost = kForbidden;
  Cost bound = -kForbidden;
};

// Does elimination, the variable with the fewest neighbors first, make small tables only?
bool isNarrow(const Model& model) {
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
        return false;
      }
    }
    all += entries;
    if (all > kMostEntriesInAll) {
      return false;
    }
    for (const int w : neighbors[v]) {
      order.erase({neighbors[w].size(), w});
      neighbors[w].insert(neighbors[v].begin(), neighbors[v].end());
      neighbors[w].erase(v);
      neighbors[w].erase(w);
      order.insert({neighbors[w].size(), w});
    }
  }
  return true;
}

Found eliminate(const Model& model, Ticks& ticks) {
  AssignmentProblem problem;
  for (int v = 0; v < model.variables(); ++v) {
    problem.values.push_back(model.valuesOf(v));
    problem.tables.push_back({{v}, model.costs[v]});
  }
  for (const Edge& edge : model.edges) {
    problem.tables.push_back({{edge.first, edge.second}, *edge.costs});
  }
  Found found;
  found.values = leastCost(problem, INT64_MAX / 2).values;
  found.cost = found.bound = costOf(model, found.values);
  ticks.spend(kMostEntriesInAll);
  return found;
}

// Variables that edges join, by the first one of each part.
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

// The least that a model without memory may cost at first sight.
Cost leastOf(const Model& model) {
  Cost least = 0;
  for (const std::vector<Cost>& costs : model.costs) {
    least += *std::min_element(costs.begin(), costs.end());
  }
  for (const Edge& edge : model.edges) {
    least += *std::min_element(edge.costs->begin(), edge.costs->end());
  }
  return least;
}

class Solver {
 public:
  Solver(const Model& model, const SolveOptions& options) : options_(options), prices_(model.capacity.size(), 0) {
    int64_t most = 1;
    for (const int64_t capacity : model.capacity) {
      most = std::max(most, capacity);
    }
    while (most > 1) {
      most /= 2;
      ++shift_;
    }
  }

  // A plan that costs less than `upper`, if one is found, and a bound on all plans; a bound of `upper` or more says
  // that there is none.
  Found solve(Model model, Cost upper, int depth, Ticks& ticks) {
    Reduced reduced = reduce(std::move(model), options_.reductions, ticks);
    if (!reduced.possible) {
      return {{}, kForbidden, kForbidden};
    }
    const Cost constant = reduced.constant;
    upper = upper >= kForbidden ? kForbidden : upper - constant;
    Found found = reduced.model.capacity.empty() ? solveParts(reduced.model, upper, depth, ticks)
                                                 : solvePart(reduced.model, upper, depth, ticks);
    found.bound = found.bound >= kForbidden ? kForbidden : found.bound + constant;
    if (found.cost < kForbidden) {
      found.cost += constant;
      found.values = reduced.expand(found.values);
    }
    return found;
  }

 private:
  Found solveParts(const Model& model, Cost upper, int depth, Ticks& ticks) {
    const std::vector<std::vector<int>> parts = partsOf(model);
    std::vector<Model> models(parts.size());
    std::vector<int> partOf(model.variables());
    std::vector<int> numbers(model.variables());
    for (size_t p = 0; p < parts.size(); ++p) {
      for (const int v : parts[p]) {
        partOf[v] = static_cast<int>(p);
        numbers[v] = models[p].variables();
        models[p].costs.push_back(model.costs[v]);
        models[p].residences.emplace_back();
      }
    }
    for (const Edge& edge : model.edges) {
      models[partOf[edge.first]].edges.push_back({numbers[edge.first], numbers[edge.second], edge.costs});
    }
    std::vector<Cost> bounds;
    Cost sum = 0;
    size_t work = 0;
    for (const Model& part : models) {
      bounds.push_back(leastOf(part));
      sum += bounds.back();
      work += part.edges.size() + 1;
    }
    Found all{std::vector<int>(model.variables()), 0, 0};
    for (size_t p = 0; p < parts.size(); ++p) {
      Ticks share(static_cast<int64_t>(static_cast<double>(ticks.remaining()) *
                                       static_cast<double>(models[p].edges.size() + 1) / static_cast<double>(work)));
      work -= models[p].edges.size() + 1;
      const Cost allowed = upper >= kForbidden ? kForbidden : upper - (sum - bounds[p]);
      const Found found = solvePart(models[p], allowed, depth, share);
      ticks.spend(share.used());
      sum += std::max(found.bound, bounds[p]) - bounds[p];
      bounds[p] = std::max(found.bound, bounds[p]);
      if (found.bound >= kForbidden || found.bound >= allowed) {
        return {{}, kForbidden, found.bound >= kForbidden ? kForbidden : std::max(upper, sum)};
      }
      all.cost = plus(all.cost, found.cost);
      for (size_t i = 0; i < parts[p].size() && found.cost < kForbidden; ++i) {
        all.values[parts[p][i]] = found.values[i];
      }
    }
    all.bound = sum;
    return all;
  }

  // One part: exactly where it is narrow, else as well as the ticks allow.
  Found solvePart(const Model& model, Cost upper, int depth, Ticks& ticks) {
    if (model.variables() == 0) {
      return {{}, 0, 0};
    }
    return options_.eliminates && model.capacity.empty() && isNarrow(model) ? eliminate(model, ticks)
                                                                            : ascend(model, upper, depth, ticks);
  }

  // The best plan so far of one part.
  struct Incumbent {
    std::vector<int> values;
    Cost cost = kForbidden;
    Cost upper = kForbidden;  // a better plan costs less than this
  };

  void consider(LocalSearch& search, std::vector<int> plan, Incumbent& best) const {
    search.start(std::move(plan));
    search.makeRoom();
    search.descend();
    if (search.possible() && search.cost() < best.upper) {
      best = {search.values(), search.cost(), search.cost() - options_.unit + 1};
    }
  }

  RowPrices pricesOf(const Model& model) const {
    RowPrices prices{shift_, {}};
    for (const int row : model.rowNumbers) {
      prices.ofRow.push_back(prices_[row]);
    }
    return prices;
  }

  Found ascend(const Model& model, Cost upper, int depth, Ticks& ticks) {
    DualAscent dual(model, ticks);
    LocalSearch search(model, ticks);
    PriceAscent prices(pricesOf(model));
    dual.setPrices(prices.prices());
    Incumbent best{{}, kForbidden, upper};
    Cost bound = climb(model, dual, search, prices, best, ticks);
    if (best.upper >= kForbidden && bound < kForbidden) {
      squeeze(model, dual, search, prices, best);
    }
    if (!model.capacity.empty()) {
      for (size_t row = 0; row < model.capacity.size(); ++row) {
        prices_[model.rowNumbers[row]] = prices.best().ofRow[row];
      }
      dual.setPrices(prices.best());
      dual.pass(true);
      dual.pass(false);
      bound = std::max(bound, dual.bound());
    }
    if (bound < best.upper) {
      bound = std::max(bound, finish(model, dual, best, depth, ticks));
    }
    return {best.values, best.cost, bound >= best.upper && best.cost < kForbidden ? best.cost : bound};
  }

  // Passes until the bound hardly grows; returns it.
  Cost climb(const Model& model, DualAscent& dual, LocalSearch& search, PriceAscent& prices, Incumbent& best,
             Ticks& ticks) const;
  void squeeze(const Model& model, DualAscent& dual, LocalSearch& search, PriceAscent& prices, Incumbent& best) const;
  Cost finish(const Model& model, const DualAscent& dual, Incumbent& best, int depth, Ticks& ticks);

  const SolveOptions& options_;
  std::vector<int64_t> prices_;  // of the rows of the model that was asked about
  int shift_ = 0;
};

Cost Solver::climb(const Model& model, DualAscent& dual, LocalSearch& search, PriceAscent& prices, Incumbent& best,
                   Ticks& ticks) const {
  const bool hasRows = !model.capacity.empty();
  const int64_t most = ticks.used() + static_cast<int64_t>(kAscentShare * static_cast<double>(ticks.remaining()));
  Cost bound = -kForbidden;
  std::vector<Cost> bounds;
  for (int round = 0; round < kMostRounds && (round == 0 || ticks.used() < most); ++round) {
    std::vector<int> plan = dual.pass(true);
    consider(search, plan, best);
    const std::vector<int> back = dual.pass(false);
    consider(search, back, best);
    bound = std::max(bound, dual.bound());
    bounds.push_back(bound);
    if (bound >= best.upper) {
      break;
    }
    if (hasRows) {
      std::vector<int64_t> excess = excessOf(model, plan);
      const Cost target = best.upper < kForbidden ? best.upper : std::max(costOf(model, plan), dual.bound() + 1);
      prices.learn(excess, dual.bound(), target < kForbidden ? target : dual.bound() + (dual.bound() >> 4) + 1);
      dual.setPrices(prices.prices());
    }
    if (round >= kFewestRounds && best.upper < kForbidden && (!hasRows || prices.settled())) {
      const auto grown = static_cast<double>(bound - bounds[round - kWindow]);
      if (grown < kGrowth * static_cast<double>(best.upper - bound)) {
        break;
      }
    }
  }
  return bound;
}

// Where no plan was found that fits: prices until plans avoid the rows that overflow.
void Solver::squeeze(const Model& model, DualAscent& dual, LocalSearch& search, PriceAscent& prices,
                     Incumbent& best) const {
  PriceAscent squeezed(prices.best());
  for (int i = 0; i < kSqueezes && best.upper >= kForbidden && !model.capacity.empty(); ++i) {
    dual.setPrices(squeezed.prices());
    dual.pass(true);
    dual.pass(false);
    const std::vector<int> plan = dual.pass(true);
    consider(search, plan, best);
    squeezed.squeeze(excessOf(model, plan));
    dual.pass(false);
  }
}

// Drops the values that no better plan has, and solves what remains.
Cost Solver::finish(const Model& model, const DualAscent& dual, Incumbent& best, int depth, Ticks& ticks) {
  Model passed = dual.passed();
  const Cost constant = dual.constant();
  int64_t values = 0;
  int64_t dropped = 0;
  std::vector<std::vector<Cost>> priced = dual.costs();
  for (int v = 0; v < model.variables(); ++v) {
    const std::vector<Cost> beyond = dual.beyond(v);
    for (int x = 0; x < model.valuesOf(v); ++x) {
      ++values;
      if (best.upper < kForbidden && dual.bound() + beyond[x] >= best.upper) {
        ++dropped;
        passed.costs[v][x] = kForbidden;
        priced[v][x] = kForbidden;
      }
    }
  }
  if (static_cast<double>(dropped) > kDropped * static_cast<double>(values) && depth < kMostDepth && ticks.left()) {
    const Cost upper = best.upper - constant;
    Found found = solve(std::move(passed), upper, depth + 1, ticks);
    if (found.cost < upper) {
      best = {std::move(found.values), found.cost + constant, found.cost + constant - options_.unit + 1};
      return found.bound >= found.cost ? best.upper : found.bound + constant;
    }
    return found.bound >= upper ? best.upper : found.bound + constant;
  }
  if (model.variables() > kMostSearched) {
    return dual.bound();
  }
  BranchAndBound search(passed, std::move(priced), dual.bound() - constant, ticks);
  const bool complete = search.run(best.upper >= kForbidden ? kForbidden : best.upper - constant, options_.unit);
  if (search.best()) {
    const Cost cost = costOf(model, *search.best());
    best = {*search.best(), cost, cost - options_.unit + 1};
  }
  return complete ? best.upper : dual.bound();
}

}  // namespace

Solution solve(const Model& model, const SolveOptions& options) {
  Ticks ticks(options.ticks);
  Found found = Solver(model, options).solve(model, kForbidden, 0, ticks);
  Solution solution{std::move(found.values), found.cost, std::min(found.bound, found.cost), ticks.used()};
  return solution;
}

}  // namespace weft::assign
