#include "weft/own_operator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"
#include "frontend/own_gradients.h"
#include "ir/layout/rule.h"
#include "ir/nn/kernel_attributes.h"
#include "ir/nn/nn.h"

namespace weft {

using mlir::NamedAttrList;
using mlir::RankedTensorType;

namespace {

mlir::Attribute attributeOf(mlir::Builder& builder, const Attribute& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return builder.getI64IntegerAttr(*integer);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return builder.getF64FloatAttr(*real);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return builder.getStringAttr(*text);
  }
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    return builder.getDenseI64ArrayAttr(*integers);
  }
  return builder.getDenseF64ArrayAttr(std::get<std::vector<double>>(value));
}

// What is wrong with the operator itself; "" if nothing is.
std::string definitionError(GraphImpl& graph, const OwnOperator& own) {
  const auto isPlain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (own.name.empty() || !std::all_of(own.name.begin(), own.name.end(), isPlain)) {
    return absl::StrCat("apply: '", own.name, "' is no name of an operator; take lower-case letters, digits and '_'");
  }
  if (mlir::RegisteredOperationName::lookup("nn." + own.name, &graph.context)) {
    return absl::StrCat("apply: there is an operator '", own.name, "' already; take another name");
  }
  return own.results && own.rule ? "" : absl::StrCat(own.name, ": it lacks the function 'results', or 'rule'");
}

std::vector<Shape> shapesOf(const std::vector<ValueType>& types) {
  std::vector<Shape> shapes;
  for (const ValueType& type : types) {
    shapes.push_back(type.shape);
  }
  return shapes;
}

}  // namespace

std::vector<Tensor> apply(const OwnOperator& own, const std::vector<Tensor>& operands, const AttributeMap& attributes,
                          SourceLine at) {
  std::vector<NamedOperand> named;
  std::vector<ValueType> types;
  for (const Tensor& operand : operands) {
    named.push_back({"of operands", operand});
    types.push_back({operand.shape(), operand.type()});
  }
  Call call(at, own.name, std::move(named));
  if (operands.empty() || !call.ok()) {
    return {call.graph() == nullptr ? Tensor() : call.undefined()};
  }
  GraphImpl& graph = *call.graph();
  if (const std::string error = definitionError(graph, own); !error.empty()) {
    return {graph.fail(at, error)};
  }
  const absl::StatusOr<std::vector<ValueType>> results = own.results(types, attributes);
  if (!results.ok()) {
    return {call.fail(std::string(results.status().message()))};
  }
  const std::string rule = own.rule(types);
  if (const auto parsed = Rule::parse(rule, shapesOf(types), shapesOf(*results)); !parsed.ok()) {
    return {call.fail(absl::StrCat("its rule '", rule, "': ", std::string(parsed.status().message())))};
  }
  mlir::OpBuilder& builder = call.builder();
  NamedAttrList attrs;
  for (const auto& [name, value] : attributes) {
    attrs.set(name, attributeOf(builder, value));
  }
  llvm::SmallVector<mlir::Attribute> linear;
  for (const std::vector<int64_t>& set : own.linear) {
    linear.push_back(builder.getDenseI64ArrayAttr(set));
  }
  attrs.set("kind", builder.getStringAttr(own.name));
  attrs.set("factors", builder.getStringAttr(rule));
  attrs.set("linear", builder.getArrayAttr(linear));
  attrs.set("work", builder.getF64FloatAttr(own.work));
  llvm::SmallVector<mlir::Type> made;
  for (const ValueType& type : *results) {
    if (const std::string error = GraphImpl::sizesError(type.shape); !error.empty()) {
      return {call.fail(absl::StrCat("a result ", error))};
    }
    made.push_back(RankedTensorType::get(type.shape, graph.elementType(type.type)));
  }
  graph.ownOperators[own.name] = std::make_shared<const OwnOperator>(own);
  return call.makeAll("custom", attrs, made);
}

namespace {

// The user's function on the values of the backward graph, with operators that the pass's builder inserts.
mlir::LogicalResult ownGradient(GraphImpl& graph, const OwnOperator& own, mlir::Operation* op,
                                ir::GradientContext& context) {
  GraphImpl::Elsewhere elsewhere(graph, context.builder);
  const auto tensors = [&](mlir::ValueRange values) {
    std::vector<Tensor> made;
    for (mlir::Value value : values) {
      made.push_back(value ? graph.add(value) : Tensor());
    }
    return made;
  };
  const std::vector<Tensor> gradients = own.gradient({tensors(op->getOperands()), tensors(op->getResults()),
                                                      tensors(context.resultGradients), ir::kernelAttributes(op)});
  if (!graph.status.ok()) {
    return op->emitError() << own.name << ": its gradient: " << std::string(graph.status.message());
  }
  if (gradients.size() != op->getNumOperands()) {
    return op->emitError() << own.name << ": its gradient gives " << gradients.size() << " tensors for "
                           << op->getNumOperands() << " operands; give one for each, not valid where there is none";
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].valid()) {
      continue;
    }
    context.operandGradients[i] = graph.value(gradients[i]);
    if (!ir::sameShapesAndElements(context.operandGradients[i].getType(), op->getOperand(i).getType())) {
      return op->emitError() << own.name << ": its gradient of operand " << i << " is "
                             << ir::printType(context.operandGradients[i]) << ", the operand "
                             << ir::printType(op->getOperand(i)) << "; both must agree";
    }
  }
  return mlir::success();
}

}  // namespace

void addOwnGradients(GraphImpl& graph, ir::OperatorRegistry& registry) {
  registry.addGradient(ir::nn::CustomOp::getOperationName().str(),
                       [&graph](mlir::Operation* op, ir::GradientContext& context) -> mlir::LogicalResult {
                         const auto known = graph.ownOperators.find(ir::kindOf(op));
                         if (known == graph.ownOperators.end() || !known->second->gradient) {
                           return op->emitError() << ir::kindOf(op)
                                                  << " has no gradient, and the loss depends on a parameter through "
                                                     "it; give OwnOperator::gradient, or use stopGradient";
                         }
                         return ownGradient(graph, *known->second, op, context);
                       });
}

}  // namespace weft
