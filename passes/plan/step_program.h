// The step programs of the submeshes, read from their functions of the local, ordered, stored or scheduled state.
#pragma once

#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/decisions.h"
#include "planner/step/storage.h"

namespace weft {

// Functions and instructions of the program stand in the order of `functions` and of their operations; terminators and
// copies have no instruction. What a copy makes counts as the value that it copies.
struct SubmeshStep {
  std::vector<mlir::func::FuncOp> functions;  // functionsInOrder()
  StepProgram program;
  std::vector<mlir::Value> values;           // of the program
  llvm::DenseMap<mlir::Value, int> numbers;  // their indices
};

// One for each of submeshesOf(). The module has passed the gate of one of those states. Mailboxes have their sizes from
// the ordered state on.
std::vector<SubmeshStep> stepsOf(mlir::ModuleOp module);

// Where the values of a submesh lie, as its attributes say; the module has passed the gate of the stored state.
StorageAssignment assignmentOf(mlir::ModuleOp submesh, const SubmeshStep& step);

plan::FunctionKind functionKind(mlir::func::FuncOp function);
// The stage of a function: what it says, else the first that its submesh owns.
int64_t stageOfFunction(mlir::func::FuncOp function, const ScheduleDecision& schedule, int64_t submesh);

}  // namespace weft
