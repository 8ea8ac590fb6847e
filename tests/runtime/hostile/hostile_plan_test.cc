// Whatever a plan says: an error that names it, or a run inside of the plan's own memory. Built with sanitizers this
// also says that nothing is read or written elsewhere.
//
//   weft_hostile_plan_test --list    prints what each case got
#include "tests/runtime/hostile/hostile_plan.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
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
  keepZeroInputs(executor);
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
  for (const plan::Plan& plan : {wholePlan(), stagedPlan(), boxedPlan()}) {
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

// What became of a case: its stage and message.
std::string textOf(const Case& one) {
  const Result result = play(one.plan);
  std::string message(result.status.message());
  message = message.substr(0, 160);
  std::replace_if(message.begin(), message.end(), [](char c) { return c == '\n' || c == '|'; }, ' ');
  return absl::StrCat(result.stage, message.empty() ? "" : ": ", message);
}

// The same in a process of its own, so that a crash or an endless loop of one is seen and ends nothing else.
std::string textApart(const Case& one) {
  constexpr unsigned kSeconds = 20;
  int ends[2];
  if (pipe(ends) != 0) {
    return "not tried";
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    const std::string text = textOf(one);
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t count = 0; (count = read(ends[0], part, sizeof(part))) > 0;) {
    text.append(part, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM ? "hung" : absl::StrCat("crashed: signal ", WTERMSIG(status));
  }
  return WEXITSTATUS(status) == 0 ? text : absl::StrCat("crashed: exit status ", WEXITSTATUS(status));
}

void list() {
  std::map<std::string, int> counts;
  for (const Case& one : allCases()) {
    const std::string text = textApart(one);
    ++counts[text.substr(0, text.find(':'))];
    std::cout << one.name << " | " << one.field << " | " << text << std::endl;
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
