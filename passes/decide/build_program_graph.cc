#include "passes/decide/build_program_graph.h"

#include <list>
#include <optional>

#include "ir/nn/kernel_attributes.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "mlir/IR/IRMapping.h"
#include "planner/graph/flops.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

TensorType typeOf(Value value) {
  return {ir::shapeOf(value), ir::dtypeOf(value.getType()).value_or(DType::kF32)};
}

std::string textOf(mlir::Attribute attr) {
  auto text = dyn_cast_or_null<StringAttr>(attr);
  return text ? text.getValue().str() : "";
}

std::optional<int64_t> integerOf(mlir::Attribute attr) {
  auto number = dyn_cast_or_null<IntegerAttr>(attr);
  return number ? std::optional<int64_t>(number.getInt()) : std::nullopt;
}

// The gates have checked the words.
Phase phaseOf(Operation* op) {
  const std::string text = textOf(op->getAttr(kPhaseAttr));
  return text == phaseName(Phase::kBackward) ? Phase::kBackward
         : text == phaseName(Phase::kUpdate) ? Phase::kUpdate
                                             : Phase::kForward;
}

ArgumentKind argumentKindOf(const std::string& text) {
  return text == argumentKindName(ArgumentKind::kParameter) ? ArgumentKind::kParameter
         : text == argumentKindName(ArgumentKind::kState)   ? ArgumentKind::kState
                                                            : ArgumentKind::kInput;
}

// Of each of `count` operands or results, without the defaults at the end.
template <typename Fact, typename FactOf>
std::vector<Fact> listed(unsigned count, const Fact& otherwise, const FactOf& factOf) {
  std::vector<Fact> facts;
  for (unsigned i = 0; i < count; ++i) {
    facts.push_back(factOf(i));
  }
  while (!facts.empty() && facts.back() == otherwise) {
    facts.pop_back();
  }
  return facts;
}

// One list of a strategy: for each tensor splits or axis names of its dimensions.
void readLists(mlir::Attribute attr, bool byName, std::vector<Shape>& splits,
               std::vector<std::vector<std::string>>& names) {
  auto outer = dyn_cast_or_null<ArrayAttr>(attr);
  for (mlir::Attribute inner : outer ? outer.getValue() : ArrayRef<mlir::Attribute>()) {
    auto list = dyn_cast<ArrayAttr>(inner);
    auto dense = dyn_cast<DenseI64ArrayAttr>(inner);
    Shape numbers = dense ? Shape(dense.asArrayRef().begin(), dense.asArrayRef().end()) : Shape();
    std::vector<std::string> words;
    for (mlir::Attribute value : list ? list.getValue() : ArrayRef<mlir::Attribute>()) {
      words.push_back(textOf(value));
      numbers.push_back(integerOf(value).value_or(0));
    }
    if (byName) {
      names.push_back(std::move(words));
    } else {
      splits.push_back(std::move(numbers));
    }
  }
}

bool isByName(DictionaryAttr strategy) {
  for (StringRef key : {"in", "out"}) {
    auto outer = dyn_cast_or_null<ArrayAttr>(strategy.get(key));
    for (mlir::Attribute inner : outer ? outer.getValue() : ArrayRef<mlir::Attribute>()) {
      auto list = dyn_cast<ArrayAttr>(inner);
      if (list && !list.empty() && isa<StringAttr>(list[0])) {
        return true;
      }
    }
  }
  return false;
}

// The line of the `shard` call, which follows that of the operator.
Location strategyLocation(Operation* op) {
  auto both = dyn_cast<FusedLoc>(op->getLoc());
  return both ? both.getLocations().back() : op->getLoc();
}

FailureOr<UserStrategy> strategyOf(Operation* op) {
  auto given = op->getAttrOfType<DictionaryAttr>(kStrategyAttr);
  if (!given) {
    return emitError(strategyLocation(op),
                     "attribute nn.strategy should be a dictionary with 'in' and optionally 'out'"),
           failure();
  }
  UserStrategy strategy;
  strategy.byName = isByName(given);
  strategy.line = placeOf(strategyLocation(op));
  readLists(given.get("in"), strategy.byName, strategy.inSplits, strategy.inNames);
  readLists(given.get("out"), strategy.byName, strategy.outSplits, strategy.outNames);
  return strategy;
}

// Runs expansions in scratch blocks, in program order. An operator that reads results of one that must be expanded is
// expanded with what these have become.
class AlternativeBuilder {
 public:
  explicit AlternativeBuilder(const Expansions& expansions) : expansions_(expansions) {}
  AlternativeBuilder(const AlternativeBuilder&) = delete;
  AlternativeBuilder& operator=(const AlternativeBuilder&) = delete;
  // Operators read those of other blocks.
  ~AlternativeBuilder() {
    for (Block& block : scratch_) {
      block.dropAllReferences();
    }
  }

  bool has(Operation* op) const { return expansions_.has(op); }

  FailureOr<Alternative> run(Operation* op) {
    Operation* replaced = op->clone(expanded_);
    scratch_.emplace_back().push_back(replaced);
    Block& body = scratch_.emplace_back();
    OpBuilder builder(op->getContext());
    builder.setInsertionPointToEnd(&body);
    FailureOr<SmallVector<Value>> values = expansions_.of(replaced, builder);
    if (failed(values) || failed(checkTypes(op, *values))) {
      return failure();
    }
    if (ir::mustExpand(op)) {
      expanded_.map(op->getResults(), *values);
    }
    return alternativeOf(replaced, body, *values);
  }

 private:
  // Nobody asks about another type between the expansion of an operator and that of its readers.
  static LogicalResult checkTypes(Operation* op, ArrayRef<Value> values) {
    for (auto [result, value] : llvm::zip(op->getResults(), values)) {
      if (ir::plainType(result) == ir::plainType(value)) {
        continue;
      }
      for (Operation* reader : result.getUsers()) {
        if (!ir::mustExpand(op) || !ir::mustExpand(reader)) {
          return reader->emitError() << labelOf(reader) << " reads result " << result.getResultNumber() << " of "
                                     << op->getName() << " as " << ir::printType(result) << ", expanded it is "
                                     << ir::printType(value) << "; only what is expanded with it can read it";
        }
      }
    }
    return success();
  }

  static FailureOr<Alternative> alternativeOf(Operation* replaced, Block& body, ArrayRef<Value> values) {
    llvm::DenseMap<Operation*, int64_t> places;
    const auto valueIn = [&](Value value) -> GraphValue {
      Operation* producer = value.getDefiningOp();
      if (producer != nullptr && producer->getBlock() == &body) {
        return {places[producer], cast<OpResult>(value).getResultNumber()};
      }
      const auto operand = llvm::find(replaced->getOperands(), value);
      return {GraphValue::kArgument, static_cast<unsigned>(operand - replaced->operand_begin())};
    };
    Alternative alternative;
    for (Operation& inner : body) {
      FailureOr<AlternativeOperator> made = operatorOf(replaced, inner);
      if (failed(made)) {
        return failure();
      }
      places[&inner] = static_cast<int64_t>(alternative.body.size());
      llvm::transform(inner.getOperands(), std::back_inserter(made->operands), valueIn);
      alternative.body.push_back(*std::move(made));
    }
    llvm::transform(values, std::back_inserter(alternative.results), valueIn);
    return alternative;
  }

  // Without its operands.
  static FailureOr<AlternativeOperator> operatorOf(Operation* replaced, Operation& inner) {
    inner.setLoc(replaced->getLoc());
    FailureOr<OperatorFacts> facts = factsOf(&inner);
    if (failed(facts)) {
      return failure();
    }
    AlternativeOperator made;
    made.facts = *std::move(facts);
    if (inner.hasAttr(kPhaseAttr)) {
      made.phase = phaseOf(&inner);
    }
    llvm::transform(inner.getResults(), std::back_inserter(made.results), typeOf);
    return made;
  }

  const Expansions& expansions_;  // which knows afterwards what has been asked
  std::list<Block> scratch_;      // what is expanded, and what it becomes
  IRMapping expanded_;            // results of what must be expanded
};

class Builder {
 public:
  explicit Builder(func::FuncOp step) : step_(step) {}
  Builder(func::FuncOp step, const Expansions& expansions) : step_(step), alternatives_(std::in_place, expansions) {}

  FailureOr<ProgramGraph> run() {
    step_->getParentOfType<ModuleOp>().walk(
        [&](Operation* op) { graph_.nextId = std::max(graph_.nextId, idOf(op) + 1); });
    graph_.line = placeOf(step_.getLoc());
    addArguments();
    for (Operation& op : step_.getBody().front().without_terminator()) {
      if (failed(addOperator(&op))) {
        return failure();
      }
    }
    for (unsigned r = 0; r < step_.getNumResults(); ++r) {
      const std::optional<int64_t> updates = integerOf(step_.getResultAttr(r, kUpdatesAttr));
      graph_.results.push_back({valueOf(returned(step_, r)),
                                updates ? std::optional<unsigned>(static_cast<unsigned>(*updates)) : std::nullopt});
    }
    return std::move(graph_);
  }

 private:
  static GraphValue valueOf(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      return {GraphValue::kArgument, argument.getArgNumber()};
    }
    return {idOf(value.getDefiningOp()), cast<OpResult>(value).getResultNumber()};
  }

  void addArguments() {
    for (const Argument& argument : argumentsOf(step_)) {
      Value value = step_.getArgument(argument.index);
      GraphArgument& made = graph_.arguments.emplace_back();
      made.kind = argumentKindOf(argument.kind);
      made.name = argument.name;
      made.type = typeOf(value);
      made.batchDim = integerOf(step_.getArgAttr(argument.index, kBatchDimAttr)).value_or(0);
      made.layout = textOf(step_.getArgAttr(argument.index, kLayoutAttr));
      made.line = placeOf(value.getLoc());
    }
  }

  LogicalResult addOperator(Operation* op) {
    FailureOr<OperatorFacts> facts = factsOf(op);
    if (failed(facts)) {
      return failure();
    }
    GraphOperator made;
    made.id = idOf(op);
    made.facts = *std::move(facts);
    made.name = textOf(op->getAttr(kNameAttr));
    made.phase = phaseOf(op);
    made.forward = integerOf(op->getAttr(kForwardAttr));
    made.prologueOf = integerOf(op->getAttr(kPrologueAttr));
    made.gradientOf = textOf(op->getAttr(kGradientOfAttr));
    made.userStage = integerOf(op->getAttr(kUserStageAttr));
    made.recomputeScope = integerOf(op->getAttr(kUserRecomputeAttr));
    made.line = placeOf(op->getLoc());
    if (op->hasAttr(kStrategyAttr)) {
      FailureOr<UserStrategy> strategy = strategyOf(op);
      if (failed(strategy)) {
        return failure();
      }
      made.strategy = *std::move(strategy);
    }
    if (auto constrain = dyn_cast<ir::nn::ConstrainOp>(op)) {
      made.constraint = constrain.getLayout().str();
    }
    llvm::transform(op->getOperands(), std::back_inserter(made.operands), valueOf);
    llvm::transform(op->getResults(), std::back_inserter(made.results), typeOf);
    if (alternatives_ && alternatives_->has(op)) {
      FailureOr<Alternative> alternative = alternatives_->run(op);
      if (failed(alternative)) {
        return failure();
      }
      made.alternatives.push_back(*std::move(alternative));
    }
    graph_.operators.push_back(std::move(made));
    return success();
  }

  func::FuncOp step_;
  std::optional<AlternativeBuilder> alternatives_;
  ProgramGraph graph_;
};

}  // namespace

FailureOr<OperatorFacts> factsOf(Operation* op) {
  auto interface = dyn_cast<ir::OperatorInterface>(op);
  if (!interface) {
    return op->emitError("is not an operator of a registered dialect"), failure();
  }
  FailureOr<Rule> rule = ir::ruleOf(interface);
  if (failed(rule)) {
    return failure();
  }
  OperatorFacts facts;
  facts.kind = ir::kindOf(op);
  facts.rule = interface.getRule();
  for (const auto& set : interface.getLinearSets()) {
    facts.linear.emplace_back(set.begin(), set.end());
  }
  facts.passesSums = interface.passesSums();
  facts.isSum = interface.isSum();
  facts.updatesParameter = interface.updatesParameter();
  facts.mustExpand = interface.mustExpand();
  facts.isConstant = isa<ir::nn::ConstantOp>(op);
  facts.view = interface.getViewKind();
  facts.flopsPerPoint = static_cast<double>(interface.getFlops()) / pointsOf(*rule);
  facts.attributes = ir::kernelAttributes(op);
  facts.reduce =
      listed(op->getNumResults(), ReduceKind::kSum, [&](unsigned result) { return interface.getReduceKind(result); });
  facts.padFill = listed(op->getNumOperands(), std::optional<double>(0.0),
                         [&](unsigned operand) { return interface.getPadFill(operand); });
  return facts;
}

FailureOr<ProgramGraph> buildProgramGraph(func::FuncOp step) {
  return Builder(step).run();
}

FailureOr<ProgramGraph> buildProgramGraph(func::FuncOp step, const Expansions& expansions) {
  return Builder(step, expansions).run();
}

SourcePlace placeOf(Location location) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  return place ? SourcePlace{place.getFilename().str(), place.getLine(), place.getColumn()} : SourcePlace();
}

void emitPlannerError(ModuleOp module, const absl::Status& status) {
  const SourcePlace line = sourcePlaceOf(status);
  const Location place = line.file.empty()
                             ? module.getLoc()
                             : FileLineColLoc::get(module.getContext(), line.file, static_cast<unsigned>(line.line),
                                                   static_cast<unsigned>(line.column));
  emitError(place) << std::string(status.message());
}

}  // namespace weft
