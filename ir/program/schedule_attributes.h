// What the scheduled state says of a submesh beside its functions, read and written as plain data: the calls of a step,
// storages, their places, regions. Readers take what a gate has passed or is about to check: what is missing or not of
// its form reads as -1 or nothing.
#pragma once

#include <vector>

#include "ir/dist/dist.h"
#include "planner/memory/rings.h"
#include "planner/step/step_memory.h"
#include "planner/step/storage.h"

namespace weft {

// The words of the IR and of the plan for one thing.
plan::MemoryClass memoryClass(ir::dist::Memory memory);
ir::dist::Memory memoryWord(plan::MemoryClass memory);

// Functions are numbered in the order of functionsInOrder().
struct SubmeshCalls {
  std::vector<FunctionCall> init;
  std::vector<FunctionCall> step;
};
SubmeshCalls callsOf(mlir::ModuleOp submesh);
void setCalls(mlir::ModuleOp submesh, const SubmeshCalls& calls);

// The number of the storage in which an argument or an operator's result lies; -1 if it says none.
int64_t storageOf(mlir::Value value);
void setStorage(mlir::BlockArgument argument, int64_t storage);
void setStorages(mlir::Operation* op, llvm::ArrayRef<int64_t> storages);  // of each result

// The storages of a submesh, which have no places yet.
std::vector<Storage> storagesOf(mlir::ModuleOp submesh);
void setStorages(mlir::ModuleOp submesh, const std::vector<Storage>& storages);

// The places of the submesh's storages and mailboxes, and its regions.
StepMemory memoryOf(mlir::ModuleOp submesh);
void setMemory(mlir::ModuleOp submesh, const StepMemory& memory);

}  // namespace weft
