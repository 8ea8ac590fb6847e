// Cuts the backward function of each stage in two, where the schedule runs the halves apart: `input_grad` is what other
// stages wait for, as backwardParts() says; `weight_grad` is the rest, operator by operator. What is recomputed and
// both read stands in both; what else the second reads of the first crosses as an activation.

#include <set>
#include <string>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/stage_table.h"
#include "planner/step/backward_parts.h"

namespace weft {

#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "passes/generated/passes.h.inc"

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

// The name of the buffer of an argument or result.
std::string bufferOf(DictionaryAttr attrs) {
  return attrs.getAs<StringAttr>(kValueAttr).str();
}

// The names of the arguments of all of these but `function`.
std::set<std::string> readByOthers(ArrayRef<func::FuncOp> functions, func::FuncOp function) {
  std::set<std::string> names;
  for (func::FuncOp other : functions) {
    for (unsigned i = 0; other != function && i < other.getNumArguments(); ++i) {
      names.insert(bufferOf(other.getArgAttrDict(i)));
    }
  }
  return names;
}

class BackwardSplitter {
 public:
  // `readOutside`: names that backward functions of other stages of the submesh read.
  BackwardSplitter(func::FuncOp function, const std::set<std::string>& readOutside)
      : function_(function), name_(function.getName().str()), readOutside_(readOutside) {}

  void run() {
    markParts();
    func::FuncOp weights = function_.clone();
    rename(weights, "weight_grad");
    function_->getParentOfType<ModuleOp>().push_back(weights);
    findCrossings();
    keepWeightPart(weights);
    keepInputPart();
    rename(function_, "input_grad");
  }

 private:
  static void rename(func::FuncOp function, StringRef kind) {
    const std::string old = function.getName().str();
    const size_t dot = old.find('.');
    function.setName(kind.str() + (dot == std::string::npos ? "" : old.substr(dot)));
    function->setAttr(kFunctionKindAttr, StringAttr::get(function.getContext(), kind));
  }

  void markParts() {
    llvm::DenseMap<Value, int> numbers;
    const auto numberOf = [&](Value value) {
      return numbers.try_emplace(value, static_cast<int>(numbers.size())).first->second;
    };
    const auto ops = function_.getBody().front().without_terminator();
    std::vector<BackwardOperation> operations;
    for (Operation& op : ops) {
      BackwardOperation& made = operations.emplace_back();
      made.transfer = isa<ir::dist::SendOp, ir::dist::ReceiveOp>(op);
      made.recomputed = op.hasAttr(kRecomputedAttr);
      llvm::transform(op.getOperands(), std::back_inserter(made.inputs), numberOf);
      llvm::transform(op.getResults(), std::back_inserter(made.outputs), numberOf);
    }
    std::set<int> readOutside;
    for (unsigned i = 0; i < function_.getNumResults(); ++i) {
      if (readOutside_.count(bufferOf(function_.getResultAttrDict(i))) > 0) {
        readOutside.insert(numberOf(returned(function_, i)));
      }
    }
    for (const auto [op, part] : llvm::zip(ops, backwardParts(operations, readOutside))) {
      parts_[&op] = part;
    }
  }

  // Results of the first part alone that operators of the second read.
  void findCrossings() {
    for (Operation& op : function_.getBody().front().without_terminator()) {
      for (Value operand : op.getOperands()) {
        Operation* maker = operand.getDefiningOp();
        if (parts_[&op] != BackwardPart::kInput && maker != nullptr && parts_[maker] == BackwardPart::kInput) {
          crossings_.insert(operand);
        }
      }
    }
  }

  // Positions of results by which part makes them.
  bool returnedByInput(unsigned index) {
    Operation* op = returned(function_, index).getDefiningOp();
    return op != nullptr && parts_[op] != BackwardPart::kWeights;
  }

  void keepWeightPart(func::FuncOp weights) {
    Block& from = function_.getBody().front();
    Block& body = weights.getBody().front();
    llvm::DenseMap<Operation*, Operation*> twins;
    for (auto [mine, theirs] : llvm::zip(from, body)) {
      twins[&mine] = &theirs;
    }
    for (size_t i = 0; i < crossings_.size(); ++i) {
      auto result = cast<OpResult>(crossings_[i]);
      Value inside = twins[result.getOwner()]->getResult(result.getResultNumber());
      inside.replaceAllUsesWith(addArgument(weights, inside.getType(), namesOf(i), inside.getLoc()));
    }
    Operation* terminator = body.getTerminator();
    llvm::BitVector dropped(weights.getNumResults());
    for (unsigned i = 0; i < weights.getNumResults(); ++i) {
      dropped[i] = returnedByInput(i);
    }
    terminator->eraseOperands(dropped);
    eraseResultAttrs(weights, dropped);
    SmallVector<Operation*> erased;
    for (Operation& op : from.without_terminator()) {
      if (parts_[&op] == BackwardPart::kInput) {
        erased.push_back(twins[&op]);
      }
    }
    eraseBackwards(erased);
    dropUnusedArguments(weights);
  }

  void keepInputPart() {
    Block& body = function_.getBody().front();
    Operation* terminator = body.getTerminator();
    llvm::BitVector dropped(function_.getNumResults());
    for (unsigned i = 0; i < function_.getNumResults(); ++i) {
      dropped[i] = !returnedByInput(i);
    }
    terminator->eraseOperands(dropped);
    eraseResultAttrs(function_, dropped);
    for (size_t i = 0; i < crossings_.size(); ++i) {
      addResult(function_, crossings_[i], namesOf(i));
    }
    SmallVector<Operation*> erased;
    for (Operation& op : body.without_terminator()) {
      if (parts_[&op] == BackwardPart::kWeights) {
        erased.push_back(&op);
      }
    }
    eraseBackwards(erased);
    dropUnusedArguments(function_);
  }

  NamedAttrList namesOf(size_t crossing) {
    NamedAttrList attrs;
    Builder builder(function_.getContext());
    attrs.set(kValueAttr, builder.getStringAttr(name_ + ".w" + std::to_string(crossing)));
    setMemory(attrs, ir::dist::Memory::kActivation, builder.getContext());
    return attrs;
  }

  static void eraseResultAttrs(func::FuncOp function, const llvm::BitVector& dropped) {
    SmallVector<DictionaryAttr> kept;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (!dropped[i]) {
        kept.push_back(function.getResultAttrDict(i));
      }
    }
    refreshType(function);
    function.setAllResultAttrs(kept);
  }

  static void eraseBackwards(ArrayRef<Operation*> ops) {
    for (Operation* op : llvm::reverse(ops)) {
      op->erase();
    }
  }

  static void dropUnusedArguments(func::FuncOp function) {
    llvm::BitVector unused(function.getNumArguments());
    for (BlockArgument argument : function.getArguments()) {
      unused[argument.getArgNumber()] = argument.use_empty();
    }
    function.eraseArguments(unused);
  }

  func::FuncOp function_;
  std::string name_;  // before it is cut
  const std::set<std::string>& readOutside_;
  llvm::DenseMap<Operation*, BackwardPart> parts_;
  llvm::SetVector<Value> crossings_;
};

class SplitBackwardPass : public impl::SplitBackwardPassBase<SplitBackwardPass> {
 public:
  void runOnOperation() override {
    FailureOr<Mesh> mesh = meshOf(getOperation());
    const ScheduleDecision schedule = scheduleOf(getOperation());
    if (failed(mesh)) {
      return signalPassFailure();
    }
    std::vector<SmallVector<func::FuncOp>> backwards;  // of each submesh
    for (ModuleOp submesh : submeshesOf(getOperation())) {
      llvm::copy_if(functionsInOrder(submesh), std::back_inserter(backwards.emplace_back()),
                    [](func::FuncOp function) { return kindOf(function) == "backward"; });
    }
    const bool trains = llvm::any_of(backwards, [](const auto& functions) { return !functions.empty(); });
    if (schedule.submeshes.size() < 2 || !trains) {
      return;
    }
    absl::StatusOr<schedule::Table> table = stageTable(schedule, mesh->microBatches(), true);
    if (!table.ok()) {
      getOperation().emitError(std::string(table.status().message()));
      return signalPassFailure();
    }
    if (!splitsBackward(*table)) {
      return;
    }
    for (const SmallVector<func::FuncOp>& functions : backwards) {
      SmallVector<std::set<std::string>> readOutside;
      for (func::FuncOp function : functions) {
        readOutside.push_back(readByOthers(functions, function));
      }
      for (auto [function, names] : llvm::zip(functions, readOutside)) {
        BackwardSplitter(function, names).run();
      }
      numSplit += functions.size();
    }
  }
};

}  // namespace
}  // namespace weft
