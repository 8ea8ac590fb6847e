#include "planner/cost/least_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout/divisors.h"
#include "planner/cost/alternative_kernels.h"
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

int64_t ceilOf(int64_t size, int64_t parts) {
  return (size + parts - 1) / parts;
}

// All ways to give the ranks to the roles of a product; to its batch only where it has one.
std::vector<std::array<int64_t, kRoles>> splitsOf(int64_t ranks, bool hasBatch) {
  std::vector<std::array<int64_t, kRoles>> splits;
  for (const int64_t batch : hasBatch ? divisorsOf(ranks) : std::vector<int64_t>{1}) {
    for (const int64_t rows : divisorsOf(ranks / batch)) {
      for (const int64_t columns : divisorsOf(ranks / batch / rows)) {
        splits.push_back({batch, rows, columns, ranks / batch / rows / columns});
      }
    }
  }
  return splits;
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
      made.classes_.back().sureSum = sums[op];
      WEFT_RETURN_IF_ERROR(made.addAlternatives(view.op(op), op, read, kernels));
    }
    made.classOf_.push_back(entry->second);
    ++made.classes_[entry->second].operators;
  }
  made.batchDims_ = std::move(batches.batchDim);
  WEFT_RETURN_IF_ERROR(made.addFamilies(view));
  return made;
}

absl::Status LeastWork::addFamilies(const GraphView& view) {
  const auto isProduct = [&](int op) {
    return classOf_[op] >= 0 && classes_[classOf_[op]].work.product && !classes_[classOf_[op]].mayExpand &&
           !isMeasured(machine_, classes_[classOf_[op]].work);
  };
  WEFT_ASSIGN_OR_RETURN(std::vector<ProductFamily> families, productFamilies(view, isProduct));
  std::map<Members, int> known;
  for (ProductFamily& family : families) {
    Members members;
    for (size_t i = 0; i < family.operators.size(); ++i) {
      members.push_back({classOf_[family.operators[i]], family.roles[i]});
    }
    const auto [entry, isNew] = known.try_emplace(members, static_cast<int>(familyKinds_.size()));
    if (isNew) {
      familyKinds_.push_back(std::move(members));
    }
    kindOf_.push_back(entry->second);
    families_.push_back(std::move(family.operators));
  }
  return absl::OkStatus();
}

absl::Status LeastWork::addClass(const GraphView& view, int op, int batch, WorkRuns runs) {
  const GraphOperator& node = view.op(op);
  WEFT_ASSIGN_OR_RETURN(const Rule rule, ruleOf(view, op));
  Class made;
  made.runs = runs;
  made.work = arithmeticOf(node.facts, rule, FactorAxes(rule.factors().size()));
  made.work.kernel = node.facts.kind;
  made.work.sum = perhapsAdded(node.facts);
  const auto roleOf = [&](int factor) {
    return made.work.product ? roleIn(rule, factor) : factor == batch ? kBatch : kRows;
  };
  const auto add = [&](const std::vector<DimFactors>& dims, const TensorType& type) {
    Tensor tensor = {rule.hasMicroBatches(dims) ? 0 : static_cast<double>(type.bytes()), 0};
    for (size_t f = 0; f < rule.factors().size(); ++f) {
      if (hasFactor(dims, static_cast<int>(f))) {
        tensor.roles |= 1U << roleOf(static_cast<int>(f)) | (made.work.product ? 0U : 1U << kRows);
      }
    }
    made.tensors.push_back(tensor);
  };
  std::vector<DType> types;
  for (unsigned i = 0; i < node.operands.size(); ++i) {
    types.push_back(view.typeOf(view.operandOf(op, i)).type);
    add(rule.operands()[i], view.typeOf(view.operandOf(op, i)));
  }
  for (size_t r = 0; r < node.results.size(); ++r) {
    add(rule.results()[r], node.results[r]);
  }
  for (size_t f = 0; f < rule.factors().size() && made.work.product; ++f) {
    made.sums *= roleOf(static_cast<int>(f)) == kSums ? std::max<int64_t>(1, rule.factors()[f].size) : 1;
  }
  made.work.type = arithmeticType(types, node.results[0].type);
  made.batchRole = batch < 0 ? -1 : roleOf(batch);
  KernelWork arithmetic = shareOf(made, {1, 1, 1, 1});
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
                     [&](const KernelWork& kernel) { return hasProductOf(kernel, made.work); })) {
      made.others.push_back(std::move(mine));
    }
  }
  return absl::OkStatus();
}

// One rank's part. What is rounded to whole operations in a plan may be half of one less than here.
KernelWork LeastWork::shareOf(const Class& of, const Parts& parts) const {
  KernelWork share = of.work;
  double all = 1;
  for (const int64_t part : parts) {
    all *= static_cast<double>(part);
  }
  share.flops = of.work.flops / all;
  if (of.work.product) {
    ProductShape& shape = *share.product;
    shape.batch = ceilOf(shape.batch, parts[kBatch]);
    shape.m = ceilOf(shape.m, parts[kRows]);
    shape.n = ceilOf(shape.n, parts[kColumns]);
    const double sums = static_cast<double>(ceilOf(of.sums, parts[kSums])) / static_cast<double>(of.sums);
    share.flops = of.work.flops / of.work.product->flopsPerSum() * sums * shape.flopsPerSum();
  }
  share.flops = std::max(0.0, share.flops - 0.5);
  double bytes = 0;
  for (const Tensor& tensor : of.tensors) {
    double mine = tensor.bytes;
    for (int role = 0; role < kRoles; ++role) {
      mine /= (tensor.roles >> role & 1U) != 0 ? static_cast<double>(parts[role]) : 1;
    }
    bytes += mine;
  }
  share.bytes = static_cast<int64_t>(bytes);
  return share;
}

// In picoseconds: of adding up what is partial over so many ranks; a call's part of that.
double LeastWork::sumTime(const Class& of, const WorkGrid& grid, int64_t parts) const {
  const int64_t calls = of.runs == WorkRuns::kPerMicroBatch ? grid.microBatches : 1;
  const double each = static_cast<double>(of.sureSum) / static_cast<double>(calls * grid.ranks);
  const double fastest = std::max(machine_.linkBandwidth, machine_.networkShare());
  double seconds = each * static_cast<double>(parts - 1) / fastest;
  if (machine_.devicesPerNode > 0 && parts > machine_.devicesPerNode) {
    const double nodes = static_cast<double>(parts) / static_cast<double>(machine_.devicesPerNode);
    seconds = std::max(seconds, each * (nodes - 1) / machine_.networkShare());
  }
  return options_.hidesCollectives ? 0 : seconds * kPicosecondsPerSecond;
}

// The parts of one call.
LeastWork::Parts LeastWork::cut(const Class& of, const WorkGrid& grid, const Parts& split) {
  Parts parts = split;
  if (of.runs == WorkRuns::kPerMicroBatch) {
    parts[of.batchRole] *= grid.microBatches;
  }
  return parts;
}

LeastWork::Least LeastWork::leastOf(const Class& of, const WorkGrid& grid) const {
  const bool isCut = of.runs == WorkRuns::kPerMicroBatch;
  const auto alone = [](Picoseconds kernel) { return Least{kernel, static_cast<double>(kernel)}; };
  if (isMeasured(machine_, of.work)) {
    const double share = static_cast<double>(grid.ranks * (isCut ? grid.microBatches : 1));
    return alone(picosecondsOf(leastKernelSeconds(machine_, shareOf(of, {1, 1, 1, 1})) / share));
  }
  if (!of.work.product) {
    return alone(kernelTime(machine_, shareOf(of, cut(of, grid, {1, grid.ranks, 1, 1}))));
  }
  Least least;
  for (const Parts& split : splitsOf(grid.ranks, of.work.product->batch > 1)) {
    const Picoseconds kernel = kernelTime(machine_, shareOf(of, cut(of, grid, split)));
    least.kernel = std::min(least.kernel, kernel);
    least.kernelAndSums = std::min(least.kernelAndSums, static_cast<double>(kernel) + sumTime(of, grid, split[kSums]));
  }
  return least;
}

LeastWork::Least LeastWork::leastOfAll(const Class& of, const WorkGrid& grid) const {
  Least least = of.mustExpand ? Least() : leastOf(of, grid);
  const auto parts = static_cast<double>(grid.ranks * (of.runs == WorkRuns::kPerMicroBatch ? grid.microBatches : 1));
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

// Of a product split like this, all calls of a step and all ranks together.
double LeastWork::callsTime(const Class& of, const WorkGrid& grid, const Parts& split) const {
  const int64_t calls = of.runs == WorkRuns::kPerMicroBatch ? grid.microBatches : 1;
  return (static_cast<double>(kernelTime(machine_, shareOf(of, cut(of, grid, split)))) +
          sumTime(of, grid, split[kSums])) *
         static_cast<double>(calls * grid.ranks);
}

// Of all members together. Axes that split no loop of the first may split loops of the others. `alone`: of each class,
// the least of one of its operators.
double LeastWork::familyTime(const Members& members, const std::vector<double>& alone, const WorkGrid& grid) const {
  double ofOthers = 0;
  for (size_t i = 1; i < members.size(); ++i) {
    ofOthers += alone[members[i].ofClass];
  }
  const Class& first = classes_[members[0].ofClass];
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t unused : divisorsOf(grid.ranks)) {
    const std::vector<Parts> more = splitsOf(unused, first.work.product->batch > 1);
    for (const Parts& split : splitsOf(grid.ranks / unused, first.work.product->batch > 1)) {
      double sum = callsTime(first, grid, split);
      if (sum + ofOthers >= least) {
        continue;
      }
      double rest = ofOthers;
      for (size_t i = 1; i < members.size() && sum + rest < least; ++i) {
        double best = std::numeric_limits<double>::infinity();
        for (const Parts& extra : more) {
          Parts mine;
          for (int role = 0; role < kRoles; ++role) {
            mine[role] = split[members[i].roles[role]] * extra[members[i].roles[role]];
          }
          best = std::min(best, callsTime(classes_[members[i].ofClass], grid, mine));
        }
        sum += best;
        rest -= alone[members[i].ofClass];
      }
      least = std::min(least, sum + rest);
    }
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
    const int64_t calls = each.runs == WorkRuns::kPerMicroBatch ? grid.microBatches : 1;
    ofRanks.push_back(least.kernelAndSums * static_cast<double>(calls * grid.ranks));
    times.ofRanks += ofRanks.back() * static_cast<double>(each.operators);
  }
  for (const int of : classOf_) {
    times.ofCall.push_back(of < 0 ? 0 : ofClass[of]);
    times.ofOperator.push_back(of < 0 ? 0 : ofRanks[of]);
  }
  std::vector<double> ofKind;
  for (const Members& members : familyKinds_) {
    double alone = 0;
    for (const Member& member : members) {
      alone += ofRanks[member.ofClass];
    }
    ofKind.push_back(std::max(0.0, familyTime(members, ofRanks, grid) - alone));
  }
  for (const int kind : kindOf_) {
    times.ofFamily.push_back(ofKind[kind]);
    times.ofRanks += ofKind[kind];
  }
  times.delays = times.ofCall;
  return times;
}

}  // namespace weft
