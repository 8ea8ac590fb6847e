// Lowers every reshard to the collectives of the cheapest path between its two layouts. Shapes stay global: the values
// between two collectives have the layout of that step of the path.
//
// After the functions are cut: a value crosses from one function to another as the annotated state names it, whether or
// not the path to it has steps. What takes a part of a tensor (a rank's own, or one micro-batch) becomes a
// dist.dynamic_slice, whose starts come with the other origins.

#include <map>

#include "ir/dist/dist.h"
#include "ir/layout/reshard.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"
#include "passes/logical/request_attributes.h"
#include "passes/partition/value_layouts.h"
#include "planner/step/time_layouts.h"

namespace weft {

#define GEN_PASS_DEF_LOWERRESHARDSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// The layout of a step of the path, which is planned for one micro-batch, as one of the whole tensor.
Layout ofWholeTensor(const Layout& step, const Layout& from) {
  Layout layout = likeInTime(step, from);
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    layout.setPad(d, from.pad(d));
  }
  std::vector<Partial> partial = step.partial();
  llvm::copy_if(from.partial(), std::back_inserter(partial), [](const Partial& p) { return isTime(p.axis); });
  layout.setPartial(partial);
  return layout;
}

// Attributes of a collective: its axes, dimensions and reduction.
void addMeaning(OperationState& state, const ReshardStep& step, const Layout& before, const Mesh& mesh,
                Builder& builder) {
  const CollectiveKind kind = step.kind;
  if (kind == CollectiveKind::kPermute) {
    const auto attribute = [&](const Layout& layout) {
      return ir::dist::LayoutAttr::get(builder.getContext(), layout.print(mesh));
    };
    state.addAttribute("from", attribute(before));
    state.addAttribute("to", attribute(step.layout));
  } else {
    state.addAttribute("over", ir::dist::axesAttr(builder.getContext(), step.axes, mesh));
  }
  if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllToAll) {
    state.addAttribute("dim", builder.getI64IntegerAttr(step.sourceDim));
  }
  if (kind == CollectiveKind::kReduceScatter) {
    state.addAttribute("dim", builder.getI64IntegerAttr(step.targetDim));
  }
  if (kind == CollectiveKind::kAllToAll) {
    state.addAttribute("split_dim", builder.getI64IntegerAttr(step.targetDim));
  }
  if (kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce) {
    state.addAttribute("reduce", builder.getStringAttr(reduceKindName(step.reduce)));
  }
}

class ReshardLowerer {
 public:
  ReshardLowerer(const Mesh& mesh, const Machine& machine)
      : mesh_(mesh), planner_(mesh, machine), layouts_(meshesOf(mesh)) {}

  // Returns how many operators the reshards became.
  FailureOr<int64_t> run(func::FuncOp function) {
    if (failed(layouts_.read(function))) {
      return failure();
    }
    const auto count = [&] { return static_cast<int64_t>(function.getBody().front().getOperations().size()); };
    const int64_t before = count();
    int64_t reshards = 0;
    for (auto reshard : llvm::make_early_inc_range(function.getOps<ir::dist::ReshardOp>())) {
      Operation* const last = reshard->getPrevNode();
      FailureOr<Value> made = lowered(reshard);
      if (failed(made)) {
        return failure();
      }
      if (Attribute mark = reshard->getAttr(kRecomputedAttr)) {
        Operation* op = last == nullptr ? &function.getBody().front().front() : last->getNextNode();
        for (; op != reshard; op = op->getNextNode()) {
          op->setAttr(kRecomputedAttr, mark);
        }
      }
      reshard.getY().replaceAllUsesWith(*made);
      reshard->erase();
      ++reshards;
    }
    refreshType(function);
    return count() - before + reshards;
  }

 private:
  static ModuleMeshes meshesOf(const Mesh& mesh) {
    ModuleMeshes meshes;
    meshes.ofSubmesh = {mesh};
    return meshes;
  }

  FailureOr<Value> lowered(ir::dist::ReshardOp reshard) {
    const Layout& from = layouts_.of(reshard.getX());
    const Layout& to = layouts_.of(reshard.getY());
    if (partialOverTime(from) != partialOverTime(to)) {
      return reshard.emitError() << "goes from " << from.print(mesh_) << " to " << to.print(mesh_)
                                 << ": a sum over the micro-batches is carried out in another function; run "
                                    "--weft-cut-functions first",
             failure();
    }
    OpBuilder builder(reshard);
    if (timeDim(to) >= 0 && timeDim(from) < 0) {
      return builder.create<ir::dist::DynamicSliceOp>(reshard.getLoc(), reshard.getY().getType(), reshard.getX())
          .getResult();
    }
    const Shape microBatch = microBatchShape(ir::shapeOf(reshard.getX()), from, mesh_.microBatches());
    const DType type = ir::dtypeOf(reshard.getX().getType()).value_or(DType::kF32);
    absl::StatusOr<ReshardPlan> plan = planner_.plan(microBatch, type, withoutTime(from), withoutTime(to));
    if (!plan.ok()) {
      return reshard.emitError(std::string(plan.status().message())), failure();
    }
    Value value = reshard.getX();
    Layout current = withoutTime(from);
    for (const ReshardStep& step : plan->steps) {
      const bool isLast = &step == &plan->steps.back();
      const Type made = isLast ? reshard.getY().getType()
                               : ir::dist::withLayout(value.getType(), ofWholeTensor(step.layout, from), mesh_);
      value = moved(builder, value, made, step, {reshard, current});
      current = step.layout;
    }
    return value;
  }

  // What a collective is there for: a step of a reshard, from a layout.
  struct Origin {
    ir::dist::ReshardOp reshard;
    const Layout& before;
  };

  Value moved(OpBuilder& builder, Value value, Type type, const ReshardStep& step, Origin origin) {
    const Location loc = origin.reshard.getLoc();
    if (step.kind == CollectiveKind::kSlice) {
      return builder.create<ir::dist::DynamicSliceOp>(loc, type, value).getResult();
    }
    OperationState state(loc, "dist." + collectiveName(step.kind));
    state.addOperands(value);
    state.addTypes(type);
    addMeaning(state, step, origin.before, mesh_, builder);
    const std::string reason =
        origin.reshard.getReason().str() + ": " + origin.before.print(mesh_) + " -> " + step.layout.print(mesh_);
    state.addAttribute("reason", builder.getStringAttr(reason));
    state.addAttribute("cost", builder.getF64FloatAttr(inSeconds(step.cost)));
    state.addAttribute("bytes_received", builder.getI64IntegerAttr(step.bytesReceived));
    state.addAttribute(kNameAttr, builder.getStringAttr(labelOf(origin.reshard)));
    return builder.create(state)->getResult(0);
  }

  Mesh mesh_;
  ReshardPlanner planner_;
  ValueLayouts layouts_;
};

class LowerReshardsPass : public impl::LowerReshardsPassBase<LowerReshardsPass> {
 public:
  void runOnOperation() override {
    // By mesh and machine: submeshes of equal ones share paths.
    std::map<std::pair<std::string, std::string>, std::unique_ptr<ReshardLowerer>> lowerers;
    const LogicalResult done = forEachSubmesh(getOperation(), [&](ModuleOp submesh, const Machine& machine) {
      FailureOr<Mesh> mesh = meshOf(submesh);
      if (failed(mesh)) {
        return failure();
      }
      std::unique_ptr<ReshardLowerer>& lowerer = lowerers[{mesh->print(), machine.print()}];
      if (!lowerer) {
        lowerer = std::make_unique<ReshardLowerer>(*mesh, machine);
      }
      for (func::FuncOp function : functionsInOrder(submesh)) {
        const FailureOr<int64_t> made = lowerer->run(function);
        if (failed(made)) {
          return failure();
        }
        numCollectives += *made;
      }
      return success();
    });
    if (failed(done)) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace weft
