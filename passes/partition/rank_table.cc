#include "passes/partition/rank_table.h"

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR attributes throughout

Attribute RankTable::scalar(int64_t value, int64_t perMicroBatch, MLIRContext* context) {
  return ir::dist::ScalarAttr::get(context, value, -1, perMicroBatch);
}

Attribute RankTable::scalar(const std::vector<int64_t>& offsets, int64_t perMicroBatch, MLIRContext* context) {
  if (std::all_of(offsets.begin(), offsets.end(), [&](int64_t value) { return value == offsets[0]; })) {
    return scalar(offsets[0], perMicroBatch, context);
  }
  const auto [it, added] = columns_.try_emplace(offsets, static_cast<int64_t>(table_.size()));
  if (added) {
    table_.push_back(offsets);
  }
  return ir::dist::ScalarAttr::get(context, 0, it->second, perMicroBatch);
}

void RankTable::write(ModuleOp module) const {
  SmallVector<int64_t> values;
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    for (const std::vector<int64_t>& column : table_) {
      values.push_back(column[rank]);
    }
  }
  auto type =
      RankedTensorType::get({ranks_, static_cast<int64_t>(table_.size())}, IntegerType::get(module.getContext(), 64));
  module->setAttr(kRankTableAttr, DenseIntElementsAttr::get(type, values));
}

}  // namespace weft
