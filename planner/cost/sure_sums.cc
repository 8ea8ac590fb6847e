#include "planner/cost/sure_sums.h"

#include <algorithm>
#include <optional>

#include "planner/graph/sums.h"

namespace weft {
namespace {

class Ways {
 public:
  Ways(const GraphView& view, const std::function<bool(const GraphView::Use& use)>& reads)
      : view_(view), reads_(reads), isTaken_(view.values(), false) {}

  int64_t bytesOf(int op) {
    const std::vector<int> way = wayOf(view_.resultOf(op, 0));
    if (way.empty()) {
      return 0;
    }
    int64_t least = view_.typeOf(way.front()).bytes();
    for (const int value : way) {
      least = isTaken_[value] ? 0 : std::min(least, view_.typeOf(value).bytes());
    }
    for (const int value : way) {
      isTaken_[value] = isTaken_[value] || least > 0;
    }
    return least;
  }

 private:
  static constexpr size_t kLongest = 16;  // values on a way

  // The way from a value to the first that an operator reads added, by the first operator that passes sums on; empty
  // where it does not come to one.
  std::vector<int> wayOf(int value) const {
    std::vector<int> way = {value};
    while (way.size() <= kLongest) {
      const std::vector<GraphView::Use>& uses = view_.usesOf(way.back());
      const auto reads = [&](const auto& use) { return use.op != GraphView::kStep && readsAdded(use); };
      if (std::any_of(uses.begin(), uses.end(), reads)) {
        return way;
      }
      const auto next = std::find_if(uses.begin(), uses.end(),
                                     [&](const auto& use) { return use.op != GraphView::kStep && passes(use.op); });
      if (next == uses.end()) {
        break;
      }
      way.push_back(view_.resultOf(next->op, 0));
    }
    return {};
  }

  // Does it make of partial sums a partial sum of its own, as far as its facts say?
  bool passes(int op) const {
    const GraphOperator& node = view_.op(op);
    return node.alternatives.empty() && node.gradientOf.empty() &&
           (node.facts.passesSums || node.facts.view != ViewKind::kNone);
  }

  bool readsAdded(const GraphView::Use& use) const {
    const auto anySums = [](int) { return AxisList{Axis()}; };
    return view_.op(use.op).alternatives.empty() && !passes(use.op) && reads_(use) &&
           !productsPass(view_, view_.operandOf(use.op, use.operand), Axis(), anySums);
  }

  const GraphView& view_;
  const std::function<bool(const GraphView::Use& use)>& reads_;
  std::vector<bool> isTaken_;
};

}  // namespace

std::vector<int64_t> sureSums(const GraphView& view, const std::function<bool(const GraphView::Use& use)>& reads) {
  Ways ways(view, reads);
  std::vector<int64_t> bytes;
  for (int op = 0; op < view.operators(); ++op) {
    bytes.push_back(ways.bytesOf(op));
  }
  return bytes;
}

}  // namespace weft
