// The step program of a submesh, read from its functions of the local state.
#pragma once

#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/schedule/table.h"
#include "planner/step/step_program.h"

namespace weft {

// A submesh among those of a program.
struct SubmeshContext {
  int64_t submesh = 0;
  const std::vector<int64_t>& submeshes;  // of each stage
  const schedule::Table& table;           // its ranks are submeshes
  const std::vector<int64_t>& inFlight;   // of each stage: most micro-batches between forward and gradient of the input
};

// Functions and instructions of the program stand in the order of `functions` and of their operations; only the
// terminators have no instruction.
struct SubmeshStep {
  std::vector<mlir::func::FuncOp> functions;  // functionsInOrder()
  StepProgram program;
  std::vector<mlir::Value> values;           // of the program
  llvm::DenseMap<mlir::Value, int> numbers;  // their indices
};

// `visible`: names of the values that the host reads or writes. The module has passed the gate of the scheduled state.
SubmeshStep stepOf(mlir::ModuleOp submesh, std::set<std::string> visible, const SubmeshContext& context);

// How many messages may be under way between a send or a receive of this submesh and its other end.
int64_t capacityOf(mlir::Operation* transfer, const SubmeshContext& context);

}  // namespace weft
