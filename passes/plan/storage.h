// Which memory each value of the local program lives in.
//
// A *storage* is one micro-batch of memory. Values share one where one is made in place of another (element-wise
// operators, all_reduce, updates), is another's view (reshape), or carries the same name (dist.value) in two functions.
//
// What holds at every moment of a step: a storage holds one *cell*, a value and the views of it; an op writes a storage
// only when the cell in it is not read any more, or is read by that op itself in a way its kernel allows in place.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

struct Storage {
  plan::MemoryClass memory = plan::TRANSIENT;
  int64_t bytes = 0;
  // First and last step in use, counted over the ops of all functions in order; TRANSIENT and ACTIVATION only.
  int64_t first = -1;
  int64_t last = -1;
  int function = -1;  // TRANSIENT: index of the function
  std::string label;
  std::vector<int> users = {};  // indices of the functions that touch it, ascending
};

// A named result that its producer could not write in place: copied when the function ends.
struct Copy {
  mlir::Value like;  // type, shape and source line
  int from = -1;
  int to = -1;
};

struct StorageAssignment {
  std::vector<Storage> storages;
  llvm::DenseMap<mlir::Value, int> of;
  std::map<std::string, int> named;
  std::vector<std::vector<Copy>> copies;  // by function, in the order in which they must run
  llvm::DenseMap<mlir::Operation*, int64_t> steps;
  llvm::DenseSet<mlir::Operation*> views;  // ops that need no instruction
};

// Bytes of a value's tensor; bool takes one byte per element.
int64_t bytesOf(mlir::Value value);

// `functions` in the order in which a step runs them, @init first; they have passed the gate of the scheduled state.
// The host reads and writes the names in `visible`: their memory serves nothing else.
StorageAssignment assignStorage(const std::vector<mlir::func::FuncOp>& functions, const std::set<std::string>& visible);

}  // namespace weft
