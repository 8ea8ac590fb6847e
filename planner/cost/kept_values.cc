#include "planner/cost/kept_values.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

// What it costs to do without ever more of what is limited, the cheapest first.
class Savings {
 public:
  // Of one item: how much of it is used, and what doing without costs.
  void add(double use, double cost) {
    if (use > 0) {
      items_.push_back({use, cost});
      used_ += use;
    }
  }

  void sort() {
    std::sort(items_.begin(), items_.end(),
              [](const Item& a, const Item& b) { return a.cost * b.use < b.cost * a.use; });
    for (Item& item : items_) {
      saved_.push_back(item.use + (saved_.empty() ? 0 : saved_.back()));
      costs_.push_back(item.cost + (costs_.empty() ? 0 : costs_.back()));
    }
  }

  // Of using no more than `most`, the last item in part.
  double costWithin(double most) const {
    const double excess = used_ - most;
    if (excess <= 0) {
      return 0;
    }
    const auto last = std::lower_bound(saved_.begin(), saved_.end(), excess) - saved_.begin();
    if (last == static_cast<int64_t>(items_.size())) {
      return costs_.empty() ? 0 : costs_.back();
    }
    const double before = last == 0 ? 0 : costs_[last - 1];
    const double saved = last == 0 ? 0 : saved_[last - 1];
    return before + items_[last].cost * (excess - saved) / items_[last].use;
  }

 private:
  struct Item {
    double use = 0;
    double cost = 0;
  };

  std::vector<Item> items_;
  std::vector<double> saved_, costs_;  // of all items up to each
  double used_ = 0;
};

// The least time t with ranks x t >= work + costs(t), which falls where t grows; from below.
template <typename Costs>
double leastTimeWith(double work, double ranks, Costs costs) {
  double low = work / ranks;
  double high = (work + costs(low)) / ranks;
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    (ranks * middle < work + costs(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

KeptValues::KeptValues(const GraphView& view, const LeastWork& work, bool statesLeave)
    : view_(view), work_(work), roots_(view.values(), -1), children_(view.values()), isLeaf_(view.values(), false) {
  findRoots();
  addLeaves();
  addStored(statesLeave);
}

// Of the operands of a light operator, the one with the last root: what is added to a stream of residuals, not the
// stream.
void KeptValues::findRoots() {
  for (int op = 0; op < view_.operators(); ++op) {
    const GraphOperator& node = view_.op(op);
    const bool isView = node.facts.view != ViewKind::kNone && node.alternatives.empty();
    if (node.phase != Phase::kForward || !(isView || runsInPass(op, Phase::kForward))) {
      continue;
    }
    int from = -1;
    for (unsigned i = 0; i < node.operands.size() && !work_.isHeavy(op); ++i) {
      const int operand = view_.operandOf(op, i);
      const bool isLater = roots_[operand] >= 0 && (from < 0 || roots_[operand] > roots_[from]);
      from = isLater && !(isView && i > 0) ? operand : from;
    }
    for (unsigned r = 0; r < node.results.size(); ++r) {
      const int value = view_.resultOf(op, r);
      if (work_.batchDim(value) < 0) {
        continue;
      }
      roots_[value] = work_.isHeavy(op) ? op : from < 0 ? -1 : roots_[from];
      if (from >= 0) {
        children_[from].push_back(value);
      }
    }
  }
}

void KeptValues::addLeaves() {
  for (int value = 0; value < view_.values(); ++value) {
    std::vector<int> readers = roots_[value] < 0 ? std::vector<int>() : backwardReaders(value);
    if (!readers.empty()) {
      isLeaf_[value] = true;
      kept_[roots_[value]].leaves.push_back({value, std::move(readers)});
    }
  }
  for (auto& [root, kept] : kept_) {
    for (unsigned r = 0; r < view_.op(root).results.size(); ++r) {
      kept.bytes += static_cast<double>(leastCut(view_.resultOf(root, r)));
    }
  }
}

// Bytes of the smallest cut between a value and all leaves below it, it itself if it is one.
int64_t KeptValues::leastCut(int value) const {
  int64_t below = 0;
  for (const int child : children_[value]) {
    below += leastCut(child);
  }
  const int64_t mine = view_.typeOf(value).bytes();
  return isLeaf_[value] ? mine : std::min(mine, below);
}

void KeptValues::addStored(bool statesLeave) {
  for (size_t i = 0; i < view_.graph().arguments.size(); ++i) {
    const auto isCounted = [&](const GraphView::Use& use) {
      return use.op != GraphView::kStep && work_.runs(use.op) != WorkRuns::kPerhapsNever;
    };
    const std::vector<GraphView::Use>& uses = view_.usesOf(static_cast<int>(i));
    const GraphArgument& argument = view_.graph().arguments[i];
    const bool isOnRanks =
        argument.kind == ArgumentKind::kParameter || (argument.kind == ArgumentKind::kState && !statesLeave);
    if (isOnRanks && std::any_of(uses.begin(), uses.end(), isCounted)) {
      storedBytes_ += static_cast<double>(argument.type.bytes());
    }
  }
}

// How long it delays what reads it. The terms of a sum may be added in another order, in which one waits for fewer.
double KeptValues::delayOf(int op, Phase phase, const LeastWork::Times& times) const {
  return runsInPass(op, phase) && !view_.op(op).facts.isSum ? static_cast<double>(times.delays[op]) : 0;
}

bool KeptValues::runsInPass(int op, Phase phase) const {
  const GraphOperator& node = view_.op(op);
  return node.phase == phase && work_.runs(op) == WorkRuns::kPerMicroBatch && !node.facts.mustExpand;
}

std::vector<int> KeptValues::backwardReaders(int value) const {
  std::vector<int> readers;
  for (const GraphView::Use& use : view_.usesOf(value)) {
    if (use.op == GraphView::kStep) {
      continue;
    }
    const GraphOperator& reader = view_.op(use.op);
    if (runsInPass(use.op, Phase::kBackward)) {
      readers.push_back(use.op);
    } else if (reader.phase == Phase::kBackward && reader.facts.view != ViewKind::kNone && use.operand == 0) {
      const std::vector<int> others = backwardReaders(view_.resultOf(use.op, 0));
      readers.insert(readers.end(), others.begin(), others.end());
    }
  }
  return readers;
}

// Of each value, on one micro-batch's way: from when it is made to the end of the forward pass.
std::vector<double> KeptValues::timesAfter(const LeastWork::Times& times) const {
  std::vector<double> after(view_.values(), 0);
  for (int op = view_.operators() - 1; op >= 0; --op) {
    if (view_.op(op).phase != Phase::kForward) {
      continue;
    }
    double mine = 0;
    for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
      mine = std::max(mine, after[view_.resultOf(op, r)]);
    }
    mine += delayOf(op, Phase::kForward, times);
    for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
      double& operand = after[view_.operandOf(op, i)];
      operand = std::max(operand, mine);
    }
  }
  return after;
}

// Of each operator of the backward pass: from its begin to when the operator can run.
std::vector<double> KeptValues::timesBefore(const LeastWork::Times& times) const {
  std::vector<double> before(view_.operators(), 0);
  for (int op = 0; op < view_.operators(); ++op) {
    for (unsigned i = 0; view_.op(op).phase == Phase::kBackward && i < view_.op(op).operands.size(); ++i) {
      const std::optional<int> maker = view_.producerOf(view_.operandOf(op, i));
      if (maker && view_.op(*maker).phase == Phase::kBackward) {
        before[op] = std::max(before[op], before[*maker] + delayOf(*maker, Phase::kBackward, times));
      }
    }
  }
  return before;
}

double KeptValues::leastStep(const WorkGrid& grid, const LeastWork::Times& times, int64_t ranks,
                             int64_t memoryLimit) const {
  const double memory = static_cast<double>(ranks) * static_cast<double>(memoryLimit) - storedBytes_;
  if (memory < 0) {
    return std::numeric_limits<double>::infinity();
  }
  const std::vector<double> after = timesAfter(times);
  const std::vector<double> before = timesBefore(times);
  Savings inTheMean, betweenPasses;
  for (const auto& [root, kept] : kept_) {
    double made = std::numeric_limits<double>::infinity();
    double read = std::numeric_limits<double>::infinity();
    for (const Leaf& leaf : kept.leaves) {
      double last = 0;
      for (const int reader : leaf.readers) {
        last = std::max(last, before[reader]);
      }
      made = std::min(made, after[leaf.value]);
      read = std::min(read, last);
    }
    const double again = static_cast<double>(times.ofCall[root]) * static_cast<double>(grid.ranks * grid.microBatches);
    inTheMean.add(kept.bytes * (made + read), again);
    betweenPasses.add(kept.bytes / static_cast<double>(grid.microBatches), again);
  }
  inTheMean.sort();
  betweenPasses.sort();
  const auto all = static_cast<double>(ranks);
  return std::max(leastTimeWith(times.ofRanks, all, [&](double time) { return inTheMean.costWithin(time * memory); }),
                  leastTimeWith(times.ofRanks, all, [&](double) { return betweenPasses.costWithin(memory); }));
}

}  // namespace weft
