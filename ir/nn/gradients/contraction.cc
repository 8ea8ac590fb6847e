// Gradients of contractions are contractions over the same letters: for y = contract(a, b), da contracts dy with b to
// a's letters, db contracts a with dy to b's. The letters are those of the forward rule, so factor axes carry over by
// name.
#include "absl/strings/str_replace.h"
#include "ir/nn/contract_spec.h"
#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

ContractSpec specOf(OperatorInterface op) {
  return *parseContractSpec(absl::StrReplaceAll(op.getRule(), {{"+", ""}}));
}

template <typename Op>
void addContraction(OperatorRegistry& registry) {
  addGradient<Op>(registry, [](Op op, Emitter& emit, GradientContext& context) {
    ContractSpec spec = specOf(llvm::cast<OperatorInterface>(op.getOperation()));
    mlir::Value dy = context.resultGradients[0];
    if (context.wanted[0]) {
      context.operandGradients[0] =
          emit.make<nn::ContractOp>(dy, op.getB(), ContractSpec{spec.result, spec.b, spec.a}.print());
    }
    if (context.wanted[1]) {
      context.operandGradients[1] =
          emit.make<nn::ContractOp>(op.getA(), dy, ContractSpec{spec.a, spec.result, spec.b}.print());
    }
  });
}

}  // namespace

void addContractionGradients(OperatorRegistry& registry) {
  addContraction<nn::MatmulOp>(registry);
  addContraction<nn::ContractOp>(registry);
}

}  // namespace weft::ir
