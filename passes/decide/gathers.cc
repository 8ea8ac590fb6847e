#include "passes/decide/gathers.h"

#include <algorithm>
#include <memory>
#include <set>

#include "ir/layout/reshard.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

Layout withPads(Layout layout, const Shape& logical, const Shape& stored) {
  for (size_t d = 0; d < logical.size(); ++d) {
    layout.setPad(d, stored[d] == logical[d] ? 0 : stored[d]);
  }
  return layout;
}

StringRef phaseOf(Operation* op) {
  auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
  return phase ? phase.getValue() : "";
}

int64_t bytesOf(const Shape& shape, DType type) {
  int64_t bytes = byteSize(type);
  for (const int64_t size : shape) {
    bytes *= size;
  }
  return bytes;
}

}  // namespace

std::vector<ParameterGather> parameterGathers(func::FuncOp step, Propagation& propagation, const ModuleMeshes& meshes,
                                              const StoredShapes& stored) {
  std::vector<ParameterGather> gathers;
  std::vector<std::unique_ptr<ReshardPlanner>> planners;
  for (const Mesh& mesh : meshes.ofSubmesh) {
    planners.push_back(std::make_unique<ReshardPlanner>(mesh, Machine()));
  }
  for (const Argument& argument : argumentsOf(step)) {
    BlockArgument value = step.getArgument(argument.index);
    const DType type = ir::dtypeOf(value.getType()).value_or(DType::kF32);
    const Shape logical = ir::shapeOf(value);
    const Shape& shape = stored.of(value);
    ParameterGather gather{argument.index};
    std::set<std::pair<std::string, int64_t>> calls;
    for (OpOperand& use : value.getUses()) {
      Operation* reader = use.getOwner();
      if (argument.kind != "parameter" || reader->hasTrait<OpTrait::IsTerminator>() || phaseOf(reader) == "update") {
        continue;
      }
      const int64_t mesh = meshes.number(stageOf(reader));
      const OperatorSharding& sharding = propagation.of(reader);
      const Layout from = withPads(*propagation.argument(argument.index, mesh), logical, shape);
      const Layout to =
          withPads(sharding.rule->operandLayout(use.getOperandNumber(), sharding.closed()), logical, shape);
      const absl::StatusOr<ReshardPlan> plan = planners[mesh]->plan(shape, type, from, to);
      if (plan.ok() && plan->cost > 0) {
        calls.insert({phaseOf(reader).str(), stageOf(reader)});
        gather.seconds = std::max(gather.seconds, plan->cost);
        gather.bytes = std::max(gather.bytes, bytesOf(to.localShape(logical), type));
      }
    }
    gather.calls = static_cast<int64_t>(calls.size());
    if (gather.calls > 0) {
      gathers.push_back(gather);
    }
  }
  return gathers;
}

void chooseGathers(const std::vector<ParameterGather>& gathers, int64_t microBatches, int64_t budget,
                   std::vector<ArgumentDecision>& arguments) {
  const auto saved = [&](const ParameterGather& gather) {
    return static_cast<double>(gather.calls * microBatches - 1) * gather.seconds / static_cast<double>(gather.bytes);
  };
  std::vector<ParameterGather> order = gathers;
  std::stable_sort(order.begin(), order.end(),
                   [&](const ParameterGather& a, const ParameterGather& b) { return saved(a) > saved(b); });
  for (const ParameterGather& gather : order) {
    const bool once = budget < 0 || gather.bytes <= budget;
    arguments[gather.argument].gather = once ? GatherPolicy::kOncePerStep : GatherPolicy::kEachCall;
    budget -= once && budget >= 0 ? gather.bytes : 0;
  }
}

}  // namespace weft
