#include "passes/partition/recompute.h"

#include <map>
#include <tuple>

#include "ir/dist/dist.h"
#include "ir/layout/layout.h"
#include "ir/nn/nn.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/partition/readers.h"

namespace weft {

#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/generated/passes.h.inc"

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

// Makes copies of marked forward operators in the backward pass.
class Recomputer {
 public:
  Recomputer(func::FuncOp step, ModuleMeshes meshes) : step_(step), meshes_(std::move(meshes)) {}

  // Returns the number of copies.
  size_t run() {
    for (Operation& op : llvm::make_early_inc_range(step_.getBody().front().without_terminator())) {
      if (runsWhere(&op) == "backward") {
        for (OpOperand& operand : op.getOpOperands()) {
          operand.set(again(operand.get(), &op));
        }
      }
    }
    return copies_.size();
  }

 private:
  // `value`, or its copy in the backward pass, made before `reader`.
  Value again(Value value, Operation* reader) {
    Operation* op = value.getDefiningOp();
    if (op == nullptr || stageOf(op) != stageOf(reader) || !isRepeated(op, meshes_)) {
      return value;
    }
    Operation*& copy = copies_[{op, stageOf(reader)}];
    if (copy == nullptr) {
      OpBuilder builder(reader);
      Operation* made = builder.clone(*op);
      made->setAttr(kRunsInAttr, builder.getStringAttr("backward"));
      made->removeAttr(kRecomputeAttr);
      copies_[{op, stageOf(reader)}] = made;
      for (OpOperand& operand : made->getOpOperands()) {
        operand.set(again(operand.get(), made));
      }
      return made->getResult(cast<OpResult>(value).getResultNumber());
    }
    return copy->getResult(cast<OpResult>(value).getResultNumber());
  }

  func::FuncOp step_;
  ModuleMeshes meshes_;
  llvm::DenseMap<std::pair<Operation*, int64_t>, Operation*> copies_;
};

class RecomputePass : public impl::RecomputePassBase<RecomputePass> {
 public:
  void runOnOperation() override {
    FailureOr<ModuleMeshes> meshes = stageMeshesOf(getOperation());
    FailureOr<func::FuncOp> step = stepOf(getOperation());
    if (failed(meshes) || failed(step)) {
      return signalPassFailure();
    }
    numCopies += Recomputer(*step, *std::move(meshes)).run();
  }
};

}  // namespace

bool isReshardOrMask(Operation* op) {
  return isa<ir::dist::ReshardOp, ir::dist::MaskPadOp>(op);
}

ReshardDecision reshardEntry(Operation* op) {
  ReshardDecision entry;
  if (auto mask = dyn_cast<ir::dist::MaskPadOp>(op)) {
    entry.how = "mask";
    for (const int64_t dim : mask.getDims()) {
      entry.how += " " + std::to_string(dim);
    }
  } else {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    entry.how = cast<ir::dist::LayoutAttr>(type.getEncoding()).getText().str();
  }
  entry.stage = stageOf(op);
  Value source = op->getOperand(0);
  while (source.getDefiningOp() != nullptr && isReshardOrMask(source.getDefiningOp())) {
    source = source.getDefiningOp()->getOperand(0);
  }
  if (auto argument = dyn_cast<BlockArgument>(source)) {
    entry.index = argument.getArgNumber();
  } else {
    entry.id = idOf(source.getDefiningOp());
    entry.index = cast<OpResult>(source).getResultNumber();
  }
  return entry;
}

void markRecomputed(func::FuncOp step, const Decisions& decisions) {
  const UnitAttr marked = UnitAttr::get(step.getContext());
  const auto key = [](const ReshardDecision& e) { return std::make_tuple(e.id, e.index, e.how, e.stage); };
  std::map<decltype(key(ReshardDecision())), bool> reshards;
  for (const ReshardDecision& entry : decisions.reshards) {
    reshards[key(entry)] = entry.recompute;
  }
  std::map<int64_t, bool> operators;
  for (const OperatorDecision& entry : decisions.operators) {
    operators[entry.id] = entry.recompute;
  }
  for (Operation& op : step.getBody().front().without_terminator()) {
    op.removeAttr(kRecomputeAttr);
    op.removeAttr(kKeepAttr);
    if (!isReshardOrMask(&op)) {
      if (operators[idOf(&op)]) {
        op.setAttr(kRecomputeAttr, marked);
      }
    } else if (runsWhere(&op) == "forward") {
      const auto known = reshards.find(key(reshardEntry(&op)));
      if (known != reshards.end()) {
        op.setAttr(known->second ? kRecomputeAttr : kKeepAttr, marked);
      }
    }
  }
}

StringRef runsWhere(Operation* op) {
  auto function = op->getAttrOfType<StringAttr>(kRunsInAttr);
  return function ? function.getValue() : "";
}

bool makesPartialOverTime(Operation* op, const ModuleMeshes& meshes) {
  return llvm::any_of(op->getResultTypes(), [&](Type type) {
    auto attr = dyn_cast_or_null<ir::dist::LayoutAttr>(cast<RankedTensorType>(type).getEncoding());
    absl::StatusOr<Layout> layout = Layout::parse(attr ? attr.getText().str() : "", meshes.of(op));
    return layout.ok() &&
           llvm::any_of(layout->partial(), [](const Partial& sum) { return sum.axis.kind == AxisKind::kTime; });
  });
}

bool isRepeated(Operation* op, const ModuleMeshes& meshes) {
  for (;;) {
    if (runsWhere(op) != "forward" || makesPartialOverTime(op, meshes)) {
      return false;
    }
    if (op->hasAttr(kRecomputeAttr) || op->hasAttr(kKeepAttr)) {
      return op->hasAttr(kRecomputeAttr);
    }
    Operation* source = isReshardOrMask(op) ? op->getOperand(0).getDefiningOp() : nullptr;
    if (source == nullptr || stageOf(source) != stageOf(op)) {
      return false;
    }
    op = source;
  }
}

}  // namespace weft
