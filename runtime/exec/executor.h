// Runs a plan on CPU ranks that are threads or fibers of this process.
//
// An Executor owns the ranks' memory (allocated once, by the plan's regions), their threads (rank_threads.h; shared
// with the other programs over its parameter store), and the kernels. `runInit` makes the first values of parameters
// and state; `runStep` runs one training step. Inputs are written before a step, outputs read after it, by name and in
// global shapes: the slices in the plan say which rank holds what.
//
// Several programs over one parameter store (train, evaluate, generate): see parameter_store.h. Their steps run one at
// a time. `runInit` leaves alone what another program brought, and a later program that has a parameter or state of
// which the store knows nothing is refused unless options.allowNew says so.
//
// Inputs. A rank's buffer of an input holds its rows of all micro-batches of a step, those of micro-batch p after those
// of micro-batch p - 1. `writeTensor` cuts a whole batch; a loader that reads only what each rank needs asks `slice`
// what that is and hands it to `writeSlice`. A step uses its inputs up: one that was not written since, on every rank
// that holds a part of it, is an error of the next step (after which the step can be tried again). What stays from step
// to step is given once to the store (`ParameterStore::keepInput`).
//
// Errors. The first failing rank stops all others; the error names rank, operator, kernel and the user's source line. A
// rank that waits too long for others (options.timeout) fails with where those others are. After an error only reading
// and destruction are safe: later steps return the same error.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "runtime/exec/parameter_store.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// More threads than any machine has cores would only fail to start.
inline constexpr int kMostThreadsPerRank = 1024;

struct ExecutorOptions {
  int threadsPerRank = 0;                 // of the kernels' libraries; 0: the ranks share the cores, at least one each
  std::shared_ptr<ParameterStore> store;  // another program's store(); null: a new one
  // A program over a store that has tensors finds all its parameters and state there; true: what it does not find is
  // new and gets its initial value.
  bool allowNew = false;
  bool profile = false;      // record the time of every instruction
  bool checkFinite = false;  // an error of the first instruction that writes nan or infinity: see finite_check.h
  // The longest a rank waits for others in a collective; longer than the longest stretch of kernels. 0: for ever.
  std::chrono::milliseconds timeout{0};
};

// One call of a function by a rank, as it happened.
struct ExecutedAction {
  plan::FunctionKind kind = plan::FORWARD;
  int64_t stage = 0;
  int64_t microBatch = 0;
};

// One instruction's run on a rank.
struct ExecutedInstruction {
  const plan::Instruction* instruction = nullptr;  // of the executor's plan
  double seconds = 0;
};

class Executor {
 public:
  // Takes a valid plan. Errors: what validatePlan finds; too little memory on this machine; an unknown kernel, shapes a
  // kernel refuses, a workspace too small; a parameter that the store holds otherwise (both values).
  static absl::StatusOr<std::unique_ptr<Executor>> create(plan::Plan plan, const KernelRegistry& kernels,
                                                          const ExecutorOptions& options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // First values of parameters and state; once, before the first step.
  absl::Status runInit();
  absl::Status runStep();

  // The whole tensor, row-major, without pads; `bytes` must be its size. Writing fills pads with
  // zeros; reading takes each slice from the first rank that holds it. Unknown names list the known ones.
  absl::Status writeTensor(const std::string& name, const void* data, size_t bytes);
  absl::StatusOr<std::vector<char>> readTensor(const std::string& name) const;
  // The part of a tensor that one rank holds: its global offsets and sizes without pad, and writing it alone. Errors:
  // unknown name, no such rank, wrong size (both).
  absl::StatusOr<plan::Slice> slice(const std::string& name, int64_t rank) const;
  absl::Status writeSlice(const std::string& name, int64_t rank, const void* data, size_t bytes);
  // A scalar of any numeric type as a number.
  absl::StatusOr<double> readScalar(const std::string& name) const;

  const plan::Plan& plan() const;
  const plan::NamedTensor* findTensor(const std::string& name) const;
  // Memory of a rank's named tensor, pad included.
  void* rankBuffer(const plan::NamedTensor& tensor, int64_t rank) const;
  // Parameters and state, for other programs; lives on after this executor if they hold it.
  std::shared_ptr<ParameterStore> store() const;
  // Bytes that this executor allocated for all ranks: the plan's regions, less what the store had, and the staging
  // memory of collectives whose output overlaps their input (none in plans of this compiler).
  int64_t allocatedBytes() const;

  // Chrome trace (chrome://tracing, Perfetto) of the first steps, up to 200000 instructions and 20000 actions of each
  // rank (see trace.h). Errors: not created with options.profile; unwritable file.
  absl::Status writeTrace(const std::string& path) const;
  // What a rank performed, in its order: initial values and the steps so far, up to the same number of actions. Errors:
  // not created with options.profile; no such rank.
  absl::StatusOr<std::vector<ExecutedAction>> executedActions(int64_t rank) const;
  // Its instructions, likewise.
  absl::StatusOr<std::vector<ExecutedInstruction>> executedInstructions(int64_t rank) const;

 private:
  struct Impl;
  // Is there a profile of that rank?
  absl::Status checkRecorded(int64_t rank) const;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Keeps zeros for all inputs in the program's store: to run a plan without data.
void keepZeroInputs(Executor& executor);

}  // namespace weft
