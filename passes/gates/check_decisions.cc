#include "passes/gates/check_decisions.h"

#include <set>

#include "ir/bounded.h"
#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "planner/stage_table.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

class DecisionsChecker {
 public:
  DecisionsChecker(func::FuncOp step, const Decisions& decisions)
      : step_(step), decisions_(decisions), meshes_(decisions.meshes()) {}

  LogicalResult run() {
    const absl::Status status =
        checkSchedule(decisions_.schedule, decisions_.mesh.microBatches(), trains(step_->getParentOfType<ModuleOp>()));
    if (!status.ok()) {
      return step_.emitError() << "decisions: " << std::string(status.message());
    }
    if (decisions_.arguments.size() != step_.getNumArguments()) {
      return step_.emitError() << "the decisions know " << decisions_.arguments.size() << " arguments, @step has "
                               << step_.getNumArguments() << "; they were made for another program";
    }
    return success(succeeded(arguments()) && succeeded(operators()));
  }

 private:
  LogicalResult arguments() {
    for (unsigned i = 0; i < step_.getNumArguments(); ++i) {
      const ArgumentDecision& decision = decisions_.arguments[i];
      Value value = step_.getArgument(i);
      const std::string name = argumentAt(step_, i).name;
      if (decision.name != name) {
        return emitError(value.getLoc()) << "decisions: argument " << i << " is '" << decision.name << "', in @step '"
                                         << name << "'; they were made for another program";
      }
      const std::string owner = "argument '" + name + "'";
      if (failed(checkLayout(value, owner, decision.layout, meshes_.ofStage(decision.stage)))) {
        return failure();
      }
      for (const auto& [number, layout] : decision.elsewhere) {
        if (failed(checkLayout(value, owner, layout, meshes_.withNumber(number)))) {
          return failure();
        }
      }
    }
    return success();
  }

  LogicalResult checkLayout(Value value, const std::string& owner, const Layout& layout, const Mesh& mesh) {
    const auto timed = [](const AxisList& axes) {
      return llvm::any_of(axes, [](const Axis& axis) { return axis.kind == AxisKind::kTime; });
    };
    const absl::Status status = layout.check(ir::shapeOf(value), mesh);
    if (!status.ok()) {
      return emitError(value.getLoc()) << "decisions: " << owner << ": " << std::string(status.message());
    }
    if (layout.isPartial() || llvm::any_of(layout.dims(), timed) ||
        !ir::isBounded(layout.storedShape(ir::shapeOf(value)))) {
      return emitError(value.getLoc()) << "decisions: " << owner << " lies as " << layout.print(mesh)
                                       << "; what is stored is whole, not split over micro-batches, and of at most "
                                       << kMaxBytes << " bytes";
    }
    return success();
  }

  LogicalResult operators() {
    std::map<int64_t, const OperatorDecision*> byId;
    for (const OperatorDecision& decision : decisions_.operators) {
      if (!byId.emplace(decision.id, &decision).second) {
        return step_.emitError() << "decisions: operator " << decision.id << " (" << decision.label
                                 << ") has two entries";
      }
    }
    for (Operation& op : step_.getBody().front().without_terminator()) {
      if (isa<ir::dist::ReshardOp, ir::dist::TransferOp, ir::dist::MaskPadOp>(op)) {
        continue;  // of a step on the way to the annotated state
      }
      const auto known = byId.find(idOf(&op));
      if (known == byId.end()) {
        return op.emitError() << labelOf(&op) << " (number " << idOf(&op)
                              << ") has no entry in the decisions; they were made for another program";
      }
      if (failed(checkOperator(&op, *known->second))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult checkOperator(Operation* op, const OperatorDecision& decision) {
    FailureOr<Rule> rule = ir::ruleOf(cast<ir::OperatorInterface>(op));
    if (failed(rule)) {
      return failure();
    }
    const auto error = [&] { return op->emitError() << "decisions: operator " << decision.id << " (" << labelOf(op); };
    if (!decision.batch.empty() && rule->factorIndex(decision.batch) < 0) {
      return error() << "): the batch is factor '" << decision.batch << "', which its rule '" << rule->text()
                     << "' does not have";
    }
    for (const auto& [factor, axes] : decision.axes) {
      if (rule->factorIndex(factor) < 0) {
        return error() << "): factor '" << factor << "' is split, which its rule '" << rule->text()
                       << "' does not have";
      }
      if (llvm::any_of(axes, [](const Axis& axis) { return axis.kind == AxisKind::kTime; })) {
        return error() << "): factor '" << factor << "' is split over micro-batches by name; that is `per_micro_batch`";
      }
    }
    for (const auto& [index, layout] : decision.results) {
      if (index >= op->getNumResults()) {
        return error() << "): a layout is asked of result " << index << ", it has " << op->getNumResults();
      }
      if (failed(
              checkLayout(op->getResult(index), "result of " + labelOf(op), layout, meshes_.ofStage(decision.stage)))) {
        return failure();
      }
    }
    return success();
  }

  func::FuncOp step_;
  const Decisions& decisions_;
  StageMeshes meshes_;
};

}  // namespace

LogicalResult checkDecisions(func::FuncOp step, const Decisions& decisions) {
  return DecisionsChecker(step, decisions).run();
}

}  // namespace weft
