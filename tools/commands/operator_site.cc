#include "tools/commands/operator_site.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/nn/create.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/pipeline.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

// Which operands of the built-in operators are integers or bool.
std::string typeName(const std::string& op, size_t operand) {
  static const std::map<std::string, std::map<size_t, std::string>> kTypes = {
      {"embedding", {{1, "i32"}}},
      {"embedding_grad", {{0, "i32"}}},
      {"softmax_cross_entropy", {{1, "i32"}}},
      {"softmax_cross_entropy_grad", {{1, "i32"}}},
      {"pick", {{1, "i32"}}},
      {"pick_grad", {{0, "i32"}}},
      {"gather", {{1, "i32"}}},
      {"scatter_add", {{0, "i32"}}},
      {"dropout", {{1, "i32"}}},
      {"adam", {{5, "i32"}}},
      {"adam_direction", {{3, "i32"}}},
      {"select", {{0, "bool"}}}};
  const auto it = kTypes.find(op);
  return it != kTypes.end() && it->second.count(operand) > 0 ? it->second.at(operand) : "f32";
}

absl::StatusOr<mlir::Type> elementType(mlir::Builder& builder, const std::string& name) {
  const std::optional<DType> type = parseDType(name);
  if (!type) {
    return absl::InvalidArgumentError(
        absl::StrCat("--types: unknown type '", name, "'; known: f32, f64, bf16, f16, i32, i64, bool"));
  }
  return ir::elementTypeOf(builder.getContext(), *type);
}

mlir::Attribute attributeOf(mlir::Builder& builder, const OperatorAttribute& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    return builder.getBoolAttr(*flag);
  }
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return builder.getI64IntegerAttr(*integer);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return builder.getF64FloatAttr(*real);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return builder.getStringAttr(*text);
  }
  return builder.getDenseI64ArrayAttr(std::get<std::vector<int64_t>>(value));
}

// "16,32:32,16"; operators without operands have none.
absl::StatusOr<std::vector<Shape>> parseShapes(const std::string& flag, const std::string& text) {
  std::vector<Shape> shapes;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ':'))) {
    absl::StatusOr<Shape> shape = parseShape(part);
    if (!shape.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", std::string(shape.status().message())));
    }
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

}  // namespace

OperatorSite::OperatorSite() {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  context_.appendDialectRegistry(dialects);
  context_.loadAllAvailableDialects();
}

std::vector<std::string> OperatorSite::operators() {
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName name : context_.getRegisteredOperations()) {
    if (name.hasInterface<ir::OperatorInterface>()) {
      names.push_back(name.stripDialect().str());
    }
  }
  return names;
}

absl::StatusOr<mlir::Operation*> OperatorSite::make(const OperatorWords& words, OperatorRequest request) {
  const auto name = mlir::RegisteredOperationName::lookup("nn." + request.op, &context_);
  if (!name) {
    return absl::InvalidArgumentError(absl::StrCat("there is no operator '", request.op, "'; did you mean '",
                                                   nearestName(request.op, operators()), "'?"));
  }
  request.isSource = name->hasTrait<mlir::OpTrait::ZeroOperands>();
  for (const mlir::StringAttr attribute : name->getAttributeNames()) {
    request.declared.push_back(attribute.str());
  }
  if (!request.isSource || !words.shapes.empty()) {
    WEFT_ASSIGN_OR_RETURN(request.operands, parseShapes("shapes", words.shapes));
  }
  if (words.results) {
    WEFT_ASSIGN_OR_RETURN(request.results, parseShapes("results", *words.results));
  }
  WEFT_RETURN_IF_ERROR(complete(request));
  mlir::Builder builder(&context_);
  const std::vector<std::string> types = absl::StrSplit(words.types, ',', absl::SkipEmpty());
  llvm::SmallVector<mlir::Type> operands;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(mlir::Type element,
                          elementType(builder, i < types.size() ? types[i] : typeName(request.op, i)));
    operands.push_back(mlir::RankedTensorType::get(request.operands[i], element));
  }
  return create(request, operands);
}

absl::StatusOr<mlir::Operation*> OperatorSite::create(const OperatorRequest& request, mlir::TypeRange operands) {
  mlir::OpBuilder builder(&context_);
  module_ = mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module_->getBody());
  auto function =
      builder.create<mlir::func::FuncOp>(builder.getUnknownLoc(), "site", builder.getFunctionType(operands, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  mlir::NamedAttrList attrs;
  for (const auto& [name, value] : request.attributes) {
    attrs.set(name, attributeOf(builder, value));
  }
  // Only where types do not follow; elsewhere the shapes helped to find attributes and must come out again.
  const bool infers = mlir::RegisteredOperationName::lookup("nn." + request.op, &context_)
                          ->getInterface<mlir::InferTypeOpInterface>() != nullptr;
  llvm::SmallVector<mlir::Type> results;
  for (const Shape& shape : infers ? std::vector<Shape>() : request.results) {
    results.push_back(mlir::RankedTensorType::get(shape, builder.getF32Type()));
  }
  if (request.op == "constant") {
    attrs.set("value", mlir::DenseElementsAttr::get(mlir::cast<mlir::ShapedType>(results[0]), 0.0F));
  }
  if (request.op == "custom") {
    attrs.set("linear", builder.getArrayAttr({}));
  }
  std::string error;
  mlir::ScopedDiagnosticHandler handler(&context_, [&](mlir::Diagnostic& diagnostic) {
    error = diagnostic.str();
    return mlir::success();
  });
  mlir::FailureOr<mlir::Operation*> made =
      ir::createOperator(builder, builder.getUnknownLoc(), request.op, function.getArguments(), attrs, results);
  if (mlir::failed(made)) {
    return absl::InvalidArgumentError(error);
  }
  for (size_t r = 0; r < request.results.size() && r < (*made)->getNumResults(); ++r) {
    if (ir::shapeOf((*made)->getResult(r)) != request.results[r]) {
      return absl::InvalidArgumentError(absl::StrCat(
          request.op, ": result ", r, " has the shape [", absl::StrJoin(ir::shapeOf((*made)->getResult(r)), ","),
          "], --results says [", absl::StrJoin(request.results[r], ","), "]"));
    }
  }
  return *made;
}

}  // namespace weft::tools
