// The forward passes of the stages as the graphs on which recomputation is chosen (planner/recompute/graph.h), with
// bytes of one rank and one micro-batch and seconds on the machine.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/prices.h"
#include "planner/recompute/graph.h"
#include "planner/step/annotated_step.h"

namespace weft {

struct ForwardGraph {
  recompute::Graph graph;
  std::vector<int> ops;  // of the annotated step, by index in the graph
};

// One for each stage. Operators, reshards and masks of the forward pass all become operators of the graph; those that
// run again already (`repeated`: the user's scopes) may not be kept. What is partial over the micro-batches, sent to
// another stage or a result of the step is never run again.
absl::StatusOr<std::vector<ForwardGraph>> forwardGraphs(const GraphView& view, const AnnotatedStep& step,
                                                        const std::vector<bool>& repeated, int64_t stages,
                                                        Prices& prices);

}  // namespace weft
