#include "passes/decide/micro_batches.h"

#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

class Analyzer {
 public:
  Analyzer(func::FuncOp step, int64_t microBatches) : step_(step), microBatches_(microBatches) {}

  FailureOr<MicroBatchAnalysis> run() {
    seedInputs();
    for (Operation& op : step_.getBody().front().without_terminator()) {
      auto interface = dyn_cast<ir::OperatorInterface>(&op);
      if (!interface) {
        return op.emitError("is not an operator of a registered dialect"), failure();
      }
      FailureOr<Rule> rule = ir::ruleOf(interface);
      if (failed(rule) || failed(visit(&op, *rule))) {
        return failure();
      }
      ids_[idOf(&op)] = &op;
    }
    return std::move(result_);
  }

 private:
  void seedInputs() {
    for (const Argument& argument : argumentsOf(step_)) {
      auto attr = step_.getArgAttrOfType<IntegerAttr>(argument.index, kBatchDimAttr);
      const int64_t dim = attr ? attr.getInt() : 0;
      Value value = step_.getArgument(argument.index);
      const Shape shape = ir::shapeOf(value);
      // A batch of one row is not cut.
      if (argument.kind == "input" && dim >= 0 && dim < static_cast<int64_t>(shape.size()) && shape[dim] > 1) {
        result_.batchDim[value] = static_cast<int>(dim);
      }
    }
  }

  int batchDim(Value value) const {
    const auto it = result_.batchDim.find(value);
    return it == result_.batchDim.end() ? -1 : it->second;
  }

  LogicalResult visit(Operation* op, const Rule& rule) {
    OperatorMicroBatches& state = result_.operators[op];
    const bool prologue = op->hasAttr(kPrologueAttr);
    if (failed(findBatch(op, rule, state))) {
      return failure();
    }
    const bool timed = microBatches_ > 1 && !prologue;
    const bool passes = timed && state.batch < 0 && passesPartial(op);
    state.perMicroBatch = timed && (state.batch >= 0 || passes);
    for (unsigned i = 0; timed && i < op->getNumOperands(); ++i) {
      const bool accumulated = after_.contains(op->getOperand(i)) || (partial_.contains(op->getOperand(i)) && !passes);
      if (accumulated && state.perMicroBatch) {
        result_.needed.push_back({Rewrite::kPrologue, idOf(op), i});
      }
      state.after |= accumulated && !state.perMicroBatch;
    }
    return setResults(op, rule, state, passes);
  }

  // The factor that carries the batch: the one the operands bring, or the forward operator's of the same name.
  LogicalResult findBatch(Operation* op, const Rule& rule, OperatorMicroBatches& state) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const int dim = batchDim(op->getOperand(i));
      if (dim < 0 || rule.operands()[i][dim].empty()) {
        continue;
      }
      const int factor = rule.operands()[i][dim].front();
      if (rule.factors()[factor].microBatches || (state.batch >= 0 && state.batch != factor && microBatches_ == 1)) {
        continue;
      }
      if (state.batch >= 0 && state.batch != factor) {
        return op->emitError() << "brings the batch in two dimensions at once (factors "
                               << rule.factors()[state.batch].name << " and " << rule.factors()[factor].name
                               << "): the micro-batches of a step would mix; use micro = 1 or another operator";
      }
      state.batch = factor;
    }
    if (state.batch < 0) {
      inheritBatch(op, rule, state);
    }
    return success();
  }

  void inheritBatch(Operation* op, const Rule& rule, OperatorMicroBatches& state) {
    auto forward = op->getAttrOfType<IntegerAttr>(kForwardAttr);
    const auto it = forward ? ids_.find(forward.getInt()) : ids_.end();
    if (it == ids_.end() || result_.operators[it->second].batch < 0) {
      return;
    }
    FailureOr<Rule> other = ir::ruleOf(cast<ir::OperatorInterface>(it->second));
    if (failed(other)) {
      return;
    }
    const Factor& factor = other->factors()[result_.operators[it->second].batch];
    const int mine = rule.factorIndex(factor.name);
    if (mine >= 0 && rule.factors()[mine].size == factor.size && rule.splittable(mine) && onlyInResults(rule, mine)) {
      state.batch = mine;
    }
  }

  static bool onlyInResults(const Rule& rule, int factor) {
    for (const auto& operand : rule.operands()) {
      for (const DimFactors& dim : operand) {
        if (llvm::is_contained(dim, factor)) {
          return false;
        }
      }
    }
    return true;
  }

  bool passesPartial(Operation* op) const {
    auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
    if ((phase && phase.getValue() == "update") || !cast<ir::OperatorInterface>(op).passesSums()) {
      return false;
    }
    bool any = false;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (partial_.contains(op->getOperand(i))) {
        any = true;
        // A sum from another stage is sent once, not for each micro-batch.
        if (op->getOperand(i).getDefiningOp() != nullptr && stageOf(op->getOperand(i).getDefiningOp()) != stageOf(op)) {
          return false;
        }
        if (!ir::linearTogether(op, i, [&](unsigned k) { return partial_.contains(op->getOperand(k)); })) {
          return false;
        }
      }
    }
    return any;
  }

  LogicalResult setResults(Operation* op, const Rule& rule, const OperatorMicroBatches& state, bool passes) {
    for (unsigned r = 0; r < op->getNumResults(); ++r) {
      Value value = op->getResult(r);
      if (passes) {
        partial_.insert(value);
      }
      if (state.after) {
        after_.insert(value);
      }
      if (state.batch < 0) {
        continue;
      }
      const int dim = dimOf(rule.results()[r], state.batch);
      const int microBatches = state.perMicroBatch ? dimOfMicroBatches(rule, r) : -1;
      if (std::max(dim, microBatches) >= 0) {
        result_.batchDim[value] = std::max(dim, microBatches);
      } else if (state.perMicroBatch && !rule.reducedIn(state.batch, r)) {
        return refuseMix(op, rule, state.batch);
      } else if (state.perMicroBatch) {
        partial_.insert(value);
      }
    }
    if (state.perMicroBatch && state.batch >= 0 && !rule.splittable(state.batch)) {
      return refuseMix(op, rule, state.batch);
    }
    return success();
  }

  LogicalResult refuseMix(Operation* op, const Rule& rule, int factor) {
    return op->emitError() << labelOf(op) << " needs dimension '" << rule.factors()[factor].name
                           << "' of the batch whole, but the step runs in " << microBatches_
                           << " micro-batches; use micro = 1 or an operator that treats rows one by one";
  }

  // The dimension whose major factor is `factor` (factors of size 1 may stand before it).
  static int dimOf(const std::vector<DimFactors>& dims, int factor) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].empty() && dims[d].front() == factor) {
        return static_cast<int>(d);
      }
    }
    return -1;
  }

  // The dimension of a result that counts the micro-batches.
  static int dimOfMicroBatches(const Rule& rule, unsigned result) {
    for (size_t f = 0; f < rule.factors().size(); ++f) {
      if (rule.factors()[f].microBatches) {
        return dimOf(rule.results()[result], static_cast<int>(f));
      }
    }
    return -1;
  }

  func::FuncOp step_;
  int64_t microBatches_;
  MicroBatchAnalysis result_;
  llvm::DenseSet<Value> partial_;
  llvm::DenseSet<Value> after_;
  llvm::DenseMap<int64_t, Operation*> ids_;
};

// Copies operators into the prologue, each once.
class Hoister {
 public:
  explicit Hoister(func::FuncOp step) : step_(step) {
    for (Operation& op : step.getBody().front()) {
      byId_[idOf(&op)] = &op;
      auto source = op.getAttrOfType<IntegerAttr>(kPrologueAttr);
      if (source && byId_.count(source.getInt()) > 0) {
        copies_[byId_[source.getInt()]] = &op;
      }
    }
  }

  LogicalResult run(const Rewrite& decision) {
    const auto it = byId_.find(decision.id);
    if (it == byId_.end() || decision.operand >= it->second->getNumOperands()) {
      return step_.emitError() << "decisions: no operand " << decision.operand << " of operator " << decision.id;
    }
    FailureOr<Value> value = copy(it->second->getOperand(decision.operand), it->second);
    if (failed(value)) {
      return failure();
    }
    it->second->setOperand(decision.operand, *value);
    return success();
  }

 private:
  FailureOr<Value> copy(Value value, Operation* user) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      const Argument named = argumentAt(step_, argument.getArgNumber());
      if (named.kind == "parameter") {
        return user->emitError()
                   << labelOf(user)
                   << " needs a value that is known only after all micro-batches, and it depends on parameter '"
                   << named.name << "'; use micro = 1, or make it depend on inputs only",
               failure();
      }
      return value;
    }
    Operation* op = value.getDefiningOp();
    if (op->hasAttr(kPrologueAttr)) {
      return value;
    }
    FailureOr<Operation*> copied = copyOperator(op, user);
    if (failed(copied)) {
      return failure();
    }
    return (*copied)->getResult(cast<OpResult>(value).getResultNumber());
  }

  FailureOr<Operation*> copyOperator(Operation* op, Operation* user) {
    if (Operation* known = copies_.lookup(op)) {
      return known;
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> copied = copy(operand, user);
      if (failed(copied)) {
        return failure();
      }
      operands.push_back(*copied);
    }
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    Operation* clone = builder.clone(*op);
    clone->setOperands(operands);
    clone->setAttr(kPrologueAttr, builder.getI64IntegerAttr(idOf(op)));
    clone->removeAttr(kIdAttr);
    copies_[op] = clone;
    return clone;
  }

  func::FuncOp step_;
  llvm::DenseMap<int64_t, Operation*> byId_;
  llvm::DenseMap<Operation*, Operation*> copies_;
};

}  // namespace

FailureOr<MicroBatchAnalysis> analyzeMicroBatches(func::FuncOp step, int64_t microBatches) {
  return Analyzer(step, microBatches).run();
}

LogicalResult hoistToPrologue(func::FuncOp step, const Rewrite& rewrite) {
  if (failed(Hoister(step).run(rewrite))) {
    return failure();
  }
  assignIds(step->getParentOfType<ModuleOp>());
  return success();
}

RunsIn runsIn(Operation* op, const OperatorMicroBatches& microBatches) {
  if (op->hasAttr(kPrologueAttr)) {
    return RunsIn::kPrologue;
  }
  auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
  if (microBatches.after || (phase && phase.getValue() == "update" && !microBatches.perMicroBatch)) {
    return RunsIn::kUpdate;
  }
  return phase && phase.getValue() == "backward" ? RunsIn::kBackward : RunsIn::kForward;
}

}  // namespace weft
