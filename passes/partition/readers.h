// Which readers of a value share what is made for them, a reshard or a mask.
#pragma once

#include <compare>
#include <map>

#include "ir/program/module_meshes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "planner/decisions.h"

namespace weft {

// Where an operator runs: the part of the step, and the pipeline stage.
struct Place {
  RunsIn where = RunsIn::kForward;
  int64_t stage = 0;

  bool isPerMicroBatch() const { return where == RunsIn::kForward || where == RunsIn::kBackward; }
};

// The place an operator of the annotated state names in its attributes.
Place placeOf(mlir::Operation* op);
void setPlace(mlir::Operation* op, const Place& place);

// The readers that share. Forward and backward of one stage are one region, unless what they read is gathered for each
// of them.
struct Region {
  bool bothPasses = false;
  RunsIn where = RunsIn::kForward;  // of one pass
  int64_t stage = 0;

  friend auto operator<=>(const Region&, const Region&) = default;
};

class Readers {
 public:
  explicit Readers(const Decisions& decisions) : decisions_(decisions) {}

  Region regionOf(mlir::Value value, const Place& place) const;
  // Is what the calls of all micro-batches read made before the first?
  bool isMadeOnce(mlir::Value value, const Place& place) const;

 private:
  GatherPolicy gatherOf(mlir::Value value) const;

  const Decisions& decisions_;
};

// The function @step; an error on the module if it has none (any more).
mlir::FailureOr<mlir::func::FuncOp> stepOf(mlir::ModuleOp module);
// What the record says of each operator, by its number.
std::map<int64_t, const OperatorDecision*> decisionsById(const Decisions& decisions);

// "matmul reads operand 1", for people.
std::string reasonOf(mlir::Operation* reader, unsigned operand);

}  // namespace weft
