#include "passes/decide/apply_rewrites.h"

#include "ir/nn/infer.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "planner/graph/sums.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

Operation* findOperator(func::FuncOp step, int64_t id) {
  for (Operation& op : step.getBody().front()) {
    if (idOf(&op) == id) {
      return &op;
    }
  }
  return nullptr;
}

// Operators of the gradient of `from` become operators of the gradient of `to`.
void moveGradient(func::FuncOp step, int64_t from, Operation* to) {
  for (Operation& op : step.getBody().front()) {
    auto forward = op.getAttrOfType<IntegerAttr>(kForwardAttr);
    if (forward && forward.getInt() == from) {
      op.setAttr(kForwardAttr, to->getAttr(kIdAttr));
    }
  }
}

int64_t dimensionsOf(Value value) {
  return static_cast<int64_t>(ir::shapeOf(value).size());
}

// What entry `key` of a strategy, lists for values with so many dimensions in whose place `said` stand, says of
// `values`; null: nothing. What must be expanded may become something of another shape, of which nothing was said.
ArrayAttr listsOf(DictionaryAttr strategy, StringRef key, ValueRange replaced, ValueRange said, ValueRange values) {
  auto lists = dyn_cast_or_null<ArrayAttr>(strategy.get(key));
  const mlir::Attribute none = ArrayAttr::get(strategy.getContext(), {});
  SmallVector<mlir::Attribute> chosen;
  for (Value value : values) {
    const size_t place = llvm::find(said, value) - said.begin();
    const bool isSaid =
        lists && place < said.size() && place < lists.size() && dimensionsOf(value) == dimensionsOf(replaced[place]);
    chosen.push_back(isSaid ? lists[place] : none);
  }
  const bool says = llvm::any_of(chosen, [](mlir::Attribute list) {
    auto dense = dyn_cast<DenseI64ArrayAttr>(list);
    auto array = dyn_cast<ArrayAttr>(list);
    return (dense && !dense.empty()) || (array && !array.empty());
  });
  return says ? ArrayAttr::get(strategy.getContext(), chosen) : ArrayAttr();
}

// What the user says of the operands of `replaced`, and of the results that `values` stand for, counts for what reads
// and makes them in the same phase; `inner` has its marks.
void inheritStrategy(Operation* replaced, ValueRange values, Operation* inner) {
  auto strategy = replaced->getAttrOfType<DictionaryAttr>(kStrategyAttr);
  if (!strategy || inner->getAttr(kPhaseAttr) != replaced->getAttr(kPhaseAttr)) {
    return;
  }
  mlir::NamedAttrList entries;
  if (ArrayAttr in = listsOf(strategy, "in", replaced->getOperands(), replaced->getOperands(), inner->getOperands())) {
    entries.set("in", in);
  }
  if (ArrayAttr out = listsOf(strategy, "out", replaced->getResults(), values, inner->getResults())) {
    entries.set("out", out);
  }
  if (!entries.empty()) {
    inner->setAttr(kStrategyAttr, entries.getDictionary(inner->getContext()));
  }
}

// New operators get new numbers.
LogicalResult expandOperator(func::FuncOp step, int64_t id, const Expansions& expansions) {
  Operation* op = findOperator(step, id);
  if (op == nullptr || !expansions.has(op)) {
    return step.emitError() << "decisions: operator " << id << " has no expansion in this program";
  }
  OpBuilder builder(op);
  Operation* before = op->getPrevNode();
  FailureOr<SmallVector<Value>> values = expansions.of(op, builder);
  if (failed(values)) {
    return failure();
  }
  Operation* first = before != nullptr ? before->getNextNode() : &op->getBlock()->front();
  llvm::SmallPtrSet<Operation*, 16> body;
  for (Operation* inner = first; inner != op; inner = inner->getNextNode()) {
    copyMarks(op, inner);
    inheritStrategy(op, *values, inner);
    body.insert(inner);
  }
  op->replaceAllUsesWith(*values);
  const bool required = ir::mustExpand(op);
  // While the operator is there its own id is taken.
  assignIds(step->getParentOfType<ModuleOp>());
  op->erase();
  Operation* heir = values->empty() ? nullptr : values->front().getDefiningOp();
  if (required && body.contains(heir)) {
    moveGradient(step, id, heir);
  }
  return success();
}

// Copies operators into the prologue, each once.
class Hoister {
 public:
  explicit Hoister(func::FuncOp step) : step_(step) {
    for (Operation& op : step.getBody().front()) {
      byId_[idOf(&op)] = &op;
      auto source = op.getAttrOfType<IntegerAttr>(kPrologueAttr);
      if (source && byId_.count(source.getInt()) > 0) {
        copies_[byId_[source.getInt()]] = &op;
      }
    }
  }

  LogicalResult run(const Rewrite& decision) {
    const auto it = byId_.find(decision.id);
    if (it == byId_.end() || decision.operand >= it->second->getNumOperands()) {
      return step_.emitError() << "decisions: no operand " << decision.operand << " of operator " << decision.id;
    }
    FailureOr<Value> value = copy(it->second->getOperand(decision.operand), it->second);
    if (failed(value)) {
      return failure();
    }
    it->second->setOperand(decision.operand, *value);
    return success();
  }

 private:
  FailureOr<Value> copy(Value value, Operation* user) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      const Argument named = argumentAt(step_, argument.getArgNumber());
      if (named.kind == "parameter") {
        return user->emitError()
                   << labelOf(user)
                   << " needs a value that is known only after all micro-batches, and it depends on parameter '"
                   << named.name << "'; use micro = 1, or make it depend on inputs only",
               failure();
      }
      return value;
    }
    Operation* op = value.getDefiningOp();
    if (op->hasAttr(kPrologueAttr)) {
      return value;
    }
    FailureOr<Operation*> copied = copyOperator(op, user);
    if (failed(copied)) {
      return failure();
    }
    return (*copied)->getResult(cast<OpResult>(value).getResultNumber());
  }

  FailureOr<Operation*> copyOperator(Operation* op, Operation* user) {
    if (Operation* known = copies_.lookup(op)) {
      return known;
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> copied = copy(operand, user);
      if (failed(copied)) {
        return failure();
      }
      operands.push_back(*copied);
    }
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    Operation* clone = builder.clone(*op);
    clone->setOperands(operands);
    clone->setAttr(kPrologueAttr, builder.getI64IntegerAttr(idOf(op)));
    clone->removeAttr(kIdAttr);
    copies_[op] = clone;
    return clone;
  }

  func::FuncOp step_;
  llvm::DenseMap<int64_t, Operation*> byId_;
  llvm::DenseMap<Operation*, Operation*> copies_;
};

// As planner/graph/sums.h has it, in the module.
bool addsOneType(Operation* op) {
  auto interface = dyn_cast<ir::OperatorInterface>(op);
  return interface && interface.isSum() && op->getNumOperands() == 2 &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return ir::plainType(operand) == ir::plainType(op->getResult(0)); });
}

bool isTakenIn(Operation* op, Operation* end) {
  return op != nullptr && addsOneType(op) && op->getAttr(kPhaseAttr) == end->getAttr(kPhaseAttr) &&
         op->getResult(0).hasOneUse();
}

LogicalResult regroupSum(func::FuncOp step, const Rewrite& rewrite) {
  Operation* end = findOperator(step, rewrite.id);
  if (end == nullptr || !addsOneType(end) ||
      (isTakenIn(end, end) && addsOneType(*end->user_begin()) && isTakenIn(end, *end->user_begin()))) {
    return step.emitError() << "decisions: no sum ends in operator " << rewrite.id;
  }
  SmallVector<Operation*> operators;
  SmallVector<Value> terms;
  SmallVector<Value> left = {end->getResult(0)};  // values to take in, the next one last
  while (!left.empty()) {
    Value value = left.pop_back_val();
    Operation* inner = value.getDefiningOp();
    if (inner == end || isTakenIn(inner, end)) {
      operators.push_back(inner);
      left.push_back(inner->getOperand(1));
      left.push_back(inner->getOperand(0));
    } else {
      terms.push_back(value);
    }
  }
  llvm::sort(operators, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  const absl::StatusOr<std::vector<Addition>> additions =
      additionsOf(rewrite.groups, terms.size(), "the sum that ends in operator " + std::to_string(rewrite.id));
  if (!additions.ok()) {
    return step.emitError() << std::string(additions.status().message());
  }
  for (const auto& [op, addition] : llvm::zip(operators, *additions)) {
    op->setOperands({terms[addition.left], terms[addition.right]});
    for (Value operand : op->getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (producer != nullptr && op->isBeforeInBlock(producer)) {
        op->moveAfter(producer);
      }
    }
    terms.push_back(op->getResult(0));
  }
  return success();
}

LogicalResult applyRewrite(func::FuncOp step, const Rewrite& rewrite, const Expansions& expansions) {
  switch (rewrite.kind) {
    case Rewrite::kExpand:
      return expandOperator(step, rewrite.id, expansions);
    case Rewrite::kPrologue:
      return Hoister(step).run(rewrite);
    case Rewrite::kRegroup:
      return regroupSum(step, rewrite);
  }
  return failure();
}

// Rewrites leave operators that nothing reads any more.
void eraseUnused(func::FuncOp step) {
  Operation* op = step.getBody().front().getTerminator()->getPrevNode();
  while (op != nullptr) {
    Operation* before = op->getPrevNode();
    if (op->use_empty()) {
      op->erase();
    }
    op = before;
  }
}

LogicalResult checkExpanded(func::FuncOp step) {
  for (Operation& op : step.getBody().front()) {
    if (ir::mustExpand(&op)) {
      return op.emitError() << "decisions: operator " << idOf(&op) << " (" << labelOf(&op)
                            << ") must be expanded, and nothing says so; they were made for another program";
    }
  }
  return success();
}

}  // namespace

LogicalResult applyRewrites(func::FuncOp step, const std::vector<Rewrite>& rewrites, const Expansions& expansions) {
  for (const Rewrite& rewrite : rewrites) {
    if (failed(applyRewrite(step, rewrite, expansions))) {
      return failure();
    }
    assignIds(step->getParentOfType<ModuleOp>());
  }
  eraseUnused(step);
  return checkExpanded(step);
}

}  // namespace weft
