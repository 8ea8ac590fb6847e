// The annotated step as plain data: the program graph with everything that moves, cuts or fills its values.
//
// The passes of partition build the same state in MLIR, out of the same answers (value_layouts.h, reshard_paths.h,
// pad_masks.h). Here it is what the planner prices: cut into functions it becomes a step program (lower_step.h), and
// its forward pass is what recomputation is chosen on (forward_graphs.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/layout.h"
#include "planner/decisions.h"
#include "planner/graph/graph_view.h"
#include "planner/step/value_layouts.h"

namespace weft {

struct AnnotatedValue {
  int source = 0;     // the value of the graph that it is, in this layout
  Layout layout;      // canonical, with time axes and pads
  int64_t mesh = 0;   // number of the mesh it lies on
  int producer = -1;  // index of its operation, -1: an argument
};

struct AnnotatedOp {
  enum class Kind : uint8_t { kOperator, kReshard, kMask, kTransfer };
  Kind kind = Kind::kOperator;
  int op = -1;  // of an operator: its number in the graph
  Place place;
  std::vector<int> operands, results;  // values of the annotated step
  int64_t dim = 0;                     // of a mask: the padded dimension
  // Of the backward pass: a copy of a forward operation, or a gather that runs again for the gradients of weights.
  bool repeated = false;

  bool movesOrFills() const { return kind == Kind::kReshard || kind == Kind::kMask; }
};

struct AnnotatedResult {
  int value = 0;
  std::optional<unsigned> updates;  // the argument whose new value it is
};

struct AnnotatedStep {
  std::vector<AnnotatedValue> values;  // the arguments of the graph first
  std::vector<AnnotatedOp> ops;        // in the order in which the step runs them
  std::vector<AnnotatedResult> results;

  // Operations that read a value, the step's results not counted; in order.
  std::vector<std::vector<int>> readers() const;
};

// The step that `decisions` make of the graph, which their rewrites have made already. Errors: layouts that the program
// refuses, at the user's lines.
absl::StatusOr<AnnotatedStep> annotate(const GraphView& view, const Decisions& decisions);

// The record's name of a reshard or mask: id, index, how and stage are set.
ReshardDecision reshardEntry(const GraphView& view, const Decisions& decisions, const AnnotatedStep& step, int op);

// Does the operation run a second time, by the decisions (planner/step/repeats.h)? Of all operations.
std::vector<bool> repeatedOps(const GraphView& view, const Decisions& decisions, const AnnotatedStep& step);

// The step with copies in the backward pass of forward operations that run again: each just before its first reader.
AnnotatedStep withCopies(const AnnotatedStep& step, const std::vector<bool>& repeated);

}  // namespace weft
