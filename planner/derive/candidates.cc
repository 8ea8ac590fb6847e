#include "planner/derive/candidates.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/derive/alternative_prices.h"
#include "planner/derive/defaults.h"
#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

// Beyond these an operator keeps what it has, or the candidates found so far.
constexpr size_t kMostCandidates = 64;
constexpr size_t kMostAxesInParts = 3;

// A factor that does not divide and that nobody asks to split may be padded by no more than such a part of itself.
constexpr int64_t kPartOfPad = 8;

bool beginsWith(const AxisList& list, const AxisList& prefix) {
  return prefix.size() <= list.size() && std::equal(prefix.begin(), prefix.end(), list.begin());
}

// The list without some of its axes, in order; of a long one itself and what it begins with.
std::set<AxisList> partsOfList(const AxisList& list) {
  std::set<AxisList> parts;
  if (list.size() > kMostAxesInParts) {
    for (size_t n = 1; n <= list.size(); ++n) {
      parts.insert({list.begin(), list.begin() + static_cast<int64_t>(n)});
    }
    return parts;
  }
  for (unsigned mask = 1; mask < 1U << list.size(); ++mask) {
    AxisList part;
    for (size_t i = 0; i < list.size(); ++i) {
      if ((mask >> i & 1U) != 0) {
        part.push_back(list[i]);
      }
    }
    parts.insert(std::move(part));
  }
  return parts;
}

class Finder {
 public:
  Finder(const SettledGraph& graph, const Shardings& shardings)
      : graph_(graph), view_(graph.view), shardings_(shardings), dims_(graph.view.values()) {
    found_.asked.resize(view_.operators());
    found_.of.resize(view_.operators());
    for (int op = 0; op < view_.operators(); ++op) {
      found_.asked[op].resize(isForward(op) ? ruleOf(op).factors().size() : 0);
    }
  }

  // Every axis to every factor; those of the batch to others than the batch only where that is considered.
  void offerAll(const Considered& considered) {
    found_.conflict = true;
    isBatchFree_ = considered.batchAxes;
    byAlternative_ = factorsOfAlternatives(graph_, shardings_);
    for (int op = 0; op < view_.operators(); ++op) {
      if (isForward(op)) {
        offerAll(op, defaultAxes(graph_.placement.meshOf(op), considered.fill), considered.batchAxes);
      }
    }
  }

  Candidates run() {
    seed();
    bool changed = true;
    while (changed) {
      changed = false;
      for (int op = 0; op < view_.operators(); ++op) {
        changed |= isForward(op) && visit(op);
      }
      for (int op = view_.operators() - 1; op >= 0; --op) {
        changed |= isForward(op) && visit(op);
      }
    }
    for (int op = 0; op < view_.operators(); ++op) {
      if (isForward(op)) {
        found_.conflict = found_.conflict || !hasAll(op);
        list(op);
      }
    }
    return std::move(found_);
  }

 private:
  // The lists asked for of each dimension of a value, on one mesh.
  using DimLists = std::vector<std::set<AxisList>>;

  bool isForward(int op) const { return view_.op(op).phase == Phase::kForward; }
  const Rule& ruleOf(int op) const { return shardings_.operators[op].rule; }

  DimLists& dimsOf(int value, int op) {
    DimLists& lists = dims_[value][graph_.placement.meshNumber(op)];
    lists.resize(graph_.stored.of(value).size());
    return lists;
  }

  void seed() {
    for (size_t i = 0; i < shardings_.arguments.size(); ++i) {
      for (const auto& [mesh, sharding] : shardings_.arguments[i]) {
        for (size_t d = 0; sharding.layout && d < sharding.layout->dimensions(); ++d) {
          DimLists& lists = dims_[i][mesh];
          lists.resize(sharding.layout->dimensions());
          if (!sharding.layout->dim(d).empty()) {
            lists[d].insert(sharding.layout->dim(d));
          }
        }
      }
    }
    for (int op = 0; op < view_.operators(); ++op) {
      if (isForward(op)) {
        const OperatorSharding& sharding = shardings_.operators[op];
        for (size_t f = 0; f < sharding.axes.size(); ++f) {
          if (sharding.axes[f] && !sharding.axes[f]->empty()) {
            found_.asked[op][f].insert(*sharding.axes[f]);
          }
        }
      }
    }
  }

  void offerAll(int op, const AxisList& batchAxes, bool offersBatchAxes) {
    AxisList all, beside;  // all axes, those beside the batch's
    for (const NamedAxis& named : graph_.placement.meshOf(op).axes()) {
      const auto isBatch = [&](const Axis& axis) { return !compatible(axis, named.axis); };
      if (named.axis.kind == AxisKind::kSpace && named.axis.size > 1) {
        all.push_back(named.axis);
        if (std::none_of(batchAxes.begin(), batchAxes.end(), isBatch)) {
          beside.push_back(named.axis);
        }
      }
    }
    for (size_t f = 0; f < ruleOf(op).factors().size(); ++f) {
      const bool isBatch = static_cast<int>(f) == graph_.microBatches.operators[op].batch;
      const auto offer = [&](AxisList list) {
        if (isBatch) {
          list.insert(list.begin(), batchAxes.begin(), batchAxes.end());
        }
        if (canHave(op, static_cast<int>(f), list)) {
          found_.asked[op][f].insert(std::move(list));
        } else if (!isBatch && isNearlyEven(op, f, list) && mayHave(op, static_cast<int>(f))) {
          refuse({op, static_cast<int>(f), std::move(list), false});
        }
      };
      const AxisList& others = offersBatchAxes && !isBatch ? all : beside;
      for (const Axis& axis : others) {
        offer({axis});
      }
      if (others.size() > 1) {
        offer(others);
      }
    }
  }

  bool isNearlyEven(int op, size_t factor, const AxisList& list) const {
    const int64_t size = ruleOf(op).factors()[factor].size;
    return alignUp(size, partsOf(list)) - size <= size / kPartOfPad;
  }

  bool maySplit(int op, int factor) const {
    return ruleOf(op).splittable(factor) || (!byAlternative_.empty() && byAlternative_[op][factor]);
  }

  bool mayHave(int op, int factor) const { return !shardings_.operators[op].fixed[factor] && maySplit(op, factor); }

  bool canHave(int op, int factor, const AxisList& list) const {
    FactorAxes alone(ruleOf(op).factors().size());
    alone[factor] = list;
    return mayHave(op, factor) && divides(graph_, op, ruleOf(op), alone);
  }

  bool visit(int op) {
    bool changed = false;
    for (unsigned i = 0; i < ruleOf(op).operands().size(); ++i) {
      changed |= visitTensor(op, view_.operandOf(op, i), ruleOf(op).operands()[i],
                             [&](const Layout& layout) { return ruleOf(op).projectOperand(i, layout); });
    }
    for (unsigned r = 0; r < ruleOf(op).results().size(); ++r) {
      changed |= visitTensor(op, view_.resultOf(op, r), ruleOf(op).results()[r],
                             [&](const Layout& layout) { return ruleOf(op).projectResult(r, layout); });
    }
    return changed;
  }

  // From the dimensions of a tensor to the factors of an operator, and back.
  template <typename Project>
  bool visitTensor(int op, int value, const std::vector<DimFactors>& factors, const Project& project) {
    DimLists& lists = dimsOf(value, op);
    FactorAxes now = shardings_.operators[op].closed();
    bool changed = false;
    for (size_t d = 0; d < lists.size() && d < factors.size(); ++d) {
      for (const AxisList& list : lists[d]) {
        Layout layout(lists.size());
        layout.setDim(d, list);
        const Rule::Projection split = project(layout);
        for (size_t f = 0; f < split.axes.size(); ++f) {
          changed |= ask(op, static_cast<int>(f), split.axes[f]);
        }
        // What a dimension of several factors does not take as they are, its first one cannot have.
        if (!split.overflow.empty() && factors[d].size() > 1) {
          ask(op, factors[d].front(), list);
        }
      }
      for (const int factor : factors[d]) {
        for (const AxisList& list : found_.asked[op][factor]) {
          changed |= bring(op, factors[d], factor, list, now, lists[d]);
        }
      }
    }
    return changed;
  }

  bool ask(int op, int factor, const AxisList& list) {
    if (list.empty() || found_.asked[op][factor].count(list) > 0) {
      return false;
    }
    const bool possible = canHave(op, factor, list);
    found_.conflict = found_.conflict || !possible;
    if (mayHave(op, factor) && !possible) {
      refuse({op, factor, list});
    }
    return possible && found_.asked[op][factor].insert(list).second;
  }

  void refuse(RefusedSplit split) {
    if (refused_.insert({split.op, split.factor, split.axes}).second) {
      found_.refused.push_back(std::move(split));
    }
  }

  // What a dimension has if one of its factors has this list and the others what they have `now`, which stays so.
  bool bring(int op, const DimFactors& dim, int factor, AxisList list, FactorAxes& now,
             std::set<AxisList>& lists) const {
    std::swap(now[factor], list);
    const bool isOneBlock = inOneBlock(dim, ruleOf(op), now);
    AxisList whole;
    for (const int part : dim) {
      whole.insert(whole.end(), now[part].begin(), now[part].end());
    }
    std::swap(now[factor], list);
    return isOneBlock && lists.insert(std::move(whole)).second;
  }

  bool hasAll(int op) const {
    const FactorAxes axes = shardings_.operators[op].closed();
    for (size_t f = 0; f < axes.size(); ++f) {
      for (const AxisList& list : found_.asked[op][f]) {
        if (!beginsWith(axes[f], list)) {
          return false;
        }
      }
    }
    return true;
  }

  void list(int op) {
    const FactorAxes now = shardings_.operators[op].closed();
    found_.of[op].push_back(now);
    FactorAxes axes(now.size());
    choose(op, optionsOf(op, now), 0, axes);
  }

  std::vector<std::set<AxisList>> optionsOf(int op, const FactorAxes& now) const {
    std::vector<std::set<AxisList>> options;
    for (size_t f = 0; f < now.size(); ++f) {
      std::set<AxisList>& mine = options.emplace_back();
      mine.insert(now[f]);
      if (shardings_.operators[op].fixed[f] || (!isBatchFree_ && isBatchAlone(op, static_cast<int>(f), now[f]))) {
        continue;
      }
      mine.insert(AxisList());
      for (const AxisList& list : found_.asked[op][f]) {
        mine.merge(partsOfList(list));
      }
      const AxisList& kept = shardings_.operators[op].kept[f];
      std::erase_if(mine, [&](const AxisList& list) { return !beginsWith(list, kept); });
    }
    return options;
  }

  // Is it the batch, whose axes nothing else of the operator asks for?
  bool isBatchAlone(int op, int factor, const AxisList& axes) const {
    if (factor != graph_.microBatches.operators[op].batch || axes.empty()) {
      return false;
    }
    for (size_t f = 0; f < found_.asked[op].size(); ++f) {
      for (const AxisList& list : found_.asked[op][f]) {
        const bool clashes = std::any_of(list.begin(), list.end(), [&](const Axis& other) {
          return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return !compatible(axis, other); });
        });
        if (static_cast<int>(f) == factor ? !beginsWith(axes, list) : clashes) {
          return false;
        }
      }
    }
    return true;
  }

  // No axis twice, and all that the rule and the sizes ask.
  bool canSplit(int op, const FactorAxes& axes) const {
    AxisList used;
    for (size_t f = 0; f < axes.size(); ++f) {
      for (const Axis& axis : axes[f]) {
        const bool free =
            std::all_of(used.begin(), used.end(), [&](const Axis& other) { return compatible(axis, other); });
        if (!free || !maySplit(op, static_cast<int>(f))) {
          return false;
        }
        used.push_back(axis);
      }
    }
    return divides(graph_, op, ruleOf(op), axes) && inOneBlock(ruleOf(op), axes);
  }

  void choose(int op, const std::vector<std::set<AxisList>>& options, size_t factor, FactorAxes& axes) {
    std::vector<FactorAxes>& found = found_.of[op];
    if (found.size() >= kMostCandidates) {
      return;
    }
    if (factor == options.size()) {
      if (axes != found.front() && canSplit(op, axes)) {
        found.push_back(axes);
      }
      return;
    }
    for (const AxisList& list : options[factor]) {
      axes[factor] = list;
      choose(op, options, factor + 1, axes);
    }
    axes[factor].clear();
  }

  const SettledGraph& graph_;
  const GraphView& view_;
  const Shardings& shardings_;
  std::vector<std::map<int64_t, DimLists>> dims_;  // of each value, by the number of the mesh
  std::set<std::tuple<int, int, AxisList>> refused_;
  std::vector<std::vector<bool>> byAlternative_;  // of each operator and factor, where all are considered
  bool isBatchFree_ = false;
  Candidates found_;
};

}  // namespace

Candidates candidatesOf(const SettledGraph& graph, const Shardings& shardings) {
  return Finder(graph, shardings).run();
}

Candidates allCandidatesOf(const SettledGraph& graph, const Shardings& shardings, const Considered& considered) {
  Finder finder(graph, shardings);
  finder.offerAll(considered);
  return finder.run();
}

}  // namespace weft
