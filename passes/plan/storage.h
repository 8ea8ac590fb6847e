// Which memory each value of the local program lives in.
//
// A *storage* is one piece of memory; several values share it where one is made in place of another (element-wise
// operators, all_reduce, updates) or is another's view (reshape). Values with a name (dist.value) share the storage of
// that name across functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
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
};

// A named result that its producer could not write in place: copied when the function ends.
struct Copy {
  mlir::Value from;
  int storage = -1;
};

struct StorageAssignment {
  std::vector<Storage> storages;
  llvm::DenseMap<mlir::Value, int> of;
  std::map<std::string, int> named;
  std::vector<std::vector<Copy>> copies;  // by function
  llvm::DenseMap<mlir::Operation*, int64_t> steps;
  llvm::DenseSet<mlir::Operation*> views;  // ops that need no instruction
};

// Bytes of a value's tensor; bool takes one byte per element.
int64_t bytesOf(mlir::Value value);

// `functions` in the order in which a step runs them, @init first. Errors: a named value with two sizes or classes.
mlir::FailureOr<StorageAssignment> assignStorage(const std::vector<mlir::func::FuncOp>& functions);

}  // namespace weft
