#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "planner/cost/plan_time.h"
#include "planner/machine/machine.h"
#include "planner/machine/times.h"
#include "runtime/plan/plan_file.h"
#include "tests/runtime/hostile/hostile_plan.h"
#include "tests/tools/run_command.h"
#include "tools/commands/machine.h"
#include "tools/measure/measure_machine.h"

namespace weft::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MachineCommandTest, PrintsWhatItReads) {
  const Outcome outcome = run(machineCommand, {"a100-80g"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, Machine::parse("a100-80g")->print());
  EXPECT_EQ(run(machineCommand, {}).out, Machine::parse("cpu")->print());
}

// Every figure is there, and what was measured stands in the file.
TEST(MachineCommandTest, MeasuresTheHost) {
  const std::string path = ::testing::TempDir() + "/measured.txt";
  const Outcome outcome = run(machineCommand, {"--output", path, "--ranks", "3", "--threads", "1", "--seconds", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("products"), HasSubstr("collectives of 3 ranks"), HasSubstr("100 %")));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), AllOf(HasSubstr("\nprofile matmul f32 1024 1536 384 = "), HasSubstr("permute         3")));
  const absl::StatusOr<Machine> machine = Machine::parse(text.str());
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_THAT(outcome.out, HasSubstr(machine->print()));
  EXPECT_GT(machine->memory, 0);
  EXPECT_NE(machine->flops, Machine().flops);
  EXPECT_NE(machine->linkBandwidth, Machine().linkBandwidth);
  EXPECT_NE(machine->linkLatency, Machine().linkLatency);
  ASSERT_GE(machine->profiles.size(), 30);
  const ProductProfile& product = machine->profiles.back();
  EXPECT_EQ(kernelTime(*machine, {.flops = product.flops(), .product = {{1, product.m, product.n, product.k}}}),
            picosecondsOf(product.seconds));
}

// Kernels of a plan take what they took in its steps.
TEST(MachineCommandTest, MeasuresKernelsInSteps) {
  const plan::Plan plan = hostile::wholePlan();
  const std::string planPath = ::testing::TempDir() + "/steps.plan";
  const std::string path = ::testing::TempDir() + "/steps.txt";
  ASSERT_TRUE(writePlan(plan, planPath).ok());
  const Outcome outcome =
      run(machineCommand, {"--output", path, "--threads", "1", "--seconds", "1", "--plans", planPath});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const absl::StatusOr<Machine> machine = Machine::parse(text.str());
  ASSERT_TRUE(machine.ok()) << machine.status();
  int calls = 0;
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (function.kind() == plan::INIT || instruction.has_collective()) {
        continue;
      }
      ++calls;
      const bool isThere =
          std::any_of(machine->kernels.begin(), machine->kernels.end(), [&](const KernelProfile& profile) {
            return profile.kernel == instruction.kernel() &&
                   picosecondsOf(secondsOf(plan, instruction, *machine)) == picosecondsOf(profile.seconds);
          });
      EXPECT_TRUE(isThere) << instruction.kernel();
    }
  }
  EXPECT_GT(calls, 0);
  EXPECT_THAT(run(machineCommand, {"-o", path, "--seconds", "1", "--plans", "nosuch"}).err, HasSubstr("nosuch"));
  EXPECT_THAT(run(machineCommand, {"--plans", planPath}).err, HasSubstr("name the file for it with -o"));
}

TEST(MachineCommandTest, Errors) {
  EXPECT_THAT(run(machineCommand, {"a100"}).err, AllOf(HasSubstr("'a100'"), HasSubstr("a100-80g")));
  EXPECT_THAT(run(machineCommand, {"cpu", "-o", "x"}).err, HasSubstr("'cpu' names a machine"));
  EXPECT_EQ(run(machineCommand, {"-o", "x", "--ranks", "1"}).status, 1);
}

// What prices say of a machine is measured exactly there.
TEST(FittedMachine, FindsTheFiguresThatMadeTheTimes) {
  const Machine made = *Machine::parse(
      "flops = 3e11\nmemory_bandwidth = 4e10\nlaunch_latency = 1e-7\nlink_bandwidth = 2e10\nlink_latency = 1e-6");
  Measurement measurement;
  for (const int64_t n : {64, 512, 1024}) {
    const double flops = 2.0 * static_cast<double>(n * n * n);
    measurement.products.push_back({n, n, n, 1e-7 + flops / made.flops});
  }
  for (const int64_t bytes : {int64_t{8}, int64_t{1} << 26}) {
    measurement.streams.push_back({bytes, 1e-7 + static_cast<double>(bytes) / made.memoryBandwidth});
  }
  for (const int64_t bytes : {8, 1 << 28}) {
    const Picoseconds time = collectiveCost(made, CollectiveKind::kAllReduce, {4, 4}, bytes);
    measurement.collectives.push_back({CollectiveKind::kAllReduce, 4, bytes, static_cast<double>(time) / 1e12});
  }
  const Machine found = fitted(measurement, 1000);
  EXPECT_NEAR(found.flops / made.flops, 1, 1e-2);
  EXPECT_NEAR(found.memoryBandwidth / made.memoryBandwidth, 1, 1e-3);
  EXPECT_NEAR(found.launchLatency / made.launchLatency, 1, 1e-2);
  EXPECT_NEAR(found.linkBandwidth / made.linkBandwidth, 1, 1e-2);
  EXPECT_NEAR(found.linkLatency / made.linkLatency, 1, 1e-2);
  for (const double off : deviationOf(measurement, found).collectives) {
    EXPECT_LT(off, 0.01);
  }
}

}  // namespace
}  // namespace weft::tools
