#include "planner/cost/least_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/cost/alternative_kernels.h"
#include "planner/cost/product_reads.h"
#include "planner/cost/sure_sums.h"
#include "planner/derive/micro_batches.h"
#include "planner/graph/flops.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Operands that an operator reads whichever of its alternatives stands for it.
std::vector<bool> operandsInAnyCase(const GraphOperator& op) {
  std::vector<bool> read(op.operands.size(), true);
  for (const Alternative& alternative : op.alternatives) {
    std::vector<bool> mine(op.operands.size(), false);
    const auto reads = [&mine](const GraphValue& value) {
      if (value.isArgument() && value.index < mine.size()) {
        mine[value.index] = true;
      }
    };
    for (const AlternativeOperator& part : alternative.body) {
      std::for_each(part.operands.begin(), part.operands.end(), reads);
    }
    std::for_each(alternative.results.begin(), alternative.results.end(), reads);
    for (size_t i = 0; i < read.size(); ++i) {
      read[i] = read[i] && mine[i];
    }
  }
  return read;
}

// The operators without which some result of the step cannot be made.
std::vector<bool> neededOperators(const GraphView& view) {
  std::vector<bool> needed(view.operators(), false);
  const auto need = [&](int value) {
    if (const std::optional<int> producer = view.producerOf(value)) {
      needed[*producer] = true;
    }
  };
  for (const GraphResult& result : view.graph().results) {
    need(view.valueOf(result.value));
  }
  for (int op = view.operators() - 1; op >= 0; --op) {
    if (needed[op]) {
      const std::vector<bool> read = operandsInAnyCase(view.op(op));
      for (unsigned i = 0; i < read.size(); ++i) {
        if (read[i]) {
          need(view.operandOf(op, i));
        }
      }
    }
  }
  return needed;
}

// The values that inputs and constants alone decide.
std::vector<bool> ofInputsAlone(const GraphView& view) {
  std::vector<bool> alone(view.values(), false);
  for (size_t i = 0; i < view.graph().arguments.size(); ++i) {
    alone[i] = view.graph().arguments[i].kind == ArgumentKind::kInput;
  }
  for (int op = 0; op < view.operators(); ++op) {
    bool all = true;
    for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
      all = all && alone[view.operandOf(op, i)];
    }
    for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
      alone[view.resultOf(op, r)] = all;
    }
  }
  return alone;
}

// The operators that read what has an element for each micro-batch as if it were any other size, or what is made of
// what they make; and all of these values.
struct SizedByMicroBatches {
  std::vector<bool> operators;
  std::vector<bool> values;
};
absl::StatusOr<SizedByMicroBatches> sizedByMicroBatches(const GraphView& view) {
  SizedByMicroBatches sized = {std::vector<bool>(view.operators(), false), std::vector<bool>(view.values(), false)};
  for (int op = 0; op < view.operators(); ++op) {
    WEFT_ASSIGN_OR_RETURN(const Rule rule, ruleOf(view, op));
    for (unsigned i = 0; i < view.op(op).operands.size() && !rule.namesMicroBatches(); ++i) {
      sized.operators[op] = sized.operators[op] || sized.values[view.operandOf(op, i)];
    }
    for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
      sized.values[view.resultOf(op, r)] = sized.operators[op] || rule.hasMicroBatches(rule.results()[r]);
    }
  }
  return sized;
}

std::vector<WorkRuns> runsOf(const GraphView& view, const std::vector<bool>& needed, const std::vector<bool>& sized,
                             const MicroBatchAnalysis& batches, bool cutsBatch) {
  const std::vector<bool> inputsAlone = ofInputsAlone(view);
  std::vector<WorkRuns> runs(view.operators(), WorkRuns::kPerhapsNever);
  for (int op = 0; op < view.operators(); ++op) {
    const GraphOperator& node = view.op(op);
    const bool runsAlways = std::none_of(node.alternatives.begin(), node.alternatives.end(), takesNothing);
    const bool hasNoKernel = node.facts.mustExpand && node.alternatives.empty();
    if (needed[op] && !sized[op] && node.facts.view == ViewKind::kNone && !node.facts.isConstant && !hasNoKernel &&
        runsAlways) {
      const bool isCut = cutsBatch && batches.operators[op].batch >= 0;
      runs[op] = inputsAlone[view.resultOf(op, 0)] ? WorkRuns::kWholeBatch
                 : isCut                           ? WorkRuns::kPerMicroBatch
                                                   : WorkRuns::kAtLeastOnce;
    }
  }
  return runs;
}

// Which of its results does something read without which some result of the step cannot be made?
std::vector<bool> readResults(const GraphView& view, int op, const std::vector<bool>& needed) {
  std::vector<bool> read;
  for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
    const std::vector<GraphView::Use>& uses = view.usesOf(view.resultOf(op, r));
    read.push_back(std::any_of(uses.begin(), uses.end(), [&](const GraphView::Use& use) {
      return use.op == GraphView::kStep || needed[use.op];
    }));
  }
  return read;
}

// What its kernel depends on.
std::string keyOf(const GraphView& view, int op, const std::vector<bool>& read) {
  const OperatorFacts& facts = view.op(op).facts;
  std::string key = absl::StrCat(facts.kind, ";", facts.rule, ";", facts.flopsPerPoint);
  const auto add = [&key](const TensorType& type) {
    absl::StrAppend(&key, ";", static_cast<int>(type.type), ":", absl::StrJoin(type.shape, ","));
  };
  for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
    add(view.typeOf(view.operandOf(op, i)));
  }
  key += "->";
  std::for_each(view.op(op).results.begin(), view.op(op).results.end(), add);
  for (const Alternative& alternative : view.op(op).alternatives) {
    absl::StrAppend(&key, "|", absl::StrJoin(read, ","));
    for (const AlternativeOperator& part : alternative.body) {
      absl::StrAppend(&key, part.facts.kind, ";", part.facts.flopsPerPoint);
      std::for_each(part.results.begin(), part.results.end(), add);
    }
  }
  return key;
}

// Is the product of `work`, perhaps of more terms, part of the kernel? Then every split of the one is one of the other.
bool hasProductOf(const KernelWork& kernel, const KernelWork& work) {
  return kernel.product && work.product && kernel.type == work.type && kernel.product->batch == work.product->batch &&
         kernel.product->m == work.product->m && kernel.product->n == work.product->n &&
         kernel.product->k >= work.product->k;
}

}  // namespace

absl::StatusOr<LeastWork> LeastWork::of(const GraphView& view, const Machine& machine, const Options& options) {
  const std::vector<int64_t> oneStage(view.operators(), 0);
  WEFT_ASSIGN_OR_RETURN(MicroBatchAnalysis batches, analyzeMicroBatches(view, oneStage, options.cutsBatch ? 2 : 1));
  const std::vector<bool> needed = neededOperators(view);
  WEFT_ASSIGN_OR_RETURN(SizedByMicroBatches sized, sizedByMicroBatches(view));
  const std::vector<WorkRuns> runs = runsOf(view, needed, sized.operators, batches, options.cutsBatch);
  const std::vector<int64_t> sums = sureSums(view, [&](const GraphView::Use& use) {
    const bool carriesBatch = options.cutsBatch && batches.batchDim[view.operandOf(use.op, use.operand)] >= 0;
    const bool endsGradient = needed[use.op] && !view.op(use.op).gradientOf.empty();
    return runs[use.op] == WorkRuns::kPerMicroBatch ||
           (!carriesBatch && (runs[use.op] == WorkRuns::kAtLeastOnce || endsGradient));
  });
  LeastWork made(machine, options);
  const AlternativeKernels kernels(view, std::move(sized.values));
  std::map<std::string, int> known;
  for (int op = 0; op < view.operators(); ++op) {
    if (runs[op] == WorkRuns::kPerhapsNever) {
      made.classOf_.push_back(-1);
      continue;
    }
    const int batch = runs[op] == WorkRuns::kPerMicroBatch ? batches.operators[op].batch : -1;
    const std::vector<bool> read = readResults(view, op, needed);
    const std::string key =
        absl::StrCat(keyOf(view, op, read), ";", batch, ";", static_cast<int>(runs[op]), ";", sums[op]);
    const auto [entry, isNew] = known.try_emplace(key, static_cast<int>(made.classes_.size()));
    if (isNew) {
      WEFT_RETURN_IF_ERROR(made.addClass(view, op, batch, runs[op]));
      made.classes_.back().split.sureSum = sums[op];
      WEFT_RETURN_IF_ERROR(made.addAlternatives(view.op(op), op, read, kernels));
    }
    made.classOf_.push_back(entry->second);
    ++made.classes_[entry->second].operators;
  }
  made.batchDims_ = std::move(batches.batchDim);
  WEFT_RETURN_IF_ERROR(made.addFamilies(view));
  return made;
}

// Of products and other heavy operators, in both passes.
ValueTrees LeastWork::treesOf(const GraphView& view, const std::function<bool(int op)>& isProduct) const {
  const auto inTree = [&](int op) {
    const GraphOperator& node = view.op(op);
    const bool isView = node.facts.view != ViewKind::kNone;
    const bool isInPass = node.phase != Phase::kUpdate && (isView || runs(op) == WorkRuns::kPerMicroBatch);
    if (!isInPass || !node.alternatives.empty()) {
      return InTree::kNo;
    }
    return isHeavy(op) || isProduct(op) ? InTree::kAsRoot : InTree::kHangs;
  };
  return valueTrees(view, inTree, [this](int value) { return batchDims_[value] >= 0; });
}

absl::Status LeastWork::addFamilies(const GraphView& view) {
  const auto workOf = [&](int op) -> const SplitWork* {
    const Class* of = classOf_[op] < 0 ? nullptr : &classes_[classOf_[op]];
    const bool isSplit = of != nullptr && of->split.work.product && !of->mayExpand;
    return isSplit && !isMeasured(machine_, of->split.work) ? &of->split : nullptr;
  };
  std::vector<ProductRead> reads;
  if (!options_.blockOf.empty()) {
    const auto isProduct = [&](int op) { return workOf(op) != nullptr; };
    reads = productReads(view, treesOf(view, isProduct), isProduct);
  }
  WEFT_ASSIGN_OR_RETURN(FamilyTimes families, FamilyTimes::of(view, machine_, moves_, workOf, reads, options_.blockOf));
  families_ = std::make_unique<const FamilyTimes>(std::move(families));
  return absl::OkStatus();
}

absl::Status LeastWork::addClass(const GraphView& view, int op, int batch, WorkRuns runs) {
  Class made;
  WEFT_ASSIGN_OR_RETURN(made.split, SplitWork::of(view, op, batch, runs));
  KernelWork arithmetic = made.split.share({1, 1, 1, 1});
  const int64_t bytes = std::exchange(arithmetic.bytes, 0);
  arithmetic.kernel = "";  // by the formula: no call without bytes was measured
  made.isHeavy = kernelTime(machine_, arithmetic) > copyTime(machine_, bytes);
  classes_.push_back(std::move(made));
  return absl::OkStatus();
}

// To the last class.
absl::Status LeastWork::addAlternatives(const GraphOperator& node, int op, const std::vector<bool>& read,
                                        const AlternativeKernels& kernels) {
  Class& made = classes_.back();
  made.mayExpand = !node.alternatives.empty();
  made.mustExpand = node.facts.mustExpand;
  for (const Alternative& alternative : node.alternatives) {
    WEFT_ASSIGN_OR_RETURN(std::vector<KernelWork> mine, kernels.of(op, alternative, read));
    if (std::none_of(mine.begin(), mine.end(),
                     [&](const KernelWork& kernel) { return hasProductOf(kernel, made.split.work); })) {
      made.others.push_back(std::move(mine));
    }
  }
  return absl::OkStatus();
}

LeastWork::Least LeastWork::leastOf(const Class& of, const WorkGrid& grid) const {
  const SplitWork& split = of.split;
  const auto alone = [](Picoseconds kernel) { return Least{kernel, static_cast<double>(kernel)}; };
  if (isMeasured(machine_, split.work)) {
    const auto parts = static_cast<double>(grid.ranks * split.calls(grid));
    return alone(picosecondsOf(leastKernelSeconds(machine_, split.share({1, 1, 1, 1})) / parts));
  }
  if (!split.work.product) {
    return alone(kernelTime(machine_, split.share(grid, {1, grid.ranks, 1, 1})));
  }
  Least least;
  for (const Parts& parts : splitsOf(grid.ranks, split.work.product->batch > 1)) {
    const Picoseconds kernel = kernelTime(machine_, split.share(grid, parts));
    const double sums = moves_.time(static_cast<double>(split.sureSum), moves_.close(parts[kSums])) /
                        static_cast<double>(split.calls(grid) * grid.ranks);
    least.kernel = std::min(least.kernel, kernel);
    least.kernelAndSums = std::min(least.kernelAndSums, static_cast<double>(kernel) + sums);
  }
  return least;
}

LeastWork::Least LeastWork::leastOfAll(const Class& of, const WorkGrid& grid) const {
  Least least = of.mustExpand ? Least() : leastOf(of, grid);
  const auto parts = static_cast<double>(grid.ranks * of.split.calls(grid));
  for (const std::vector<KernelWork>& kernels : of.others) {
    double seconds = 0;
    for (const KernelWork& kernel : kernels) {
      seconds += leastKernelSeconds(machine_, kernel) / parts;
    }
    least.kernel = std::min(least.kernel, picosecondsOf(seconds));
    least.kernelAndSums = std::min(least.kernelAndSums, seconds * kPicosecondsPerSecond);
  }
  return least;
}

LeastWork::Times LeastWork::times(const WorkGrid& grid) const {
  std::vector<Picoseconds> ofClass;
  std::vector<double> ofRanks;
  Times times;
  for (const Class& each : classes_) {
    const Least least = leastOfAll(each, grid);
    ofClass.push_back(least.kernel);
    ofRanks.push_back(least.kernelAndSums * static_cast<double>(each.split.calls(grid) * grid.ranks));
    times.ofRanks += ofRanks.back() * static_cast<double>(each.operators);
  }
  for (const int of : classOf_) {
    times.ofCall.push_back(of < 0 ? 0 : ofClass[of]);
    times.ofOperator.push_back(of < 0 ? 0 : ofRanks[of]);
  }
  for (const double least : families_->least(grid, times.ofOperator)) {
    times.ofFamily.push_back(std::max(0.0, least - operatorsTime(times, times.ofFamily.size())));
    times.ofRanks += times.ofFamily.back();
  }
  times.delays = times.ofCall;
  return times;
}

// Of those of a family, however others are split.
double LeastWork::operatorsTime(const Times& times, size_t family) const {
  double time = 0;
  for (const int op : families_->operators()[family]) {
    time += times.ofOperator[op];
  }
  return time;
}

LeastWork::Priced LeastWork::priced(const Times& times, FamilyTimes::OnGrid& families, double bytePrice) const {
  const std::vector<FamilyTimes::Least> least = families.least(bytePrice);
  Priced priced;
  double beyond = families.ofStep(least);
  double alone = times.ofRanks;
  for (size_t family = 0; family < least.size(); ++family) {
    const double ofOperators = operatorsTime(times, family);
    priced.ofFamily.push_back(least[family].inBlocks - ofOperators);
    beyond -= ofOperators;
    alone -= times.ofFamily[family];
  }
  priced.ofRanks = alone + std::max(0.0, beyond);
  return priced;
}

}  // namespace weft
