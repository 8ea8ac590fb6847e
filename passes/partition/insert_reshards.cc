// Makes every change of layout a dist.reshard: where a value lies otherwise than an operator reads it (dist.reads).
//
// One reshard serves all readers that want the same layout in the same part of the step (per backward pass too, where
// gathered values are to be gathered again).
//
// Which layouts a value passes on its way, and where its reshards run, planner/step/reshard_paths.h says. What a
// transfer sends is whole: its sums are reduced on the mesh they are made on. Results leave in the update: replaced
// arguments in the argument's layout, all others with no sum partial.

#include <tuple>

#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/micro_batch_rows.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"
#include "passes/partition/value_layouts.h"
#include "passes/plan/instruction_facts.h"
#include "planner/step/reshard_paths.h"
#include "planner/step/value_layouts.h"

namespace weft {

#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// Who reads a value: which operator, in which place, and why, for people; the reshard stands before `before`.
struct Reader {
  Operation* op;
  Operation* before;
  Place place;
  std::string reason;
};

// The reshards of a step, each made once for the readers that share it.
class Resharder {
 public:
  Resharder(const Decisions& decisions, ValueLayouts& layouts)
      : decisions_(decisions), levels_(decisions), gathers_(decisions), layouts_(layouts), meshes_(layouts.meshes()) {}

  // `value` in layout `wanted`, through reshards made or found. Error, at the reader: it wants whole what is computed
  // in micro-batches.
  FailureOr<Value> read(Value value, const Layout& wanted, const Reader& reader) {
    auto parameter = reader.op->getAttrOfType<StringAttr>(kGradientOfAttr);
    const LayoutRead read = {.wanted = wanted,
                             .reason = reader.reason,
                             .scattersEach = scattersGradient(levels_, parameter ? parameter.str() : ""),
                             .collects = reader.op->hasTrait<OpTrait::IsTerminator>()};
    const absl::StatusOr<std::vector<Layout>> path = pathOfRead(layouts_.of(value), read, meshOf(reader));
    if (!path.ok()) {
      return reader.op->emitError() << std::string(path.status().message()), failure();
    }
    for (const Layout& next : *path) {
      value = reshard(value, next, reader, read.scattersEach);
    }
    return value;
  }

  // `value` with no sum partial, reduced on its own mesh.
  Value reduced(Value value, Reader reader) {
    for (const PlacedLayout& next : pathOfReduced(layouts_.of(value), placeOf(value.getDefiningOp()))) {
      reader.place = next.place;
      value = reshard(value, next.layout, reader);
    }
    return value;
  }

  // One reshard before the reader, or the one that a reader of the same region has.
  Value reshard(Value value, const Layout& wanted, const Reader& reader, bool scattersEach = false) {
    const Layout& current = layouts_.of(value);
    const Layout target = wanted.canonical();
    if (current == target) {
      return value;
    }
    const RankedTensorType type = ir::dist::withLayout(value.getType(), target, meshOf(reader));
    const GatherPolicy gather = gathers_.of(value);
    Value& known = made_[{value.getAsOpaquePointer(), type.getAsOpaquePointer(), regionOf(gather, reader.place)}];
    if (!known) {
      const ReshardReader asked = {reader.place, isMadeOnce(decisions_, gather, reader.place), scattersEach};
      OpBuilder builder(reader.before);
      if (standsBehindProducer(current, target, asked, tensorSpec(value).bytes())) {
        builder.setInsertionPointAfterValue(value);
      }
      auto op = builder.create<ir::dist::ReshardOp>(reader.op->getLoc(), type, value, reader.reason);
      setPlace(op, placeOfReshard(current, target, placeOfProducer(value), asked));
      if (auto phase = reader.op->getAttr(kPhaseAttr)) {
        op->setAttr(kPhaseAttr, phase);
      }
      known = op.getResult();
      layouts_.set(known, target);
    }
    return known;
  }

 private:
  const Mesh& meshOf(const Reader& reader) const { return meshes_.ofStage(reader.place.stage); }

  static std::optional<Place> placeOfProducer(Value value) {
    Operation* producer = value.getDefiningOp();
    return producer == nullptr ? std::nullopt : std::optional<Place>(placeOf(producer));
  }

  using Key = std::tuple<const void*, const void*, ReaderRegion>;  // value, type it is read in

  const Decisions& decisions_;
  const ZeroLevels levels_;
  GatherPolicies gathers_;
  ValueLayouts& layouts_;
  const ModuleMeshes& meshes_;
  std::map<Key, Value> made_;
};

// Puts the reshards of a step where its operators and results ask for them.
class ReshardInserter {
 public:
  ReshardInserter(func::FuncOp step, const Decisions& decisions, ValueLayouts& layouts)
      : step_(step), byId_(decisionsById(decisions)), layouts_(layouts), resharder_(decisions, layouts) {}

  LogicalResult run() {
    for (Operation& op : llvm::make_early_inc_range(step_.getBody().front().without_terminator())) {
      const bool isMove = isa<ir::dist::ReshardOp, ir::dist::TransferOp>(op);
      if (failed(isMove ? send(&op) : visit(&op))) {
        return failure();
      }
    }
    return leave();
  }

 private:
  LogicalResult visit(Operation* op) {
    FailureOr<std::vector<const Layout*>> reads = layouts_.readsOf(op);
    if (failed(reads)) {
      return failure();
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (layouts_.of(op->getOperand(i)) == *(*reads)[i]) {
        continue;
      }
      FailureOr<Value> operand =
          resharder_.read(op->getOperand(i), *(*reads)[i], {op, op, placeOf(op), reasonOf(op, i)});
      if (failed(operand)) {
        return failure();
      }
      op->setOperand(i, *operand);
    }
    removeReads(op);
    const auto decision = byId_.find(idOf(op));
    // A copy on another mesh has the number of the operator, but not what was asked of its results.
    if (decision != byId_.end() && decision->second->stage == stageOf(op)) {
      reshardResults(op, *decision->second);
    }
    return success();
  }

  // Results in the layouts that were asked for, for all readers.
  void reshardResults(Operation* op, const OperatorDecision& decision) {
    Operation* next = op->getNextNode();
    for (const auto& [r, layout] : decision.results) {
      OpResult result = op->getResult(r);
      const Layout asked = askedLayout(layout, layouts_.of(result), layouts_.meshes().of(op));
      Value made = resharder_.reshard(result, asked, {op, next, placeOf(op), labelOf(op) + " out strategy"});
      if (made != result) {
        result.replaceAllUsesExcept(made, made.getDefiningOp());
      }
    }
  }

  LogicalResult send(Operation* op) {
    Value value = op->getOperand(0);
    if (auto transfer = dyn_cast<ir::dist::TransferOp>(op); transfer && value.getDefiningOp() != nullptr) {
      op->setOperand(0, resharder_.reduced(value, {op, op, placeOf(op), transfer.getReason().str()}));
    }
    return success();
  }

  LogicalResult leave() {
    Operation* terminator = step_.getBody().front().getTerminator();
    const int64_t stripes = countStripes(step_, layouts_);
    for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
      Value value = terminator->getOperand(i);
      const absl::StatusOr<Layout> wanted =
          layoutOfResult(layouts_.of(value), {resultText(step_, i, kNameAttr), updatedLayout(i), stripes},
                         layouts_.meshes().ofSubmesh[0]);
      if (!wanted.ok()) {
        return emitError(value.getLoc()) << std::string(wanted.status().message());
      }
      FailureOr<Value> result = resharder_.read(
          value, *wanted, {terminator, terminator, {RunsIn::kUpdate, stageOfValue(value)}, reasonOf(terminator, i)});
      if (failed(result)) {
        return failure();
      }
      terminator->setOperand(i, *result);
    }
    refreshType(step_);
    return success();
  }

  // The layout of the argument that result `i` of the step replaces.
  std::optional<Layout> updatedLayout(unsigned i) {
    auto argument = step_.getResultAttrOfType<IntegerAttr>(i, kUpdatesAttr);
    return argument ? std::optional<Layout>(layouts_.of(step_.getArgument(argument.getInt()))) : std::nullopt;
  }

  func::FuncOp step_;
  std::map<int64_t, const OperatorDecision*> byId_;
  ValueLayouts& layouts_;
  Resharder resharder_;
};

class InsertReshardsPass : public impl::InsertReshardsPassBase<InsertReshardsPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = recordOf(getOperation());
    FailureOr<ModuleMeshes> meshes = stageMeshesOf(module);
    if (decisions == nullptr || failed(meshes)) {
      return signalPassFailure();
    }
    func::FuncOp step = stepFunction(module);
    ValueLayouts layouts(*std::move(meshes));
    if (failed(layouts.read(step)) || failed(ReshardInserter(step, *decisions, layouts).run())) {
      return signalPassFailure();
    }
    numReshards += llvm::range_size(step.getOps<ir::dist::ReshardOp>());
  }
};

}  // namespace
}  // namespace weft
