// Gives every value its layout: logical -> annotated, without what moves values between layouts.
//
// Each operator's factor axes say in which layout it reads its operands and leaves its results. What an operator reads
// is written beside it (dist.reads); where a value lies otherwise, insert-transfers and insert-reshards put what moves
// it.
//
// Partial sums. A result reduced over a split factor is partial. Cheap operators that are linear in it pass the sum on
// (reshape, scaling, adding two sums partial over the same axes); everything else reads it reduced. Once one operator
// has a sum reduced, the readers that share the reshard read it reduced too: passing it on would reduce it twice.

#include <set>

#include "ir/dist/dist.h"
#include "ir/layout/linear_sets.h"
#include "ir/layout/stage_mesh_text.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/gates/check_decisions.h"
#include "passes/partition/micro_batch_rows.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"
#include "passes/partition/value_layouts.h"
#include "passes/partition/value_shapes.h"

namespace weft {

#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

class LayoutAssigner {
 public:
  LayoutAssigner(const Decisions& decisions, ValueShapes stored)
      : readers_(decisions), meshes_(decisions.meshes()), stored_(std::move(stored)) {}

  void assign(Value value, Layout layout) {
    value.setType(ir::dist::withLayout(value.getType(), layout.canonical(), meshes_.of(value)));
    layouts_[value] = std::move(layout);
  }

  LogicalResult visit(Operation* op, const OperatorDecision& decision) {
    absl::StatusOr<Rule> rule =
        Rule::parse(cast<ir::OperatorInterface>(op).getRule(), stored_.operands(op), stored_.results(op));
    if (!rule.ok()) {
      return op->emitError(std::string(rule.status().message()));
    }
    const Place place = {decision.runsIn, decision.stage};
    setPlace(op, place);
    const FactorAxes axes = factorAxes(*rule, decision);
    noteReducedElsewhere(op);
    const std::vector<Partial> passed = passedSums(op, axes);
    std::vector<Layout> reads;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Layout wanted = withPads(rule->operandLayout(i, axes), op->getOperand(i));
      std::vector<Partial> kept = partialAt(op, i);
      llvm::erase_if(kept, [&](const Partial& sum) { return !llvm::is_contained(passed, sum); });
      wanted.setPartial(std::move(kept));
      noteReduced(op, i, wanted);
      reads.push_back(std::move(wanted));
    }
    setReads(op, reads, meshes_.of(op));
    assignResults(op, *rule, axes, passed, decision);
    return success();
  }

 private:
  // `layout` with the pads of `value`.
  Layout withPads(Layout layout, Value value) const {
    const Shape logical = ir::shapeOf(value);
    const Shape& shape = stored_.of(value);
    for (size_t d = 0; d < logical.size(); ++d) {
      layout.setPad(d, shape[d] == logical[d] ? 0 : shape[d]);
    }
    return layout;
  }

  FactorAxes factorAxes(const Rule& rule, const OperatorDecision& decision) const {
    const Mesh& mesh = meshes_.ofStage(decision.stage);
    FactorAxes axes(rule.factors().size());
    for (size_t f = 0; f < axes.size(); ++f) {
      const std::string& name = rule.factors()[f].name;
      const auto it = decision.axes.find(name);
      if (it != decision.axes.end()) {
        axes[f] = it->second;
      }
      const bool carriesBatch = name == decision.batch || (rule.factors()[f].microBatches && !decision.batch.empty());
      if (decision.perMicroBatch && carriesBatch && mesh.microBatches() > 1) {
        axes[f].push_back(timeAxis(mesh));
      }
    }
    return axes;
  }

  // The sums over which an operand is partial where `op` reads it: what comes from another mesh is whole.
  std::vector<Partial> partialAt(Operation* op, unsigned operand) const {
    Value value = op->getOperand(operand);
    return meshes_.number(value) == meshes_.number(op) ? layouts_.find(value)->second.partial()
                                                       : std::vector<Partial>();
  }

  // Partial sums that pass through `op`: those of operands in which it is linear together. What else an operand is
  // partial over is reduced first.
  std::vector<Partial> passedSums(Operation* op, const FactorAxes& axes) {
    std::vector<Partial> passed;
    SmallVector<unsigned> holders;  // of the sums that pass: the same operands for all
    auto interface = dyn_cast<ir::OperatorInterface>(op);
    if (!interface || !interface.passesSums() || op->hasAttr(kGradientOfAttr)) {
      return passed;
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      for (const Partial& sum : partialAt(op, i)) {
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
      if (llvm::is_contained(partialAt(op, k), sum)) {
        holders.push_back(k);
      }
    }
    return holders;
  }

  bool passes(Operation* op, unsigned operand, const Partial& sum, const FactorAxes& axes) {
    std::vector<bool> partial;
    for (unsigned k = 0; k < op->getNumOperands(); ++k) {
      const std::vector<Partial> sums = partialAt(op, k);
      partial.push_back(llvm::any_of(sums, [&](const Partial& other) { return overlap(other.axis, sum.axis); }));
      if (partial.back() && !llvm::is_contained(sums, sum)) {
        return false;
      }
    }
    const bool fits = llvm::all_of(axes, [&](const std::vector<Axis>& list) {
      return llvm::all_of(list, [&](const Axis& axis) { return compatible(axis, sum.axis); });
    });
    // What runs after the micro-batches reads whole sums over them.
    const Place place = placeOf(op);
    const bool early = !isTime(sum.axis) || place.where != RunsIn::kUpdate;
    Value value = op->getOperand(operand);
    const bool wasted = !isTime(sum.axis) && reduced_.count({value, readers_.regionOf(value, place)}) > 0;
    return fits && early && !wasted && sum.kind == ReduceKind::kSum &&
           linearIn(cast<ir::OperatorInterface>(op).getLinearSets(), operand, partial);
  }

  // Operand `index`, read as `wanted`, is reduced for the readers of a region if nothing else changes: the reshard then
  // makes exactly the reduced value. A sum over the micro-batches is accumulated on the way.
  void noteReduced(Operation* op, unsigned index, const Layout& wanted) {
    Value value = op->getOperand(index);
    if (partialAt(op, index).empty() || partialOverTime(layouts_[value])) {
      return;
    }
    Layout whole = layouts_[value];
    whole.setPartial({});
    if (wanted.canonical() == whole.canonical()) {
      reduced_.insert({value, readers_.regionOf(value, placeOf(op))});
    }
  }

  // What another mesh reads is reduced where it is made.
  void noteReducedElsewhere(Operation* op) {
    for (Value value : op->getOperands()) {
      Operation* producer = value.getDefiningOp();
      const bool sent = producer != nullptr && meshes_.number(value) != meshes_.number(op);
      if (sent && layouts_[value].isPartial() && !partialOverTime(layouts_[value])) {
        reduced_.insert({value, readers_.regionOf(value, placeOf(producer))});
      }
    }
  }

  void assignResults(Operation* op, const Rule& rule, const FactorAxes& axes, const std::vector<Partial>& passed,
                     const OperatorDecision& decision) {
    for (OpResult result : op->getResults()) {
      const unsigned r = result.getResultNumber();
      Layout layout = withPads(rule.resultLayout(r, axes, cast<ir::OperatorInterface>(op).getReduceKind(r)), result);
      std::vector<Partial> partial = layout.partial();
      partial.insert(partial.end(), passed.begin(), passed.end());
      layout.setPartial(partial);
      assign(result, layout);
      // Readers see the layout that was asked for.
      const auto asked = decision.results.find(r);
      if (asked != decision.results.end()) {
        Layout seen = withPads(asked->second, result);
        layouts_[result] = sliceTime(seen, layout, meshes_.of(op)).value_or(seen);
      }
    }
  }

  Readers readers_;
  ModuleMeshes meshes_;
  ValueShapes stored_;
  llvm::DenseMap<Value, Layout> layouts_;  // as readers see them
  struct Less {
    using Entry = std::pair<Value, Region>;
    bool operator()(const Entry& a, const Entry& b) const {
      return std::make_pair(a.first.getAsOpaquePointer(), a.second) <
             std::make_pair(b.first.getAsOpaquePointer(), b.second);
    }
  };
  std::set<std::pair<Value, Region>, Less> reduced_;
};

class AssignLayoutsPass : public impl::AssignLayoutsPassBase<AssignLayoutsPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = recordOf(getOperation());
    if (decisions == nullptr || failed(checkDecisions(stepFunction(module), *decisions))) {
      return signalPassFailure();
    }
    if (failed(assignStep(module, *decisions)) || failed(assignInit(module, *decisions))) {
      return signalPassFailure();
    }
    setSchedule(module, decisions->schedule);
    setMeshes(module, *decisions);
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

  static LogicalResult assignStep(ModuleOp module, const Decisions& decisions) {
    func::FuncOp step = stepFunction(module);
    FailureOr<ValueShapes> stored = storedShapes(step, decisions);
    if (failed(stored)) {
      return failure();
    }
    LayoutAssigner assigner(decisions, *std::move(stored));
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      if (decisions.arguments[i].stage > 0) {
        step.setArgAttr(i, kStageAttr, Builder(module).getI64IntegerAttr(decisions.arguments[i].stage));
      }
      assigner.assign(step.getArgument(i), decisions.arguments[i].layout);
    }
    const std::map<int64_t, const OperatorDecision*> byId = decisionsById(decisions);
    for (Operation& op : step.getBody().front().without_terminator()) {
      const auto decision = byId.find(idOf(&op));
      if (decision == byId.end() || !isa<ir::OperatorInterface>(op)) {
        return op.emitError() << op.getName() << " has no place in the logical state";
      }
      if (failed(assigner.visit(&op, *decision->second))) {
        return failure();
      }
    }
    refreshType(step);
    return success();
  }

  // @init: every generator makes its value in the argument's layout.
  static LogicalResult assignInit(ModuleOp module, const Decisions& decisions) {
    func::FuncOp init = initFunction(module);
    if (!init) {
      return success();
    }
    std::map<std::string, const ArgumentDecision*> byName;
    for (const ArgumentDecision& argument : decisions.arguments) {
      byName[argument.name] = &argument;
    }
    const ModuleMeshes meshes = decisions.meshes();
    for (unsigned i = 0; i < init.getNumResults(); ++i) {
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
    }
    refreshType(init);
    return success();
  }
};

}  // namespace
}  // namespace weft
