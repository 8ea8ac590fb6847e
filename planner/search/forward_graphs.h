// The forward passes of the stages as the graphs on which recomputation is chosen (planner/recompute/graph.h), with
// bytes of one rank and one micro-batch and seconds on the machine.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/step_model.h"
#include "planner/recompute/graph.h"

namespace weft {

struct ForwardGraph {
  recompute::Graph graph;
  std::vector<int> ops;  // of the annotated step, by index in the graph
};

// One for each stage. Operators, reshards and masks of the forward pass all become operators of the graph; those that
// run again already, by `record`, may not be kept. What is partial over the micro-batches, sent to another stage or a
// result of the step is never run again. Where the schedule of `record` cuts the backward pass, what both halves need
// is recomputed twice (planner/step/backward_parts.h), and its time counts twice. `record` may differ from that of the
// model as for StepModel::needs.
absl::StatusOr<std::vector<ForwardGraph>> forwardGraphs(const Decisions& record, StepModel& model);

}  // namespace weft
