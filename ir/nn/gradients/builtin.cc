#include "ir/nn/gradients/gradients.h"
#include "ir/registry.h"

namespace weft::ir {

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
  return found == expansions_.end() ? nullptr : &found->second;
}

}  // namespace weft::ir
