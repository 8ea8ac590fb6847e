// The table of what differs between the ranks of a submesh: a column of integers for each list of offsets.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/layout/mesh.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

class RankTable {
 public:
  explicit RankTable(const Mesh& mesh) : ranks_(mesh.ranks()) {}

  // A scalar whose value at rank r and micro-batch p is offsets[r] + p * perMicroBatch. Equal lists share a column; a
  // list of equal numbers needs none.
  mlir::Attribute scalar(const std::vector<int64_t>& offsets, int64_t perMicroBatch, mlir::MLIRContext* context);
  // The same number on every rank.
  static mlir::Attribute scalar(int64_t value, int64_t perMicroBatch, mlir::MLIRContext* context);

  // dist.rank_table of the submesh's module.
  void write(mlir::ModuleOp module) const;

 private:
  int64_t ranks_;
  std::map<std::vector<int64_t>, int64_t> columns_;
  std::vector<std::vector<int64_t>> table_;  // by column
};

}  // namespace weft
