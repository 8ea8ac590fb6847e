#include "passes/partition/readers.h"

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

Place placeOf(Operation* op) {
  auto function = op->getAttrOfType<StringAttr>(kRunsInAttr);
  return {runsInNamed(function ? function.str() : "").value_or(RunsIn::kUpdate), stageOf(op)};
}

void setPlace(Operation* op, const Place& place) {
  Builder builder(op->getContext());
  op->setAttr(kRunsInAttr, builder.getStringAttr(runsInName(place.where)));
  op->setAttr(kStageAttr, builder.getI64IntegerAttr(place.stage));
}

GatherPolicy GatherPolicies::of(Value value) const {
  Operation* op = value.getDefiningOp();
  if (op == nullptr) {
    return decisions_.arguments[cast<BlockArgument>(value).getArgNumber()].gather;
  }
  if (isa<ir::dist::DistDialect>(op->getDialect())) {
    return of(op->getOperand(0));
  }
  auto id = op->getAttrOfType<IntegerAttr>(kIdAttr);
  const auto decision = id ? byId_.find(id.getInt()) : byId_.end();
  return decision == byId_.end() ? GatherPolicy::kNone : decision->second->gather;
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
