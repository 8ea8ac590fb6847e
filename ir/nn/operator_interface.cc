#include "ir/nn/operator_interface.h"

#include "ir/bounded.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.cc.inc"

namespace weft::ir {
namespace {

int64_t product(const Shape& shape) {
  return productAtMost(shape);
}

std::vector<Shape> shapesOf(mlir::ValueRange values) {
  std::vector<Shape> shapes;
  for (mlir::Value value : values) {
    shapes.push_back(shapeOf(value));
  }
  return shapes;
}

}  // namespace

Shape shapeOf(mlir::Value value) {
  llvm::ArrayRef<int64_t> shape = llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  return Shape(shape.begin(), shape.end());
}

std::vector<Shape> operandShapes(mlir::Operation* op) {
  return shapesOf(op->getOperands());
}
std::vector<Shape> resultShapes(mlir::Operation* op) {
  return shapesOf(op->getResults());
}

int64_t elementwiseFlops(mlir::Operation* op) {
  int64_t flops = 0;
  for (mlir::Value result : op->getResults()) {
    flops += product(shapeOf(result));
  }
  return flops;
}

int64_t scaledFlops(mlir::Operation* op, double perElement) {
  const double flops = perElement * static_cast<double>(elementwiseFlops(op));
  constexpr int64_t kMost = int64_t{1} << 56;  // as productAtMost
  return flops < static_cast<double>(kMost) ? static_cast<int64_t>(flops) : kMost;
}

int64_t operandElements(mlir::Operation* op, unsigned operand) {
  return product(shapeOf(op->getOperand(operand)));
}

int64_t contractionFlops(mlir::Operation* op) {
  mlir::FailureOr<Rule> rule = ruleOf(llvm::cast<OperatorInterface>(op));
  if (mlir::failed(rule)) {
    return 0;
  }
  Shape sizes = {2};
  for (const Factor& factor : rule->factors()) {
    sizes.push_back(factor.size);
  }
  return productAtMost(sizes);
}

int64_t convolutionFlops(mlir::Value y, mlir::Value weight) {
  const Shape shape = shapeOf(weight);
  return productAtMost({2, product(shapeOf(y)), shape[1], shape[2], shape[3]});
}

int64_t attentionFlops(mlir::Operation* op, int64_t products) {
  return productAtMost({2, products, operandElements(op, 0), shapeOf(op->getOperand(1))[2]});
}

std::string kindOf(mlir::Operation* op) {
  auto custom = llvm::dyn_cast<nn::CustomOp>(op);
  return custom ? custom.getKind().str() : op->getName().stripDialect().str();
}

mlir::FailureOr<Rule> ruleOf(OperatorInterface op) {
  absl::StatusOr<Rule> rule = Rule::parse(op.getRule(), operandShapes(op), resultShapes(op));
  if (!rule.ok()) {
    op->emitOpError("has a rule that does not fit it: ") << std::string(rule.status().message());
    return mlir::failure();
  }
  return *std::move(rule);
}

ViewKind viewKindOf(mlir::Operation* op) {
  auto interface = mlir::dyn_cast<OperatorInterface>(op);
  return interface ? interface.getViewKind() : ViewKind::kNone;
}

bool mustExpand(mlir::Operation* op) {
  auto interface = llvm::dyn_cast<OperatorInterface>(op);
  return interface && interface.mustExpand();
}

}  // namespace weft::ir
