// Time and scratch of the operations of an annotated step on one rank and, where they run for each, one micro-batch.
//
// A kernel takes the time of its arithmetic or of the bytes it touches, whichever is longer; a collective what the
// reshard planner's path says; a view nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/reshard.h"
#include "kernels/describe/describe.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"
#include "planner/machine/times.h"
#include "planner/step/annotated_step.h"
#include "planner/step/step_program.h"
#include "planner/submesh_machines.h"

namespace weft {

// A kernel call of one rank.
struct KernelPrice {
  KernelDescription description;
  Picoseconds time = 0;

  void applyTo(StepInstruction& instruction) const {
    instruction.inPlace = description.inPlace;
    instruction.workspaceBytes = description.workspaceBytes;
    instruction.time = time;
  }
};

// Of one record, whose step may have copies of operations where it recomputes.
class Prices {
 public:
  Prices(const GraphView& view, const Decisions& decisions, const Machine& machine);

  // What submeshes run on.
  const SubmeshMachines& machines() const { return machines_; }
  // The tensor of one rank, of a micro-batch where it has one.
  TensorSpec localTensor(const AnnotatedValue& value) const;
  // The kernel of an operator or of a mask.
  absl::StatusOr<KernelPrice> kernel(const AnnotatedStep& step, const AnnotatedOp& op);
  // The kernel that makes the product of an operator and adds it to a sum over micro-batches; nothing where its result
  // is added in a kernel of its own.
  absl::StatusOr<std::optional<KernelPrice>> accumulating(const AnnotatedStep& step, const AnnotatedOp& op);
  // One of the compiler's own kernels, without arithmetic, on a submesh.
  KernelPrice moving(int64_t submesh, const std::string& name, const std::vector<TensorSpec>& inputs,
                     const TensorSpec& output) const;
  // The path of a reshard that is neither an accumulation nor a slice in time.
  absl::StatusOr<ReshardPlan> path(const AnnotatedStep& step, const AnnotatedOp& reshard);
  // Of an operation, whatever it is: what running it once more costs.
  absl::StatusOr<Picoseconds> time(const AnnotatedStep& step, const AnnotatedOp& op);

 private:
  // Dimensions, sums and pads of a layout.
  using LayoutKey = std::tuple<AxisLists, std::vector<Partial>, std::vector<int64_t>>;
  // Of a mesh its number and that of its machine.
  using MeshKey = std::pair<int64_t, int64_t>;
  using PathKey = std::tuple<Shape, DType, MeshKey, LayoutKey, LayoutKey>;

  static LayoutKey keyOf(const Layout& layout);
  int64_t submeshOf(const AnnotatedOp& op) const { return meshes_.submeshes[op.place.stage]; }
  absl::StatusOr<KernelPrice> kernelOf(const AnnotatedStep& step, const AnnotatedOp& op) const;
  KernelSpec specOf(const AnnotatedStep& step, const AnnotatedOp& op) const;
  // What the kernel of an operator does.
  absl::StatusOr<KernelWork> workOf(const AnnotatedOp& op, const KernelSpec& spec) const;

  const GraphView& view_;
  StageMeshes meshes_;
  SubmeshMachines machines_;
  std::map<MeshKey, std::unique_ptr<ReshardPlanner>> planners_;
  // What is known: a model is asked for the same with other schedules and other recomputation, layers are alike.
  std::vector<std::optional<KernelPrice>> kernels_;  // by operator
  std::map<PathKey, ReshardPlan> paths_;
};

}  // namespace weft
