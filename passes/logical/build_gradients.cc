// Reverse-mode differentiation of the serial graph.
//
// Forward: which values depend on a wanted parameter? Backward, from the loss: for every operator on such a path, its
// registered gradient turns the gradients of its results into those of its operands; contributions to one value are
// added in the order in which they arise, those of its slices last. A value that nothing asks for costs nothing.
//
// Marks. Every new operator has nn.phase = "backward" and the location of the operator it stems from, and, but for the
// sums, nn.fwd = its nn.id: `decide` starts from that operator's factor axes. A sum follows the value whose gradient it
// forms, so a partial sum plus a partial sum stays partial and is reduced once.
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "ir/program/signature.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/logical/passes.h"
#include "passes/logical/request_attributes.h"

namespace weft {

#define GEN_PASS_DEF_BUILDGRADIENTSPASS
#include "passes/generated/passes.h.inc"

using namespace mlir;  // NOLINT: the file is about MLIR types throughout
namespace nn = ir::nn;

namespace {

bool isFloat(Value value) {
  return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
}

class GradientBuilder {
 public:
  GradientBuilder(func::FuncOp step, const ir::OperatorRegistry& registry, std::optional<Optimizer> optimizer)
      : step_(step),
        registry_(registry),
        optimizer_(std::move(optimizer)),
        builder_(step.getBody().front().getTerminator()) {}

  LogicalResult run() {
    if (failed(findLoss())) {
      return failure();
    }
    findDependents();
    if (failed(backward())) {
      return failure();
    }
    SignatureBuilder signature(step_);
    for (BlockArgument parameter : parameters_) {
      addGradientResult(parameter, signature);
    }
    signature.finish();
    return success();
  }

 private:
  LogicalResult findLoss() {
    if (step_.getNumResults() == 0 || resultText(step_, 0, kKindAttr) != "loss") {
      return step_.emitError(
          "the first result of @step is not marked nn.kind = \"loss\"; there is nothing to differentiate");
    }
    loss_ = returned(step_, 0);
    auto type = cast<RankedTensorType>(loss_.getType());
    if (type.getRank() != 0 || !isFloat(loss_)) {
      return emitError(loss_.getLoc()) << "the loss is " << type
                                       << "; it must be a scalar of a float type: take its mean or sum";
    }
    return success();
  }

  // Values that depend on a parameter through floats; each remembers one parameter, for messages.
  void findDependents() {
    for (const Argument& argument : argumentsOf(step_)) {
      BlockArgument value = step_.getArgument(argument.index);
      if (argument.kind == "parameter" && !isFrozen(argument) && isFloat(value)) {
        parameters_.push_back(value);
        dependsOn_[value] = argument.index;
      }
    }
    for (Operation& op : step_.getBody().front().without_terminator()) {
      forward_.push_back(&op);
      auto known = llvm::find_if(op.getOperands(), [&](Value operand) { return dependsOn_.count(operand) > 0; });
      if (known == op.operand_end() || isa<nn::StopGradientOp>(op)) {
        continue;
      }
      unsigned parameter = dependsOn_.lookup(*known);
      for (Value result : op.getResults()) {
        if (isFloat(result)) {
          dependsOn_[result] = parameter;
        }
      }
    }
  }

  // By itself, or by the optimizer's group.
  bool isFrozen(const Argument& argument) {
    return step_.getArgAttr(argument.index, kFrozenAttr) || (optimizer_ && optimizer_->groupOf(argument.name).frozen);
  }

  LogicalResult backward() {
    if (dependsOn_.count(loss_) > 0) {
      gradients_[loss_] = fill(loss_, 1.0);
    }
    for (Operation* op : llvm::reverse(forward_)) {
      for (Value result : op->getResults()) {
        joinBoxes(result);
      }
      bool reached = llvm::any_of(op->getResults(), [&](Value result) { return gradients_.count(result) > 0; });
      if (reached && failed(differentiate(op))) {
        return failure();
      }
    }
    for (BlockArgument parameter : parameters_) {
      joinBoxes(parameter);
    }
    return success();
  }

  LogicalResult differentiate(Operation* op) {
    const ir::GradientFunction* gradient = registry_.gradient(op);
    if (gradient == nullptr) {
      unsigned parameter = dependsOn_.lookup(op->getResult(0));
      return op->emitError() << op->getName().getStringRef()
                             << " has no gradient, and the loss depends through it on parameter '"
                             << argumentAt(step_, parameter).name
                             << "'; use stop_gradient, freeze the parameter, or register a gradient";
    }
    ir::GradientContext context{builder_, {}, {}, {}};
    for (Value result : op->getResults()) {
      context.resultGradients.push_back(gradients_.lookup(result));
    }
    for (Value operand : op->getOperands()) {
      context.wanted.push_back(dependsOn_.count(operand) > 0);
    }
    context.operandGradients.resize(op->getNumOperands());
    Operation* last = builder_.getInsertionPoint()->getPrevNode();
    if (failed((*gradient)(op, context))) {
      return failure();
    }
    markSince(last, op);
    for (auto [operand, contribution, wanted] :
         llvm::zip(op->getOperands(), context.operandGradients, context.wanted)) {
      if (contribution && wanted && isa<nn::SliceOp>(op) && contribution.getDefiningOp<nn::PadOp>()) {
        boxes_[operand].push_back(contribution.getDefiningOp<nn::PadOp>());
      } else if (contribution && wanted) {
        add(operand, contribution);
      }
    }
    return success();
  }

  void markSince(Operation* last, Operation* forward) {
    Block& body = step_.getBody().front();
    Operation* first = last == nullptr ? &body.front() : last->getNextNode();
    for (Operation* op = first; op != body.getTerminator(); op = op->getNextNode()) {
      mark(op);
      op->setLoc(forward->getLoc());
      op->setAttr(kForwardAttr, forward->getAttr(kIdAttr));
      if (auto name = forward->getAttrOfType<StringAttr>(kNameAttr)) {
        op->setAttr(kNameAttr, builder_.getStringAttr(name.getValue() + ".grad"));
      }
    }
  }

  void mark(Operation* op) { op->setAttr(kPhaseAttr, builder_.getStringAttr("backward")); }

  void add(Value value, Value contribution) {
    auto [known, isNew] = gradients_.try_emplace(value, contribution);
    if (!isNew) {
      auto sum = builder_.create<nn::AddOp>(value.getLoc(), known->second, contribution);
      mark(sum);
      known->second = sum;
    }
  }

  // The dimension in which a box of a value is padded, if it is whole in all others.
  static std::optional<int64_t> dimensionOf(nn::PadOp box) {
    std::optional<int64_t> found;
    for (int64_t d = 0; d < static_cast<int64_t>(box.getLow().size()); ++d) {
      if (box.getLow()[d] != 0 || box.getHigh()[d] != 0) {
        if (found) {
          return std::nullopt;
        }
        found = d;
      }
    }
    return found;
  }

  // What the slices of a value leave of its gradient: boxes that follow one another become one, instead of a sum of
  // tensors that are mostly zeros.
  void joinBoxes(Value value) {
    SmallVector<nn::PadOp> boxes = boxes_.lookup(value);
    boxes_.erase(value);
    const auto key = [](nn::PadOp box) {
      const std::optional<int64_t> dim = dimensionOf(box);
      return std::make_pair(dim, dim ? box.getLow()[*dim] : 0);
    };
    llvm::stable_sort(boxes, [&](nn::PadOp a, nn::PadOp b) { return key(a) < key(b); });
    for (auto* first = boxes.begin(); first != boxes.end();) {
      auto* end = std::next(first);
      while (end != boxes.end() && follows(*std::prev(end), *end)) {
        ++end;
      }
      add(value, std::next(first) == end ? first->getY() : joined({first, end}));
      first = end;
    }
  }

  static bool follows(nn::PadOp before, nn::PadOp after) {
    const std::optional<int64_t> dim = dimensionOf(before);
    return dim && dim == dimensionOf(after) &&
           before.getLow()[*dim] + before.getX().getType().getShape()[*dim] == after.getLow()[*dim];
  }

  Value joined(MutableArrayRef<nn::PadOp> boxes) {
    const int64_t dim = *dimensionOf(boxes.front());
    SmallVector<Value> parts;
    for (nn::PadOp box : boxes) {
      parts.push_back(box.getX());
    }
    auto whole = builder_.create<nn::ConcatOp>(boxes.front().getLoc(), parts, dim);
    mark(whole);
    Value made = whole;
    SmallVector<int64_t> low(boxes.front().getLow());
    SmallVector<int64_t> high(boxes.back().getHigh());
    if (low[dim] != 0 || high[dim] != 0) {
      auto padded = builder_.create<nn::PadOp>(whole.getLoc(), made, low, high, 0.0);
      mark(padded);
      made = padded;
    }
    for (nn::PadOp box : boxes) {
      box.erase();
    }
    return made;
  }

  Value fill(Value like, double number) {
    auto fill = builder_.create<nn::FillOp>(like.getLoc(), ir::plainType(like), number);
    mark(fill);
    return fill;
  }

  void addGradientResult(BlockArgument parameter, SignatureBuilder& signature) {
    Value gradient = gradients_.lookup(parameter);
    if (!gradient) {
      gradient = fill(parameter, 0.0);
    }
    NamedAttrList attributes;
    attributes.set(kKindAttr, builder_.getStringAttr("gradient"));
    attributes.set(kNameAttr, builder_.getStringAttr("grad." + signature.nameOf(parameter)));
    signature.addResult(gradient, attributes);
  }

  func::FuncOp step_;
  const ir::OperatorRegistry& registry_;
  std::optional<Optimizer> optimizer_;
  OpBuilder builder_;
  Value loss_;
  SmallVector<BlockArgument> parameters_;
  SmallVector<Operation*> forward_;
  llvm::DenseMap<Value, unsigned> dependsOn_;  // value -> index of a parameter
  llvm::DenseMap<Value, Value> gradients_;
  llvm::DenseMap<Value, SmallVector<nn::PadOp>> boxes_;  // contributions of slices, not added yet
};

class BuildGradientsPass : public impl::BuildGradientsPassBase<BuildGradientsPass> {
 public:
  explicit BuildGradientsPass(const ir::OperatorRegistry& registry) : registry_(registry) {}

  void runOnOperation() override {
    func::FuncOp step = stepFunction(getOperation());
    if (!step) {
      getOperation().emitError("the module has no function @step");
      return signalPassFailure();
    }
    assignIds(getOperation());
    FailureOr<Request> request = readRequest(getOperation());
    if (failed(request) || failed(GradientBuilder(step, registry_, std::move(request->optimizer)).run())) {
      signalPassFailure();
    }
  }

 private:
  ir::OperatorRegistry registry_;
};

}  // namespace

std::unique_ptr<Pass> createBuildGradientsPass(const ir::OperatorRegistry& registry) {
  return std::make_unique<BuildGradientsPass>(registry);
}

}  // namespace weft
