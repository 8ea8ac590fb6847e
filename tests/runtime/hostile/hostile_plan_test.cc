// Whatever a plan says: an error that names it, or a run inside of the plan's own memory. Built with sanitizers this
// also says that nothing is read or written elsewhere.
//
//   weft_hostile_plan_test --list    prints what each case got
#include "tests/runtime/hostile/hostile_plan.h"

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"

namespace weft::hostile {
namespace {

struct Result {
  std::string stage;  // "refused", "not loaded", "stopped", "ran"
  absl::Status status;
};

absl::Status runSteps(Executor& executor) {
  if (absl::Status status = executor.runInit(); !status.ok()) {
    return status;
  }
  for (int step = 0; step < 2; ++step) {
    if (absl::Status status = executor.runStep(); !status.ok()) {
      return status;
    }
  }
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    const auto data = executor.readTensor(tensor.name());
    if (!data.ok()) {
      return data.status();
    }
    if (absl::Status status = executor.writeTensor(tensor.name(), data->data(), data->size()); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

Result play(const plan::Plan& plan) {
  if (absl::Status status = validatePlan(plan); !status.ok()) {
    return {"refused", status};
  }
  statisticsOf(plan);
  ExecutorOptions options;
  options.timeout = std::chrono::seconds(10);
  // Own products: sanitizers do not see into the library's.
  const KernelRegistry kernels = cpuKernels({.plainMatmul = true});
  auto executor = Executor::create(plan, kernels, options);
  if (!executor.ok()) {
    return {"not loaded", executor.status()};
  }
  const absl::Status status = runSteps(**executor);
  return {status.ok() ? "ran" : "stopped", status};
}

TEST(HostilePlan, TheBasePlansAreRight) {
  for (const plan::Plan& plan : {wholePlan(), stagedPlan(), partedPlan()}) {
    EXPECT_EQ(play(plan).status, absl::OkStatus());
  }
}

TEST(HostilePlan, NamesAreTheirOwn) {
  std::set<std::string> names;
  for (const Case& one : allCases()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
  }
  EXPECT_GE(names.size(), 300u);
}

void expectRefusedOrHarmless(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    const Result result = play(one.plan);
    EXPECT_TRUE(one.mayRun || !result.status.ok()) << one.name << " ran";
    const std::string message(result.status.message());
    EXPECT_TRUE(result.status.ok() || message.find(one.says) != std::string::npos)
        << one.name << ": '" << one.says << "' is not in: " << message.substr(0, 500);
    EXPECT_NE(result.status.code(), absl::StatusCode::kDeadlineExceeded) << one.name;
  }
}

TEST(HostilePlan, Numbers) {
  expectRefusedOrHarmless(numberCases());
}
TEST(HostilePlan, Structure) {
  expectRefusedOrHarmless(structureCases());
}
TEST(HostilePlan, Channels) {
  expectRefusedOrHarmless(channelCases());
}
TEST(HostilePlan, Kernels) {
  expectRefusedOrHarmless(kernelCases());
}

void list() {
  std::map<std::string, int> counts;
  for (const Case& one : allCases()) {
    const Result result = play(one.plan);
    ++counts[result.stage];
    std::string message(result.status.message());
    message = message.substr(0, 160);
    for (char& c : message) {
      c = c == '\n' || c == '|' ? ' ' : c;
    }
    std::cout << one.name << " | " << one.field << " | " << result.stage << (message.empty() ? "" : ": ") << message
              << "\n";
  }
  for (const auto& [stage, count] : counts) {
    std::cout << count << " " << stage << "\n";
  }
}

}  // namespace
}  // namespace weft::hostile

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string(argv[1]) == "--list") {
    weft::hostile::list();
    return 0;
  }
  return RUN_ALL_TESTS();
}
