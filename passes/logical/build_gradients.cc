// Makes what is differentiated of operators: first each nn.gradient that the user wrote, in order, then the loss, for
// the optimizer, with respect to every parameter that is trained and has no update of the user's own.
//
// A gradient of a parameter that the user's operators read is finished: it passes through an nn.constrain marked
// nn.gradient_of, where it is summed over the batch and lies as the optimizer's state would (ZeRO). What reads finished
// gradients runs in the update, what reads others in the backward pass; neither has a phase in the user's graph.
#include "ir/nn/nn.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "ir/program/signature.h"
#include "llvm/ADT/StringSet.h"
#include "passes/logical/differentiate.h"
#include "passes/logical/passes.h"
#include "passes/logical/request_attributes.h"
#include "passes/logical/update_phase.h"

namespace weft {

#define GEN_PASS_DEF_BUILDGRADIENTSPASS
#include "passes/generated/passes.h.inc"

using namespace mlir;  // NOLINT: the file is about MLIR types throughout
namespace nn = ir::nn;

namespace {

// The gradients that the user asked for.
class OwnGradients {
 public:
  OwnGradients(func::FuncOp step, const ir::OperatorRegistry& registry) : step_(step), registry_(registry) {}

  LogicalResult run() {
    for (nn::GradientOp op : llvm::make_early_inc_range(step_.getOps<nn::GradientOp>())) {
      if (failed(expand(op))) {
        return failure();
      }
    }
    return success();
  }

  // Called when all is differentiated, the operators of `differentiated` among it. What was differentiated reads
  // gradients as they were: a sum that is finished in the update would come too late for a backward pass.
  void finish(const llvm::DenseSet<Operation*>& differentiated) {
    differentiated_.insert(differentiated.begin(), differentiated.end());
    for (nn::ConstrainOp finished : finished_) {
      finished.getY().replaceUsesWithIf(finished.getX(), [&](OpOperand& use) {
        Operation* reader = use.getOwner();
        return reader->getNumResults() > 0 &&
               (differentiated_.count(reader) > 0 || isMadeIn(reader->getResult(0), "backward"));
      });
    }
    for (Operation& op : step_.getBody().front().without_terminator()) {
      followOperands(&op);
    }
  }

 private:
  LogicalResult expand(nn::GradientOp op) {
    Differentiator differentiator(registry_, op);
    const FailureOr<SmallVector<Value>> gradients = differentiator.run(op.getY(), op.getXs());
    if (failed(gradients)) {
      return failure();
    }
    differentiated_.insert(differentiator.differentiated().begin(), differentiator.differentiated().end());
    for (auto [x, made, gradient] : llvm::zip(op.getXs(), *gradients, op.getGradients())) {
      auto argument = dyn_cast<BlockArgument>(x);
      const Argument named = argument ? argumentAt(step_, argument.getArgNumber()) : Argument();
      Value value = made;
      if (named.kind == "parameter") {
        OpBuilder builder(op);
        value = finishGradient(builder, made, named.name);
        finished_.push_back(value.getDefiningOp<nn::ConstrainOp>());
      }
      gradient.replaceAllUsesWith(value);
    }
    op.erase();
    // What is differentiated next may stem from these.
    assignIds(step_->getParentOfType<ModuleOp>());
    return success();
  }

  static void followOperands(Operation* op) {
    if (op->hasAttr(kPhaseAttr)) {
      return;
    }
    const auto reads = [&](StringRef phase) {
      return llvm::any_of(op->getOperands(), [&](Value operand) { return isMadeIn(operand, phase); });
    };
    const StringRef phase = reads("update") ? "update" : reads("backward") ? "backward" : "";
    if (!phase.empty()) {
      op->setAttr(kPhaseAttr, StringAttr::get(op->getContext(), phase));
      op->removeAttr(kUserRecomputeAttr);  // it has run once, and late
    }
  }

  func::FuncOp step_;
  const ir::OperatorRegistry& registry_;
  llvm::DenseSet<Operation*> differentiated_;
  SmallVector<nn::ConstrainOp> finished_;
};

// The gradient of the loss, as one result `grad.<parameter>` for each parameter that the optimizer updates.
class LossGradients {
 public:
  LossGradients(func::FuncOp step, const ir::OperatorRegistry& registry, std::optional<Optimizer> optimizer)
      : step_(step),
        optimizer_(std::move(optimizer)),
        differentiator_(registry, step.getBody().front().getTerminator()) {}

  LogicalResult run() {
    const FailureOr<Value> loss = findLoss();
    if (failed(loss)) {
      return failure();
    }
    const SmallVector<Value> parameters = findParameters();
    const FailureOr<SmallVector<Value>> gradients = differentiator_.run(*loss, parameters);
    if (failed(gradients)) {
      return failure();
    }
    Builder builder(step_.getContext());
    SignatureBuilder signature(step_);
    for (auto [parameter, gradient] : llvm::zip(parameters, *gradients)) {
      NamedAttrList attributes;
      attributes.set(kKindAttr, builder.getStringAttr("gradient"));
      attributes.set(kNameAttr, builder.getStringAttr(gradientName(signature.nameOf(cast<BlockArgument>(parameter)))));
      signature.addResult(gradient, attributes);
    }
    signature.finish();
    return success();
  }

  const llvm::DenseSet<Operation*>& differentiated() const { return differentiator_.differentiated(); }

 private:
  FailureOr<Value> findLoss() {
    if (step_.getNumResults() == 0 || resultText(step_, 0, kKindAttr) != "loss") {
      return step_.emitError(
          "the first result of @step is not marked nn.kind = \"loss\"; there is nothing to differentiate");
    }
    Value loss = returned(step_, 0);
    auto type = cast<RankedTensorType>(loss.getType());
    if (type.getRank() != 0 || !ir::isFloat(loss)) {
      return emitError(loss.getLoc()) << "the loss is " << type
                                      << "; it must be a scalar of a float type: take its mean or sum";
    }
    return loss;
  }

  SmallVector<Value> findParameters() {
    llvm::StringSet<> own;  // those with an update of the user's
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      const std::string kind = resultText(step_, i, kKindAttr);
      const std::string name = resultText(step_, i, kNameAttr);
      if (kind == "updated" || kind == "gradient") {
        own.insert(kind == "gradient" ? parameterOfGradient(name) : name);
      }
    }
    SmallVector<Value> parameters;
    for (const Argument& argument : argumentsOf(step_)) {
      BlockArgument value = step_.getArgument(argument.index);
      if (argument.kind == "parameter" && !isFrozen(argument) && ir::isFloat(value) && !own.contains(argument.name)) {
        parameters.push_back(value);
      }
    }
    return parameters;
  }

  // By itself, or by the optimizer's group.
  bool isFrozen(const Argument& argument) {
    return step_.getArgAttr(argument.index, kFrozenAttr) || (optimizer_ && optimizer_->groupOf(argument.name).frozen);
  }

  func::FuncOp step_;
  std::optional<Optimizer> optimizer_;
  Differentiator differentiator_;
};

class BuildGradientsPass : public impl::BuildGradientsPassBase<BuildGradientsPass> {
 public:
  BuildGradientsPass(const ir::OperatorRegistry& registry, bool ofLoss) : registry_(registry), ofLoss_(ofLoss) {}

  void runOnOperation() override {
    func::FuncOp step = stepFunction(getOperation());
    if (!step) {
      getOperation().emitError("the module has no function @step");
      return signalPassFailure();
    }
    assignIds(getOperation());
    FailureOr<Request> request = readRequest(getOperation());
    if (failed(request) || failed(run(step, std::move(request->optimizer)))) {
      signalPassFailure();
    }
  }

 private:
  LogicalResult run(func::FuncOp step, std::optional<Optimizer> optimizer) {
    OwnGradients own(step, registry_);
    if (failed(own.run())) {
      return failure();
    }
    const bool differentiates = ofLoss_ && !(optimizer && optimizer->isOwn());
    LossGradients loss(step, registry_, std::move(optimizer));
    if (differentiates && failed(loss.run())) {
      return failure();
    }
    own.finish(loss.differentiated());
    return success();
  }

  ir::OperatorRegistry registry_;
  bool ofLoss_;
};

}  // namespace

std::unique_ptr<Pass> createBuildGradientsPass(const ir::OperatorRegistry& registry, bool ofLoss) {
  return std::make_unique<BuildGradientsPass>(registry, ofLoss);
}

}  // namespace weft
