#include "passes/choose/kept_values.h"

#include <map>
#include <memory>

#include "ir/dist/dist.h"
#include "ir/layout/reshard.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/partition/recompute.h"
#include "planner/step/time_layouts.h"
#include "runtime/base/arithmetic.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

class GraphBuilder {
 public:
  GraphBuilder(const Decisions& decisions, const Machine& machine) : meshes_(decisions.meshes()), machine_(machine) {
    for (const Mesh& mesh : meshes_.ofSubmesh) {
      planners_.push_back(std::make_unique<ReshardPlanner>(mesh, machine));
    }
    for (const OperatorDecision& decision : decisions.operators) {
      decisions_[decision.id] = &decision;
    }
    stages_.resize(decisions.schedule.submeshes.size());
  }

  LogicalResult run(func::FuncOp step) {
    for (Operation& op : step.getBody().front().without_terminator()) {
      if (runsWhere(&op) == "forward" && failed(add(&op))) {
        return failure();
      }
    }
    return success();
  }

  std::vector<StageGraph> take() { return std::move(stages_); }

 private:
  LogicalResult add(Operation* op) {
    const int64_t at = stageOf(op);
    StageGraph& stage = stages_[at];
    recompute::Operator made;
    for (Value operand : op->getOperands()) {
      FailureOr<int> input = inputOf(operand, at);
      if (failed(input)) {
        return failure();
      }
      if (*input >= 0) {
        made.inputs.push_back(*input);
      }
    }
    FailureOr<double> seconds = secondsOf(op);
    if (failed(seconds)) {
      return failure();
    }
    made.seconds = *seconds;
    made.mayRepeat = mayRepeat(op);
    made.mayKeep = !isRepeated(op, meshes_);
    const auto index = static_cast<int>(stage.graph.operators.size());
    stage.graph.operators.push_back(std::move(made));
    stage.operators.push_back(op);
    for (Value result : op->getResults()) {
      if (failed(addValue(result, at, index))) {
        return failure();
      }
    }
    return success();
  }

  // The value's index in a stage's graph, -1 for what is there anyway.
  FailureOr<int> inputOf(Value value, int64_t stage) {
    Operation* producer = value.getDefiningOp();
    if (producer == nullptr || runsWhere(producer) != "forward") {
      return -1;
    }
    const auto known = values_.find({value.getAsOpaquePointer(), stage});
    return known != values_.end() ? FailureOr<int>(known->second) : addValue(value, stage, -1);
  }

  FailureOr<int> addValue(Value value, int64_t at, int op) {
    StageGraph& stage = stages_[at];
    FailureOr<int64_t> bytes = localBytes(value);
    if (failed(bytes)) {
      return failure();
    }
    recompute::Value made{op, alignUp(*bytes), -1, false};
    if (op >= 0 && isView(stage.operators[op]) && !stage.graph.operators[op].inputs.empty()) {
      made.storage = stage.graph.operators[op].inputs[0];
    }
    for (Operation* user : value.getUsers()) {
      made.read |= runsWhere(user) == "backward" && stageOf(user) == at;
    }
    const auto index = static_cast<int>(stage.graph.values.size());
    stage.graph.values.push_back(made);
    stage.values.push_back(value);
    values_[{value.getAsOpaquePointer(), at}] = index;
    return index;
  }

  static bool isView(Operation* op) { return ir::viewKindOf(op) != ViewKind::kNone; }

  bool mayRepeat(Operation* op) {
    bool pends = pendsOverTime(op, meshes_) || isa<ir::dist::TransferOp>(op);
    for (Value operand : op->getOperands()) {
      pends |= operand.getDefiningOp() != nullptr && pendsOverTime(operand.getDefiningOp(), meshes_);
    }
    return !pends && llvm::none_of(op->getUsers(), [&](Operation* user) {
      return user->hasTrait<OpTrait::IsTerminator>() || stageOf(user) != stageOf(op);
    });
  }

  FailureOr<Layout> layoutOf(Value value) {
    auto attr = dyn_cast_or_null<ir::dist::LayoutAttr>(cast<RankedTensorType>(value.getType()).getEncoding());
    absl::StatusOr<Layout> layout = Layout::parse(attr ? attr.getText().str() : "", meshes_.of(value));
    if (!layout.ok()) {
      return emitError(value.getLoc(), std::string(layout.status().message())), failure();
    }
    return *layout;
  }

  FailureOr<int64_t> localBytes(Value value) {
    FailureOr<Layout> layout = layoutOf(value);
    if (failed(layout)) {
      return failure();
    }
    int64_t elements = 1;
    for (const int64_t size : layout->localShape(ir::shapeOf(value))) {
      elements *= size;
    }
    const int64_t bits = cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
    return elements * std::max<int64_t>(bits / 8, 1);
  }

  // Bytes touched by time; arithmetic of one rank's share; collectives by the planner's price.
  FailureOr<double> secondsOf(Operation* op) {
    if (isView(op) || isa<ir::nn::ConstantOp>(op)) {
      return 0.0;
    }
    double touched = 0;
    const auto touch = [&](auto values) {
      for (Value value : values) {
        FailureOr<int64_t> bytes = localBytes(value);
        if (failed(bytes)) {
          return failure();
        }
        touched += static_cast<double>(*bytes);
      }
      return success();
    };
    if (failed(touch(op->getOperands())) || failed(touch(op->getResults()))) {
      return failure();
    }
    if (auto reshard = dyn_cast<ir::dist::ReshardOp>(op)) {
      return reshardSeconds(reshard, touched / machine_.memoryBandwidth);
    }
    auto interface = dyn_cast<ir::OperatorInterface>(op);
    const double flops = interface ? static_cast<double>(interface.getFlops()) / parts(op) : 0;
    return flops / machine_.flops + touched / machine_.memoryBandwidth;
  }

  // Into how many equal parts ranks and micro-batches cut the operator's work.
  double parts(Operation* op) const {
    const auto known = decisions_.find(idOf(op));
    double count = 1;
    if (known != decisions_.end()) {
      for (const auto& [factor, axes] : known->second->axes) {
        count *= static_cast<double>(partsOf(axes));
      }
      count *= known->second->perMicroBatch ? static_cast<double>(microBatches()) : 1;
    }
    return count;
  }

  FailureOr<double> reshardSeconds(ir::dist::ReshardOp op, double copying) {
    FailureOr<Layout> from = layoutOf(op->getOperand(0));
    FailureOr<Layout> to = layoutOf(op->getResult(0));
    if (failed(from) || failed(to)) {
      return failure();
    }
    // A slice of the step's batch, or an accumulation, which is not repeated.
    if (timeDim(*from) != timeDim(*to) || partialOverTime(*from) != partialOverTime(*to)) {
      return copying;
    }
    const Shape microBatch = microBatchShape(ir::shapeOf(op->getOperand(0)), *from, microBatches());
    const std::optional<DType> type = ir::dtypeOf(op->getOperand(0).getType());
    absl::StatusOr<ReshardPlan> plan = planners_[meshes_.number(op.getOperation())]->plan(
        microBatch, type.value_or(DType::kF32), withoutTime(*from), withoutTime(*to));
    if (!plan.ok()) {
      return op.emitError(std::string(plan.status().message())), failure();
    }
    const bool slices =
        llvm::any_of(plan->steps, [](const ReshardStep& step) { return step.kind == CollectiveKind::kSlice; });
    return plan->cost + (slices ? copying : 0);
  }

  int64_t microBatches() const { return meshes_.ofSubmesh.front().microBatches(); }

  ModuleMeshes meshes_;
  Machine machine_;
  std::vector<std::unique_ptr<ReshardPlanner>> planners_;  // by number of the mesh
  std::map<int64_t, const OperatorDecision*> decisions_;
  std::map<std::pair<const void*, int64_t>, int> values_;  // by value and stage
  std::vector<StageGraph> stages_;
};

}  // namespace

FailureOr<std::vector<StageGraph>> stageGraphs(ModuleOp module, const Decisions& decisions, const Machine& machine) {
  func::FuncOp step = stepFunction(module);
  if (!step) {
    return module.emitError("no @step"), failure();
  }
  GraphBuilder builder(decisions, machine);
  if (failed(builder.run(step))) {
    return failure();
  }
  return builder.take();
}

}  // namespace weft
