// What is found wrong in programs, storages and orders of calls written by hand. The compiler's own are played whenever
// something is compiled.
#include "planner/step/step_play.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/planner/step/step_builder.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;

// Two halves of a backward pass that read what the forward pass keeps, a sum of gradients, an update.
struct Step {
  StepBuilder b;
  int kept = 0, over = 0, gradient = 0;

  Step() {
    b.function(plan::FORWARD);
    kept = b.kernel({b.argument("x", plan::INPUT), b.argument("w", plan::PARAMETER)}, {.label = "matmul"});
    b.returns(kept, "v0", plan::ACTIVATION);
    b.function(plan::INPUT_GRAD);
    over = b.kernel({b.argument("v0", plan::ACTIVATION)}, {.label = "relu_grad"});
    b.read({over});
    b.function(plan::WEIGHT_GRAD);
    const int sum = b.argument("acc0", plan::ACCUMULATOR);
    gradient = b.inPlace({sum, b.argument("v0", plan::ACTIVATION)});
    b.last().label = "accumulate";
    b.returns(gradient, "acc0", plan::ACCUMULATOR);
    b.function(plan::UPDATE);
    const int next = b.inPlace({b.argument("w", plan::PARAMETER), b.argument("acc0", plan::ACCUMULATOR)});
    b.last().label = "sgd";
    b.returns(next, "w", plan::PARAMETER);
  }

  // What is misread; "" if nothing is. `change` spoils storages and memory.
  std::string played(
      const std::vector<FunctionCall>& calls,
      const std::function<void(StorageAssignment&, StepMemory&)>& change = [](StorageAssignment&, StepMemory&) {}) {
    StorageAssignment assignment = assignStorage(b.program);
    StepMemory memory = planStepMemory(b.program, assignment, calls, 1000);
    change(assignment, memory);
    const std::optional<Misread> misread = misreadOf(b.program, assignment, memory, {}, calls);
    return misread ? misread->what : "";
  }
};

enum Function : uint8_t { kForward, kInputGrad, kWeightGrad, kUpdate };

const std::vector<FunctionCall> kTwoMicroBatches = {
    {kForward, 0}, {kForward, 1}, {kInputGrad, 0}, {kWeightGrad, 0}, {kInputGrad, 1}, {kWeightGrad, 1}, {kUpdate, 0}};

TEST(StepPlayTest, FindsAllInAnyOrderThatLeavesItBefore) {
  EXPECT_EQ(Step().played(kTwoMicroBatches), "");
  EXPECT_EQ(Step().played({{kForward, 0}, {kWeightGrad, 0}, {kInputGrad, 0}, {kUpdate, 0}}), "");
}

TEST(StepPlayTest, WhatNoCallBeforeWrites) {
  EXPECT_EQ(Step().played({{kForward, 1}, {kInputGrad, 0}}),
            "reads activation 'v0', which no call before it writes for micro-batch 0");
  EXPECT_EQ(Step().played({{kUpdate, 0}}), "reads accumulator 'acc0', which no call before it writes");
}

TEST(StepPlayTest, TwoMicroBatchesInOneSlot) {
  const auto oneSlot = [](StorageAssignment&, StepMemory& memory) {
    for (StepRegion& region : memory.regions) {
      region.slots = 1;
    }
  };
  EXPECT_THAT(Step().played(kTwoMicroBatches, oneSlot),
              "reads activation 'v0', which gave place to 'matmul' of forward of stage 0, micro-batch 1");
}

// Harmless in one order of the halves, wrong in the other.
TEST(StepPlayTest, WhatTheOtherHalfWritesOver) {
  Step step;
  const auto inPlace = [&](StorageAssignment& assignment, StepMemory&) {
    assignment.of[step.over] = assignment.of[step.kept];
  };
  EXPECT_EQ(step.played({{kForward, 0}, {kWeightGrad, 0}, {kInputGrad, 0}, {kUpdate, 0}}, inPlace), "");
  EXPECT_EQ(step.played({{kForward, 0}, {kInputGrad, 0}, {kWeightGrad, 0}, {kUpdate, 0}}, inPlace),
            "reads activation 'v0', which gave place to 'relu_grad' of input_grad of stage 0, micro-batch 0");
}

// A value without a term in each micro-batch is written by all of them, also while a half still reads it.
TEST(StepPlayTest, WhatEveryMicroBatchMakesAlikeMayBeWrittenAgain) {
  const auto played = [](plan::MemoryClass left) {
    StepBuilder b;
    b.function(plan::INPUT_GRAD);
    const int made = b.kernel({}, {.label = "neg"});
    b.returns(made, "v6", left);
    b.returns(made, "backward.w0", plan::ACTIVATION);
    b.function(plan::WEIGHT_GRAD);
    b.read({b.argument("backward.w0", plan::ACTIVATION)});
    const std::vector<FunctionCall> calls = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    StorageAssignment assignment = assignStorage(b.program);
    StepMemory memory = planStepMemory(b.program, assignment, calls, 1000);
    for (StepRegion& region : memory.regions) {
      region.slots = 1;
    }
    const std::optional<Misread> misread = misreadOf(b.program, assignment, memory, {}, calls);
    return misread ? misread->what : "";
  };
  EXPECT_EQ(played(plan::ACCUMULATOR), "");
  EXPECT_THAT(played(plan::ACTIVATION), HasSubstr("gave place to 'neg' of input_grad of stage 0, micro-batch 1"));
}

TEST(StepPlayTest, StoragesOnTheSameBytes) {
  StepBuilder b;
  b.function(plan::FORWARD);
  b.returns(b.kernel({}, {.label = "a"}), "v0", plan::ACTIVATION);
  b.returns(b.kernel({}, {.label = "b"}), "v1", plan::ACTIVATION);
  b.function(plan::BACKWARD);
  b.read({b.argument("v0", plan::ACTIVATION), b.argument("v1", plan::ACTIVATION)});
  const std::vector<FunctionCall> calls = {{0, 0}, {1, 0}};
  const StorageAssignment assignment = assignStorage(b.program);
  StepMemory memory = planStepMemory(b.program, assignment, calls, 1000);
  EXPECT_FALSE(misreadOf(b.program, assignment, memory, {}, calls));
  memory.offsets[assignment.named.at("v1")] = memory.offsets[assignment.named.at("v0")] + kBytes / 2;
  const std::optional<Misread> misread = misreadOf(b.program, assignment, memory, {}, calls);
  ASSERT_TRUE(misread);
  EXPECT_EQ(misread->call.function, 0);
  EXPECT_EQ(misread->what, "returns activation 'v0', which gave place to 'b' of forward of stage 0, micro-batch 0");
}

TEST(StepPlayTest, WhatTheNextStepReadsIsThereInTheEnd) {
  Step step;
  const auto overParameter = [&](StorageAssignment& assignment, StepMemory&) {
    assignment.of[step.over] = assignment.named.at("w");
  };
  EXPECT_THAT(step.played({{kForward, 0}, {kInputGrad, 0}}, overParameter),
              HasSubstr("ends the step, but parameter 'w' gave place to 'relu_grad'"));
}

}  // namespace
}  // namespace weft::testing
