#include "planner/cost/split_work.h"

#include <algorithm>

#include "ir/layout/divisors.h"
#include "planner/cost/alternative_kernels.h"
#include "planner/derive/micro_batches.h"
#include "planner/graph/flops.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

int64_t ceilOf(int64_t size, int64_t parts) {
  return (size + parts - 1) / parts;
}

}  // namespace

std::vector<Parts> splitsOf(int64_t ranks, bool hasBatch) {
  std::vector<Parts> splits;
  for (const int64_t batch : hasBatch ? divisorsOf(ranks) : std::vector<int64_t>{1}) {
    for (const int64_t rows : divisorsOf(ranks / batch)) {
      for (const int64_t columns : divisorsOf(ranks / batch / rows)) {
        splits.push_back({batch, rows, columns, ranks / batch / rows / columns});
      }
    }
  }
  return splits;
}

int64_t SplitWork::Tensor::parts(const Parts& parts) const {
  int64_t all = 1;
  for (int role = 0; role < kRoles; ++role) {
    all *= (roles >> role & 1U) != 0 ? parts[role] : 1;
  }
  return all;
}

absl::StatusOr<SplitWork> SplitWork::of(const GraphView& view, int op, int batch, WorkRuns runs) {
  const GraphOperator& node = view.op(op);
  WEFT_ASSIGN_OR_RETURN(const Rule rule, ruleOf(view, op));
  SplitWork made;
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
  return made;
}

KernelWork SplitWork::share(const WorkGrid& grid, const Parts& split) const {
  Parts parts = split;
  if (runs == WorkRuns::kPerMicroBatch) {
    parts[batchRole] *= grid.microBatches;
  }
  return share(parts);
}

// What is rounded to whole operations in a plan may be half of one less than here.
KernelWork SplitWork::share(const Parts& parts) const {
  KernelWork share = work;
  double all = 1;
  for (const int64_t part : parts) {
    all *= static_cast<double>(part);
  }
  share.flops = work.flops / all;
  if (work.product) {
    ProductShape& shape = *share.product;
    shape.batch = ceilOf(shape.batch, parts[kBatch]);
    shape.m = ceilOf(shape.m, parts[kRows]);
    shape.n = ceilOf(shape.n, parts[kColumns]);
    const double terms = static_cast<double>(ceilOf(sums, parts[kSums])) / static_cast<double>(sums);
    share.flops = work.flops / work.product->flopsPerSum() * terms * shape.flopsPerSum();
  }
  share.flops = std::max(0.0, share.flops - 0.5);
  double bytes = 0;
  for (const Tensor& tensor : tensors) {
    bytes += tensor.bytes / static_cast<double>(tensor.parts(parts));
  }
  share.bytes = static_cast<int64_t>(bytes);
  return share;
}

}  // namespace weft
