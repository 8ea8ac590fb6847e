#include "weft/own_operator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"
#include "ir/layout/rule.h"
#include "ir/nn/infer.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "runtime/base/status.h"

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

// An attribute that would stand in the place of a fact; "" if none does.
std::string attributeError(const AttributeMap& attributes) {
  for (const auto& [name, value] : attributes) {
    const bool isFact = llvm::is_contained(ir::nn::CustomOp::getAttributeNames(), name) || name == kInPlaceAttribute ||
                        name == kScratchAttribute;
    if (isFact || name.empty() || name.find('.') != std::string::npos) {
      return absl::StrCat("an attribute cannot be named '", name, "'; take another name",
                          isFact ? ", that one says a fact of the operator" : ", without '.'");
    }
  }
  return "";
}

// Facts about what the operator does not have; "" if there are none.
std::string factsError(const OwnOperator& own, const std::vector<ValueType>& operands,
                       const std::vector<ValueType>& results) {
  const auto counts = absl::StrCat("it has ", operands.size(), " operands and ", results.size(), " results");
  for (const std::vector<int64_t>& set : own.linear) {
    for (const int64_t operand : set) {
      if (operand < 0 || operand >= static_cast<int64_t>(operands.size())) {
        return absl::StrCat("it is said to be linear in operand ", operand, "; ", counts);
      }
    }
  }
  for (const OwnOrigin& origin : own.origins) {
    const std::vector<ValueType>& values = origin.ofResult ? results : operands;
    if (origin.index >= values.size() || origin.dim >= values[origin.index].shape.size()) {
      return absl::StrCat("its kernel asks for the origin of dimension ", origin.dim, " of ",
                          origin.ofResult ? "result " : "operand ", origin.index, ", which there is not; ", counts);
    }
  }
  for (const InPlacePair& pair : own.inPlace) {
    if (pair.input >= operands.size() || pair.output >= results.size()) {
      return absl::StrCat("result ", pair.output, " is said to lie in the memory of operand ", pair.input, "; ",
                          counts);
    }
  }
  if (own.padFill.size() > operands.size() || own.reduce.size() > results.size()) {
    return absl::StrCat("it lists ", own.padFill.size(), " pads and ", own.reduce.size(), " reductions; ", counts);
  }
  if (own.scratchBytes < 0 || own.scratchBytesPerElement < 0) {
    return absl::StrCat("its scratch memory is ", own.scratchBytes, " bytes and ", own.scratchBytesPerElement,
                        " for each element; neither can be negative");
  }
  return "";
}

// What the IR says of it (ir/nn/custom.td).
NamedAttrList factsOf(mlir::Builder& builder, const OwnOperator& own, const std::string& rule) {
  NamedAttrList attrs;
  llvm::SmallVector<mlir::Attribute> linear;
  for (const std::vector<int64_t>& set : own.linear) {
    linear.push_back(builder.getDenseI64ArrayAttr(set));
  }
  attrs.set("kind", builder.getStringAttr(own.name));
  attrs.set("factors", builder.getStringAttr(rule));
  attrs.set("linear", builder.getArrayAttr(linear));
  attrs.set("work", builder.getF64FloatAttr(own.work));
  llvm::SmallVector<int64_t> origins;
  for (const OwnOrigin& origin : own.origins) {
    origins.append({origin.ofResult ? 1 : 0, static_cast<int64_t>(origin.index), static_cast<int64_t>(origin.dim)});
  }
  llvm::SmallVector<int64_t> inPlace;
  for (const InPlacePair& pair : own.inPlace) {
    inPlace.append({static_cast<int64_t>(pair.input), static_cast<int64_t>(pair.output)});
  }
  llvm::SmallVector<mlir::Attribute> fills;
  for (const std::optional<double>& fill : own.padFill) {
    fills.push_back(fill ? mlir::Attribute(builder.getF64FloatAttr(*fill)) : builder.getUnitAttr());
  }
  llvm::SmallVector<mlir::Attribute> reductions;
  for (const ReduceKind kind : own.reduce) {
    reductions.push_back(builder.getStringAttr(reduceKindName(kind)));
  }
  const auto set = [&](const char* name, bool isThere, mlir::Attribute value) {
    if (isThere) {
      attrs.set(name, value);
    }
  };
  set("origins", !origins.empty(), builder.getDenseI64ArrayAttr(origins));
  set("pad_fill", !fills.empty(), builder.getArrayAttr(fills));
  set("reduce", !reductions.empty(), builder.getArrayAttr(reductions));
  set(kInPlaceAttribute, !inPlace.empty(), builder.getDenseI64ArrayAttr(inPlace));
  set(kScratchAttribute, own.scratchBytes > 0 || own.scratchBytesPerElement > 0,
      builder.getDenseI64ArrayAttr({own.scratchBytes, own.scratchBytesPerElement}));
  return attrs;
}

// Writes the gradient of one call as a function of the module.
class GradientWriter {
 public:
  GradientWriter(GraphImpl& graph, const OwnOperator& own, const AttributeMap& attributes)
      : graph_(graph), own_(own), attributes_(attributes) {}

  // The function, with the operands whose gradients it returns; an error in the user's function.
  absl::StatusOr<GraphImpl::OwnGradientFunction> write(SourceLine at, mlir::TypeRange operands,
                                                       mlir::TypeRange results) {
    llvm::SmallVector<mlir::Type> types(operands);
    llvm::append_range(types, results);
    llvm::copy_if(results, std::back_inserter(types), isFloat);
    mlir::OpBuilder builder(&graph_.context);
    builder.setInsertionPointToEnd(graph_.module->getBody());
    auto function =
        builder.create<mlir::func::FuncOp>(graph_.location(at), freeName(), builder.getFunctionType(types, {}));
    function.setPrivate();
    builder.setInsertionPointToStart(function.addEntryBlock());
    builder.setInsertionPoint(builder.create<mlir::func::ReturnOp>(function.getLoc()));
    absl::StatusOr<llvm::SmallVector<int64_t>> of = fill(function, builder, operands, results);
    if (!of.ok()) {
      function.erase();
      return of.status();
    }
    return GraphImpl::OwnGradientFunction{function.getName().str(), {of->begin(), of->end()}};
  }

 private:
  static bool isFloat(mlir::Type type) {
    return mlir::isa<mlir::FloatType>(mlir::cast<RankedTensorType>(type).getElementType());
  }

  std::string freeName() const {
    std::string name = own_.name + "_gradient";
    for (int number = 2; graph_.module->lookupSymbol(name); ++number) {
      name = absl::StrCat(own_.name, "_gradient_", number);
    }
    return name;
  }

  // Calls the user's function on the arguments and returns what it gives.
  absl::StatusOr<llvm::SmallVector<int64_t>> fill(mlir::func::FuncOp function, mlir::OpBuilder& builder,
                                                  mlir::TypeRange operands, mlir::TypeRange results) {
    const GraphImpl::Elsewhere elsewhere(graph_, builder);
    OwnGradient given;
    given.attributes = attributes_;
    unsigned next = 0;
    const auto argument = [&] { return graph_.add(function.getArgument(next++)); };
    for (size_t i = 0; i < operands.size(); ++i) {
      given.operands.push_back(argument());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      given.results.push_back(argument());
    }
    for (const mlir::Type type : results) {
      given.resultGradients.push_back(isFloat(type) ? argument() : Tensor());
    }
    const size_t outputs = graph_.outputs.size() + graph_.assignments.size();
    const std::vector<Tensor> gradients = own_.gradient(given);
    if (graph_.outputs.size() + graph_.assignments.size() != outputs) {
      return absl::InvalidArgumentError(
          "its gradient inspects a value or assigns a state, which only the program around it can");
    }
    WEFT_RETURN_IF_ERROR(check(function, gradients, operands));
    llvm::SmallVector<int64_t> of;
    llvm::SmallVector<mlir::Value> returned;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].valid()) {
        of.push_back(static_cast<int64_t>(i));
        returned.push_back(graph_.value(gradients[i]));
      }
    }
    function.getBody().front().getTerminator()->setOperands(returned);
    refreshType(function);
    return of;
  }

  absl::Status check(mlir::func::FuncOp function, const std::vector<Tensor>& gradients, mlir::TypeRange operands) {
    if (!graph_.status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("its gradient: ", std::string(graph_.status.message())));
    }
    if (gradients.size() != operands.size()) {
      return absl::InvalidArgumentError(absl::StrCat("its gradient gives ", gradients.size(), " tensors for ",
                                                     operands.size(),
                                                     " operands; give one for each, not valid where there is none"));
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].valid()) {
        continue;
      }
      if (gradients[i].graph() != &graph_ || isFromElsewhere(function, graph_.value(gradients[i]))) {
        return readsOthers();
      }
      const mlir::Value gradient = graph_.value(gradients[i]);
      if (!ir::sameShapesAndElements(gradient.getType(), operands[i])) {
        return absl::InvalidArgumentError(
            absl::StrCat("its gradient of operand ", i, " is ", ir::printType(gradient), ", the operand ",
                         ir::printType(function.getArgument(static_cast<unsigned>(i))), "; both must agree"));
      }
    }
    const bool reads = function
                           .walk([&](mlir::Operation* op) {
                             return llvm::any_of(op->getOperands(),
                                                 [&](mlir::Value value) { return isFromElsewhere(function, value); })
                                        ? mlir::WalkResult::interrupt()
                                        : mlir::WalkResult::advance();
                           })
                           .wasInterrupted();
    return reads ? readsOthers() : absl::OkStatus();
  }

  static bool isFromElsewhere(mlir::func::FuncOp function, mlir::Value value) {
    return value.getParentRegion() != &function.getBody();
  }

  static absl::Status readsOthers() {
    return absl::InvalidArgumentError(
        "its gradient reads a tensor that is none of its operands, results and their gradients; make that tensor an "
        "operand");
  }

  GraphImpl& graph_;
  const OwnOperator& own_;
  const AttributeMap& attributes_;
};

// The function for this call: that of an equal one, or a new one. An operator that stands in its own gradient gets
// none there: no second gradient is asked for.
absl::Status addGradient(GraphImpl& graph, const OwnOperator& own, SourceLine at, const AttributeMap& attributes,
                         mlir::TypeRange operands, mlir::TypeRange results, NamedAttrList& attrs) {
  if (!own.gradient) {
    return absl::OkStatus();
  }
  std::string key;
  llvm::raw_string_ostream(key) << own.name << " " << graph.builder.getFunctionType(operands, results) << " "
                                << attrs.getDictionary(&graph.context);
  const auto [known, isNew] = graph.ownGradients.try_emplace(key, std::nullopt);
  if (isNew) {
    absl::StatusOr<GraphImpl::OwnGradientFunction> made =
        GradientWriter(graph, own, attributes).write(at, operands, results);
    if (!made.ok()) {
      graph.ownGradients.erase(key);
      return made.status();
    }
    known->second = *std::move(made);
  }
  if (known->second) {
    attrs.set("gradient", mlir::FlatSymbolRefAttr::get(&graph.context, known->second->name));
    attrs.set("gradient_of", graph.builder.getDenseI64ArrayAttr(known->second->of));
  }
  return absl::OkStatus();
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
  for (const std::string& error : {attributeError(attributes), factsError(own, types, *results)}) {
    if (!error.empty()) {
      return {call.fail(error)};
    }
  }
  NamedAttrList attrs = factsOf(call.builder(), own, rule);
  for (const auto& [name, value] : attributes) {
    attrs.set(name, attributeOf(call.builder(), value));
  }
  llvm::SmallVector<mlir::Type> made;
  for (const ValueType& type : *results) {
    if (const std::string error = GraphImpl::sizesError(type.shape); !error.empty()) {
      return {call.fail(absl::StrCat("a result ", error))};
    }
    made.push_back(RankedTensorType::get(type.shape, graph.elementType(type.type)));
  }
  llvm::SmallVector<mlir::Type> given;
  for (const Tensor& operand : operands) {
    given.push_back(graph.value(operand).getType());
  }
  if (const absl::Status status = addGradient(graph, own, at, attributes, given, made, attrs); !status.ok()) {
    return {call.fail(std::string(status.message()))};
  }
  return call.makeAll("custom", attrs, made);
}

}  // namespace weft
