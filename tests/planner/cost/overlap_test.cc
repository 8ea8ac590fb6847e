#include "planner/cost/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "planner/cost/function_time.h"
#include "planner/cost/overlap_update.h"
#include "planner/cost/two_queues.h"
#include "planner/step/step_memory.h"
#include "planner/step/storage_lives.h"
#include "tests/planner/step/step_builder.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using testing::kBytes;
using testing::StepBuilder;
using Kind = StepInstruction::Kind;

Machine twoQueues(double slowdown = 0) {
  Machine machine;
  machine.queues = 2;
  machine.overlapSlowdown = slowdown;
  return machine;
}

StepInstruction taking(Picoseconds time) {
  return {.time = time};
}
StepInstruction collective(Picoseconds time) {
  return {.label = "collective", .time = time, .queue = Queue::kCommunication};
}
StepInstruction allReduce(Picoseconds time) {
  StepInstruction made = collective(time);
  made.inPlace = {{0, 0}};
  return made;
}

FunctionTime timeOf(const StepProgram& program, const Machine& machine) {
  return functionTime(program, assignStorage(program), 0, machine);
}

int64_t mostTransients(const StepProgram& program) {
  for (const StepRegion& region : planStepMemory(program, assignStorage(program), {{0, 0}}, 1000).regions) {
    if (region.memory == plan::TRANSIENT) {
      return region.maxLive;
    }
  }
  return 0;
}

TEST(TwoQueuesTest, CollectivesRunBesideKernels) {
  TwoQueues queues(twoQueues());
  queues.compute(10);
  EXPECT_EQ(queues.communicate(6), 16);
  queues.compute(4);
  EXPECT_EQ(queues.now(), 14);
  EXPECT_EQ(queues.communicate(3), 19) << "one after another";
  EXPECT_EQ(queues.idle(), 19);
  queues.waitUntil(16);
  EXPECT_EQ(queues.now(), 16);
  queues.compute(8);
  EXPECT_EQ(queues.communicate(1), 25) << "not before what was computed is done";
}

// Twice as long beside a collective.
TEST(TwoQueuesTest, KernelsAreSlowerBesideCollectives) {
  TwoQueues queues(twoQueues(2));
  queues.communicate(6);
  queues.compute(2);
  EXPECT_EQ(queues.now(), 4);
  queues.compute(5);
  EXPECT_EQ(queues.now(), 10) << "1 of 5 beside what is left of the collective, then 4";
}

// The example of overlap.h.
TEST(OverlapTest, AReductionStartsWhereItsOperandIsMade) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int x = b.argument("x", plan::INPUT);
  const int y = b.argument("y", plan::INPUT);
  const int g = b.kernel({x}, taking(10));
  const int h = b.kernel({y}, taking(4));
  const int s = b.kernel({g}, allReduce(6));
  b.returns(b.kernel({s, h}, taking(1)), "out", plan::OUTPUT);
  EXPECT_EQ(timeOf(b.program, twoQueues()).total, 21) << "as long as it has no waits";
  const int64_t bytes = mostTransients(b.program);
  EXPECT_THAT(overlapCollectives(b.program, 0, twoQueues()), ElementsAre(0, 2, 1, -1, 3));
  EXPECT_THAT(b.program.functions[0].instructions[3].inputs, ElementsAre(s)) << "it sums in place";
  const FunctionTime time = timeOf(b.program, twoQueues());
  EXPECT_EQ(time.total, 17);
  EXPECT_EQ(time.hidden(), 4);
  EXPECT_EQ(time.computation, 15);
  EXPECT_EQ(time.communication, 6);
  ASSERT_EQ(time.spans.size(), 1);
  EXPECT_EQ(time.spans[0].begin, 10);
  EXPECT_EQ(time.spans[0].end, 16);
  EXPECT_EQ(mostTransients(b.program), bytes);
}

// Beside g1 and g2 as they are read, g3 and then g4: of gathers there are kRoom ahead.
TEST(OverlapTest, GathersAreAFewAhead) {
  StepBuilder b;
  b.function(plan::FORWARD);
  int value = b.argument("x", plan::INPUT);
  for (int layer = 0; layer < 4; ++layer) {
    const int gathered = b.kernel({b.argument("w" + std::to_string(layer), plan::PARAMETER)}, collective(5));
    value = b.kernel({value, gathered}, taking(10));
  }
  b.returns(value, "out", plan::OUTPUT);
  const int64_t bytes = mostTransients(b.program);
  EXPECT_THAT(overlapCollectives(b.program, 0, twoQueues()), ElementsAre(0, 2, 4, -1, 1, -1, -1, 6, 3, -1, 5, 7));
  EXPECT_EQ(timeOf(b.program, twoQueues()).total, 45) << "the first has nothing beside it";
  EXPECT_LE(mostTransients(b.program), bytes + kRoom * kBytes);
}

// The operand of one is free before that of the next but one is made, however slow they are.
TEST(OverlapTest, ComputationWaitsWhereOperandsPileUp) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int x = b.argument("x", plan::INPUT);
  for (int i = 0; i < 6; ++i) {
    const int part = b.kernel({b.kernel({x}, taking(1))}, collective(100), kBytes / 4);
    b.returns(part, "part" + std::to_string(i), plan::OUTPUT);
  }
  overlapCollectives(b.program, 0, twoQueues());
  const FunctionTime time = timeOf(b.program, twoQueues());
  EXPECT_EQ(time.total, 601);
  EXPECT_LE(mostTransients(b.program), (2 * kRoom + 1) * kBytes);
  EXPECT_GE(mostTransients(b.program), 2 * kBytes) << "one is made while another is reduced";
}

// What is read again later is not summed in place, and a parameter is not overwritten while it is read.
TEST(OverlapTest, NothingIsOverwrittenThatIsRead) {
  StepBuilder b;
  b.function(plan::UPDATE);
  const int w = b.argument("w", plan::PARAMETER);
  const int g = b.argument("g", plan::INPUT);
  const int shard = b.kernel({g}, taking(10));
  b.returns(b.kernel({w}, taking(10)), "norm", plan::OUTPUT);
  b.returns(b.kernel({shard}, collective(5)), "w", plan::PARAMETER);
  EXPECT_THAT(overlapCollectives(b.program, 0, twoQueues()), ElementsAre(0, 1, 2, -1));
  EXPECT_TRUE(assignStorage(b.program).copies[0].empty());
}

// A kernel that writes over what a collective still reads waits for it.
TEST(OverlapTest, AKernelWaitsForWhatItWritesOver) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int x = b.argument("x", plan::INPUT);
  const int g = b.kernel({x}, taking(10));
  b.returns(b.kernel({g}, collective(50)), "s", plan::OUTPUT);
  b.returns(b.kernel({g}, {.inPlace = {{0, 0}}, .time = 10}), "h", plan::OUTPUT);
  EXPECT_THAT(overlapCollectives(b.program, 0, twoQueues()), ElementsAre(0, 1, -1, 2));
  EXPECT_EQ(timeOf(b.program, twoQueues()).total, 70);
}

TEST(OverlapTest, AChainOfCollectivesIsAwaitedOnce) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int x = b.argument("x", plan::INPUT);
  const int g = b.kernel({x}, taking(2));
  const int s = b.kernel({b.kernel({g}, allReduce(3))}, allReduce(4));
  b.kernel({x}, taking(20));
  b.returns(b.kernel({s}, taking(1)), "out", plan::OUTPUT);
  EXPECT_THAT(overlapCollectives(b.program, 0, twoQueues()), ElementsAre(0, 1, 2, 3, -1, 4));
  EXPECT_EQ(timeOf(b.program, twoQueues()).total, 23);
  EXPECT_EQ(assignStorage(b.program).of[g], assignStorage(b.program).of[s]) << "both sum in place";
}

// The first gradient is reduced while the second is computed. A part of each would need room beside the last call.
TEST(OverlapTest, TheUpdateStartsInTheLastBackward) {
  for (const bool parts : {false, true}) {
    StepBuilder b;
    b.function(plan::BACKWARD);
    const int x = b.argument("x", plan::INPUT);
    b.returns(b.kernel({x}, taking(10)), "g1", plan::ACCUMULATOR);
    b.returns(b.kernel({x}, taking(10)), "g2", plan::ACCUMULATOR);
    b.function(plan::UPDATE);
    const int g1 = b.argument("g1", plan::ACCUMULATOR);
    const int g2 = b.argument("g2", plan::ACCUMULATOR);
    const int s1 = b.kernel({g1}, parts ? collective(6) : allReduce(6), parts ? kBytes / 2 : kBytes);
    const int s2 = b.kernel({g2}, parts ? collective(6) : allReduce(6), parts ? kBytes / 2 : kBytes);
    b.returns(b.kernel({s1}, taking(2)), "w1", plan::OUTPUT);
    b.returns(b.kernel({s2}, taking(2)), "w2", plan::OUTPUT);
    const std::vector<FunctionCall> calls = {{0, 0}, {0, 1}, {1, 0}};
    overlapCollectives(b.program, 1, twoQueues());
    const StorageAssignment assignment = assignStorage(b.program);
    std::vector<FunctionTime> times;
    for (const size_t function : {0, 1}) {
      times.push_back(functionTime(b.program, assignment, function, twoQueues()));
    }
    EXPECT_EQ(times[1].total, 14);
    const std::optional<OverlappedUpdate> update = overlapUpdate(b.program, assignment, calls, times, twoQueues());
    ASSERT_TRUE(update.has_value());
    EXPECT_EQ(update->function, 1);
    EXPECT_EQ(update->time.total, 8);
    EXPECT_EQ(update->time.hidden(), 8);
    EXPECT_EQ(update->bytes, parts ? kBytes / 2 : 0);
    ASSERT_EQ(update->time.spans.size(), 2);
    EXPECT_EQ(update->time.spans[0].begin, -10);
    EXPECT_EQ(update->time.spans[1].end, 6);
    EXPECT_FALSE(overlapUpdate(b.program, assignment, {{0, 0}}, times, twoQueues()).has_value());
  }
}

// --- random programs ---

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  StepProgram make() {
    b_.function(below(2) == 0 ? plan::BACKWARD : plan::UPDATE);
    for (int i = 0; i < 4; ++i) {
      const plan::MemoryClass kinds[] = {plan::PARAMETER, plan::ACTIVATION, plan::INPUT};
      values_.push_back(b_.argument("a" + std::to_string(i), kinds[below(3)], bytes()));
    }
    const int count = 5 + below(30);
    for (int i = 0; i < count; ++i) {
      add();
    }
    for (int i = 0; i < 3; ++i) {
      // Under a new name, or as the new content of an argument.
      const std::string name = below(2) == 0 ? "r" + std::to_string(i) : "a" + std::to_string(i);
      const int value = values_[values_.size() - 1 - i - below(2) * 3];
      const auto& arguments = b_.program.functions[0].arguments;
      const bool isArgument = name[0] == 'a';
      if (isArgument && b_.program.values[value].bytes != b_.program.values[arguments[i].value].bytes) {
        continue;
      }
      b_.returns(value, name, isArgument ? arguments[i].memory : plan::OUTPUT);
    }
    return b_.program;
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % bound); }
  int64_t bytes() { return kBytes * (1 + below(4)); }
  int any() { return values_[below(2) == 0 ? values_.size() - 1 - below(3) : below(static_cast<int>(values_.size()))]; }

  void add() {
    const int input = any();
    const int64_t same = b_.program.values[input].bytes;
    switch (below(6)) {
      case 0:
        values_.push_back(b_.kernel({input}, allReduce(below(100)), same));
        break;
      case 1:
        values_.push_back(b_.kernel({input}, collective(below(100)), bytes()));
        break;
      case 2:
        values_.push_back(b_.kernel({input}, {.kind = Kind::kView}, same));
        break;
      case 3:
        values_.push_back(b_.kernel({input, any()}, {.inPlace = {{0, 0}}, .time = below(60)}, same));
        break;
      default:
        values_.push_back(b_.kernel({input, any()}, taking(below(60)), bytes()));
        break;
    }
  }

  std::mt19937 random_;
  StepBuilder b_;
  std::vector<int> values_;
};

// What is computed keeps its order; operands come before and results after; what is under way is awaited.
void expectSameProgram(const StepProgram& before, const StepProgram& after, const std::vector<int64_t>& places) {
  const std::vector<StepInstruction>& was = before.functions[0].instructions;
  const std::vector<StepInstruction>& is = after.functions[0].instructions;
  ASSERT_EQ(places.size(), is.size());
  int64_t last = -1;
  std::set<int> made, underWay;
  std::set<int64_t> seen;
  for (const StepName& argument : after.functions[0].arguments) {
    made.insert(argument.value);
  }
  for (size_t i = 0; i < is.size(); ++i) {
    if (is[i].kind == Kind::kWait) {
      EXPECT_EQ(places[i], -1);
      for (const int input : is[i].inputs) {
        underWay.erase(input);
      }
      continue;
    }
    ASSERT_GE(places[i], 0);
    EXPECT_TRUE(seen.insert(places[i]).second);
    EXPECT_EQ(is[i].outputs, was[places[i]].outputs);
    for (const int input : is[i].inputs) {
      EXPECT_EQ(made.count(input), 1);
      EXPECT_TRUE(is[i].queue == Queue::kCommunication || underWay.count(input) == 0);
    }
    if (is[i].queue == Queue::kCompute) {
      EXPECT_GT(places[i], last);
      last = places[i];
    } else {
      underWay.insert(is[i].outputs.begin(), is[i].outputs.end());
    }
    made.insert(is[i].outputs.begin(), is[i].outputs.end());
  }
  EXPECT_EQ(seen.size(), was.size());
}

TEST(OverlapTest, RandomProgramsStayWithinBounds) {
  int shorter = 0;
  int copied = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const StepProgram alone = RandomProgram(seed).make();
    for (const double slowdown : {0.0, 1.19, 3.0}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", slowdown " << slowdown);
      const Machine machine = twoQueues(slowdown);
      StepProgram beside = alone;
      const std::vector<int64_t> places = overlapCollectives(beside, 0, machine);
      expectSameProgram(alone, beside, places);
      const StorageAssignment assignment = assignStorage(beside);
      const FunctionTime sum = timeOf(alone, machine);
      const FunctionTime time = functionTime(beside, assignment, 0, machine);
      EXPECT_EQ(sum.total, sum.computation + sum.communication);
      EXPECT_GE(time.hidden(), 0) << "never longer than one after another";
      EXPECT_GE(time.total, std::max(time.computation, time.communication));
      shorter += time.total < sum.total ? 1 : 0;
      copied += time.computation > sum.computation ? 1 : 0;  // something cannot lie any more where it is wanted
      const StepMemory memory = planStepMemory(beside, assignment, {{0, 0}}, 1000);
      EXPECT_FALSE(overlappingStorages(beside, assignment, memory).has_value());
      int64_t largest = 0;
      for (const StepInstruction& instruction : alone.functions[0].instructions) {
        const bool counts = instruction.queue == Queue::kCommunication;
        for (const std::vector<int>* values : {&instruction.inputs, &instruction.outputs}) {
          largest = std::max(largest, counts ? alone.values[values->front()].bytes : 0);
        }
      }
      // Results and operands; and one that a kernel cannot write over, because a collective reads it.
      EXPECT_LE(mostTransients(beside), mostTransients(alone) + (2 * kRoom + 1) * largest);
    }
  }
  EXPECT_GT(shorter, 1000);
  EXPECT_LT(copied, 6000 / 200);
}

}  // namespace
}  // namespace weft
