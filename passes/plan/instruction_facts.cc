#include "passes/plan/instruction_facts.h"

#include "ir/dist/dist.h"
#include "ir/nn/kernel_attributes.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "llvm/ADT/TypeSwitch.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR operations throughout

TensorSpec tensorSpec(Value value) {
  return {ir::dtypeOf(value.getType()).value_or(DType::kF32), ir::shapeOf(value)};
}

KernelSpec kernelSpecOf(Operation* op) {
  KernelSpec spec{ir::kindOf(op), {}, {}, ir::kernelAttributes(op), 0};
  for (Value operand : op->getOperands()) {
    spec.inputs.push_back(tensorSpec(operand));
  }
  for (Value result : op->getResults()) {
    spec.outputs.push_back(tensorSpec(result));
  }
  auto scalars = op->getAttrOfType<ArrayAttr>(kScalarsAttr);
  spec.scalars = scalars ? scalars.size() : 0;
  return spec;
}

std::optional<plan::CollectiveKind> collectiveKindOf(Operation* op) {
  using Kind = std::optional<plan::CollectiveKind>;
  return llvm::TypeSwitch<Operation*, Kind>(op)
      .Case([](ir::dist::AllReduceOp) { return Kind(plan::ALL_REDUCE); })
      .Case([](ir::dist::AllGatherOp) { return Kind(plan::ALL_GATHER); })
      .Case([](ir::dist::ReduceScatterOp) { return Kind(plan::REDUCE_SCATTER); })
      .Case([](ir::dist::AllToAllOp) { return Kind(plan::ALL_TO_ALL); })
      .Case([](ir::dist::PermuteOp) { return Kind(plan::PERMUTE); })
      .Default([](Operation*) { return Kind(); });
}

}  // namespace weft
