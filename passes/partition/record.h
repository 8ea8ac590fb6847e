// The decisions record of a module as an analysis: parsed once for the passes that read it one after another.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "planner/decisions.h"

namespace weft {

// A pass that leaves the record as it is says so: markAnalysesPreserved<RecordAnalysis>().
class RecordAnalysis {
 public:
  explicit RecordAnalysis(mlir::Operation* module);

  // Null, with errors on the module: it has no record that can be read, or one for other arguments.
  const Decisions* get() const { return fits_ ? &decisions_ : nullptr; }

 private:
  Decisions decisions_;
  bool fits_ = false;
};

}  // namespace weft
