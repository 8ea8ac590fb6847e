#include "passes/stage/recompute.h"

#include "ir/dist/dist.h"
#include "ir/layout/layout.h"
#include "ir/nn/nn.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/stage/assign_stages.h"
#include "passes/stage/passes.h"
#include "passes/support/module_meshes.h"
#include "passes/support/program.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

bool isForward(Operation* op) {
  auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
  return (!phase || phase.getValue().empty()) && !op->hasAttr(kPrologueAttr);
}

bool matches(Operation* op, const std::string& pattern) {
  auto glob = llvm::GlobPattern::create(pattern);
  if (!glob) {
    llvm::consumeError(glob.takeError());
    return false;
  }
  return glob->match(op->getName().stripDialect()) || glob->match(labelOf(op));
}

// Makes copies of marked forward operators in the backward pass.
class Recomputer {
 public:
  Recomputer(func::FuncOp step, StageMeshes meshes) : step_(step), meshes_(std::move(meshes)) {}

  void run() {
    for (Operation& op : llvm::make_early_inc_range(step_.getBody().front().without_terminator())) {
      if (functionOf(&op) == "backward") {
        for (OpOperand& operand : op.getOpOperands()) {
          operand.set(again(operand.get(), &op));
        }
      }
    }
  }

 private:
  static StringRef functionOf(Operation* op) {
    auto function = op->getAttrOfType<StringAttr>("dist.function");
    return function ? function.getValue() : "";
  }

  // `value`, or its copy in the backward pass, made before `reader`.
  Value again(Value value, Operation* reader) {
    Operation* op = value.getDefiningOp();
    if (op == nullptr || !mayRepeat(op, reader)) {
      return value;
    }
    Operation*& copy = copies_[{op, stageOf(reader)}];
    if (copy == nullptr) {
      OpBuilder builder(reader);
      Operation* made = builder.clone(*op);
      made->setAttr("dist.function", builder.getStringAttr("backward"));
      made->removeAttr(kRecomputeAttr);
      copies_[{op, stageOf(reader)}] = made;
      for (OpOperand& operand : made->getOpOperands()) {
        operand.set(again(operand.get(), made));
      }
      return made->getResult(cast<OpResult>(value).getResultNumber());
    }
    return copy->getResult(cast<OpResult>(value).getResultNumber());
  }

  // Marked operators, and reshards and masks of what they make; on the reader's stage. A sum pending over the pieces is
  // whole only after all of them: it is kept.
  bool mayRepeat(Operation* op, Operation* reader) {
    if (functionOf(op) != "forward" || stageOf(op) != stageOf(reader) || pendsOverTime(op)) {
      return false;
    }
    if (isa<ir::dist::ReshardOp, ir::dist::MaskPadOp>(op)) {
      Operation* source = op->getOperand(0).getDefiningOp();
      return source != nullptr && mayRepeat(source, reader);
    }
    return op->hasAttr(kRecomputeAttr);
  }

  bool pendsOverTime(Operation* op) {
    return llvm::any_of(op->getResultTypes(), [&](Type type) {
      auto attr = dyn_cast_or_null<ir::dist::LayoutAttr>(cast<RankedTensorType>(type).getEncoding());
      absl::StatusOr<Layout> layout = Layout::parse(attr ? attr.getText().str() : "", meshes_.of(op));
      return layout.ok() &&
             llvm::any_of(layout->partial(), [](const Partial& sum) { return sum.axis.kind == AxisKind::kTime; });
    });
  }

  func::FuncOp step_;
  StageMeshes meshes_;
  llvm::DenseMap<std::pair<Operation*, int64_t>, Operation*> copies_;
};

class RecomputePass : public PassWrapper<RecomputePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecomputePass)
  StringRef getArgument() const override { return "weft-recompute"; }
  StringRef getDescription() const override {
    return "Compute again in the backward pass what the decisions do not keep";
  }

  void runOnOperation() override {
    FailureOr<StageMeshes> meshes = stageMeshesOf(getOperation());
    func::FuncOp step = stepFunction(getOperation());
    if (failed(meshes) || !step) {
      return signalPassFailure();
    }
    Recomputer(step, *std::move(meshes)).run();
  }
};

}  // namespace

std::vector<std::string> recomputePatterns(const std::string& option) {
  std::vector<std::string> patterns;
  llvm::SmallVector<StringRef> words;
  StringRef(option).split(words, ',', -1, false);
  for (StringRef word : words) {
    patterns.push_back(word.trim() == "full" ? "*" : word.trim().str());
  }
  return patterns;
}

bool isRecomputed(Operation* op, const std::vector<std::string>& patterns) {
  if (!isForward(op) || op->getNumOperands() == 0) {
    return false;
  }
  auto scope = op->getAttrOfType<IntegerAttr>(kUserRecomputeAttr);
  bool outside = false;
  for (Operation* user : op->getUsers()) {
    outside |= user->hasTrait<OpTrait::IsTerminator>() || (isForward(user) && stageOf(user) != stageOf(op));
    outside |= scope && isForward(user) && user->getAttr(kUserRecomputeAttr) != scope;
  }
  const bool named = llvm::any_of(patterns, [&](const std::string& pattern) { return matches(op, pattern); });
  return !outside && (scope || named);
}

std::unique_ptr<Pass> createRecomputePass() {
  return std::make_unique<RecomputePass>();
}

}  // namespace weft
