#include "passes/decide/assign_stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

class StageAssigner {
 public:
  explicit StageAssigner(func::FuncOp step) : step_(step) {
    for (const Argument& argument : argumentsOf(step)) {
      if (argument.kind == "parameter") {
        parameters_[argument.name] = step.getArgument(argument.index);
      }
    }
  }

  FailureOr<int64_t> run() {
    Block& body = step_.getBody().front();
    for (Operation& op : body.without_terminator()) {
      byId_[idOf(&op)] = &op;
      if (failed(setForward(&op))) {
        return failure();
      }
    }
    followReaders(body, "", false);
    for (Operation& op : body.without_terminator()) {
      setFromForward(&op);
    }
    followReaders(body, "", true);  // the prologue
    for (Operation& op : body.without_terminator()) {
      setFromOperands(&op);
    }
    followReaders(body, "backward", false);
    followReaders(body, "update", false);
    return write(body);
  }

 private:
  static StringRef phaseOf(Operation* op) {
    auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
    return phase ? phase.getValue() : "";
  }

  std::optional<int64_t> known(Operation* op) const {
    const auto it = stages_.find(op);
    return it == stages_.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }

  bool isParameter(Value value) {
    return argumentAt(step_, cast<BlockArgument>(value).getArgNumber()).kind == "parameter";
  }

  LogicalResult setForward(Operation* op) {
    if (!phaseOf(op).empty() || op->hasAttr(kPrologueAttr)) {
      return success();
    }
    std::optional<int64_t> stage;
    for (Value operand : op->getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (producer != nullptr && known(producer)) {
        stage = std::max(stage.value_or(0), *known(producer));
      } else if (producer == nullptr && isParameter(operand)) {
        stage = stage.value_or(0);
      }
    }
    if (auto user = op->getAttrOfType<IntegerAttr>(kUserStageAttr)) {
      if (user.getInt() < 0) {
        return op->emitError() << labelOf(op) << " is on stage " << user.getInt() << "; stages are 0, 1, ...";
      }
      if (stage && *stage > user.getInt()) {
        return op->emitError() << labelOf(op) << " is on stage " << user.getInt() << ", but reads a value of stage "
                               << *stage << ": values flow from a stage to the same or a later one; put it on stage "
                               << *stage << " or later";
      }
      stage = user.getInt();
    }
    if (stage) {
      stages_[op] = *stage;
    }
    return success();
  }

  // What has no place yet goes to its first reader's; without a reader to stage 0.
  void followReaders(Block& body, StringRef phase, bool prologue) {
    for (Operation& op : llvm::reverse(body.without_terminator())) {
      if (phaseOf(&op) != phase || known(&op) || op.hasAttr(kPrologueAttr) != prologue) {
        continue;
      }
      std::optional<int64_t> stage;
      for (Operation* user : op.getUsers()) {
        if (known(user)) {
          stage = std::min(stage.value_or(*known(user)), *known(user));
        }
      }
      stages_[&op] = stage.value_or(0);
    }
  }

  // Backward operators run with the operator they come from.
  void setFromForward(Operation* op) {
    auto source = op->getAttrOfType<IntegerAttr>(kForwardAttr);
    const auto it = source && !op->hasAttr(kPrologueAttr) ? byId_.find(source.getInt()) : byId_.end();
    if (it != byId_.end() && known(it->second) && !known(op)) {
      stages_[op] = *known(it->second);
    }
  }

  // Where the first of the operands is made. In the update scalars (the scale of clipping) follow the tensors, and what
  // belongs to a parameter runs on its stage, wherever gradient and scale come from.
  void setFromOperands(Operation* op) {
    if (known(op)) {
      return;
    }
    const bool update = phaseOf(op) == "update";
    std::optional<int64_t> stage = update ? stageOfParameter(op) : std::nullopt;
    int64_t largest = 0;
    for (Value operand : stage ? ValueRange() : ValueRange(op->getOperands())) {
      Operation* producer = operand.getDefiningOp();
      const std::optional<int64_t> at = producer != nullptr ? known(producer) : std::nullopt;
      const int64_t elements = update ? cast<RankedTensorType>(operand.getType()).getNumElements() : 1;
      if (at && elements >= largest) {
        stage = elements > largest ? *at : std::min(*stage, *at);
        largest = elements;
      }
    }
    if (stage) {
      stages_[op] = *stage;
    }
  }

  // The stage of the parameter that an operator of the update reads, or whose gradient it takes.
  std::optional<int64_t> stageOfParameter(Operation* op) {
    if (auto gradient = op->getAttrOfType<StringAttr>(kGradientOfAttr)) {
      const auto it = parameters_.find(gradient.getValue().str());
      return it == parameters_.end() ? std::nullopt : parameterStage(it->second);
    }
    for (Value operand : op->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (argument && argumentAt(step_, argument.getArgNumber()).kind == "parameter") {
        return parameterStage(argument);
      }
    }
    return std::nullopt;
  }

  std::optional<int64_t> parameterStage(BlockArgument argument) {
    std::optional<int64_t> stage;
    for (Operation* user : argument.getUsers()) {
      if (!user->hasTrait<OpTrait::IsTerminator>() && phaseOf(user).empty() && known(user)) {
        stage = std::min(stage.value_or(*known(user)), *known(user));
      }
    }
    return stage;
  }

  FailureOr<int64_t> write(Block& body) {
    std::set<int64_t> used;
    Builder builder(step_.getContext());
    for (Operation& op : body.without_terminator()) {
      op.setAttr(kStageAttr, builder.getI64IntegerAttr(stages_[&op]));
      if (phaseOf(&op).empty()) {
        used.insert(stages_[&op]);
      }
    }
    const int64_t count = used.empty() ? 1 : *used.rbegin() + 1;
    // Between two stages in use; the least of them may be far from 0, as a user wrote it.
    std::string empty;
    int64_t next = 0;
    int gaps = 0;
    for (const int64_t stage : used) {
      if (stage > next && ++gaps <= 3) {
        empty += (empty.empty() ? "" : ", ") + std::to_string(next) +
                 (stage - next > 1 ? " to " + std::to_string(stage - 1) : "");
      }
      next = stage + 1;
    }
    if (gaps > 0) {
      return step_.emitError() << "no operator is on stage " << empty << (gaps > 3 ? ", ..." : "")
                               << ", but some are on stage " << count - 1
                               << "; number the stages 0, 1, ... without gaps",
             failure();
    }
    return count;
  }

  func::FuncOp step_;
  llvm::DenseMap<Operation*, int64_t> stages_;
  llvm::DenseMap<int64_t, Operation*> byId_;
  std::map<std::string, BlockArgument> parameters_;
};

}  // namespace

FailureOr<int64_t> assignStages(func::FuncOp step) {
  return StageAssigner(step).run();
}

}  // namespace weft
