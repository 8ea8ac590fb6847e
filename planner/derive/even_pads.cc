#include "planner/derive/even_pads.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

// Of a split that nobody asks for: how many factors are looked at on the way to an argument, so that a program of many
// layers takes no time for each pair of them.
constexpr size_t kFewPlaces = 16;

// A dimension of an argument, and how many of its elements one of the factor asked for stands for.
struct Origin {
  unsigned argument = 0;
  size_t dim = 0;
  int64_t unit = 1;
};

class OriginSearch {
 public:
  OriginSearch(const SettledGraph& graph, const Shardings& shardings) : graph_(graph), shardings_(shardings) {}

  std::optional<Origin> find(const RefusedSplit& split) {
    open_ = {{split.op, split.factor, 1}};
    for (size_t next = 0; next < open_.size() && (split.isAsked || next < kFewPlaces); ++next) {
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

// Where a pad of an argument's dimension goes: whether all operators there can run with it, and, unless somebody asks
// for it, whether only parameters are stored longer. Dimensions that share the pad are looked at once, whichever of
// them is asked about.
class PadReach {
 public:
  PadReach(const GraphView& view, const Shardings& shardings)
      : view_(view), shardings_(shardings), groups_(view.values()) {}

  bool mayPad(const Origin& origin, bool isAsked) {
    const auto value = static_cast<int>(origin.argument);
    if (groupsOf(value)[origin.dim] < 0) {
      found_.emplace_back();
      reach(value, origin.dim);
      while (!open_.empty()) {
        const auto [next, dim] = open_.back();
        open_.pop_back();
        spread(next, dim);
      }
    }
    const Group& group = found_[groups_[value][origin.dim]];
    return group.runs && (isAsked || !group.hasInput);
  }

 private:
  // Dimensions that share a pad.
  struct Group {
    bool runs = true;
    bool hasInput = false;
  };

  std::vector<int>& groupsOf(int value) {
    groups_[value].resize(view_.typeOf(value).shape.size(), -1);
    return groups_[value];
  }

  void reach(int value, size_t dim) {
    if (groupsOf(value)[dim] < 0) {
      groups_[value][dim] = static_cast<int>(found_.size()) - 1;
      open_.emplace_back(value, dim);
    }
  }

  void spread(int value, size_t dim) {
    if (const std::optional<int> producer = view_.producerOf(value)) {
      const Rule& rule = shardings_.operators[*producer].rule;
      const DimFactors& factors = rule.results()[view_.indexOf(value)][dim];
      if (!factors.empty() && rule.factors()[factors.front()].whole && !isRead(rule, factors.front())) {
        found_.back().runs = false;  // a slice, or a concat, whose result would be longer than what it is made of
      }
      spread(*producer, factors);
    } else if (view_.graph().arguments[value].kind == ArgumentKind::kInput) {
      found_.back().hasInput = true;
    }
    for (const GraphView::Use& use : view_.usesOf(value)) {
      if (use.op != GraphView::kStep) {
        const Rule& rule = shardings_.operators[use.op].rule;
        const DimFactors& factors = rule.operands()[use.operand][dim];
        const OperatorFacts& facts = view_.op(use.op).facts;
        const bool matters = !factors.empty() && rule.factors()[factors.front()].whole;
        if (matters && isFloat(view_.typeOf(value).type) && !facts.padFillOf(use.operand)) {
          found_.back().runs = false;
        }
        spread(use.op, factors);
      }
    }
  }

  static bool isRead(const Rule& rule, int factor) {
    const auto has = [&](const DimFactors& dim) { return std::find(dim.begin(), dim.end(), factor) != dim.end(); };
    const auto hasAny = [&](const std::vector<DimFactors>& dims) { return std::any_of(dims.begin(), dims.end(), has); };
    return std::any_of(rule.operands().begin(), rule.operands().end(), hasAny);
  }

  // To all dimensions of the operator whose outermost part it is; inside of one no operator sees a pad.
  void spread(int op, const DimFactors& padded) {
    const Rule& rule = shardings_.operators[op].rule;
    const auto reachAll = [&](int value, const std::vector<DimFactors>& dims) {
      for (size_t d = 0; d < dims.size(); ++d) {
        const auto found = std::find(dims[d].begin(), dims[d].end(), padded.front());
        if (found == dims[d].begin() && found != dims[d].end()) {
          reach(value, d);
        } else if (found != dims[d].end()) {
          found_.back().runs = false;
        }
      }
    };
    if (padded.empty()) {
      return;
    }
    for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
      reachAll(view_.operandOf(op, i), rule.operands()[i]);
    }
    for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
      reachAll(view_.resultOf(op, r), rule.results()[r]);
    }
  }

  const GraphView& view_;
  const Shardings& shardings_;
  std::vector<std::vector<int>> groups_;  // of each value and dimension: that with which it shares pads, -1: none yet
  std::vector<Group> found_;
  std::vector<std::pair<int, size_t>> open_;
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
  PadReach reach(graph.view, shardings);
  for (const RefusedSplit& split : refused) {
    if (split.isAsked && ranksAlike(graph, shardings, split) <= 1) {
      continue;
    }
    const std::optional<Origin> origin = OriginSearch(graph, shardings).find(split);
    if (!origin || !reach.mayPad(*origin, split.isAsked)) {
      continue;
    }
    int64_t& multiple = multiples.try_emplace({origin->argument, origin->dim}, 1).first->second;
    multiple = std::lcm(multiple, partsOf(split.axes) * origin->unit);
  }
  std::map<unsigned, Shape> pads;
  for (const auto& [place, multiple] : multiples) {
    Shape& shape = pads.try_emplace(place.first, graph.stored.of(static_cast<int>(place.first))).first->second;
    shape[place.second] = alignUp(shape[place.second], multiple);
  }
  return pads;
}

}  // namespace weft
