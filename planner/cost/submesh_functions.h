// The functions of one submesh while the annotated step is cut into them, and the names under which they pass values
// on.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/layout/reshard.h"
#include "planner/cost/prices.h"
#include "planner/decisions.h"
#include "planner/step/step_program.h"

namespace weft {

// A reduction that may join others in one bucket; a gather may where the function returns its result.
struct BucketReduction {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  AxisList axes;
  ReduceKind reduce = ReduceKind::kSum;
  int64_t dim = -1;
  DType type = DType::kF32;
  GroupSpan span;
  int64_t bytesReceived = 0;

  bool joins(const BucketReduction& other) const {
    return kind == other.kind && axes == other.axes && reduce == other.reduce && dim == other.dim && type == other.type;
  }
};

struct LoweredInstruction {
  StepInstruction step;
  std::optional<BucketReduction> reduction = std::nullopt;
  int64_t sender = -1;       // of a receive: the submesh that sends
  int64_t follows = -1;      // the instruction that it belongs behind (finish()); -1: where it stands
  bool accumulates = false;  // adds its second input to its first, a sum over micro-batches
  // Of a product: the kernel that adds it to such a sum where it is made.
  std::optional<KernelPrice> accumulating = std::nullopt;
};

// A receive of a finished program: how much room its messages need depends on the schedule.
struct StepReceive {
  size_t function = 0;
  size_t instruction = 0;
  int64_t sender = 0;  // submesh
  int64_t bytes = 0;   // of one message
};

// Functions in the order in which a step runs them: by part of the step, then by stage, backwards in the backward pass.
using FunctionKey = std::pair<int, int64_t>;

struct CutStepFunction {
  plan::FunctionKind kind = plan::FORWARD;
  int64_t submesh = 0;
  int64_t stage = 0;  // of what does not run for each micro-batch: the first of its submesh
  std::vector<LoweredInstruction> instructions;
  absl::flat_hash_map<int, int> values;         // of the annotated step, to those of the step program
  absl::flat_hash_map<std::string, int> named;  // arguments
  std::vector<StepName> arguments, results;

  bool perMicroBatch() const { return kind == plan::FORWARD || kind == plan::BACKWARD; }
};

class SubmeshFunctions {
 public:
  SubmeshFunctions(int64_t submesh, std::vector<int64_t> stages) : submesh_(submesh), stages_(std::move(stages)) {}

  int64_t number() const { return submesh_; }
  const std::vector<int64_t>& stages() const { return stages_; }
  // Made on first use. `stage` counts where the function runs for each micro-batch.
  CutStepFunction& function(plan::FunctionKind kind, int64_t stage);
  CutStepFunction& update() { return function(plan::UPDATE, 0); }
  // Null if no function of this submesh makes or receives the value.
  CutStepFunction* whereDefined(int value);

  int addValue(int64_t bytes);
  int64_t bytesOf(int cut) const { return program_.values[cut].bytes; }
  void define(CutStepFunction& function, int value, int cut);
  // An argument of this name; made on first use.
  int argument(CutStepFunction& function, const std::string& name, int64_t bytes, plan::MemoryClass memory);
  // An argument of `reader` that another function returns.
  int crossing(CutStepFunction& reader, int value, int64_t bytes);
  // after = before + cut where `cut` is made; later functions read `value` as the accumulator.
  void accumulate(CutStepFunction& function, int value, int cut, StepInstruction instruction);
  // `value` is what the calls of `function` for all micro-batches leave together under the name of `cut`, in so many
  // bytes; the instruction reads what they left so far, and `cut`.
  void makeTogether(CutStepFunction& function, int value, const StepName& cut, int64_t bytes,
                    LoweredInstruction instruction);
  bool isCollectedAs(int value, const std::string& name) const;
  // Does another function take an argument of this name?
  bool isReadElsewhere(const std::string& name, const CutStepFunction& function) const;
  std::set<std::string> readByOtherBackwards(const CutStepFunction& function) const;
  // The host sees what leaves under this name.
  void returnValue(CutStepFunction& function, int cut, const std::string& name, plan::MemoryClass memory);
  void showToHost(const std::string& name) { program_.visible.insert(name); }

  // The program, its backward functions cut in two where `splitsBackward`, its reductions joined into buckets, its
  // products added to sums where they are made, its collectives beside its computation where the record says so
  // (overlap.h).
  struct Finished {
    StepProgram program;
    std::vector<StepReceive> receives;
  };
  Finished finish(const Decisions& decisions, bool splitsBackward, const Machine& machine);

 private:
  void returnCrossings();

  struct Crossing {
    int value = 0;
    std::string name;
    bool betweenMicroBatchFunctions = true;  // all readers and the producer run for each micro-batch
  };

  int64_t submesh_;
  std::vector<int64_t> stages_;
  StepProgram program_;  // its functions are filled at the end
  std::map<FunctionKey, std::unique_ptr<CutStepFunction>> functions_;
  absl::flat_hash_map<int, CutStepFunction*> definedIn_;
  absl::flat_hash_map<int, StepName> madeTogether_;  // by the calls for all micro-batches
  int64_t accumulators_ = 0;
  absl::flat_hash_map<int, size_t> crossingOf_;
  std::vector<Crossing> crossings_;  // in the order in which they are met
};

}  // namespace weft
