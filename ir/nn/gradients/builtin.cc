#include "ir/nn/gradients/gradients.h"
#include "ir/nn/operator_interface.h"
#include "ir/registry.h"

namespace weft::ir {

namespace {

bool hasFactorToExpand(mlir::Operation* op) {
  auto interface = llvm::dyn_cast<OperatorInterface>(op);
  const mlir::FailureOr<Rule> rule = interface ? ruleOf(interface) : mlir::FailureOr<Rule>(mlir::failure());
  return mlir::succeeded(rule) &&
         llvm::any_of(rule->factors(), [](const Factor& factor) { return factor.mayExpand(); });
}

}  // namespace

OperatorRegistry OperatorRegistry::builtin() {
  OperatorRegistry registry;
  addElementwiseGradients(registry);
  addContractionGradients(registry);
  addConvolutionGradients(registry);
  addShapeGradients(registry);
  addReductionGradients(registry);
  addAlongGradients(registry);
  addNormalizationGradients(registry);
  addIndexGradients(registry);
  addAttentionGradients(registry);
  addSourceGradients(registry);
  addCustomGradients(registry);
  addArgExtremumExpansions(registry);
  addSoftmaxExpansions(registry);
  addAttentionExpansions(registry);
  addConvolutionExpansions(registry);
  addCrossEntropyExpansion(registry);
  addBatchNormExpansions(registry);
  return registry;
}

const GradientFunction* OperatorRegistry::gradient(mlir::Operation* op) const {
  auto found = gradients_.find(op->getName().getStringRef().str());
  return found == gradients_.end() ? nullptr : &found->second;
}

const ExpansionFunction* OperatorRegistry::expansion(mlir::Operation* op) const {
  auto found = expansions_.find(op->getName().getStringRef().str());
  return found == expansions_.end() || !(mustExpand(op) || hasFactorToExpand(op)) ? nullptr : &found->second;
}

}  // namespace weft::ir
