// Realizes the decisions: logical -> annotated.
//
// Each operator's factor axes say in which layout it reads its operands and leaves its results. Where a value's layout
// differs from the one an operator reads, a dist.reshard stands between; one reshard serves all readers that want the
// same layout in the same part of the step (per backward pass too, where gathered values are to be gathered again).
//
// Partial sums. A result reduced over a split factor is partial. Cheap operators that are linear in it pass the sum on
// (reshape, scaling, adding two sums partial over the same axes); everything else reads it reduced. A sum partial over
// the micro-batches of the step becomes a reshard over time, which is accumulation.
//
// Meshes. Where submeshes have different meshes, a layout is read on the mesh of its operator's submesh. A value of
// another mesh is read through a dist.transfer, one for each value and submesh; it is whole, sums are reduced before.
//
// Pads. A float operand with a padded dimension that the operator reduces over or needs whole is masked first.

#include <limits>

#include "ir/dist/dist.h"
#include "ir/layout/stage_mesh_text.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/gates/check_decisions.h"
#include "passes/partition/micro_batch_rows.h"
#include "passes/partition/passes.h"
#include "passes/partition/recompute.h"
#include "passes/partition/value_shapes.h"
#include "planner/decisions.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

Axis timeAxis(const Mesh& mesh) {
  return {AxisKind::kTime, 1, mesh.microBatches()};
}

class Realizer {
 public:
  Realizer(MLIRContext* context, const Decisions& decisions, ValueShapes stored)
      : decisions_(decisions), meshes_(decisions.meshes()), stored_(std::move(stored)), builder_(context) {}

  // Layouts of the arguments are set by the caller.
  void setLayout(Value value, Layout layout) {
    value.setType(withLayout(value.getType(), layout, meshes_.of(value)));
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
    op->setAttr(kRunsInAttr, builder_.getStringAttr(runsInName(where_)));
    op->setAttr(kStageAttr, builder_.getI64IntegerAttr(stage_));
    const FactorAxes axes = factorAxes(*rule, decision);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      FailureOr<Value> operand =
          onMesh(op->getOperand(i), withPads(rule->operandLayout(i, axes), op->getOperand(i)), op, i);
      if (failed(operand)) {
        return failure();
      }
      op->setOperand(i, *operand);
    }
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
    const std::string reason = reasonOf(op, index);
    Layout current = layouts_[value];
    std::vector<Layout> path;
    const bool partialTime = llvm::any_of(current.partial(), [](const Partial& p) { return isTime(p.axis); });
    const bool wantsPartial = llvm::any_of(wanted.partial(), [](const Partial& p) { return isTime(p.axis); });
    if (partialTime && !wantsPartial) {
      // ZeRO-2 and 3 accumulate the sharded gradient: reduce_scatter for each micro-batch, then accumulate.
      const bool reduceFirst = decisions_.zero >= 2 && op->hasAttr(kGradientOfAttr);
      Layout first = reduceFirst ? wanted : current;
      std::vector<Partial> partial = reduceFirst ? std::vector<Partial>() : current.partial();
      llvm::erase_if(partial, [](const Partial& p) { return isTime(p.axis); });
      if (reduceFirst) {
        partial.push_back({timeAxis(mesh()), ReduceKind::kSum});
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
      return op->emitError() << reason << " whole, but it is computed in " << mesh().microBatches()
                             << " micro-batches; reduce it over the batch, or use micro = 1",
             failure();
    }
    path.push_back(wanted);
    for (const Layout& next : path) {
      value = reshard(value, next, op, reason);
    }
    return value;
  }

  // `value` on the mesh of the stage that is visited: itself, or what a transfer of it leaves, which lies as `wanted`
  // if it is the first in this submesh.
  FailureOr<Value> onMesh(Value value, const Layout& wanted, Operation* op, unsigned index) {
    if (meshes_.number(value) == meshes_.number(stage_)) {
      return value;
    }
    const auto known = transfers_.find({value, meshes_.submeshes[stage_]});
    if (known != transfers_.end()) {
      return known->second;
    }
    builder_.setInsertionPoint(op);
    Operation* producer = value.getDefiningOp();
    if (producer != nullptr && producer->getNumOperands() == 0) {
      return again(value, likeInTime(wanted, layouts_[value]));
    }
    Value whole = producer == nullptr ? value : reducedAtHome(value, op, reasonOf(op, index));
    Layout layout = producer == nullptr ? elsewhere(value) : likeInTime(wanted, layouts_[whole]);
    return transfers_[{value, meshes_.submeshes[stage_]}] = transfer(whole, std::move(layout), op, reasonOf(op, index));
  }

  // The transfers of arguments and of what replaces them: who holds an argument on another mesh.
  const llvm::MapVector<std::pair<Value, int64_t>, Value>& transfers() const { return transfers_; }

  Value transfer(Value value, Layout layout, Operation* reader, const std::string& reason) {
    builder_.setInsertionPoint(reader);
    OperationState state(reader->getLoc(), ir::dist::TransferOp::getOperationName());
    state.addOperands(value);
    state.addTypes(value.getType());
    state.addAttribute("reason", builder_.getStringAttr(reason));
    Operation* made = builder_.create(state);
    made->setAttr(kRunsInAttr, builder_.getStringAttr(runsInName(where_)));
    made->setAttr(kStageAttr, builder_.getI64IntegerAttr(stage_));
    if (auto phase = reader->getAttr(kPhaseAttr)) {
      made->setAttr(kPhaseAttr, phase);
    }
    setLayout(made->getResult(0), std::move(layout));
    stored_.set(made->getResult(0), Shape(stored_.of(value)));
    return made->getResult(0);
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
  // The mesh of the stage that is being lowered.
  const Mesh& mesh() const { return meshes_.ofStage(stage_); }

  static std::string reasonOf(Operation* op, unsigned index) {
    return op->hasTrait<OpTrait::IsTerminator>() ? "result " + std::to_string(index)
                                                 : labelOf(op) + " reads operand " + std::to_string(index);
  }

  static Type withLayout(Type type, const Layout& layout, const Mesh& mesh) {
    return ir::dist::withLayout(type, layout.canonical(), mesh);
  }

  // Operators without operands (fill, iota) are cloned on the stage that reads them; a transfer would cost more.
  Value again(Value value, const Layout& wanted) {
    Operation* copy = builder_.clone(*value.getDefiningOp());
    copy->setAttr(kRunsInAttr, builder_.getStringAttr(runsInName(where_)));
    copy->setAttr(kStageAttr, builder_.getI64IntegerAttr(stage_));
    for (auto [result, original] : llvm::zip(copy->getResults(), value.getDefiningOp()->getResults())) {
      stored_.set(result, Shape(stored_.of(original)));
      setLayout(result, original == value ? wanted : Layout(wanted.dimensions()));
    }
    Value made = copy->getResult(cast<OpResult>(value).getResultNumber());
    return transfers_[{value, meshes_.submeshes[stage_]}] = made;
  }

  // `value` with no sum partial, reduced on its own mesh: over the micro-batches first, then over the ranks.
  Value reducedAtHome(Value value, Operation* reader, const std::string& reason) {
    const RunsIn where = where_;
    const int64_t stage = stage_;
    Operation* producer = value.getDefiningOp();
    stage_ = stageOf(producer);
    where_ = runsInOf(producer);
    Layout layout = layouts_[value];
    std::vector<Partial> partial = layout.partial();
    if (llvm::any_of(partial, [](const Partial& p) { return isTime(p.axis); })) {
      llvm::erase_if(partial, [](const Partial& p) { return isTime(p.axis); });
      layout.setPartial(partial);
      value = reshard(value, layout, reader, reason);
      where_ = RunsIn::kUpdate;
    }
    layout.setPartial({});
    value = reshard(value, layout, reader, reason);
    where_ = where;
    stage_ = stage;
    return value;
  }

  static RunsIn runsInOf(Operation* op) {
    const StringRef name = op->getAttrOfType<StringAttr>(kRunsInAttr).getValue();
    for (const RunsIn where : {RunsIn::kPrologue, RunsIn::kForward, RunsIn::kBackward}) {
      if (name == runsInName(where)) {
        return where;
      }
    }
    return RunsIn::kUpdate;
  }

  // The layout of an argument on the mesh of the stage that is visited.
  const Layout& elsewhere(Value argument) const {
    const ArgumentDecision& decision = decisions_.arguments[cast<BlockArgument>(argument).getArgNumber()];
    const auto it = decision.elsewhere.find(meshes_.number(stage_));
    return it == decision.elsewhere.end() ? decision.layout : it->second;
  }

  // The splits of `layout` over ranks with those of `other` over time.
  Layout likeInTime(Layout layout, const Layout& other) const {
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      std::vector<Axis> axes = layout.dim(d);
      llvm::erase_if(axes, isTime);
      llvm::copy_if(other.dim(d), std::back_inserter(axes), isTime);
      layout.setDim(d, axes);
    }
    layout.setPartial({});
    return layout;
  }

  FactorAxes factorAxes(const Rule& rule, const OperatorDecision& decision) const {
    FactorAxes axes(rule.factors().size());
    for (size_t f = 0; f < axes.size(); ++f) {
      const std::string& name = rule.factors()[f].name;
      const auto it = decision.axes.find(name);
      if (it != decision.axes.end()) {
        axes[f] = it->second;
      }
      const bool carriesBatch = name == decision.batch || (rule.factors()[f].microBatches && !decision.batch.empty());
      if (decision.perMicroBatch && carriesBatch && mesh().microBatches() > 1) {
        axes[f].push_back(timeAxis(mesh()));
      }
    }
    return axes;
  }

  // Partial sums that pass through `op`: those of operands in which it is linear together. What else an operand is
  // partial over is reduced first.
  std::vector<Partial> passedSums(Operation* op, const Rule& rule, const FactorAxes& axes) {
    std::vector<Partial> passed;
    SmallVector<unsigned> holders;  // of the sums that pass: the same operands for all
    auto interface = dyn_cast<ir::OperatorInterface>(op);
    if (!interface || !interface.passesSums() || op->hasAttr(kGradientOfAttr)) {
      return passed;
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      for (const Partial& sum : layouts_[op->getOperand(i)].partial()) {
        const bool beside =
            llvm::all_of(passed, [&](const Partial& other) { return compatible(other.axis, sum.axis); });
        const SmallVector<unsigned> mine = holdersOf(op, sum);
        if (beside && (passed.empty() || mine == holders) && passes(op, i, sum, axes)) {
          passed.push_back(sum);
          holders = mine;
        }
      }
    }
    return passed;
  }

  SmallVector<unsigned> holdersOf(Operation* op, const Partial& sum) {
    SmallVector<unsigned> holders;
    for (unsigned k = 0; k < op->getNumOperands(); ++k) {
      if (llvm::is_contained(layouts_[op->getOperand(k)].partial(), sum)) {
        holders.push_back(k);
      }
    }
    return holders;
  }

  // Has another reader had the value reduced for this part of the step?
  bool isReducedAlready(Value value) {
    Layout whole = layouts_[value];
    whole.setPartial({});
    const auto known = reshards_.find(value);
    return known != reshards_.end() && known->second.count(keyOf(value, whole)) > 0;
  }

  bool passes(Operation* op, unsigned operand, const Partial& sum, const FactorAxes& axes) {
    const auto partial = [&](unsigned k) {
      return llvm::any_of(layouts_[op->getOperand(k)].partial(),
                          [&](const Partial& other) { return overlap(other.axis, sum.axis); });
    };
    for (unsigned k = 0; k < op->getNumOperands(); ++k) {
      if (partial(k) && !llvm::is_contained(layouts_[op->getOperand(k)].partial(), sum)) {
        return false;
      }
    }
    const bool fits = llvm::all_of(axes, [&](const std::vector<Axis>& list) {
      return llvm::all_of(list, [&](const Axis& axis) { return compatible(axis, sum.axis); });
    });
    // What runs after the micro-batches reads whole sums over them.
    const bool early = !isTime(sum.axis) || where_ != RunsIn::kUpdate;
    const bool wasted = !isTime(sum.axis) && isReducedAlready(op->getOperand(operand));
    return fits && early && !wasted && sum.kind == ReduceKind::kSum && ir::linearTogether(op, operand, partial);
  }

  // `current` cut to one micro-batch, if `wanted` is and `current` is not.
  std::optional<Layout> sliceTime(const Layout& current, const Layout& wanted) const {
    if (splitOverTime(current) || !splitOverTime(wanted)) {
      return std::nullopt;
    }
    Layout sliced = current;
    for (size_t d = 0; d < wanted.dimensions(); ++d) {
      if (llvm::any_of(wanted.dim(d), isTime)) {
        std::vector<Axis> axes = current.dim(d);
        axes.push_back(timeAxis(mesh()));
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
    Value& known = reshards_[value][keyOf(value, wanted)];
    if (!known) {
      OperationState state(reader->getLoc(), ir::dist::ReshardOp::getOperationName());
      state.addOperands(value);
      state.addTypes(withLayout(value.getType(), wanted, mesh()));
      state.addAttribute("reason", builder_.getStringAttr(reason));
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

  // A sum partial over time is reduced over space per micro-batch where its producer runs; accumulation too; all else
  // runs with its reader.
  void place(Operation* reshard, Value value, bool accumulates, const Layout& wanted) {
    const bool stillPartial = llvm::any_of(wanted.partial(), [](const Partial& p) { return isTime(p.axis); });
    Operation* producer = value.getDefiningOp();
    if ((accumulates || stillPartial) && producer != nullptr) {
      reshard->setAttr(kRunsInAttr, producer->getAttr(kRunsInAttr));
      reshard->setAttr(kStageAttr, producer->getAttr(kStageAttr));
      return;
    }
    reshard->setAttr(kRunsInAttr, builder_.getStringAttr(runsInName(isMadeOnce(value) ? RunsIn::kPrologue : where_)));
    reshard->setAttr(kStageAttr, builder_.getI64IntegerAttr(stage_));
  }

  bool perMicroBatch() const { return where_ == RunsIn::kForward || where_ == RunsIn::kBackward; }

  GatherPolicy gatherOf(Value value) const {
    auto transfer = value.getDefiningOp<ir::dist::TransferOp>();  // an argument held on another mesh
    auto argument = dyn_cast<BlockArgument>(transfer ? transfer->getOperand(0) : value);
    return argument ? decisions_.arguments[argument.getArgNumber()].gather : GatherPolicy::kNone;
  }

  bool isGatheredAgain(Value value) const {
    const GatherPolicy gather = gatherOf(value);
    return gather == GatherPolicy::kNone ? decisions_.regather : gather == GatherPolicy::kEachCall;
  }

  // Is what the calls of all micro-batches read made before the first?
  bool isMadeOnce(Value value) const {
    return perMicroBatch() && mesh().microBatches() > 1 && gatherOf(value) == GatherPolicy::kOncePerStep;
  }

  // Readers of one group share a reshard. Values gathered for the forward pass serve the backward pass too, unless they
  // are to be gathered again.
  std::string group(Value value) const {
    const std::string when = perMicroBatch() && !isGatheredAgain(value) ? "micro_batch" : runsInName(where_);
    return when + " " + std::to_string(stage_);
  }

  std::string keyOf(Value value, const Layout& wanted) const {
    return wanted.canonical().print(mesh()) + " " + group(value);
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
    const std::string key = "mask " + std::to_string(dim) + " " + std::to_string(fill) + " " + group(value);
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
      made->setAttr(kRunsInAttr, builder_.getStringAttr(runsInName(where_)));
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
  ModuleMeshes meshes_;
  ValueShapes stored_;  // of the values made here too
  OpBuilder builder_;
  RunsIn where_ = RunsIn::kForward;
  int64_t stage_ = 0;
  llvm::DenseMap<Value, Layout> layouts_;
  llvm::DenseMap<Value, std::map<std::string, Value>> reshards_;
  llvm::MapVector<std::pair<Value, int64_t>, Value> transfers_;  // by value and submesh that reads it
};

class InsertReshardsPass : public PassWrapper<InsertReshardsPass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InsertReshardsPass)
  StringRef getArgument() const override { return "weft-insert-reshards"; }
  StringRef getDescription() const override { return "Give every value its layout and make reshards explicit"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = decisionsOf(module);
    if (decisions == nullptr) {
      module.emitError() << "has no decisions to realize (" << kDecisionsAttr << "); run --weft-decide before";
      return signalPassFailure();
    }
    if (failed(checkDecisions(stepFunction(module), *decisions))) {
      return signalPassFailure();
    }
    if (failed(realizeStep(module, *decisions)) || failed(realizeInit(module, *decisions))) {
      return signalPassFailure();
    }
    setSchedule(module, decisions->schedule);
    setMeshes(module, *decisions);
    markRecomputed(stepFunction(module), *decisions);
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "annotated"));
  }

 private:
  // Meshes of the submeshes, where they differ; equal ones are the module's.
  static void setMeshes(ModuleOp module, const Decisions& decisions) {
    Builder builder(module.getContext());
    if (module->hasAttr(kStageMeshesAttr) || !decisions.stageMeshes.empty()) {
      module->setAttr(kMeshAttr, ir::dist::MeshAttr::get(module.getContext(), decisions.mesh.print()));
      module->removeAttr(kStageMeshesAttr);
    }
    if (!decisions.stageMeshes.empty()) {
      module->setAttr(kStageMeshesAttr, builder.getStringAttr(printStageMeshes(decisions.stageMeshes)));
      module->setAttr(kStripesAttr, builder.getI64IntegerAttr(decisions.stripes));
    }
  }

  static LogicalResult realizeStep(ModuleOp module, const Decisions& decisions) {
    func::FuncOp step = stepFunction(module);
    FailureOr<ValueShapes> stored = storedShapes(step, decisions);
    if (failed(stored)) {
      return failure();
    }
    Realizer realizer(module.getContext(), decisions, *std::move(stored));
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      if (decisions.arguments[i].stage > 0) {
        step.setArgAttr(i, kStageAttr, Builder(module).getI64IntegerAttr(decisions.arguments[i].stage));
      }
      realizer.setLayout(step.getArgument(i), decisions.arguments[i].layout);
    }
    for (Operation& op : llvm::make_early_inc_range(step.getBody().front().without_terminator())) {
      const OperatorDecision* decision = decisions.find(idOf(&op));
      if (isa<ir::dist::ReshardOp, ir::dist::MaskPadOp>(op)) {
        continue;
      }
      if (failed(realizer.visit(&op, *decision))) {
        return failure();
      }
    }
    return finishStep(step, decisions, realizer);
  }

  // Results leave in the update: replaced arguments in the argument's layout, all others with no sum partial.
  static LogicalResult finishStep(func::FuncOp step, const Decisions& decisions, Realizer& realizer) {
    Operation* terminator = step.getBody().front().getTerminator();
    for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
      Value value = terminator->getOperand(i);
      realizer.setWhere(RunsIn::kUpdate, stageOfValue(value));
      Layout wanted = realizer.layoutOf(value);
      wanted.setPartial({});
      if (Realizer::splitOverTime(wanted)) {
        return emitError(value.getLoc()) << "result '" << resultText(step, i, kNameAttr)
                                         << "' carries the batch, but the step runs in "
                                         << decisions.mesh.microBatches()
                                         << " micro-batches; reduce it over the batch, or use micro = 1";
      }
      if (auto argument = step.getResultAttrOfType<IntegerAttr>(i, kUpdatesAttr)) {
        wanted = decisions.arguments[argument.getInt()].layout;
      }
      FailureOr<Value> result = realizer.read(value, wanted, terminator, i);
      if (failed(result)) {
        return failure();
      }
      terminator->setOperand(i, *result);
    }
    sendToHolders(step, decisions, realizer);
    refreshType(step);
    return success();
  }

  // What replaces an argument goes to the submeshes of other meshes that hold it too: one more result for each.
  static void sendToHolders(func::FuncOp step, const Decisions& decisions, Realizer& realizer) {
    const ModuleMeshes meshes = decisions.meshes();
    const unsigned count = step.getNumResults();
    const auto held = realizer.transfers();
    for (unsigned i = 0; i < count; ++i) {
      auto replaced = step.getResultAttrOfType<IntegerAttr>(i, kUpdatesAttr);
      for (const auto& [key, transferred] : held) {
        const int64_t stage = stageOf(transferred.getDefiningOp());
        if (!replaced || key.first != step.getArgument(replaced.getInt())) {
          continue;
        }
        Operation* terminator = step.getBody().front().getTerminator();
        realizer.setWhere(RunsIn::kUpdate, stage);
        Value sent = realizer.transfer(returned(step, i), realizer.layoutOf(transferred), terminator,
                                       "the new value of " + resultText(step, i, kNameAttr));
        NamedAttrList attrs(step.getResultAttrDict(i));
        attrs.set(kStageAttr, Builder(step.getContext()).getI64IntegerAttr(stage));
        addResult(step, sent, attrs);
      }
    }
  }

  // @init: every generator makes its value in the argument's layout.
  static LogicalResult realizeInit(ModuleOp module, const Decisions& decisions) {
    func::FuncOp init = initFunction(module);
    if (!init) {
      return success();
    }
    std::map<std::string, const ArgumentDecision*> byName;
    for (const ArgumentDecision& argument : decisions.arguments) {
      byName[argument.name] = &argument;
    }
    const ModuleMeshes meshes = decisions.meshes();
    const unsigned count = init.getNumResults();
    for (unsigned i = 0; i < count; ++i) {
      const std::string name = resultText(init, i, kNameAttr);
      const auto it = byName.find(name);
      if (it == byName.end()) {
        return init.emitError() << "result '" << name << "' is no argument of @step";
      }
      Value value = returned(init, i);
      const Mesh& mesh = meshes.ofStage(it->second->stage);
      value.setType(ir::dist::withLayout(value.getType(), it->second->layout.canonical(), mesh));
      value.getDefiningOp()->setAttr(kRunsInAttr, StringAttr::get(module.getContext(), "init"));
      value.getDefiningOp()->setAttr(kStageAttr, Builder(module).getI64IntegerAttr(it->second->stage));
      for (const auto& [number, layout] : it->second->elsewhere) {
        initElsewhere(init, i, layout, {meshes, number});
      }
    }
    refreshType(init);
    return success();
  }

  struct MeshNumber {
    const ModuleMeshes& meshes;
    int64_t number;
  };

  // The generator of result `index` once more, on another mesh.
  static void initElsewhere(func::FuncOp init, unsigned index, const Layout& layout, const MeshNumber& mesh) {
    OpBuilder builder(init.getBody().front().getTerminator());
    Value value = returned(init, index);
    Operation* copy = builder.clone(*value.getDefiningOp());
    Value made = copy->getResult(cast<OpResult>(value).getResultNumber());
    made.setType(ir::dist::withLayout(value.getType(), layout.canonical(), mesh.meshes.withNumber(mesh.number)));
    copy->setAttr(kStageAttr, builder.getI64IntegerAttr(mesh.meshes.stageWith(mesh.number)));
    addResult(init, made, NamedAttrList(init.getResultAttrDict(index)));
  }
};

}  // namespace

std::unique_ptr<Pass> createInsertReshardsPass() {
  return std::make_unique<InsertReshardsPass>();
}

}  // namespace weft
