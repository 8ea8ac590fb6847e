#include "passes/logical/differentiate.h"

#include <optional>

#include "ir/nn/types.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR types throughout
namespace nn = ir::nn;

namespace {

// What a message calls a value that is differentiated by: "parameter 'w'", "the value of h0.fc/matmul".
std::string nameOf(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    const Argument named = argumentAt(cast<func::FuncOp>(argument.getOwner()->getParentOp()), argument.getArgNumber());
    return named.kind + " '" + named.name + "'";
  }
  return "the value of " + labelOf(root.getDefiningOp());
}

// The dimension in which a box of a value is padded, if it is whole in all others.
std::optional<int64_t> dimensionOf(nn::PadOp box) {
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

bool follows(nn::PadOp before, nn::PadOp after) {
  const std::optional<int64_t> dim = dimensionOf(before);
  return dim && dim == dimensionOf(after) &&
         before.getLow()[*dim] + before.getX().getType().getShape()[*dim] == after.getLow()[*dim];
}

}  // namespace

Differentiator::Differentiator(const ir::OperatorRegistry& registry, Operation* where)
    : registry_(registry), where_(where), builder_(where) {}

FailureOr<SmallVector<Value>> Differentiator::run(Value y, ValueRange roots) {
  findDependents(roots);
  if (dependsOn_.count(y) > 0) {
    gradients_[y] = fill(y, 1.0);
  }
  for (Operation* op : llvm::reverse(forward_)) {
    for (Value result : op->getResults()) {
      joinBoxes(result);
    }
    const bool reached = llvm::any_of(op->getResults(), [&](Value result) { return gradients_.count(result) > 0; });
    if (reached && differentiated_.count(op) > 0 && failed(differentiate(op))) {
      return failure();
    }
    if (!reached) {
      differentiated_.erase(op);
    }
  }
  SmallVector<Value> gradients;
  for (Value root : roots) {
    joinBoxes(root);
    const Value gradient = gradients_.lookup(root);
    gradients.push_back(gradient ? gradient : fill(root, 0.0));
  }
  return gradients;
}

// Values that depend on a root through floats.
void Differentiator::findDependents(ValueRange roots) {
  for (Value root : roots) {
    if (ir::isFloat(root)) {
      dependsOn_[root] = root;
    }
  }
  for (Operation& op : *where_->getBlock()) {
    if (&op == where_) {
      return;
    }
    forward_.push_back(&op);
    const auto known = llvm::find_if(op.getOperands(), [&](Value operand) { return dependsOn_.count(operand) > 0; });
    if (known == op.operand_end() || isa<nn::StopGradientOp>(op)) {
      continue;
    }
    differentiated_.insert(&op);
    const Value root = dependsOn_.lookup(*known);
    for (Value result : op.getResults()) {
      if (ir::isFloat(result)) {
        dependsOn_.try_emplace(result, root);
      }
    }
  }
}

LogicalResult Differentiator::differentiate(Operation* op) {
  const ir::GradientFunction* gradient = registry_.gradient(op);
  if (gradient == nullptr) {
    return op->emitError() << op->getName().getStringRef() << " has no gradient, and the loss depends through it on "
                           << nameOf(dependsOn_.lookup(op->getResult(0)))
                           << "; use stop_gradient, freeze the parameter, or register a gradient";
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
  for (auto [operand, contribution, wanted] : llvm::zip(op->getOperands(), context.operandGradients, context.wanted)) {
    if (contribution && wanted && isa<nn::SliceOp>(op) && contribution.getDefiningOp<nn::PadOp>()) {
      boxes_[operand].push_back(contribution.getDefiningOp<nn::PadOp>());
    } else if (contribution && wanted) {
      add(operand, contribution);
    }
  }
  return success();
}

void Differentiator::markSince(Operation* last, Operation* forward) {
  Operation* first = last == nullptr ? &where_->getBlock()->front() : last->getNextNode();
  for (Operation* op = first; op != where_; op = op->getNextNode()) {
    mark(op);
    op->setLoc(forward->getLoc());
    op->setAttr(kForwardAttr, forward->getAttr(kIdAttr));
    if (auto name = forward->getAttrOfType<StringAttr>(kNameAttr)) {
      op->setAttr(kNameAttr, builder_.getStringAttr(name.getValue() + ".grad"));
    }
  }
}

void Differentiator::mark(Operation* op) {
  op->setAttr(kPhaseAttr, builder_.getStringAttr("backward"));
}

void Differentiator::add(Value value, Value contribution) {
  auto [known, isNew] = gradients_.try_emplace(value, contribution);
  if (!isNew) {
    auto sum = builder_.create<nn::AddOp>(value.getLoc(), known->second, contribution);
    mark(sum);
    known->second = sum;
  }
}

// What the slices of a value leave of its gradient: boxes that follow one another become one, instead of a sum of
// tensors that are mostly zeros.
void Differentiator::joinBoxes(Value value) {
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

Value Differentiator::joined(MutableArrayRef<nn::PadOp> boxes) {
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

Value Differentiator::fill(Value like, double number) {
  auto fill = builder_.create<nn::FillOp>(like.getLoc(), ir::plainType(like), number);
  mark(fill);
  return fill;
}

}  // namespace weft
