// Operations of the scheduled state as instructions of a plan, with what instructions refer to: source lines, groups of
// ranks, and the table of integers that differ between ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/plan/buffers.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

class InstructionEmitter {
 public:
  // All must outlive the emitter; `plan` knows its number of ranks. Reads the rank table of the module.
  InstructionEmitter(mlir::ModuleOp module, BufferTable& buffers, plan::Plan& plan)
      : mesh_(*meshOf(module)), buffers_(buffers), plan_(plan) {
    readRankTable(module);
  }

  void emit(mlir::Operation* op, plan::Instruction* instruction);

  // Writes the plan's rank table, after the last instruction.
  void emitRankTable();

 private:
  void readRankTable(mlir::ModuleOp module);
  void emitCopy(ir::dist::CopyOp copy, plan::Instruction* instruction);
  void emitKernel(mlir::Operation* op, plan::Instruction* instruction);
  void emitCollective(mlir::Operation* op, plan::CollectiveKind kind, plan::Instruction* instruction);
  void emitTransfer(mlir::Operation* op, plan::Instruction* instruction);
  // A column of the rank table with these values, found or added.
  int64_t column(std::vector<int64_t> values);
  uint32_t groupSet(std::vector<std::vector<int64_t>> groups);
  uint32_t locationOf(mlir::Location loc);

  Mesh mesh_;
  BufferTable& buffers_;
  plan::Plan& plan_;
  std::map<std::vector<std::vector<int64_t>>, uint32_t> groupSets_;
  std::map<std::pair<std::string, int64_t>, uint32_t> locations_;
  std::vector<std::vector<int64_t>> columns_;
};

}  // namespace weft
