#include "planner/assign/solve.h"

#include <algorithm>
#include <utility>

#include "planner/assign/ascent.h"
#include "planner/assign/branch_and_bound.h"
#include "planner/assign/memory_rows.h"
#include "planner/assign/narrow.h"
#include "planner/assign/neighborhoods.h"

namespace weft::assign {
namespace {

constexpr int kMostRounds = 400;      // of a climb: passes there and back
constexpr double kClimbShare = 0.5;   // of the ticks that are left
constexpr double kPolishShare = 0.5;  // of those that are left then, for parts that are solved again
constexpr int kRoundsOfPart = 40;
constexpr int64_t kTicksOfRow = 20;
constexpr int64_t kTicksOfPart = 4 * 1000 * 1000;
constexpr size_t kSmallest = 8;  // variables of such a part
constexpr size_t kLargest = 64;
constexpr int64_t kPatience = 10;   // times that all variables are looked at in vain
constexpr double kDropped = 0.1;    // part of the values that must go for another round of reductions
constexpr int kMostDepth = 12;      // of such rounds
constexpr int kMostSearched = 400;  // variables of a search to the end

struct Found {
  std::vector<int> values;
  Cost cost = kForbidden;
  Cost bound = -kForbidden;
};

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
  // that there is none. `depth`: how often values have been dropped since the question; kMostDepth: only quick answers.
  // `start`: a plan, or empty.
  Found solve(Model model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks);

 private:
  Found solveParts(const Model& model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks);
  Found solvePart(const Model& model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks);
  Found ascend(const Model& model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks);
  void polish(const Model& model, Cost bound, Incumbent& best, Ticks& ticks);
  // Is a part at its best, is there a better plan, or is it open?
  enum class Answer { kBest, kBetter, kOpen };
  Answer polishPart(const Model& part, Cost cost, std::vector<int>& values, Ticks& ticks);
  Cost finish(const Model& model, const DualAscent& dual, Incumbent& best, int depth, Ticks& ticks);
  RowPrices pricesOf(const Model& model) const;

  const SolveOptions& options_;
  std::vector<int64_t> prices_;  // of the rows of the model that was asked about
  int shift_ = 0;
};

Found Solver::solve(Model model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks) {
  Reduced reduced = reduce(std::move(model), options_.reductions, ticks);
  if (!reduced.possible) {
    return {{}, kForbidden, kForbidden};
  }
  const Cost constant = reduced.constant;
  upper = upper >= kForbidden ? kForbidden : upper - constant;
  const std::vector<int> left = start.empty() ? start : reduced.project(start);
  Found found = reduced.model.capacity.empty() ? solveParts(reduced.model, upper, depth, left, ticks)
                                               : solvePart(reduced.model, upper, depth, left, ticks);
  found.bound = found.bound >= kForbidden ? kForbidden : found.bound + constant;
  if (found.cost < kForbidden) {
    found.cost += constant;
    found.values = reduced.expand(found.values);
  }
  return found;
}

Found Solver::solveParts(const Model& model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks) {
  const std::vector<std::vector<int>> parts = partsOf(model);
  std::vector<Model> models(parts.size());
  std::vector<std::vector<int>> starts(parts.size());
  std::vector<int> partOf(model.variables());
  std::vector<int> numbers(model.variables());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const int v : parts[p]) {
      partOf[v] = static_cast<int>(p);
      numbers[v] = models[p].variables();
      models[p].costs.push_back(model.costs[v]);
      models[p].residences.emplace_back();
      if (!start.empty()) {
        starts[p].push_back(start[v]);
      }
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
    const Found found = solvePart(models[p], allowed, depth, starts[p], share);
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
Found Solver::solvePart(const Model& model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks) {
  if (model.variables() == 0) {
    return {{}, 0, 0};
  }
  if (!options_.eliminates || !model.capacity.empty() || !isNarrow(model)) {
    return ascend(model, upper, depth, start, ticks);
  }
  Found found;
  found.values = solveNarrow(model, ticks);
  found.cost = found.bound = costOf(model, found.values);
  return found;
}

RowPrices Solver::pricesOf(const Model& model) const {
  RowPrices prices{shift_, {}};
  for (const int row : model.rowNumbers) {
    prices.ofRow.push_back(prices_[row]);
  }
  return prices;
}

Found Solver::ascend(const Model& model, Cost upper, int depth, const std::vector<int>& start, Ticks& ticks) {
  Ascent ascent(model, pricesOf(model), options_.unit, ticks);
  Incumbent best{{}, kForbidden, upper};
  if (!start.empty()) {
    ascent.consider(start, best);
  }
  ascent.climb(depth < kMostDepth ? kMostRounds : kRoundsOfPart,
               static_cast<int64_t>(kClimbShare * static_cast<double>(ticks.remaining())), best);
  if (!best.isKnown() && ascent.bound() < kForbidden) {
    ascent.squeeze(best);
  }
  for (size_t row = 0; row < model.capacity.size(); ++row) {
    prices_[model.rowNumbers[row]] = ascent.prices().ofRow[row];
  }
  ascent.settle();
  Cost bound = ascent.bound();
  if (bound < best.upper && best.cost < kForbidden && depth < kMostDepth) {
    polish(model, bound, best, ticks);
  }
  if (bound < best.upper) {
    bound = std::max(bound, finish(model, ascent.dual(), best, depth, ticks));
  }
  return {best.values, best.cost, bound >= best.upper && best.cost < kForbidden ? best.cost : bound};
}

// Solves small parts of the model again, each with the other variables as the best plan has them.
void Solver::polish(const Model& model, Cost bound, Incumbent& best, Ticks& ticks) {
  std::vector<int> rows;
  for (size_t row = 0; row < model.capacity.size(); ++row) {
    if (prices_[model.rowNumbers[row]] > 0) {
      rows.push_back(static_cast<int>(row));
    }
  }
  Neighborhoods neighborhoods(model);
  const int64_t most = ticks.used() + static_cast<int64_t>(kPolishShare * static_cast<double>(ticks.remaining()));
  std::vector<int64_t> excess = excessOf(model, best.values);
  size_t size = kSmallest;
  for (int64_t failures = 0; failures < kPatience * model.variables() && ticks.used() < most && bound < best.upper;) {
    const std::vector<int> variables = neighborhoods.choose(size, rows);
    const Model part = neighborhoods.around(variables, best.values, excess);
    ticks.spend(kTicksOfRow * static_cast<int64_t>(part.capacity.size()));
    std::vector<int> values;
    for (const int v : variables) {
      values.push_back(best.values[v]);
    }
    const Cost cost = costOf(part, values);
    const Answer answer = polishPart(part, cost, values, ticks);
    failures += static_cast<int64_t>(size);
    if (answer == Answer::kBetter) {
      failures = 0;
      std::vector<int> plan = best.values;
      for (size_t i = 0; i < variables.size(); ++i) {
        plan[variables[i]] = values[i];
      }
      best.improve(std::move(plan), best.cost + costOf(part, values) - cost, options_.unit);
      excess = excessOf(model, best.values);
      ticks.spend(model.variables());
    }
    size = answer == Answer::kOpen ? std::max(kSmallest, size - 2) : std::min(kLargest, size + 1);
  }
}

// Of a part at this cost.
Solver::Answer Solver::polishPart(const Model& part, Cost cost, std::vector<int>& values, Ticks& ticks) {
  std::vector<int64_t> prices;
  for (const int row : part.rowNumbers) {
    prices.push_back(prices_[row]);
  }
  const Cost upper = cost - options_.unit + 1;
  Ticks share(std::min(kTicksOfPart, ticks.remaining()));
  Found found = solve(part, upper, kMostDepth, {}, share);
  ticks.spend(share.used());
  for (size_t row = 0; row < prices.size(); ++row) {
    prices_[part.rowNumbers[row]] = prices[row];
  }
  if (found.cost < cost) {
    values = std::move(found.values);
    return Answer::kBetter;
  }
  return found.bound >= upper ? Answer::kBest : Answer::kOpen;
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
      if (best.isKnown() && dual.bound() + beyond[x] >= best.upper) {
        ++dropped;
        passed.costs[v][x] = kForbidden;
        priced[v][x] = kForbidden;
      }
    }
  }
  if (static_cast<double>(dropped) > kDropped * static_cast<double>(values) && depth < kMostDepth && ticks.left()) {
    const Cost upper = best.upper - constant;
    Found found = solve(std::move(passed), upper, depth + 1, {}, ticks);
    if (found.cost < upper) {
      best.improve(std::move(found.values), found.cost + constant, options_.unit);
      return found.bound >= found.cost ? best.upper : found.bound + constant;
    }
    return found.bound >= upper ? best.upper : found.bound + constant;
  }
  if (model.variables() > kMostSearched) {
    return dual.bound();
  }
  BranchAndBound search(passed, std::move(priced), dual.bound() - constant, ticks);
  const bool complete = search.run(best.isKnown() ? best.upper - constant : kForbidden, options_.unit);
  if (search.best()) {
    best.improve(*search.best(), costOf(model, *search.best()), options_.unit);
  }
  return complete ? best.upper : dual.bound();
}

}  // namespace

Solution solve(const Model& model, const SolveOptions& options) {
  Ticks ticks(options.ticks);
  Found found = Solver(model, options).solve(model, options.upper, 0, options.start, ticks);
  Solution solution{std::move(found.values), found.cost, std::min(found.bound, found.cost), ticks.used()};
  return solution;
}

}  // namespace weft::assign
