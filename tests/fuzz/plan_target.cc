// Plan files: read, shown by every command that shows plans, and run where they are small.
#include <google/protobuf/stubs/logging.h>

#include <chrono>

#include "kernels/kernel.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/plan_mutator.h"
#include "tests/fuzz/target.h"
#include "tools/commands/explain.h"
#include "tools/commands/memory.h"
#include "tools/commands/schedule.h"
#include "tools/commands/stats.h"
#include "tools/commands/view/view.h"

namespace weft::fuzz {
namespace {

// Larger plans are only read and shown.
constexpr int64_t kMostRanks = 8;
constexpr int64_t kMostBytes = int64_t{16} << 20;
constexpr int64_t kMostActions = 1000;
constexpr int kSteps = 2;

int64_t actionsOf(const plan::Plan& plan) {
  int64_t actions = 0;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::RankSchedule& schedule : submesh->schedules()) {
      actions += schedule.init_size() + schedule.step_size();
    }
  }
  return actions;
}

void show(const std::string& path) {
  runQuietly(tools::statsCommand, {path});
  runQuietly(tools::statsCommand, {path, "--json"});
  runQuietly(tools::explainCommand, {path});
  runQuietly(tools::explainCommand, {path, "--all"});
  runQuietly(tools::explainCommand, {path, "--json"});
  runQuietly(tools::memoryCommand, {path});
  runQuietly(tools::memoryCommand, {path, "--json"});
  runQuietly(tools::viewCommand, {path, "--json"});
  runQuietly(tools::scheduleCommand, {"--plan", path});
  runQuietly(tools::scheduleCommand, {"--plan", path, "--json"});
}

// A plan that was found valid does not wait for ever.
void requireEnd(const absl::Status& status) {
  require(status.code() != absl::StatusCode::kDeadlineExceeded, "a valid plan hangs: " + status.ToString());
}

// Every input as it lies in memory, at first zeros.
void writeInputs(Executor& executor) {
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() != plan::TENSOR_INPUT) {
      continue;
    }
    const absl::StatusOr<std::vector<char>> now = executor.readTensor(tensor.name());
    if (now.ok()) {
      executor.writeTensor(tensor.name(), now->data(), now->size()).IgnoreError();
    }
  }
}

void execute(plan::Plan plan) {
  static const KernelRegistry kKernels = cpuKernels();
  ExecutorOptions options;
  options.threadsPerRank = 1;
  options.profile = true;
  options.timeout = std::chrono::seconds(2);
  const auto executor = Executor::create(std::move(plan), kKernels, options);
  if (!executor.ok()) {
    return;
  }
  absl::Status status = (*executor)->runInit();
  requireEnd(status);
  for (int step = 0; step < kSteps && status.ok(); ++step) {
    writeInputs(**executor);
    status = (*executor)->runStep();
    requireEnd(status);
  }
  for (const plan::NamedTensor& tensor : (*executor)->plan().tensors()) {
    (*executor)->readTensor(tensor.name()).IgnoreError();
    (*executor)->readScalar(tensor.name()).IgnoreError();
  }
}

Outcome run(const std::string& bytes) {
  // Text that is no UTF-8 is refused, with a line on the error output for each.
  const google::protobuf::LogSilencer quiet;
  const absl::StatusOr<plan::Plan> plan = parsePlan(bytes, "fuzz.plan");
  if (!plan.ok()) {
    return Outcome::kRefused;
  }
  show(MemoryFile(bytes).path());
  if (plan->ranks() <= kMostRanks && plannedBytes(*plan) <= kMostBytes && actionsOf(*plan) <= kMostActions) {
    execute(*plan);
  }
  return Outcome::kAccepted;
}

// The checksum is made to fit: it keeps out damage, not intent.
std::string mutate(const std::string& bytes, Mutator& mutator) {
  const google::protobuf::LogSilencer quiet;
  plan::Plan plan;
  if (!plan.ParseFromString(bytes) || mutator.chance(3)) {
    return mutator.raw(bytes);
  }
  changeOneField(plan, mutator);
  const absl::StatusOr<std::string> changed = serializePlan(plan);
  return changed.ok() ? *changed : bytes;
}

}  // namespace

Target planTarget() {
  return {"plan", run, mutate, {}, 400};
}

}  // namespace weft::fuzz
