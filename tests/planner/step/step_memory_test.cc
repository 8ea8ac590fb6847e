// Offsets, regions and the peak of small step programs.
#include "planner/step/step_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/schedule/generate.h"
#include "planner/step/step_calls.h"
#include "planner/step/storage_lives.h"
#include "tests/planner/step/step_builder.h"

namespace weft::testing {
namespace {

constexpr int64_t kEffort = 1'000'000;

struct Planned {
  StorageAssignment storage;
  StepMemory memory;

  const StepRegion* region(plan::MemoryClass memoryClass, int ring = 0) const {
    const auto found = std::find_if(memory.regions.begin(), memory.regions.end(), [&](const StepRegion& one) {
      return one.memory == memoryClass && one.ring == ring;
    });
    return found == memory.regions.end() ? nullptr : &*found;
  }
  int64_t bytesOf(plan::MemoryClass memoryClass) const {
    const StepRegion* found = region(memoryClass);
    return found == nullptr ? -1 : found->bytes;
  }
};

Planned planOf(const StepBuilder& b, const std::vector<schedule::Action>& order) {
  Planned made;
  made.storage = assignStorage(b.program);
  made.memory = planStepMemory(b.program, made.storage, callsOf(b.program.functions, order), kEffort);
  return made;
}

std::vector<schedule::Action> orderOf(schedule::Kind kind, int rank) {
  const absl::StatusOr<schedule::Table> table = schedule::generate({.kind = kind, .ranks = 2, .micros = 4});
  EXPECT_TRUE(table.ok()) << table.status();
  return table->orders[rank];
}

// A forward function that keeps 64 bytes for both halves of the backward pass and 128 for the first alone.
StepBuilder keeper(int64_t stage) {
  StepBuilder b;
  b.function(plan::FORWARD, stage);
  b.returns(b.kernel({}), "v0", plan::ACTIVATION);
  b.returns(b.kernel({}, {}, 128), "v1", plan::ACTIVATION);
  b.function(plan::INPUT_GRAD, stage);
  b.read({b.argument("v0", plan::ACTIVATION), b.argument("v1", plan::ACTIVATION, 128)});
  b.function(plan::WEIGHT_GRAD, stage);
  b.read({b.argument("v0", plan::ACTIVATION)});
  return b;
}

TEST(StepMemoryTest, ASlotForEachMicroBatchInFlight) {
  // Two ranks under 1F1B: the first has two micro-batches in flight, the second one.
  for (const int rank : {0, 1}) {
    const Planned planned = planOf(keeper(rank), orderOf(schedule::Kind::k1F1B, rank));
    const StepRegion* ring = planned.region(plan::ACTIVATION);
    ASSERT_NE(ring, nullptr);
    EXPECT_EQ(ring->slots, 2 - rank);
    EXPECT_EQ(ring->stage, rank);
    EXPECT_EQ(ring->bytes, 192);
    EXPECT_EQ(ring->maxLive, 192);
    EXPECT_EQ(ring->lowerBound, 192);
    EXPECT_EQ(planned.region(plan::ACTIVATION, 1), nullptr);
    EXPECT_EQ(planned.memory.peakBytes, 192 * (2 - rank));
    const int first = planned.storage.named.at("v0");
    const int second = planned.storage.named.at("v1");
    EXPECT_EQ(std::min(planned.memory.offsets[first], planned.memory.offsets[second]), 0);
    EXPECT_TRUE(planned.memory.offsets[first] == 128 || planned.memory.offsets[second] == 64);
  }
}

TEST(StepMemoryTest, WhatIsFreeEarlierHasARingOfItsOwn) {
  // All gradients of weights after those of inputs: four micro-batches wait with v0, at most two with v1.
  std::vector<schedule::Action> order;
  for (const schedule::Action& action : orderOf(schedule::Kind::k1F1B, 0)) {
    order.push_back(action.kind == schedule::ActionKind::kBackward ? schedule::inputGrad(0, action.micro) : action);
  }
  for (int micro = 0; micro < 4; ++micro) {
    order.push_back(schedule::weightGrad(0, micro));
  }
  const Planned planned = planOf(keeper(0), order);
  const int kept = planned.memory.rings[planned.storage.named.at("v0")];
  const int freed = planned.memory.rings[planned.storage.named.at("v1")];
  ASSERT_NE(kept, freed);
  EXPECT_EQ(planned.region(plan::ACTIVATION, kept)->slots, 4);
  EXPECT_EQ(planned.region(plan::ACTIVATION, kept)->bytes, 64);
  EXPECT_EQ(planned.region(plan::ACTIVATION, freed)->slots, 2);
  EXPECT_EQ(planned.region(plan::ACTIVATION, freed)->bytes, 128);
  EXPECT_EQ(planned.memory.peakBytes, 4 * 64 + 2 * 128);
}

TEST(StepMemoryTest, FunctionsShareOneTransientRegion) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int a = b.kernel({}, {}, 100);
  const int c = b.kernel({a}, {}, 200);
  b.read({c});
  const int reuses = b.kernel({}, {}, 300);
  b.read({reuses});
  b.function(plan::BACKWARD);
  const int alone = b.kernel({}, {}, 320);
  b.read({alone});
  const Planned planned = planOf(b, {schedule::forward(0, 0), schedule::backward(0, 0)});
  // 128 + 256 are alive together, rounded to the alignment; the others are alone, one after another and in another
  // function.
  EXPECT_EQ(planned.bytesOf(plan::TRANSIENT), 384);
  EXPECT_EQ(planned.memory.offsets[planned.storage.of[reuses]], 0);
  EXPECT_EQ(planned.memory.offsets[planned.storage.of[alone]], 0);
  EXPECT_NE(planned.memory.offsets[planned.storage.of[a]], planned.memory.offsets[planned.storage.of[c]]);
  EXPECT_EQ(planned.memory.peakBytes, 384);
  EXPECT_EQ(planned.bytesOf(plan::ACTIVATION), 0);  // a region also without activations
}

TEST(StepMemoryTest, LongLivedClassesLieInOrder) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int w = b.argument("w", plan::PARAMETER, 100);
  const int x = b.argument("x", plan::INPUT, 10);
  const int u = b.argument("u", plan::PARAMETER, 65);
  b.read({w, x, u});
  const Planned planned = planOf(b, {schedule::forward(0, 0)});
  EXPECT_EQ(planned.memory.offsets[planned.storage.of[w]], 0);
  EXPECT_EQ(planned.memory.offsets[planned.storage.of[u]], 128);
  EXPECT_EQ(planned.memory.offsets[planned.storage.of[x]], 0);
  EXPECT_EQ(planned.bytesOf(plan::PARAMETER), 256);
  EXPECT_EQ(planned.bytesOf(plan::INPUT), 64);
  EXPECT_EQ(planned.region(plan::STATE), nullptr);
  EXPECT_EQ(planned.memory.peakBytes, 320);
}

TEST(StepMemoryTest, MailboxesLieInTheOrderOfReceives) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int first = b.receive(4 * 50);
  b.read({first});
  b.function(plan::BACKWARD);
  const int second = b.receive(64);
  b.read({second});
  b.read({b.receive(1)});
  const Planned planned = planOf(b, {schedule::forward(0, 0), schedule::backward(0, 0)});
  EXPECT_EQ(planned.memory.mailboxes, (std::vector<int64_t>{0, 256, 320}));
  EXPECT_EQ(planned.bytesOf(plan::MAILBOX), 384);
  EXPECT_EQ(planned.memory.peakBytes, 384 + planned.bytesOf(plan::TRANSIENT));
}

TEST(StepMemoryTest, WorkspaceIsTheMostThatRuns) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int a = b.kernel({}, {.workspaceBytes = 100});
  const int flat = b.view(a);
  b.last().workspaceBytes = 1000;  // lies in its input: nothing runs
  const int c = b.kernel({flat}, {.workspaceBytes = 70});
  b.read({c});
  const Planned planned = planOf(b, {schedule::forward(0, 0)});
  EXPECT_EQ(planned.bytesOf(plan::WORKSPACE), 128);
  EXPECT_EQ(planned.memory.peakBytes, 128 + planned.bytesOf(plan::TRANSIENT));
}

// Two functions may lie on the same bytes; what one of them holds at once may not, and neither what lasts for the step.
TEST(StepMemoryTest, OverlapsAreFound) {
  StepBuilder b;
  b.function(plan::FORWARD);
  b.argument("w0", plan::PARAMETER);
  b.argument("w1", plan::PARAMETER);
  const int x = b.kernel({}, {}, 128);
  const int y = b.kernel({});
  b.read({x, y});
  const int z = b.kernel({});
  b.read({z});
  Planned made = planOf(b, {schedule::forward(0, 0)});
  const std::vector<int>& of = made.storage.of;
  EXPECT_EQ(overlappingStorages(b.program, made.storage, made.memory), std::nullopt);
  std::vector<int64_t>& offsets = made.memory.offsets;
  offsets[of[x]] = 0;
  offsets[of[y]] = 128;
  offsets[of[z]] = 64;  // after both
  EXPECT_EQ(overlappingStorages(b.program, made.storage, made.memory), std::nullopt);
  offsets[of[y]] = 64;  // inside the end of x
  EXPECT_EQ(overlappingStorages(b.program, made.storage, made.memory), std::make_pair(of[x], of[y]));
  offsets[of[y]] = 0;
  offsets[of[x]] = 32;  // y is before it, and reaches into it
  EXPECT_EQ(overlappingStorages(b.program, made.storage, made.memory), std::make_pair(of[x], of[y]));
  offsets[of[x]] = 64;
  EXPECT_EQ(overlappingStorages(b.program, made.storage, made.memory), std::nullopt);
  offsets[1] = offsets[0];
  EXPECT_EQ(overlappingStorages(b.program, made.storage, made.memory), std::make_pair(0, 1));
}

}  // namespace
}  // namespace weft::testing
