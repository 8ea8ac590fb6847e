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
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "planner/check_request.h"
#include "planner/graph/program_graph.h"
#include "runtime/base/names.h"

namespace weft {

using mlir::NamedAttrList;
using mlir::RankedTensorType;

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
