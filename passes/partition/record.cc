#include "passes/partition/record.h"

#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

using namespace mlir;  // NOLINT

RecordAnalysis::RecordAnalysis(Operation* op) {
  auto module = cast<ModuleOp>(op);
  auto text = module->getAttrOfType<StringAttr>(kDecisionsAttr);
  absl::StatusOr<Decisions> decisions = parseDecisions(text ? text.getValue().str() : "");
  if (!decisions.ok()) {
    module.emitError(std::string(decisions.status().message()));
    return;
  }
  func::FuncOp step = stepFunction(module);
  if (!step || decisions->arguments.size() != step.getNumArguments()) {
    module.emitError() << "the decisions know " << decisions->arguments.size() << " arguments, @step has "
                       << (step ? step.getNumArguments() : 0) << "; they were made for another program";
    return;
  }
  decisions_ = *std::move(decisions);
  fits_ = true;
}

}  // namespace weft
