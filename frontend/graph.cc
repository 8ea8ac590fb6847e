#include "weft/graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"
#include "ir/nn/create.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/pipeline.h"
#include "planner/check_request.h"
#include "runtime/base/names.h"

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

Shape Tensor::shape() const {
  return valid() ? ir::shapeOf(graph_->value(*this)) : Shape();
}

int64_t Tensor::dim(int64_t d) const {
  const Shape sizes = shape();
  const int64_t index = d < 0 ? d + static_cast<int64_t>(sizes.size()) : d;
  return index >= 0 && index < static_cast<int64_t>(sizes.size()) ? sizes[index] : 0;
}

Type Tensor::type() const {
  return valid() ? GraphImpl::typeOf(graph_->value(*this)) : Type::kF32;
}

namespace {

mlir::Attribute splitsAttribute(GraphImpl& graph, const TensorSplits& splits, bool named) {
  llvm::SmallVector<mlir::Attribute> list;
  for (const Split& split : splits.splits()) {
    list.push_back(named ? mlir::Attribute(graph.builder.getStringAttr(split.names()))
                         : mlir::Attribute(graph.builder.getI64IntegerAttr(split.parts())));
  }
  return graph.builder.getArrayAttr(list);
}

// Checks one side of a strategy against the shapes; returns an error text or "".
std::string checkSplits(const std::vector<TensorSplits>& lists, mlir::ValueRange values, const char* what) {
  if (lists.size() > values.size()) {
    return absl::StrCat("shard: the strategy has ", lists.size(), " ", what, "s, the operator ", values.size());
  }
  for (size_t i = 0; i < lists.size(); ++i) {
    const Shape shape = ir::shapeOf(values[i]);
    if (!lists[i].splits().empty() && lists[i].splits().size() != shape.size()) {
      return absl::StrCat("shard: the strategy of ", what, " ", i, " has ", lists[i].splits().size(),
                          " entries, the tensor ", shape.size(),
                          " dimensions; write one entry per dimension, or none for what follows from the others");
    }
  }
  return "";
}

}  // namespace

namespace {

// What is wrong with a strategy for this operator; "" if nothing is.
std::string strategyError(mlir::Operation* op, const std::vector<TensorSplits>& in,
                          const std::vector<TensorSplits>& out) {
  std::string error = checkSplits(in, op->getOperands(), "operand");
  if (error.empty()) {
    error = checkSplits(out, op->getResults(), "result");
  }
  bool named = false;
  bool numbered = false;
  for (const auto* lists : {&in, &out}) {
    for (const TensorSplits& list : *lists) {
      for (const Split& split : list.splits()) {
        (split.named() ? named : numbered) = true;
        if (!split.named() && split.parts() < 1) {
          error =
              absl::StrCat("shard: a dimension cannot be split into ", split.parts(), " parts; write 1 for not split");
        }
      }
    }
  }
  if (error.empty() && !named && !numbered) {
    error = "shard: the strategy says nothing; give a list of splits for at least one operand or result";
  }
  if (error.empty() && named && numbered) {
    error = "shard: one strategy mixes numbers of parts and axis names; use one kind";
  }
  return error;
}

// A strategy without errors as the attribute that the compiler reads.
mlir::DictionaryAttr strategyAttribute(GraphImpl& graph, const std::vector<TensorSplits>& in,
                                       const std::vector<TensorSplits>& out) {
  const auto listed = [&](const std::vector<TensorSplits>& lists) {
    llvm::SmallVector<mlir::Attribute> attributes;
    for (const TensorSplits& list : lists) {
      const bool named = !list.splits().empty() && list.splits().front().named();
      attributes.push_back(splitsAttribute(graph, list, named));
    }
    return graph.builder.getArrayAttr(attributes);
  };
  NamedAttrList strategy;
  strategy.set("in", listed(in));
  if (!out.empty()) {
    strategy.set("out", listed(out));
  }
  return strategy.getDictionary(&graph.context);
}

// Errors about the strategy show the line of that call, all others that of the operator.
void setStrategy(GraphImpl& graph, mlir::Operation* op, mlir::DictionaryAttr strategy, SourceLine at) {
  op->setAttr(kStrategyAttr, strategy);
  op->setLoc(mlir::FusedLoc::get(&graph.context, {op->getLoc(), graph.location(at)}));
}

}  // namespace

Tensor Tensor::shard(std::initializer_list<TensorSplits> in, std::initializer_list<TensorSplits> out,
                     SourceLine at) const {
  if (!valid()) {
    return *this;
  }
  mlir::Operation* op = graph_->value(*this).getDefiningOp();
  if (op == nullptr) {
    return graph_->fail(at,
                        "shard: an input or parameter has no operator to shard; use its layout option or constrain");
  }
  const std::vector<TensorSplits> inLists(in);
  const std::vector<TensorSplits> outLists(out);
  if (const std::string error = strategyError(op, inLists, outLists); !error.empty()) {
    return graph_->fail(at, error);
  }
  const mlir::DictionaryAttr strategy = strategyAttribute(*graph_, inLists, outLists);
  if (op->hasAttr(kStrategyAttr) && op->getAttr(kStrategyAttr) != strategy) {
    return graph_->fail(at, "shard: this operator has another strategy already; an operator takes one");
  }
  setStrategy(*graph_, op, strategy, at);
  return *this;
}

Tensor Tensor::recomputed(SourceLine at) const {
  if (!valid()) {
    return *this;
  }
  mlir::Operation* op = graph_->value(*this).getDefiningOp();
  if (op == nullptr) {
    return graph_->fail(at, "recomputed: an input or parameter has no operator to run again; say it of what reads it");
  }
  op->setAttr(kUserRecomputeAttr, graph_->builder.getI64IntegerAttr(kRecomputedAlone));
  return *this;
}

Tensor Tensor::named(const std::string& name) const {
  if (valid()) {
    graph_->setName(*this, graph_->scoped(name));
  }
  return *this;
}

Scope::~Scope() {
  if (graph_ == nullptr) {
    return;
  }
  switch (kind_) {
    case Kind::kName:
      graph_->scopes.pop_back();
      break;
    case Kind::kStage:
      graph_->stages.pop_back();
      break;
    case Kind::kRecompute:
      graph_->recomputes.pop_back();
      break;
    case Kind::kModule:
      graph_->modules.pop_back();
      break;
  }
}

Graph::Graph() : impl_(std::make_unique<GraphImpl>()) {}
Graph::~Graph() = default;

Tensor Graph::input(const std::string& name, const Shape& shape, Type type, const InputOptions& options,
                    SourceLine at) {
  if (options.batchDim < -1 || options.batchDim >= std::max<int64_t>(static_cast<int64_t>(shape.size()), 1)) {
    return impl_->fail(at, absl::StrCat("input '", name, "' [", absl::StrJoin(shape, ", "), "] has no dimension ",
                                        options.batchDim, " to carry the batch; give one it has, or -1 for none"));
  }
  NamedAttrList attrs;
  attrs.set(kKindAttr, impl_->builder.getStringAttr("input"));
  if (options.batchDim != 0) {
    attrs.set(kBatchDimAttr, impl_->builder.getI64IntegerAttr(options.batchDim));
  }
  if (!options.layout.empty()) {
    attrs.set(kLayoutAttr, impl_->builder.getStringAttr(options.layout));
  }
  return impl_->addArgument(at, name, shape, type, attrs);
}

Tensor Graph::parameter(const std::string& name, const Shape& shape, const Init& init, const ParameterOptions& options,
                        SourceLine at) {
  mlir::OpBuilder& builder = impl_->builder;
  if (const absl::Status known = checkInitial(init.distribution, init.a, init.b); !known.ok()) {
    return impl_->fail(at, absl::StrCat("parameter '", name, "': ", std::string(known.message())));
  }
  NamedAttrList spec;
  spec.set("distribution", builder.getStringAttr(init.distribution));
  spec.set("a", builder.getF64FloatAttr(init.a));
  spec.set("b", builder.getF64FloatAttr(init.b));
  NamedAttrList attrs;
  attrs.set(kKindAttr, builder.getStringAttr("parameter"));
  attrs.set(kInitAttr, spec.getDictionary(&impl_->context));
  if (options.frozen) {
    attrs.set(kFrozenAttr, builder.getUnitAttr());
  }
  if (!options.layout.empty()) {
    attrs.set(kLayoutAttr, builder.getStringAttr(options.layout));
  }
  if (!options.fileShape.empty()) {
    int64_t elements = 1;
    int64_t fileElements = 1;
    for (const int64_t size : shape) {
      elements *= size;
    }
    for (const int64_t size : options.fileShape) {
      fileElements *= size;
    }
    if (elements != fileElements) {
      return impl_->fail(
          at, absl::StrCat("parameter '", name, "' has ", elements, " elements, its file shape ", fileElements));
    }
    attrs.set(kFileShapeAttr, builder.getDenseI64ArrayAttr(options.fileShape));
  }
  return impl_->addArgument(at, impl_->scoped(name), shape, impl_->parameterType, attrs);
}

namespace {

struct WantedState {
  SourceLine at;
  const std::string& name;
  const Shape& shape;
  Type type;
  double first;
};

// The tensor that the graph has under the name of a state, if it is that state.
Tensor knownState(GraphImpl& graph, const Tensor& known, const WantedState& wanted) {
  const unsigned index = mlir::cast<mlir::BlockArgument>(graph.value(known)).getArgNumber();
  const Argument argument = argumentAt(graph.step, index);
  const auto init = graph.step.getArgAttrOfType<mlir::DictionaryAttr>(index, kInitAttr);
  const auto first = init ? init.getAs<mlir::FloatAttr>("a") : mlir::FloatAttr();
  if (argument.kind == "state" && known.shape() == wanted.shape && known.type() == wanted.type && first &&
      first.getValueAsDouble() == wanted.first) {
    return known;
  }
  const std::string from = argument.kind == "state" && first ? absl::StrCat(" from ", first.getValueAsDouble()) : "";
  return graph.fail(
      wanted.at,
      absl::StrCat("state '", wanted.name, "': the graph has a", argument.kind == "input" ? "n " : " ", argument.kind,
                   " of this name, ", describe(known), from, ", and no ", typeName(wanted.type), " [",
                   absl::StrJoin(wanted.shape, ", "), "] from ", wanted.first, "; give it another name"));
}

}  // namespace

Tensor Graph::state(const std::string& name, const Shape& shape, Type type, double first, SourceLine at) {
  if (const absl::Status finite = checkInitial("constant", first, 0); !finite.ok()) {
    return impl_->fail(at, absl::StrCat("state '", name, "': ", std::string(finite.message())));
  }
  if (const Tensor known = impl_->findArgument(name); known.id() >= 0) {
    return knownState(*impl_, known, {at, name, shape, type, first});
  }
  NamedAttrList spec;
  spec.set("distribution", impl_->builder.getStringAttr("constant"));
  spec.set("a", impl_->builder.getF64FloatAttr(first));
  spec.set("b", impl_->builder.getF64FloatAttr(0.0));
  NamedAttrList attrs;
  attrs.set(kKindAttr, impl_->builder.getStringAttr("state"));
  attrs.set(kInitAttr, spec.getDictionary(&impl_->context));
  return impl_->addArgument(at, name, shape, type, attrs);
}

void Graph::assign(const Tensor& target, const Tensor& value, const AssignOptions& options, SourceLine at) {
  impl_->assign(at, target, value, options);
}

void Graph::update(const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients,
                   const Optimizer& optimizer, SourceLine at) {
  absl::Status known = checkOptimizer(optimizer);
  if (known.ok() && optimizer.setting("lr") == 0 && optimizer.settings.empty()) {
    known = absl::InvalidArgumentError(
        absl::StrCat("optimizer ", optimizer.kind, " moves nothing; take another one, or Graph::assign"));
  }
  if (known.ok() && parameters.size() != gradients.size()) {
    known = absl::InvalidArgumentError(absl::StrCat(parameters.size(), " parameters and ", gradients.size(),
                                                    " gradients; give one gradient for each"));
  }
  if (!known.ok()) {
    impl_->fail(at, absl::StrCat("update: ", std::string(known.message())));
    return;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    impl_->update(at, parameters[i], gradients[i], optimizer);
  }
}

namespace {

std::string sizesError(const char* function, const Shape& shape) {
  const std::string error = GraphImpl::sizesError(shape);
  return error.empty() ? "" : absl::StrCat(function, ": shape [", absl::StrJoin(shape, ", "), "] ", error);
}

std::string valueError(const char* function, double value, Type type) {
  const std::string error = whyNoElement(value, type);
  return error.empty() ? "" : absl::StrCat(function, ": ", value, " ", error, "; write another number");
}

}  // namespace

Tensor Graph::full(const Shape& shape, double value, Type type, SourceLine at) {
  if (const std::string error = sizesError("full", shape) + valueError("full", value, type); !error.empty()) {
    return impl_->fail(at, error);
  }
  NamedAttrList attrs;
  attrs.set("value", impl_->builder.getF64FloatAttr(value));
  const mlir::Type result = RankedTensorType::get(shape, impl_->elementType(type));
  return impl_->create({at, "full", "fill"}, {}, attrs, result);
}

namespace {

template <typename T>
mlir::DenseElementsAttr elements(RankedTensorType type, const std::vector<double>& values) {
  llvm::SmallVector<T> converted;
  converted.reserve(values.size());
  for (const double value : values) {
    converted.push_back(static_cast<T>(value));
  }
  return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<T>(converted));
}

mlir::DenseElementsAttr elementsOf(RankedTensorType type, const std::vector<double>& values, Type element) {
  switch (element) {
    case Type::kF32:
      return elements<float>(type, values);
    case Type::kF64:
      return elements<double>(type, values);
    case Type::kI32:
      return elements<int32_t>(type, values);
    case Type::kI64:
      return elements<int64_t>(type, values);
    case Type::kBool:
      return elements<bool>(type, values);
  }
}

}  // namespace

Tensor GraphImpl::constant(SourceLine at, const Shape& shape, const std::vector<double>& values, Type type) {
  std::string error = weft::sizesError("constant", shape);
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  if (error.empty() && static_cast<int64_t>(values.size()) != count) {
    error = absl::StrCat("constant: ", values.size(), " values for the shape [", absl::StrJoin(shape, ", "), "] of ",
                         count, " elements; give one value for each");
  }
  for (size_t i = 0; error.empty() && i < values.size(); ++i) {
    error = valueError("constant", values[i], type);
  }
  if (!error.empty()) {
    return fail(at, error);
  }
  const RankedTensorType result = RankedTensorType::get(shape, elementType(type));
  NamedAttrList attrs;
  attrs.set("value", elementsOf(result, values, type));
  return create({at, "constant", "constant"}, {}, attrs, result);
}

Tensor Graph::constant(const Shape& shape, const std::vector<double>& values, Type type, SourceLine at) {
  return impl_->constant(at, shape, values, type);
}

Tensor Graph::iota(const Shape& shape, int dim, Type type, SourceLine at) {
  if (const std::string error = sizesError("iota", shape); !error.empty()) {
    return impl_->fail(at, error);
  }
  NamedAttrList attrs;
  attrs.set("dim", impl_->builder.getI64IntegerAttr(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim));
  const mlir::Type result = RankedTensorType::get(shape, impl_->elementType(type));
  return impl_->create({at, "iota", "iota"}, {}, attrs, result);
}

void Graph::setParameterType(Type type) {
  impl_->parameterType = type;
}

Scope Graph::scope(const std::string& name) {
  impl_->scopes.push_back(name);
  return Scope(impl_.get(), Scope::Kind::kName);
}

Scope Graph::stage(int number) {
  impl_->stages.push_back(number);
  return Scope(impl_.get(), Scope::Kind::kStage);
}

Scope Graph::recompute() {
  impl_->recomputes.push_back(impl_->recomputeScopes++);
  return Scope(impl_.get(), Scope::Kind::kRecompute);
}

void Graph::shard(const ShardingTable& table, SourceLine at) {
  std::set<std::string> names;
  std::map<mlir::Operation*, const ShardingRule*> chosen;
  std::set<const ShardingRule*> used;
  for (mlir::Operation& op : impl_->step.getBody().front()) {
    const auto name = op.getAttrOfType<mlir::StringAttr>(kNameAttr);
    if (!name) {
      continue;
    }
    names.insert(name.str());
    for (const ShardingRule& rule : table) {
      if (globMatches(rule.operators, name.str())) {
        chosen[&op] = &rule;
        used.insert(&rule);
      }
    }
  }
  for (const ShardingRule& rule : table) {
    if (used.count(&rule) == 0) {
      const std::string nearest = nearestName(rule.operators, {names.begin(), names.end()});
      impl_->fail(at, absl::StrCat("shard: no operator fits '", rule.operators, "'",
                                   nearest.empty() ? "; give operators names with Tensor::named"
                                                   : "; the nearest is '" + nearest + "'"));
      return;
    }
  }
  for (const auto& [op, rule] : chosen) {
    if (const std::string error = strategyError(op, rule->in, rule->out); !error.empty()) {
      impl_->fail(at, absl::StrCat(error, " (row '", rule->operators, "' of the table)"));
      return;
    }
    setStrategy(*impl_, op, strategyAttribute(*impl_, rule->in, rule->out), at);
  }
}

void Graph::output(const std::string& name, const Tensor& value, SourceLine at) {
  impl_->addOutput(at, name, value);
}

absl::Status Graph::status() const {
  return impl_->status;
}

std::string Graph::print() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  impl_->module->print(stream);
  return text;
}

}  // namespace weft
