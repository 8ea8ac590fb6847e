#include "planner/derive/even_pads.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

// A dimension of an argument, and how many of its elements one of the factor asked for stands for.
struct Origin {
  unsigned argument = 0;
  size_t dim = 0;
  int64_t unit = 1;
};

class OriginSearch {
 public:
  OriginSearch(const SettledGraph& graph, const Shardings& shardings) : graph_(graph), shardings_(shardings) {}

  std::optional<Origin> find(int op, int factor) {
    open_ = {{op, factor, 1}};
    for (size_t next = 0; next < open_.size(); ++next) {
      const Place place = open_[next];
      for (unsigned i = 0; i < graph_.view.op(place.op).operands.size(); ++i) {
        if (const std::optional<Origin> origin = visit(place, i)) {
          return origin;
        }
      }
    }
    return std::nullopt;
  }

 private:
  // A factor, and how many of its elements one of the factor asked for stands for.
  struct Place {
    int op = 0;
    int factor = 0;
    int64_t unit = 1;
  };

  const Rule& ruleOf(int op) const { return shardings_.operators[op].rule; }

  // The elements behind the outermost factor of a dimension.
  static int64_t minorOf(const Rule& rule, const DimFactors& dim) {
    int64_t minor = 1;
    for (size_t k = 1; k < dim.size(); ++k) {
      minor *= rule.factors()[dim[k]].size;
    }
    return minor;
  }

  std::optional<Origin> visit(const Place& place, unsigned operand) {
    const int value = graph_.view.operandOf(place.op, operand);
    const std::vector<DimFactors>& dims = ruleOf(place.op).operands()[operand];
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].empty() || dims[d].front() != place.factor) {
        continue;
      }
      const int64_t unit = place.unit * minorOf(ruleOf(place.op), dims[d]);
      if (const std::optional<int> producer = graph_.view.producerOf(value)) {
        goBack(*producer, ruleOf(*producer).results()[graph_.view.indexOf(value)][d], unit);
        continue;
      }
      const auto argument = static_cast<unsigned>(value);
      const GraphArgument& found = graph_.view.graph().arguments[argument];
      if (!found.hasBatch() || found.batchDim != static_cast<int64_t>(d)) {
        return Origin{argument, d, unit};
      }
    }
    return std::nullopt;
  }

  void goBack(int op, const DimFactors& dim, int64_t unit) {
    const bool known = dim.empty() || std::any_of(open_.begin(), open_.end(), [&](const Place& place) {
                         return place.op == op && place.factor == dim.front();
                       });
    if (!known) {
      const int64_t minor = minorOf(ruleOf(op), dim);
      open_.push_back({op, dim.front(), unit / std::gcd(unit, minor)});
    }
  }

  const SettledGraph& graph_;
  const Shardings& shardings_;
  std::vector<Place> open_;  // in the order in which they are looked at
};

}  // namespace

int64_t ranksAlike(const SettledGraph& graph, const Shardings& shardings, const RefusedSplit& split) {
  const OperatorFacts& facts = graph.view.op(split.op).facts;
  if (facts.flopsPerPoint <= 0 && facts.view != ViewKind::kShape) {
    return 1;
  }
  int64_t alike = partsOf(split.axes);
  for (const std::optional<AxisList>& used : shardings.operators[split.op].axes) {
    for (const Axis& axis : used.value_or(AxisList())) {
      for (const Axis& asked : split.axes) {
        alike /= overlap(axis, asked) ? std::min(axis.end(), asked.end()) / std::max(axis.pre, asked.pre) : 1;
      }
    }
  }
  return alike;
}

std::map<unsigned, Shape> evenPads(const SettledGraph& graph, const Shardings& shardings,
                                   const std::vector<RefusedSplit>& refused) {
  std::map<std::pair<unsigned, size_t>, int64_t> multiples;  // of the elements of a dimension
  for (const RefusedSplit& split : refused) {
    if (ranksAlike(graph, shardings, split) <= 1) {
      continue;
    }
    if (const std::optional<Origin> origin = OriginSearch(graph, shardings).find(split.op, split.factor)) {
      int64_t& multiple = multiples.try_emplace({origin->argument, origin->dim}, 1).first->second;
      multiple = std::lcm(multiple, partsOf(split.axes) * origin->unit);
    }
  }
  std::map<unsigned, Shape> pads;
  for (const auto& [place, multiple] : multiples) {
    Shape& shape = pads.try_emplace(place.first, graph.stored.of(static_cast<int>(place.first))).first->second;
    shape[place.second] = alignUp(shape[place.second], multiple);
  }
  return pads;
}

}  // namespace weft
