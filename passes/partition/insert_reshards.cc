// Realises the decisions: logical -> annotated.
//
// Each operator's factor axes say in which layout it reads its operands and leaves its results. Where a value's layout
// differs from the one an operator reads, a dist.reshard stands between; one reshard serves all readers that want the
// same layout in the same part of the step (per backward pass too, where gathered values are to be gathered again).
//
// Pending sums. A result reduced over a split factor is partial. Cheap operators that are linear in it pass the sum on
// (reshape, scaling, adding two sums pending over the same axes); everything else reads it reduced. A sum pending over
// the pieces of the step becomes a reshard over time, which is accumulation.
//
// Pads. A float operand with a padded dimension that the operator reduces over or needs whole is masked first.

#include <limits>

#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "mlir/IR/Builders.h"
#include "passes/decide/pads.h"
#include "passes/decide/pieces.h"
#include "passes/partition/passes.h"
#include "passes/partition/time_layout.h"
#include "passes/stage/assign_stages.h"
#include "passes/stage/recompute.h"
#include "passes/stage/stage_table.h"
#include "passes/support/decisions.h"
#include "passes/support/program.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

Axis timeAxis(const Mesh& mesh) {
  return {AxisKind::kTime, 1, mesh.pieces()};
}

class Realiser {
 public:
  Realiser(MLIRContext* context, const Decisions& decisions, StoredShapes stored)
      : decisions_(decisions), mesh_(decisions.mesh), stored_(std::move(stored)), builder_(context) {}

  // Layouts of the arguments are set by the caller.
  void setLayout(Value value, Layout layout) {
    value.setType(withLayout(value.getType(), layout));
    layouts_[value] = std::move(layout);
  }

  LogicalResult visit(Operation* op, const OperatorDecision& decision) {
    absl::StatusOr<Rule> rule =
        Rule::parse(cast<ir::OperatorInterface>(op).getRule(), stored_.operands(op), stored_.results(op));
    if (!rule.ok()) {
      return op->emitError(std::string(rule.status().message()));
    }
    where_ = decision.runsIn;
    stage_ = decision.stage;
    op->setAttr("dist.function", builder_.getStringAttr(runsInName(where_)));
    op->setAttr(kStageAttr, builder_.getI64IntegerAttr(stage_));
    const FactorAxes axes = factorAxes(*rule, decision);
    const std::vector<Partial> passed = passedSums(op, *rule, axes);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Layout wanted = withPads(rule->operandLayout(i, axes), op->getOperand(i));
      std::vector<Partial> kept = layouts_[op->getOperand(i)].partial();
      llvm::erase_if(kept, [&](const Partial& sum) { return !llvm::is_contained(passed, sum); });
      wanted.setPartial(std::move(kept));
      FailureOr<Value> operand = read(op->getOperand(i), wanted, op, i);
      if (failed(operand)) {
        return failure();
      }
      FailureOr<Value> masked = mask(*operand, wanted, op, i, *rule);
      if (failed(masked)) {
        return failure();
      }
      op->setOperand(i, *masked);
    }
    setResults(op, *rule, axes, passed, decision);
    return success();
  }

  // Reads `value` in layout `wanted` at `op` (operand `index`), through reshards made or found.
  FailureOr<Value> read(Value value, const Layout& wanted, Operation* op, unsigned index) {
    builder_.setInsertionPoint(op);
    const std::string reason = op->hasTrait<OpTrait::IsTerminator>()
                                   ? "result " + std::to_string(index)
                                   : labelOf(op) + " reads operand " + std::to_string(index);
    Layout current = layouts_[value];
    std::vector<Layout> path;
    const bool pendingTime = llvm::any_of(current.partial(), [](const Partial& p) { return isTime(p.axis); });
    const bool wantsPending = llvm::any_of(wanted.partial(), [](const Partial& p) { return isTime(p.axis); });
    if (pendingTime && !wantsPending) {
      // ZeRO-2 and 3 accumulate the sharded gradient: reduce_scatter for each piece, then accumulate.
      const bool reduceFirst = decisions_.zero >= 2 && op->hasAttr(kGradientOfAttr);
      Layout first = reduceFirst ? wanted : current;
      std::vector<Partial> partial = reduceFirst ? std::vector<Partial>() : current.partial();
      llvm::erase_if(partial, [](const Partial& p) { return isTime(p.axis); });
      if (reduceFirst) {
        partial.push_back({timeAxis(mesh_), ReduceKind::kSum});
      }
      first.setPartial(partial);
      path.push_back(first);
      if (reduceFirst) {
        first.setPartial({});
        path.push_back(first);
      }
    }
    if (std::optional<Layout> sliced = sliceTime(current, wanted)) {
      path.push_back(*sliced);
    } else if (splitOverTime(current) && !splitOverTime(wanted)) {
      return op->emitError() << reason << " whole, but it is computed in " << mesh_.pieces()
                             << " micro-batches; reduce it over the batch, or use micro = 1",
             failure();
    }
    path.push_back(wanted);
    for (const Layout& next : path) {
      value = reshard(value, next, op, reason);
    }
    return value;
  }

  // `layout` with the pads of `value`.
  Layout withPads(Layout layout, Value value) const {
    const Shape logical = ir::shapeOf(value);
    const Shape& shape = stored_.of(value);
    for (size_t d = 0; d < logical.size(); ++d) {
      layout.setPad(d, shape[d] == logical[d] ? 0 : shape[d]);
    }
    return layout;
  }

  const Layout& layoutOf(Value value) { return layouts_[value]; }
  void setWhere(RunsIn where, int64_t stage) {
    where_ = where;
    stage_ = stage;
  }

  static bool splitOverTime(const Layout& layout) {
    return llvm::any_of(layout.dims(), [](const auto& axes) { return llvm::any_of(axes, isTime); });
  }

 private:
  Type withLayout(Type type, const Layout& layout) {
    auto tensor = cast<RankedTensorType>(type);
    auto attr = ir::dist::LayoutAttr::get(builder_.getContext(), layout.canonical().print(mesh_));
    return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), attr);
  }

  FactorAxes factorAxes(const Rule& rule, const OperatorDecision& decision) const {
    FactorAxes axes(rule.factors().size());
    for (size_t f = 0; f < axes.size(); ++f) {
      const std::string& name = rule.factors()[f].name;
      const auto it = decision.axes.find(name);
      if (it != decision.axes.end()) {
        axes[f] = it->second;
      }
      if (decision.perPiece && name == decision.batch && mesh_.pieces() > 1) {
        axes[f].push_back(timeAxis(mesh_));
      }
    }
    return axes;
  }

  // Pending sums that pass through `op`: those of operands in which it is linear together. What else an operand is
  // pending over is reduced first.
  std::vector<Partial> passedSums(Operation* op, const Rule& rule, const FactorAxes& axes) {
    std::vector<Partial> passed;
    if (!passesSums(op) || op->hasAttr(kGradientOfAttr)) {
      return passed;
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      for (const Partial& sum : layouts_[op->getOperand(i)].partial()) {
        const bool beside =
            llvm::all_of(passed, [&](const Partial& other) { return compatible(other.axis, sum.axis); });
        if (beside && passes(op, i, sum, axes)) {
          passed.push_back(sum);
        }
      }
    }
    return passed;
  }

  bool passes(Operation* op, unsigned operand, const Partial& sum, const FactorAxes& axes) {
    const auto pending = [&](unsigned k) {
      return llvm::any_of(layouts_[op->getOperand(k)].partial(),
                          [&](const Partial& other) { return overlap(other.axis, sum.axis); });
    };
    for (unsigned k = 0; k < op->getNumOperands(); ++k) {
      if (pending(k) && !llvm::is_contained(layouts_[op->getOperand(k)].partial(), sum)) {
        return false;
      }
    }
    const bool fits = llvm::all_of(axes, [&](const std::vector<Axis>& list) {
      return llvm::all_of(list, [&](const Axis& axis) { return compatible(axis, sum.axis); });
    });
    // What runs after the pieces reads whole sums over them.
    const bool early = !isTime(sum.axis) || where_ != RunsIn::kUpdate;
    return fits && early && sum.kind == ReduceKind::kSum && linearTogether(op, operand, pending);
  }

  // `current` cut to one piece, if `wanted` is and `current` is not.
  std::optional<Layout> sliceTime(const Layout& current, const Layout& wanted) const {
    if (splitOverTime(current) || !splitOverTime(wanted)) {
      return std::nullopt;
    }
    Layout sliced = current;
    for (size_t d = 0; d < wanted.dimensions(); ++d) {
      if (llvm::any_of(wanted.dim(d), isTime)) {
        std::vector<Axis> axes = current.dim(d);
        axes.push_back(timeAxis(mesh_));
        sliced.setDim(d, axes);
      }
    }
    return sliced;
  }

  Value reshard(Value value, const Layout& wanted, Operation* reader, const std::string& reason) {
    const Layout& current = layouts_[value];
    if (current.canonical() == wanted.canonical()) {
      return value;
    }
    const std::string key = wanted.canonical().print(mesh_) + " " + group();
    Value& known = reshards_[value][key];
    if (!known) {
      OperationState state(reader->getLoc(), ir::dist::ReshardOp::getOperationName());
      state.addOperands(value);
      state.addTypes(withLayout(value.getType(), wanted));
      state.addAttribute("reason", builder_.getStringAttr(reason));
      state.addAttribute("keep", builder_.getStringAttr(decisions_.regather ? "regather" : "keep"));
      Operation* op = builder_.create(state);
      const bool accumulates = llvm::any_of(current.partial(), [](const Partial& p) { return isTime(p.axis); }) &&
                               llvm::none_of(wanted.partial(), [](const Partial& p) { return isTime(p.axis); });
      place(op, value, accumulates, wanted);
      if (auto phase = reader->getAttr(kPhaseAttr)) {
        op->setAttr(kPhaseAttr, phase);
      }
      known = op->getResult(0);
      layouts_[known] = wanted;
      stored_.set(known, Shape(stored_.of(value)));
    }
    return known;
  }

  // A sum pending over time is reduced over space per piece where its producer runs; accumulation too; all else runs
  // with its reader.
  void place(Operation* reshard, Value value, bool accumulates, const Layout& wanted) {
    const bool stillPending = llvm::any_of(wanted.partial(), [](const Partial& p) { return isTime(p.axis); });
    Operation* producer = value.getDefiningOp();
    if ((accumulates || stillPending) && producer != nullptr) {
      reshard->setAttr("dist.function", producer->getAttr("dist.function"));
      reshard->setAttr(kStageAttr, producer->getAttr(kStageAttr));
      return;
    }
    reshard->setAttr("dist.function", builder_.getStringAttr(runsInName(where_)));
    reshard->setAttr(kStageAttr, builder_.getI64IntegerAttr(stage_));
  }

  // Readers of one group share a reshard. Values gathered for the forward pass serve the backward pass too, unless they
  // are to be gathered again.
  std::string group() const {
    const bool perPiece = where_ == RunsIn::kForward || where_ == RunsIn::kBackward;
    const std::string when = perPiece && !decisions_.regather ? "piece" : runsInName(where_);
    return when + " " + std::to_string(stage_);
  }

  // Masks every padded dimension of an operand that the operator reduces over or needs whole.
  FailureOr<Value> mask(Value value, const Layout& layout, Operation* op, unsigned index, const Rule& rule) {
    if (!isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType())) {
      return value;
    }
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      if (layout.pad(d) == 0 || rule.operands()[index][d].empty()) {
        continue;
      }
      const int factor = rule.operands()[index][d].front();
      const bool whole = rule.factors()[factor].whole;
      std::optional<double> fill;
      bool reduced = false;
      for (unsigned r = 0; r < rule.results().size(); ++r) {
        if (rule.reducedIn(factor, r)) {
          reduced = true;
          fill = neutral(cast<ir::OperatorInterface>(op).getReduceKind(r));
        }
      }
      if (!whole && !reduced) {
        continue;
      }
      fill = whole ? cast<ir::OperatorInterface>(op).getPadFill(index) : fill;
      const int64_t size = ir::shapeOf(value)[d];
      if (!fill) {
        return op->emitError() << labelOf(op) << " cannot run on a padded dimension (" << size << " stored as "
                               << layout.pad(d) << "); split another dimension",
               failure();
      }
      value = maskDim(value, static_cast<int64_t>(d), size, *fill, op);
    }
    return value;
  }

  // The value that changes nothing in a reduction.
  static double neutral(ReduceKind kind) {
    const double infinity = std::numeric_limits<double>::infinity();
    return kind == ReduceKind::kSum ? 0.0 : kind == ReduceKind::kMax ? -infinity : infinity;
  }

  Value maskDim(Value value, int64_t dim, int64_t valid, double fill, Operation* op) {
    const std::string key = "mask " + std::to_string(dim) + " " + std::to_string(fill) + " " + group();
    Value& known = reshards_[value][key];
    if (!known) {
      builder_.setInsertionPoint(op);
      OperationState state(op->getLoc(), ir::dist::MaskPadOp::getOperationName());
      state.addOperands(value);
      state.addTypes(value.getType());
      state.addAttribute("dims", builder_.getDenseI64ArrayAttr(dim));
      state.addAttribute("valid", builder_.getDenseI64ArrayAttr(valid));
      state.addAttribute("fill", builder_.getF64FloatAttr(fill));
      Operation* made = builder_.create(state);
      made->setAttr("dist.function", builder_.getStringAttr(runsInName(where_)));
      made->setAttr(kStageAttr, builder_.getI64IntegerAttr(stage_));
      made->setAttr(kNameAttr, builder_.getStringAttr(labelOf(op) + "/mask"));
      known = made->getResult(0);
      layouts_[known] = Layout(layouts_[value]);
      stored_.set(known, Shape(stored_.of(value)));
    }
    return known;
  }

  void setResults(Operation* op, const Rule& rule, const FactorAxes& axes, const std::vector<Partial>& passed,
                  const OperatorDecision& decision) {
    builder_.setInsertionPointAfter(op);
    for (OpResult result : op->getResults()) {
      const unsigned r = result.getResultNumber();
      const ReduceKind kind = cast<ir::OperatorInterface>(op).getReduceKind(r);
      Layout layout = withPads(rule.resultLayout(r, axes, kind), result);
      if (!passed.empty()) {
        std::vector<Partial> partial = layout.partial();
        partial.insert(partial.end(), passed.begin(), passed.end());
        layout.setPartial(partial);
      }
      setLayout(result, layout);
      const auto wanted = decision.results.find(r);
      if (wanted != decision.results.end()) {
        Layout asked = withPads(wanted->second, result);
        asked = sliceTime(asked, layout).value_or(asked);
        Value made = reshard(result, asked, op, labelOf(op) + " out strategy");
        if (made != result) {
          result.replaceAllUsesExcept(made, made.getDefiningOp());
        }
      }
    }
  }

  const Decisions& decisions_;
  const Mesh& mesh_;
  StoredShapes stored_;  // of the values made here too
  OpBuilder builder_;
  RunsIn where_ = RunsIn::kForward;
  int64_t stage_ = 0;
  llvm::DenseMap<Value, Layout> layouts_;
  llvm::DenseMap<Value, std::map<std::string, Value>> reshards_;
};

class InsertReshardsPass : public PassWrapper<InsertReshardsPass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InsertReshardsPass)
  StringRef getArgument() const override { return "weft-insert-reshards"; }
  StringRef getDescription() const override { return "Give every value its layout and make reshards explicit"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto text = module->getAttrOfType<StringAttr>(kDecisionsAttr);
    absl::StatusOr<Decisions> decisions = parseDecisions(text ? text.getValue().str() : "");
    if (!decisions.ok()) {
      module.emitError(std::string(decisions.status().message()));
      return signalPassFailure();
    }
    if (failed(realiseStep(module, *decisions)) || failed(realiseInit(module, *decisions))) {
      return signalPassFailure();
    }
    setSchedule(module, decisions->schedule);
    markRecomputed(stepFunction(module), *decisions);
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "annotated"));
  }

 private:
  static LogicalResult realiseStep(ModuleOp module, const Decisions& decisions) {
    func::FuncOp step = stepFunction(module);
    if (decisions.arguments.size() != step.getNumArguments()) {
      return module.emitError() << "the decisions know " << decisions.arguments.size() << " arguments, @step has "
                                << step.getNumArguments() << "; they were made for another program";
    }
    llvm::DenseMap<unsigned, Shape> padded;
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      padded[i] = decisions.arguments[i].layout.storedShape(ir::shapeOf(step.getArgument(i)));
    }
    FailureOr<StoredShapes> stored = spreadPads(step, padded);
    if (failed(stored)) {
      return failure();
    }
    Realiser realiser(module.getContext(), decisions, *std::move(stored));
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      realiser.setLayout(step.getArgument(i), decisions.arguments[i].layout);
    }
    for (Operation& op : llvm::make_early_inc_range(step.getBody().front().without_terminator())) {
      const OperatorDecision* decision = decisions.find(idOf(&op));
      if (isa<ir::dist::ReshardOp, ir::dist::MaskPadOp>(op)) {
        continue;
      }
      if (decision == nullptr) {
        return op.emitError() << labelOf(&op) << " (number " << idOf(&op)
                              << ") has no entry in the decisions; they were made for another program";
      }
      if (failed(realiser.visit(&op, *decision))) {
        return failure();
      }
    }
    return finishStep(step, decisions, realiser);
  }

  // Results leave in the update: replaced arguments in the argument's layout, all others with no sum pending.
  static LogicalResult finishStep(func::FuncOp step, const Decisions& decisions, Realiser& realiser) {
    Operation* terminator = step.getBody().front().getTerminator();
    for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
      Value value = terminator->getOperand(i);
      realiser.setWhere(RunsIn::kUpdate, value.getDefiningOp() == nullptr ? 0 : stageOf(value.getDefiningOp()));
      Layout wanted = realiser.layoutOf(value);
      wanted.setPartial({});
      if (Realiser::splitOverTime(wanted)) {
        return emitError(value.getLoc()) << "result '" << resultText(step, i, kNameAttr)
                                         << "' carries the batch, but the step runs in " << decisions.mesh.pieces()
                                         << " micro-batches; reduce it over the batch, or use micro = 1";
      }
      if (auto argument = step.getResultAttrOfType<IntegerAttr>(i, kUpdatesAttr)) {
        wanted = decisions.arguments[argument.getInt()].layout;
      }
      FailureOr<Value> result = realiser.read(value, wanted, terminator, i);
      if (failed(result)) {
        return failure();
      }
      terminator->setOperand(i, *result);
    }
    refreshType(step);
    return success();
  }

  // @init: every generator makes its value in the argument's layout.
  static LogicalResult realiseInit(ModuleOp module, const Decisions& decisions) {
    func::FuncOp init = initFunction(module);
    if (!init) {
      return success();
    }
    std::map<std::string, const ArgumentDecision*> byName;
    for (const ArgumentDecision& argument : decisions.arguments) {
      byName[argument.name] = &argument;
    }
    for (unsigned i = 0; i < init.getNumResults(); ++i) {
      const std::string name = resultText(init, i, kNameAttr);
      const auto it = byName.find(name);
      if (it == byName.end()) {
        return init.emitError() << "result '" << name << "' is no argument of @step";
      }
      Value value = returned(init, i);
      auto tensor = cast<RankedTensorType>(value.getType());
      auto attr = ir::dist::LayoutAttr::get(module.getContext(), it->second->layout.canonical().print(decisions.mesh));
      value.setType(RankedTensorType::get(tensor.getShape(), tensor.getElementType(), attr));
      value.getDefiningOp()->setAttr("dist.function", StringAttr::get(module.getContext(), "init"));
    }
    refreshType(init);
    return success();
  }
};

}  // namespace

std::unique_ptr<Pass> createInsertReshardsPass() {
  return std::make_unique<InsertReshardsPass>();
}

}  // namespace weft
