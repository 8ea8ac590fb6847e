// Inserts what brings values to operators of another mesh, where submeshes have different meshes.
//
// A value of another mesh is read through a dist.transfer, one for each value and submesh, in the splits of its first
// reader there. An argument is held on both meshes; its transfer moves nothing. Operators without operands (fill, iota)
// are cloned on the stage that reads them: a transfer would cost more. @init makes the first values of an argument on
// each mesh that holds it.

#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"
#include "passes/partition/value_layouts.h"
#include "planner/step/time_layouts.h"

namespace weft {

#define GEN_PASS_DEF_INSERTTRANSFERSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

class TransferInserter {
 public:
  TransferInserter(const Decisions& decisions, ValueLayouts& layouts)
      : decisions_(decisions), byId_(decisionsById(decisions)), layouts_(layouts), meshes_(layouts.meshes()) {}

  LogicalResult visit(Operation* op) {
    FailureOr<std::vector<const Layout*>> reads = layouts_.readsOf(op);
    if (failed(reads)) {
      return failure();
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (meshes_.number(op->getOperand(i)) != meshes_.number(op)) {
        op->setOperand(i, brought(op->getOperand(i), *(*reads)[i], op, i));
      }
    }
    return success();
  }

 private:
  // `value` on the mesh of `op`, which is the first in this submesh to read it, or not.
  Value brought(Value value, const Layout& wanted, Operation* op, unsigned index) {
    Value& known = brought_[{value, meshes_.submeshes[stageOf(op)]}];
    if (!known) {
      Operation* producer = value.getDefiningOp();
      if (producer != nullptr && producer->getNumOperands() == 0 && !isAsked(producer)) {
        known = clone(value, wanted, op);
      } else {
        known = transfer(value, producer == nullptr ? elsewhere(value, op) : likeInTime(wanted, layouts_.of(value)), op,
                         reasonOf(op, index));
      }
    }
    return known;
  }

  // Will a reshard stand behind the operator, for its out strategy?
  bool isAsked(Operation* producer) const {
    const auto decision = byId_.find(idOf(producer));
    return decision != byId_.end() && !decision->second->results.empty();
  }

  Value transfer(Value value, const Layout& layout, Operation* reader, const std::string& reason) {
    OpBuilder builder(reader);
    auto made = builder.create<ir::dist::TransferOp>(reader->getLoc(), value.getType(), value, reason);
    setPlace(made, placeOf(reader));
    if (auto phase = reader->getAttr(kPhaseAttr)) {
      made->setAttr(kPhaseAttr, phase);
    }
    layouts_.set(made->getResult(0), layout);
    return made->getResult(0);
  }

  Value clone(Value value, const Layout& wanted, Operation* reader) {
    OpBuilder builder(reader);
    Operation* copy = builder.clone(*value.getDefiningOp());
    setPlace(copy, placeOf(reader));
    for (auto [result, original] : llvm::zip(copy->getResults(), value.getDefiningOp()->getResults())) {
      const Layout& before = layouts_.of(original);
      layouts_.set(result, original == value ? likeInTime(wanted, before) : Layout(before.dimensions()));
    }
    return copy->getResult(cast<OpResult>(value).getResultNumber());
  }

  // The layout of an argument on the mesh of its reader.
  const Layout& elsewhere(Value argument, Operation* reader) const {
    return decisions_.arguments[cast<BlockArgument>(argument).getArgNumber()].layoutOn(meshes_.number(reader));
  }

  const Decisions& decisions_;
  std::map<int64_t, const OperatorDecision*> byId_;
  ValueLayouts& layouts_;
  const ModuleMeshes& meshes_;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> brought_;  // by value and submesh that reads it
};

// The generator of result `index` of @init once more, on another mesh.
void initElsewhere(func::FuncOp init, unsigned index, const Layout& layout, const Mesh& mesh, int64_t stage) {
  OpBuilder builder(init.getBody().front().getTerminator());
  Value value = returned(init, index);
  Operation* copy = builder.clone(*value.getDefiningOp());
  Value made = copy->getResult(cast<OpResult>(value).getResultNumber());
  made.setType(ir::dist::withLayout(value.getType(), layout.canonical(), mesh));
  copy->setAttr(kStageAttr, builder.getI64IntegerAttr(stage));
  addResult(init, made, NamedAttrList(init.getResultAttrDict(index)));
}

void initOnEachMesh(func::FuncOp init, const Decisions& decisions) {
  std::map<std::string, const ArgumentDecision*> byName;
  for (const ArgumentDecision& argument : decisions.arguments) {
    byName[argument.name] = &argument;
  }
  const ModuleMeshes meshes = decisions.meshes();
  const unsigned count = init.getNumResults();
  for (unsigned i = 0; i < count; ++i) {
    const auto it = byName.find(resultText(init, i, kNameAttr));
    if (it != byName.end()) {
      for (const auto& [number, layout] : it->second->elsewhere) {
        initElsewhere(init, i, layout, meshes.withNumber(number), meshes.stageWith(number));
      }
    }
  }
}

class InsertTransfersPass : public impl::InsertTransfersPassBase<InsertTransfersPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> found = stepOf(module);
    FailureOr<ModuleMeshes> meshes = stageMeshesOf(module);
    if (failed(meshes) || failed(found)) {
      return signalPassFailure();
    }
    func::FuncOp step = *found;
    if (meshes->same()) {
      return;
    }
    const Decisions* decisions = recordOf(getOperation());
    ValueLayouts layouts(*std::move(meshes));
    if (decisions == nullptr || failed(layouts.read(step))) {
      return signalPassFailure();
    }
    TransferInserter inserter(*decisions, layouts);
    for (Operation& op : llvm::make_early_inc_range(step.getBody().front().without_terminator())) {
      if (failed(inserter.visit(&op))) {
        return signalPassFailure();
      }
    }
    numTransfers += llvm::range_size(step.getOps<ir::dist::TransferOp>());
    if (func::FuncOp init = initFunction(module)) {
      initOnEachMesh(init, *decisions);
    }
  }
};

}  // namespace
}  // namespace weft
