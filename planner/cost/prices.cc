#include "planner/cost/prices.h"

#include <algorithm>

#include "kernels/describe/contraction.h"
#include "planner/graph/flops.h"
#include "planner/machine/times.h"
#include "planner/step/time_layouts.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

int64_t bytesOf(const std::vector<TensorSpec>& tensors) {
  int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) {
    bytes += tensor.bytes();
  }
  return bytes;
}

std::vector<DType> typesOf(const std::vector<TensorSpec>& tensors) {
  std::vector<DType> types;
  for (const TensorSpec& tensor : tensors) {
    types.push_back(tensor.type);
  }
  return types;
}

std::vector<Shape> shapesOf(const std::vector<TensorSpec>& tensors) {
  std::vector<Shape> shapes;
  for (const TensorSpec& tensor : tensors) {
    shapes.push_back(tensor.shape);
  }
  return shapes;
}

}  // namespace

Prices::Prices(const GraphView& view, const Decisions& decisions, const Machine& machine)
    : view_(view), meshes_(decisions.meshes()), machines_(machine, meshes_) {
  for (const int64_t submesh : meshes_.submeshes) {
    const int64_t number = meshes_.numberOfSubmesh(submesh);
    std::unique_ptr<ReshardPlanner>& planner = planners_[{number, machines_.number(submesh)}];
    if (!planner) {
      planner = std::make_unique<ReshardPlanner>(meshes_.withNumber(number), machines_.of(submesh));
    }
  }
  kernels_.resize(view.operators());
}

TensorSpec Prices::localTensor(const AnnotatedValue& value) const {
  const TensorType& type = view_.typeOf(value.source);
  return {type.type, value.layout.localShape(type.shape)};
}

absl::StatusOr<KernelPrice> Prices::kernel(const AnnotatedStep& step, const AnnotatedOp& op) {
  if (op.kind != AnnotatedOp::Kind::kOperator) {
    return kernelOf(step, op);
  }
  std::optional<KernelPrice>& known = kernels_[op.op];
  if (!known) {
    WEFT_ASSIGN_OR_RETURN(known, kernelOf(step, op));
  }
  return *known;
}

absl::StatusOr<KernelPrice> Prices::kernelOf(const AnnotatedStep& step, const AnnotatedOp& op) const {
  const KernelSpec spec = specOf(step, op);
  if (op.kind == AnnotatedOp::Kind::kMask) {
    return moving(submeshOf(op), spec.name, spec.inputs, spec.outputs[0]);
  }
  WEFT_ASSIGN_OR_RETURN(const KernelWork work, workOf(op, spec));
  return KernelPrice{describe(spec, Target::kCpu), kernelTime(machines_.of(submeshOf(op)), work)};
}

absl::StatusOr<std::optional<KernelPrice>> Prices::accumulating(const AnnotatedStep& step, const AnnotatedOp& op) {
  if (op.kind != AnnotatedOp::Kind::kOperator || machines_.of(submeshOf(op)).fusedAccumulation == 0) {
    return std::nullopt;
  }
  const KernelSpec product = specOf(step, op);
  const std::optional<KernelSpec> both = accumulatingKernel(product);
  if (!both) {
    return std::nullopt;
  }
  WEFT_ASSIGN_OR_RETURN(KernelWork work, workOf(op, product));
  work.sum = {both->inputs[0].bytes(), kContractAccumulateKernel};
  return KernelPrice{describe(*both, Target::kCpu), kernelTime(machines_.of(submeshOf(op)), work)};
}

KernelSpec Prices::specOf(const AnnotatedStep& step, const AnnotatedOp& op) const {
  KernelSpec spec{kMaskPadKernel, {}, {}, {}, 0};
  if (op.kind == AnnotatedOp::Kind::kOperator) {
    spec.name = view_.op(op.op).facts.kind;
    spec.attributes = view_.op(op.op).facts.attributes;
  }
  for (const int value : op.operands) {
    spec.inputs.push_back(localTensor(step.values[value]));
  }
  for (const int value : op.results) {
    spec.outputs.push_back(localTensor(step.values[value]));
  }
  return spec;
}

absl::StatusOr<KernelWork> Prices::workOf(const AnnotatedOp& op, const KernelSpec& spec) const {
  const OperatorFacts& facts = view_.op(op.op).facts;
  // The local sizes of the factors are those of the local shapes.
  WEFT_ASSIGN_OR_RETURN(const Rule rule, Rule::parse(facts.rule, shapesOf(spec.inputs), shapesOf(spec.outputs)));
  KernelWork work = arithmeticOf(facts, rule, FactorAxes(rule.factors().size()));
  work.kernel = facts.kind;
  work.type = arithmeticType(typesOf(spec.inputs), spec.outputs[0].type);
  work.bytes = bytesOf(spec.inputs) + bytesOf(spec.outputs);
  return work;
}

KernelPrice Prices::moving(int64_t submesh, const std::string& name, const std::vector<TensorSpec>& inputs,
                           const TensorSpec& output) const {
  const KernelWork work = {
      .type = arithmeticType(typesOf(inputs), output.type), .bytes = bytesOf(inputs) + output.bytes(), .kernel = name};
  return {describe({name, inputs, {output}, {}, 0}, Target::kCpu), kernelTime(machines_.of(submesh), work)};
}

absl::StatusOr<ReshardPlan> Prices::path(const AnnotatedStep& step, const AnnotatedOp& reshard) {
  const AnnotatedValue& from = step.values[reshard.operands[0]];
  const AnnotatedValue& to = step.values[reshard.results[0]];
  const TensorType& type = view_.typeOf(from.source);
  const Shape microBatch = microBatchShape(type.shape, from.layout, meshes_.withNumber(from.mesh).microBatches());
  const Layout before = withoutTime(from.layout);
  const Layout after = withoutTime(to.layout);
  const MeshKey mesh(from.mesh, machines_.number(submeshOf(reshard)));
  PathKey key(microBatch, type.type, mesh, keyOf(before), keyOf(after));
  const auto known = paths_.find(key);
  if (known != paths_.end()) {
    return known->second;
  }
  WEFT_ASSIGN_OR_RETURN(ReshardPlan made, planners_.at(mesh)->plan(microBatch, type.type, before, after));
  return paths_.emplace(std::move(key), std::move(made)).first->second;
}

Prices::LayoutKey Prices::keyOf(const Layout& layout) {
  std::vector<int64_t> pads;
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    pads.push_back(layout.pad(d));
  }
  return {layout.dims(), layout.partial(), std::move(pads)};
}

absl::StatusOr<Picoseconds> Prices::time(const AnnotatedStep& step, const AnnotatedOp& op) {
  if (op.kind == AnnotatedOp::Kind::kOperator) {
    const OperatorFacts& facts = view_.op(op.op).facts;
    if (facts.view != ViewKind::kNone || facts.isConstant) {
      return 0;
    }
  }
  if (op.kind == AnnotatedOp::Kind::kOperator || op.kind == AnnotatedOp::Kind::kMask) {
    WEFT_ASSIGN_OR_RETURN(const KernelPrice price, kernel(step, op));
    return price.time;
  }
  const AnnotatedValue& from = step.values[op.operands[0]];
  const AnnotatedValue& to = step.values[op.results[0]];
  const Picoseconds copying =
      copyTime(machines_.of(submeshOf(op)), localTensor(from).bytes() + localTensor(to).bytes());
  // A slice of the step's batch, an accumulation, or what another submesh sends.
  if (op.kind == AnnotatedOp::Kind::kTransfer || timeDim(from.layout) != timeDim(to.layout) ||
      partialOverTime(from.layout) != partialOverTime(to.layout)) {
    return copying;
  }
  WEFT_ASSIGN_OR_RETURN(const ReshardPlan plan, path(step, op));
  const bool slices = std::any_of(plan.steps.begin(), plan.steps.end(),
                                  [](const ReshardStep& s) { return s.kind == CollectiveKind::kSlice; });
  return plan.cost + (slices ? copying : 0);
}

}  // namespace weft
