#include "frontend/graph_impl.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/call.h"
#include "ir/nn/create.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/pipeline.h"

namespace weft {

using mlir::NamedAttrList;
using mlir::RankedTensorType;

GraphImpl::GraphImpl() : builder(&context) {
  mlir::DialectRegistry registry;
  registerWeftDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  step = builder.create<mlir::func::FuncOp>(builder.getUnknownLoc(), "step", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(step.addEntryBlock());
  auto terminator = builder.create<mlir::func::ReturnOp>(builder.getUnknownLoc());
  builder.setInsertionPoint(terminator);
}

mlir::Location GraphImpl::location(SourceLine at) {
  return mlir::FileLineColLoc::get(&context, at.file, static_cast<unsigned>(at.line), 1);
}

Tensor GraphImpl::fail(SourceLine at, const std::string& text) {
  if (status.ok()) {
    std::string calls;
    for (const std::string& module : modules) {
      absl::StrAppend(&calls, module, ": ");
    }
    status = absl::InvalidArgumentError(absl::StrCat(at.file, ":", at.line, ": error: ", calls, text));
  }
  return Tensor(this, -1);
}

std::string GraphImpl::sizesError(const Shape& shape) {
  constexpr int64_t kMostElements = int64_t{1} << 46;
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 1) {
      return absl::StrCat("has a dimension of size ", size, "; sizes are at least 1");
    }
    if (size > kMostElements / elements) {
      return absl::StrCat("has more than ", kMostElements, " elements");
    }
    elements *= size;
  }
  return "";
}

std::string GraphImpl::scoped(const std::string& name) const {
  std::string full;
  for (const std::string& scope : scopes) {
    full += scope + ".";
  }
  return full + name;
}

void GraphImpl::setName(const Tensor& tensor, const std::string& name) {
  if (mlir::Operation* op = value(tensor).getDefiningOp()) {
    op->setAttr(kNameAttr, builder.getStringAttr(name));
  }
}

void GraphImpl::discardLast() {
  mlir::Operation* op = values_.back().getDefiningOp();
  values_.resize(values_.size() - op->getNumResults());
  op->erase();
}

std::string GraphImpl::placeOf(const Tensor& tensor) const {
  const auto place = mlir::dyn_cast<mlir::FileLineColLoc>(value(tensor).getLoc());
  return place ? absl::StrCat(place.getFilename().str(), ":", place.getLine()) : "an unknown place";
}

GraphImpl::Elsewhere::Elsewhere(GraphImpl& graph, mlir::OpBuilder& builder)
    : graph_(graph), builder_(graph.builder), values_(graph.values_.size()), status_(graph.status) {
  graph.builder = builder;
  graph.scopes.swap(scopes_);
  graph.stages.swap(stages_);
  graph.recomputes.swap(recomputes_);
}

GraphImpl::Elsewhere::~Elsewhere() {
  graph_.builder = builder_;
  graph_.values_.resize(values_);
  graph_.status = status_;
  graph_.scopes.swap(scopes_);
  graph_.stages.swap(stages_);
  graph_.recomputes.swap(recomputes_);
}

Tensor GraphImpl::add(mlir::Value value) {
  values_.push_back(value);
  return Tensor(this, static_cast<int>(values_.size()) - 1);
}

mlir::Type GraphImpl::elementType(Type type) {
  switch (type) {
    case Type::kF32:
      return builder.getF32Type();
    case Type::kF64:
      return builder.getF64Type();
    case Type::kI32:
      return builder.getI32Type();
    case Type::kI64:
      return builder.getI64Type();
    case Type::kBool:
      return builder.getI1Type();
  }
  return builder.getF32Type();
}

Type GraphImpl::typeOf(mlir::Value value) {
  const mlir::Type type = mlir::cast<RankedTensorType>(value.getType()).getElementType();
  if (type.isF64()) {
    return Type::kF64;
  }
  return type.isInteger(1)    ? Type::kBool
         : type.isInteger(32) ? Type::kI32
         : type.isInteger(64) ? Type::kI64
                              : Type::kF32;
}

namespace {

// A check of the dialect says "nn.matmul (3): "; the user knows the function he called.
std::string inWordsOfTheApi(const std::string& function, const std::string& text) {
  const size_t check = text.rfind("nn.", 0) == 0 ? text.find("): ") : std::string::npos;
  return absl::StrCat(function, ": ", check == std::string::npos ? text : text.substr(check + 3));
}

}  // namespace

std::vector<Tensor> GraphImpl::createAll(const OperatorName& name, const std::vector<Tensor>& operands,
                                         NamedAttrList attributes, mlir::TypeRange results) {
  std::vector<mlir::Value> values;
  for (const Tensor& operand : operands) {
    values.push_back(value(operand));
  }
  std::string text;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    text = diagnostic.str();
    return mlir::success();
  });
  if (!scopes.empty()) {
    attributes.set(kNameAttr, builder.getStringAttr(scoped(name.mnemonic)));
  }
  if (!stages.empty()) {
    attributes.set(kUserStageAttr, builder.getI64IntegerAttr(stages.back()));
  }
  if (!recomputes.empty()) {
    attributes.set(kUserRecomputeAttr, builder.getI64IntegerAttr(recomputes.back()));
  }
  mlir::FailureOr<mlir::Operation*> op =
      ir::createOperator(builder, location(name.at), name.mnemonic, values, attributes, results);
  if (mlir::failed(op)) {
    return {fail(name.at, inWordsOfTheApi(name.function, text))};
  }
  std::vector<Tensor> made;
  for (mlir::Value result : (*op)->getResults()) {
    made.push_back(add(result));
  }
  return made;
}

Tensor GraphImpl::create(const OperatorName& name, const std::vector<Tensor>& operands, NamedAttrList attributes,
                         mlir::TypeRange results) {
  return createAll(name, operands, std::move(attributes), results).front();
}

Tensor GraphImpl::findArgument(const std::string& name) {
  for (const Argument& argument : argumentsOf(step)) {
    if (argument.name == name) {
      const mlir::Value wanted = step.getArgument(argument.index);
      for (size_t i = 0; i < values_.size(); ++i) {
        if (values_[i] == wanted) {
          return Tensor(this, static_cast<int>(i));
        }
      }
    }
  }
  return Tensor(this, -1);
}

Tensor GraphImpl::addArgument(SourceLine at, const std::string& name, const Shape& shape, Type type,
                              NamedAttrList attrs) {
  if (name.empty()) {
    return fail(at, "a tensor needs a name");
  }
  if (const Tensor known = findArgument(name); known.id() >= 0) {
    return fail(at, absl::StrCat("there is a tensor named '", name, "' already, made at ", placeOf(known),
                                 "; names are unique in a graph: give another name, or a scope (Graph::scope); to "
                                 "share a parameter, use the tensor or call the module again"));
  }
  if (isOutput(name)) {
    return fail(at, absl::StrCat("there is an output named '", name, "' already; names are unique in a graph"));
  }
  if (const std::string error = sizesError(shape); !error.empty()) {
    return fail(at, absl::StrCat("'", name, "' ", error));
  }
  attrs.set(kNameAttr, builder.getStringAttr(name));
  return add(weft::addArgument(step, RankedTensorType::get(shape, elementType(type)), attrs, location(at)));
}

void GraphImpl::addOutput(SourceLine at, const std::string& name, const Tensor& value) {
  if (!value.valid() || value.graph() != this) {
    fail(at, absl::StrCat("output '", name, "' is no tensor of this graph"));
    return;
  }
  if (name.empty() || isOutput(name)) {
    fail(at, name.empty() ? "an output needs a name" : absl::StrCat("there is an output named '", name, "' already"));
    return;
  }
  if (findArgument(name).id() >= 0) {
    fail(at, absl::StrCat("output '", name, "': the graph has an input, parameter or state of this name, by which the ",
                          "host would read both; give the output another"));
    return;
  }
  outputs.emplace_back(name, value);
}

bool GraphImpl::isOutput(const std::string& name) const {
  return std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) { return output.first == name; });
}

std::string GraphImpl::replacementError(const Argument& named) {
  if (named.kind != "state" && named.kind != "parameter") {
    return absl::StrCat(
        named.name.empty() ? "the value of an operator" : "'" + named.name + "'",
        " is no state and no parameter; only what Graph::state or Graph::parameter made can be replaced");
  }
  const std::string what = absl::StrCat(named.kind, " '", named.name, "' ");
  const auto isIt = [&](const auto& known) { return known.argument == named.index; };
  if (llvm::any_of(assignments, isIt) || llvm::any_of(updates, isIt)) {
    return absl::StrCat(what, "is replaced twice in one step; combine both values first");
  }
  return step.getArgAttr(named.index, kFrozenAttr) ? absl::StrCat(what, "is frozen; leave that out, or the update")
                                                   : "";
}

void GraphImpl::assign(SourceLine at, const Tensor& target, const Tensor& changed, const AssignOptions& options) {
  if (target.graph() != this || changed.graph() != this || !target.valid() || !changed.valid()) {
    fail(at, "assign was given a tensor that belongs to no graph or to another one");
    return;
  }
  const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value(target));
  const Argument named = argument ? argumentAt(step, argument.getArgNumber()) : Argument();
  std::string error = replacementError(named);
  if (error.empty() && value(target).getType() != value(changed).getType()) {
    error = absl::StrCat(named.kind, " '", named.name, "' is ", describe(target), ", the new value ", describe(changed),
                         "; both must agree");
  }
  if (error.empty() && options.alsoForward && named.kind == "parameter") {
    error = absl::StrCat("parameter '", named.name,
                         "' with alsoForward; a forward program changes no parameters: keep it in a state");
  }
  if (!error.empty()) {
    fail(at, "assign: " + error);
    return;
  }
  assignments.push_back({named.index, changed, options});
}

void GraphImpl::update(SourceLine at, const Tensor& parameter, const Tensor& gradient, const Optimizer& optimizer) {
  if (parameter.graph() != this || gradient.graph() != this || !parameter.valid() || !gradient.valid()) {
    fail(at, "update was given a tensor that belongs to no graph or to another one");
    return;
  }
  const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value(parameter));
  const Argument named = argument ? argumentAt(step, argument.getArgNumber()) : Argument();
  std::string error = replacementError(named);
  if (error.empty() && named.kind != "parameter") {
    error = absl::StrCat("'", named.name, "' is a ", named.kind, "; an optimizer moves parameters: assign it");
  }
  if (error.empty() && value(parameter).getType() != value(gradient).getType()) {
    error = absl::StrCat("parameter '", named.name, "' is ", describe(parameter), ", its gradient ", describe(gradient),
                         "; both must agree");
  }
  if (error.empty() && optimizer.groupOf(named.name).frozen) {
    error = absl::StrCat("parameter '", named.name, "' is in a frozen group of the optimizer; leave one of them out");
  }
  if (!error.empty()) {
    fail(at, "update: " + error);
    return;
  }
  updates.push_back({named.index, gradient, optimizer});
}

}  // namespace weft
