// What a step would need: bytes of a rank of each submesh, and seconds, predicted from the program graph and the
// decisions.
//
// The step is annotated once; every other question (another schedule, other recomputation) cuts it into step programs
// again and runs the plan phase's own algorithms on them: storage, rings, packing. Nothing is compiled. A search that
// aims at a memory limit asks the same again and again: what was asked is known, and schedules that cut the step alike
// share the step programs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/function_time.h"
#include "planner/cost/lower_step.h"
#include "planner/cost/offload_state.h"
#include "planner/cost/prices.h"
#include "planner/decisions.h"
#include "planner/graph/program_graph.h"
#include "planner/machine/machine.h"
#include "planner/schedule/simulate.h"
#include "planner/step/annotated_step.h"
#include "planner/step/step_memory.h"

namespace weft {

// By how many bytes the compiler's own memory exceeds the prediction, of each submesh; empty: nothing is known yet.
struct Correction {
  std::vector<int64_t> bytes;
};

// Bytes of one micro-batch that pass from one of its functions to another, by the last that reads them.
struct PassedBytes {
  int64_t toInputs = 0;   // from forward to the gradients of inputs, or to a backward function that is not cut
  int64_t toWeights = 0;  // from forward to the gradients of weights
  int64_t between = 0;    // from the gradients of inputs to those of weights

  int64_t all() const { return toInputs + toWeights + between; }
  PassedBytes& operator+=(const PassedBytes& more) {
    toInputs += more.toInputs;
    toWeights += more.toWeights;
    between += more.between;
    return *this;
  }
};

struct SubmeshNeeds {
  int64_t peakBytes = 0;
  std::vector<StepRegion> regions;
  Picoseconds before = 0, after = 0;  // of what runs once, before and after the micro-batches
  PassedBytes activations;            // of all stages together, each value by itself
  std::vector<FunctionTime> functions = {};
  std::optional<OffloadedState> offloaded = std::nullopt;  // already counted in all of the above

  // The most micro-batches that a stage holds something of for its backward pass.
  int64_t slotsOf(int64_t stage) const;
};

struct StepNeeds {
  std::vector<SubmeshNeeds> submeshes;
  schedule::Times times;     // of each stage, in picoseconds
  Picoseconds time = 0;      // of the micro-batches, by the simulation of the schedule, on shared cores where ranks do
  Picoseconds onceTime = 0;  // of what runs once before and after them, each of the slowest submesh, likewise

  Picoseconds stepTime() const { return time + onceTime; }
  int64_t peakBytes() const;  // of the rank that needs most
};

class StepModel {
 public:
  // `graph` as the rewrites of `record` leave it. Errors: what the layouts of the program refuse, at the user's lines.
  static absl::StatusOr<std::unique_ptr<StepModel>> create(ProgramGraph graph, Decisions record, const Machine& machine,
                                                           const Correction& correction);

  const GraphView& view() const { return view_; }
  const Decisions& record() const { return record_; }
  const AnnotatedStep& step() const { return step_; }
  Prices& prices() { return prices_; }

  // `record` may differ from that of the model in its schedule, on the same submeshes, and in its recomputation.
  absl::StatusOr<StepNeeds> needs(const Decisions& record) { return needs(record, record.mesh.microBatches()); }
  // The same of a step that has only so many of its micro-batches.
  absl::StatusOr<StepNeeds> needs(const Decisions& record, int64_t microBatches);

 private:
  // Is the backward pass cut in two, and which operations of the annotated step run again?
  struct Cut {
    bool splitsBackward = false;
    std::vector<bool> repeated;
    friend bool operator==(const Cut&, const Cut&) = default;
  };
  struct Known {
    ScheduleDecision schedule;
    int64_t microBatches = 0;
    Cut cut;
    StepNeeds needs;
  };

  StepModel(ProgramGraph graph, Decisions record, const Machine& machine, const Correction& correction);
  absl::StatusOr<LoweredStep*> lowered(const Decisions& record, const Cut& cut);
  absl::StatusOr<StepNeeds> findNeeds(const Decisions& record, int64_t microBatches, const schedule::Table& table,
                                      LoweredStep& lowered);

  ProgramGraph graph_;
  GraphView view_;
  Decisions record_;
  Correction correction_;
  Prices prices_;
  AnnotatedStep step_;
  KnownPackings packings_;
  std::deque<std::pair<Cut, LoweredStep>> lowered_;  // the last few
  std::deque<Known> known_;
};

}  // namespace weft
