#include "planner/cost/offload_state.h"

#include <gtest/gtest.h>

#include "tests/planner/step/step_builder.h"

namespace weft {
namespace {

using testing::kBytes;
using testing::StepBuilder;

Machine withHost(int64_t memory = 0) {
  Machine machine;
  machine.hostBandwidth = 1e12;  // a byte in a picosecond
  machine.hostMemory = memory;
  return machine;
}

// An update of parameters that each have two states of so many bytes, and a count of steps that all of them read.
StepProgram updateOf(const std::vector<int64_t>& sizes, bool stateIsRead = false) {
  StepBuilder b;
  if (stateIsRead) {
    b.function(plan::FORWARD);
    b.returns(b.kernel({b.argument("m0", plan::STATE, sizes[0])}), "seen", plan::OUTPUT);
  }
  b.function(plan::UPDATE);
  const int count = b.argument("count", plan::STATE, 4);
  b.returns(b.kernel({count}, {.inPlace = {{0, 0}}}, 4), "count", plan::STATE);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string number = std::to_string(i);
    const int w = b.argument("w" + number, plan::PARAMETER, sizes[i]);
    const int m = b.argument("m" + number, plan::STATE, sizes[i]);
    const int v = b.argument("v" + number, plan::STATE, sizes[i]);
    const int newM = b.kernel({m, w, count}, {.inPlace = {{0, 0}}}, sizes[i]);
    const int newV = b.kernel({v, newM, count}, {.inPlace = {{0, 0}}}, sizes[i]);
    b.returns(b.kernel({w, newM, newV}, {.inPlace = {{0, 0}}}, sizes[i]), "w" + number, plan::PARAMETER);
    b.returns(newM, "m" + number, plan::STATE);
    b.returns(newV, "v" + number, plan::STATE);
  }
  return b.program;
}

std::optional<OffloadedState> offloaded(const StepProgram& program, const Machine& machine = withHost()) {
  return offloadedState(program, assignStorage(program), machine);
}

TEST(OffloadedStateTest, ABucketIsTheStateOfOneParameter) {
  const std::optional<OffloadedState> made = offloaded(updateOf({1000, 3000, 1000, 2000}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->hostBytes, 2 * 7000) << "not the count of steps, which joins no buckets either";
  EXPECT_EQ(made->freedBytes, 2 * (1024 + 3008 + 1024 + 2048));
  EXPECT_EQ(made->bufferBytes, 2 * (2 * 3008));
  EXPECT_EQ(made->time, 2 * 2 * 7000);
}

TEST(OffloadedStateTest, OneBucketIsAllThereIs) {
  const std::optional<OffloadedState> made = offloaded(updateOf({1000}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->bufferBytes, made->freedBytes) << "there are no two of them";
}

// What the forward pass reads has to be there.
TEST(OffloadedStateTest, OnlyWhatTheUpdateAloneTouches) {
  EXPECT_EQ(offloaded(updateOf({1000, 3000}, true))->hostBytes, 1000 + 2 * 3000);
  EXPECT_FALSE(offloaded(updateOf({})).has_value()) << "the count of steps stays";
  StepBuilder b;
  b.function(plan::FORWARD);
  b.returns(b.kernel({b.argument("x", plan::INPUT)}), "y", plan::OUTPUT);
  EXPECT_FALSE(offloaded(b.program).has_value()) << "there is no update";
}

// Of 8000, 2000 and 1000 bytes: as the host has room.
TEST(OffloadedStateTest, AsMuchAsTheHostHasRoomFor) {
  const StepProgram program = updateOf({4000, 1000, 500});
  EXPECT_EQ(offloaded(program, withHost(11000))->hostBytes, 11000);
  EXPECT_EQ(offloaded(program, withHost(10999))->hostBytes, 10000);
  EXPECT_EQ(offloaded(program, withHost(7999))->hostBytes, 3000);
  EXPECT_EQ(offloaded(program, withHost(7999))->bufferBytes, 2 * (1024 + 512)) << "2 x 2048 are more than all";
  EXPECT_FALSE(offloaded(program, withHost(999)).has_value());
}

// Beside kernels that are not beside collectives already.
TEST(OffloadedStateTest, CopiesRunBesideKernelsOnTwoQueues) {
  FunctionTime update{.kind = plan::UPDATE, .total = 25, .computation = 20, .communication = 10};
  EXPECT_EQ(update.hidden(), 5);
  const FunctionTime turns = withCopies(update, 100, false);
  EXPECT_EQ(turns.total, 125);
  EXPECT_EQ(turns.offload, 100);
  EXPECT_EQ(turns.hidden(), 5);
  const FunctionTime beside = withCopies(update, 100, true);
  EXPECT_EQ(beside.total, 25 + 85);
  EXPECT_EQ(beside.offloadHidden, 15);
  EXPECT_EQ(beside.hidden(), 5);
  EXPECT_EQ(withCopies(update, 12, true).total, 25);
  update.total = 12;  // its collectives began in the last backward pass
  EXPECT_EQ(withCopies(update, 12, true).total, 22);
}

}  // namespace
}  // namespace weft
