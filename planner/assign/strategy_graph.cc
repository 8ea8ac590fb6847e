#include "planner/assign/strategy_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/assign/solve.h"
#include "runtime/base/status.h"

namespace weft::assign {
namespace {

constexpr int kMostBits = 20;  // behind the point, of costs that are whole anyway: so that they can be shared out
// Usages of one time are added in 64 bits.
constexpr int64_t kMostUsage = int64_t{1} << 62;

// How costs become whole numbers: cost x 2^bits, rounded down where they are none then.
struct Scale {
  int bits = 0;
  bool isExact = true;
  Cost unit = 1;  // if exact: of which all are multiples

  Cost of(double cost) const {
    return cost >= kImpossibleCost ? kForbidden : static_cast<Cost>(std::floor(std::ldexp(cost, bits)));
  }
};

Scale scaleOf(const StrategyGraph& graph) {
  double sum = 1;
  int fraction = std::numeric_limits<int>::min();  // bits behind the point that some cost has
  for (const Rows<double>* rows : {&graph.costs, &graph.edgeCosts}) {
    for (size_t row = 0; row < rows->size(); ++row) {
      double most = 0;
      for (size_t i = 0; i < rows->sizeOf(row); ++i) {
        const double cost = rows->of(row)[i];
        if (cost >= kImpossibleCost || cost == 0) {
          continue;
        }
        most = std::max(most, std::fabs(cost));
        if (fraction < kMostBits) {
          int bits = std::max(fraction, 0);
          while (bits < kMostBits && std::ldexp(cost, bits) != std::floor(std::ldexp(cost, bits))) {
            ++bits;
          }
          fraction = std::ldexp(cost, bits) == std::floor(std::ldexp(cost, bits)) ? bits : kMostBits + 1;
        }
      }
      sum += most;
    }
  }
  fraction = std::max(fraction, 0);
  const int room = static_cast<int>(std::floor(std::log2(static_cast<double>(kMostCost) / sum)));
  Scale scale;
  scale.isExact = fraction <= kMostBits && fraction <= room;
  scale.bits = scale.isExact ? std::min(room, fraction + kMostBits) : room;
  scale.unit = scale.isExact ? Cost{1} << (scale.bits - fraction) : 1;
  return scale;
}

// Equal tables of the graph are one.
class Tables {
 public:
  explicit Tables(const Scale& scale) : scale_(scale) {}

  Table of(const double* costs, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(costs), size * sizeof(double));
    Table& table = known_[bytes];
    if (table == nullptr) {
      std::vector<Cost> whole(size);
      std::transform(costs, costs + size, whole.begin(), [&](double cost) { return scale_.of(cost); });
      table = tableOf(std::move(whole));
    }
    return table;
  }

 private:
  const Scale& scale_;
  std::unordered_map<std::string_view, Table> known_;  // by the bytes of the graph's own costs
};

void addEdges(const StrategyGraph& graph, const Scale& scale, Model& model) {
  Tables tables(scale);
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    const auto first = static_cast<int>(graph.edges.of(e)[0]);
    const auto second = static_cast<int>(graph.edges.of(e)[1]);
    const Table table = tables.of(graph.edgeCosts.of(e), graph.edgeCosts.sizeOf(e));
    if (first != second) {
      model.edges.push_back({first, second, table});
      continue;
    }
    for (int s = 0; s < model.valuesOf(first); ++s) {  // a node beside itself: the same strategy twice
      model.costs[first][s] = plus(model.costs[first][s], (*table)[s * (model.valuesOf(first) + 1)]);
    }
  }
}

// Rows are the times at which a node begins to live: usage is greatest at one of these.
absl::Status addRows(const StrategyGraph& graph, Model& model) {
  const int64_t limit = *graph.usageLimit;
  std::vector<int64_t> times;
  double sum = 0;
  for (size_t v = 0; v < graph.nodes(); ++v) {
    const int64_t* interval = graph.intervals.of(v);
    int64_t most = 0;
    for (int s = 0; interval[0] < interval[1] && s < model.valuesOf(static_cast<int>(v)); ++s) {
      const int64_t usage = graph.usages.of(v)[s];
      if (usage > limit) {
        model.costs[v][s] = kForbidden;
      } else {
        most = std::max(most, usage);
      }
    }
    sum += static_cast<double>(most);
    if (most > 0) {
      times.push_back(interval[0]);
    }
  }
  if (sum <= static_cast<double>(limit) * (1 - 1e-9)) {
    return absl::OkStatus();  // all fit together
  }
  if (sum > static_cast<double>(kMostUsage)) {
    return absl::InvalidArgumentError(absl::StrCat("nodes.usages: add up to ", sum, ", more than ", kMostUsage,
                                                   "; give usages and usage_limit in a larger unit"));
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  model.capacity.assign(times.size(), limit);
  const auto rowOf = [&](int64_t time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (size_t v = 0; v < graph.nodes(); ++v) {
    const int64_t* interval = graph.intervals.of(v);
    if (interval[0] >= interval[1]) {
      continue;
    }
    Residence residence{rowOf(interval[0]), rowOf(interval[1]), {}};
    for (size_t s = 0; s < graph.usages.sizeOf(v); ++s) {
      residence.usage.push_back(std::min(graph.usages.of(v)[s], limit));  // what is more is forbidden
    }
    if (residence.first < residence.last) {
      model.residences[v].push_back(std::move(residence));
    }
  }
  return absl::OkStatus();
}

double costOf(const StrategyGraph& graph, const std::vector<int>& strategies) {
  double sum = 0;
  for (size_t v = 0; v < graph.nodes(); ++v) {
    sum += graph.costs.of(v)[strategies[v]];
  }
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    const int64_t* ends = graph.edges.of(e);
    const size_t columns = graph.costs.sizeOf(ends[1]);
    sum += graph.edgeCosts.of(e)[strategies[ends[0]] * columns + strategies[ends[1]]];
  }
  return sum;
}

int64_t peakOf(const StrategyGraph& graph, const std::vector<int>& strategies) {
  std::map<int64_t, __int128> change;
  for (size_t v = 0; v < graph.nodes(); ++v) {
    const int64_t* interval = graph.intervals.of(v);
    if (interval[0] < interval[1]) {
      change[interval[0]] += graph.usages.of(v)[strategies[v]];
      change[interval[1]] -= graph.usages.of(v)[strategies[v]];
    }
  }
  __int128 used = 0;
  __int128 peak = 0;
  for (const auto& [time, usage] : change) {
    used += usage;
    peak = std::max(peak, used);
  }
  return static_cast<int64_t>(std::min<__int128>(peak, std::numeric_limits<int64_t>::max()));
}

}  // namespace

absl::StatusOr<StrategyChoice> chooseStrategies(const StrategyGraph& graph, double effort) {
  const Scale scale = scaleOf(graph);
  Model model;
  for (size_t v = 0; v < graph.nodes(); ++v) {
    std::vector<Cost>& costs = model.costs.emplace_back(graph.costs.sizeOf(v));
    std::transform(graph.costs.of(v), graph.costs.of(v) + costs.size(), costs.begin(),
                   [&](double cost) { return scale.of(cost); });
  }
  model.residences.resize(graph.nodes());
  addEdges(graph, scale, model);
  if (graph.usageLimit) {
    WEFT_RETURN_IF_ERROR(addRows(graph, model));
  }
  SolveOptions options;
  options.unit = scale.unit;
  options.ticks = static_cast<int64_t>(std::min(static_cast<double>(options.ticks) * effort, 0x1p60));
  const Solution solution = solve(model, options);
  StrategyChoice choice;
  choice.ticks = solution.ticks;
  choice.feasible = solution.isPossible();
  choice.provenInfeasible = solution.isProvenImpossible();
  const Cost bound = scale.isExact && !choice.provenInfeasible
                         ? solution.bound + ((-solution.bound) % scale.unit + scale.unit) % scale.unit
                         : solution.bound;
  choice.bound = std::ldexp(static_cast<double>(bound), -scale.bits);
  if (choice.feasible) {
    choice.strategies = solution.values;
    choice.cost = costOf(graph, choice.strategies);
    choice.bound = std::min(choice.bound, choice.cost);
    choice.gap = choice.cost == choice.bound ? 0 : (choice.cost - choice.bound) / std::fabs(choice.cost);
    choice.peakUsage = peakOf(graph, choice.strategies);
  }
  return choice;
}

}  // namespace weft::assign
