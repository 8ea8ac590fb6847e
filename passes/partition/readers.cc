#include "passes/partition/readers.h"

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

Place placeOf(Operation* op) {
  auto function = op->getAttrOfType<StringAttr>(kRunsInAttr);
  Place place{RunsIn::kUpdate, stageOf(op)};
  for (const RunsIn where : {RunsIn::kPrologue, RunsIn::kForward, RunsIn::kBackward}) {
    if (function && function.getValue() == runsInName(where)) {
      place.where = where;
    }
  }
  return place;
}

void setPlace(Operation* op, const Place& place) {
  Builder builder(op->getContext());
  op->setAttr(kRunsInAttr, builder.getStringAttr(runsInName(place.where)));
  op->setAttr(kStageAttr, builder.getI64IntegerAttr(place.stage));
}

GatherPolicy gatherOf(Value value, const Decisions& decisions) {
  auto transfer = value.getDefiningOp<ir::dist::TransferOp>();
  auto argument = dyn_cast<BlockArgument>(transfer ? transfer->getOperand(0) : value);
  return argument ? decisions.arguments[argument.getArgNumber()].gather : GatherPolicy::kNone;
}

FailureOr<func::FuncOp> stepOf(ModuleOp module) {
  if (func::FuncOp step = stepFunction(module)) {
    return step;
  }
  return module.emitError() << "has no function @step; it is there from the logical to the annotated state", failure();
}

std::string reasonOf(Operation* reader, unsigned operand) {
  return reader->hasTrait<OpTrait::IsTerminator>() ? "result " + std::to_string(operand)
                                                   : labelOf(reader) + " reads operand " + std::to_string(operand);
}

}  // namespace weft
