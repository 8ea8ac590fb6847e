// A plan's step read back as operators and values, so that one can ask what another decision would do to its memory.
//
// An instruction list names memory; here every write makes a new *value*, and a read means the last value written to
// that memory. Only what lives in activations and transients is followed: parameters, inputs and sums are there all the
// time. Values that lie in one *storage* take each other's place (in-place operators).
//
// Backward functions are one list per stage; where a schedule runs the gradients of inputs and of weights apart, the
// list is cut again as the compiler cuts it: the first part is what transfers depend on.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "planner/machine/machine.h"
#include "runtime/plan/plan.pb.h"

namespace weft::advise {

// How users name the operator that shows a value under another shape. It leaves no instruction: a plan does not name
// it.
inline constexpr char kViewOperator[] = "reshape";

struct Value {
  int64_t bytes = 0;
  int storage = 0;
  bool perMicroBatch = false;  // follows from the inputs of the step: shrinks with the micro-batch
};

// Seconds of a micro-batch cut in k parts: fixed + cut / k for each part.
struct Seconds {
  double fixed = 0;
  double cut = 0;
  double of(int64_t parts) const { return fixed + cut / static_cast<double>(parts); }
};

struct Op {
  const plan::Instruction* source = nullptr;
  std::vector<int> inputs;  // values
  std::vector<bool> views;  // of each input: read in another shape than it was written in
  std::vector<int> outputs;
  Seconds seconds;
};

struct StageModel {
  int64_t stage = 0;
  std::vector<Op> forward;
  std::vector<Op> backward;
};

struct SubmeshModel {
  const plan::Plan* plan = nullptr;
  std::vector<Value> values;
  int storages = 0;                   // numbers in use: 0 .. storages - 1
  std::vector<StageModel> stages;     // ascending
  std::vector<std::vector<Op>> once;  // functions that do not run for each micro-batch, in the plan's order
  double onceSeconds = 0;             // of prologue and update
};

// `plan` must be valid, of one submesh, and outlive the result.
SubmeshModel readSubmesh(const plan::Plan& plan, const Machine& machine);

// The model if the backward pass recomputed what matches one of the patterns (names or kernels, with * and ?), with
// the collectives behind it. As passes/partition/recompute.h: never what another stage or the host reads, or what
// depends on nothing.
SubmeshModel recomputed(SubmeshModel submesh, const std::vector<std::string>& patterns);

// Values that something other than the stage's own forward and backward lists reads, or that are sent.
std::set<int> readOutside(const SubmeshModel& submesh, const StageModel& stage);

// May the operator be recomputed at all, and by which pattern would the user name it? Numbers of layers become
// stars: "h*.gelu". Empty if it may not. `outside`: what is read outside of its stage.
std::string recomputeWord(const Op& op, const std::set<int>& outside);

// Which operators of the list belong to the gradients of inputs: what transfers and other stages depend on.
std::vector<bool> inputPart(const SubmeshModel& submesh, const StageModel& stage);

}  // namespace weft::advise
