#include "planner/cost/kept_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/cost/value_trees.h"

namespace weft {
namespace {

// Prices are looked for from this part of the one at which the first heavy operator runs again.
constexpr double kLowestPrice = 1.0 / 1024;
// Up to which factor the best price is found.
constexpr double kPrecision = 1.02;

// A price and what it makes of a step.
struct Priced {
  double bytePrice = 0;
  double step = 0;
};

// Of a function that rises to one maximum, on a logarithmic scale of prices that begins at `lowest`: that, or what is
// above `enough`. `none`: without a price.
template <typename StepAt>
Priced longest(double lowest, double none, double enough, StepAt stepAt) {
  Priced best = {0, none};
  const auto isBetter = [&](double price) {
    const double step = stepAt(price);
    const bool better = step > best.step;
    best = better ? Priced{price, step} : best;
    return better;
  };
  if (!isBetter(lowest)) {
    return best;
  }
  constexpr double kFirst = 4;
  while (best.step < enough && isBetter(best.bytePrice * kFirst)) {
  }
  for (double factor = std::sqrt(kFirst); factor > kPrecision && best.step < enough; factor = std::sqrt(factor)) {
    const double middle = best.bytePrice;
    if (!isBetter(middle * factor)) {
      isBetter(middle / factor);
    }
  }
  return best;
}

// The least time with ranks at work x time >= work + more(time), which falls where time grows; from below.
template <typename More>
double leastTimeWith(double work, double atWork, More more) {
  double low = work / atWork;
  double high = (work + more(low)) / atWork;
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    (atWork * middle < work + more(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

KeptValues::KeptValues(const GraphView& view, const LeastWork& work, const Memory& memory)
    : view_(view), work_(work), memory_(memory), children_(view.values()), isLeaf_(view.values(), false) {
  findRoots();
  addLeaves();
  addStored();
}

void KeptValues::findRoots() {
  const auto inTree = [this](int op) {
    const GraphOperator& node = view_.op(op);
    const bool isView = node.facts.view != ViewKind::kNone && node.alternatives.empty();
    if (node.phase != Phase::kForward || !(isView || runsInPass(op, Phase::kForward))) {
      return InTree::kNo;
    }
    return work_.isHeavy(op) ? InTree::kAsRoot : InTree::kHangs;
  };
  ValueTrees trees = valueTrees(view_, inTree, [this](int value) { return work_.batchDim(value) >= 0; });
  roots_ = std::move(trees.roots);
  for (int value = 0; value < view_.values(); ++value) {
    if (trees.parents[value] >= 0) {
      children_[trees.parents[value]].push_back(value);
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

void KeptValues::addStored() {
  for (size_t i = 0; i < view_.graph().arguments.size(); ++i) {
    const auto isCounted = [&](const GraphView::Use& use) {
      return use.op != GraphView::kStep && work_.runs(use.op) != WorkRuns::kPerhapsNever;
    };
    const std::vector<GraphView::Use>& uses = view_.usesOf(static_cast<int>(i));
    const GraphArgument& argument = view_.graph().arguments[i];
    const bool isOnRanks =
        argument.kind == ArgumentKind::kParameter || (argument.kind == ArgumentKind::kState && !memory_.statesLeave);
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

std::vector<KeptValues::Item> KeptValues::itemsOf(const WorkGrid& grid, const LeastWork::Times& times) const {
  const std::vector<double> after = timesAfter(times);
  const std::vector<double> before = timesBefore(times);
  std::vector<Item> items;
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
    items.push_back({root, kept.bytes / static_cast<double>(grid.microBatches), kept.bytes * (made + read),
                     static_cast<double>(times.ofCall[root]) * static_cast<double>(grid.ranks * grid.microBatches)});
  }
  return items;
}

KeptValues::LeastStep KeptValues::leastStep(const WorkGrid& grid, const LeastWork::Times& times,
                                            FamilyTimes::OnGrid& families, double atMost) const {
  const auto atWork = static_cast<double>(memory_.atWork);
  const double all = static_cast<double>(memory_.ranks) * static_cast<double>(memory_.limit);
  const double accumulated = grid.microBatches > 1 ? work_.families().gradientBytes() : 0;
  if (all < storedBytes_ + accumulated) {
    return {std::numeric_limits<double>::infinity()};
  }
  // Weights and their gradients have a price of their own.
  const double left = all - (storedBytes_ - work_.families().weightBytes());
  std::vector<Item> items = itemsOf(grid, times);
  const auto workAt = [&](double price) { return work_.priced(times, families, price).ofRanks - price * left; };
  const auto keptAt = [&](double price, double time) {  // time 0: between the passes
    double sum = 0;
    for (const Item& item : items) {
      sum += std::min(price * (time > 0 ? item.bytesTime / time : item.bytes), item.again);
    }
    return sum;
  };
  const double none = workAt(0) / atWork;
  const auto longestOf = [&](double Item::* use, double time, auto stepAt) {
    double first = std::numeric_limits<double>::infinity();
    for (const Item& item : items) {
      first = item.*use > 0 && item.again > 0 ? std::min(first, item.again / (item.*use) * time) : first;
    }
    first = std::isinf(first) ? times.ofRanks / all : first;
    return longest(kLowestPrice * first, none, atMost, stepAt);
  };
  const Priced between =
      longestOf(&Item::bytes, 1, [&](double price) { return (workAt(price) + keptAt(price, 0)) / atWork; });
  const Priced inTheMean = longestOf(&Item::bytesTime, none, [&](double price) {
    return leastTimeWith(workAt(price), atWork, [&](double time) { return keptAt(price, time); });
  });
  return {std::max(between.step, inTheMean.step), between.bytePrice, std::move(items)};
}

// Else what is kept may lie on another submesh than the heavy operator runs on.
bool KeptValues::isInOneBlock(int root, const std::vector<int>& blockOf) const {
  const std::vector<Leaf>& leaves = kept_.at(root).leaves;
  return std::all_of(leaves.begin(), leaves.end(),
                     [&](const Leaf& leaf) { return blockOf[*view_.producerOf(leaf.value)] == blockOf[root]; });
}

LeastWork::Times KeptValues::priced(const std::vector<Item>& items, const LeastWork::Times& times,
                                    FamilyTimes::OnGrid& families, const std::vector<int>& blockOf,
                                    double bytePrice) const {
  LeastWork::Times priced = times;
  priced.ofFamily = work_.priced(times, families, bytePrice).ofFamily;
  for (const Item& item : items) {
    if (isInOneBlock(item.root, blockOf)) {
      priced.ofOperator[item.root] += std::min(bytePrice * item.bytes, item.again);
    }
  }
  return priced;
}

}  // namespace weft
