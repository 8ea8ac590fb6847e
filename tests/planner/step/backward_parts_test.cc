// Which instructions of a backward function make the gradient of the input.
#include "planner/step/backward_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/planner/step/step_builder.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using enum BackwardPart;

TEST(BackwardPartsTest, WhatASendDependsOn) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int w = b.argument("w", plan::PARAMETER);
  const int x = b.argument("v0", plan::ACTIVATION);
  const int sum = b.argument("acc0", plan::ACCUMULATOR);
  const int dy = b.receive(64);
  const int dh = b.kernel({dy, x});
  const int dw = b.kernel({dy, x});
  const int dx = b.kernel({dh, w});
  const int next = b.kernel({sum, dw});
  b.read({dx});
  b.receive(64);
  b.returns(next, "acc0", plan::ACCUMULATOR);
  EXPECT_THAT(backwardParts(b.program.functions[0], {}),
              ElementsAre(kInput, kInput, kWeights, kInput, kWeights, kInput, kInput));
}

TEST(BackwardPartsTest, WhatAnotherStageOfTheSubmeshReads) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int dy = b.kernel({});
  const int dx = b.kernel({dy});
  const int late = b.kernel({dx});
  b.returns(dx, "v1", plan::ACTIVATION);
  b.returns(late, "acc0", plan::ACCUMULATOR);
  EXPECT_THAT(backwardParts(b.program.functions[0], {"v1", "v2"}), ElementsAre(kInput, kInput, kWeights));
}

// The gradient of a bias that is also that of what the stage before made: with one micro-batch the update reads it as
// it is.
TEST(BackwardPartsTest, WhatAnotherStageAndTheUpdateRead) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int dy = b.kernel({});
  const int db = b.kernel({dy});
  const int dw = b.kernel({dy});
  b.returns(db, "v1", plan::ACCUMULATOR);
  b.returns(dw, "v2", plan::ACCUMULATOR);
  EXPECT_THAT(backwardParts(b.program.functions[0], {"v1"}), ElementsAre(kInput, kInput, kWeights));
}

// What is recomputed from what is kept is in both halves; what reads the received gradient crosses.
TEST(BackwardPartsTest, WhatBothReadIsRecomputedInBoth) {
  const std::vector<BackwardOperation> operations = {{false, true, {100}, {0}},  // recomputed for 1
                                                     {false, true, {0}, {1}},    // recomputed, both read it
                                                     {false, true, {101}, {2}},  // recomputed, the input alone reads it
                                                     {true, false, {}, {3}},     // the gradient of the output
                                                     {false, false, {3, 1}, {4}},  // of the weights
                                                     {false, false, {3, 2, 1}, {5}}, {true, false, {5}, {}}};
  EXPECT_THAT(backwardParts(operations, {}), ElementsAre(kBoth, kBoth, kInput, kInput, kWeights, kInput, kInput));
}

// An operation belongs there if and only if some chain of readers ends in a transfer or outside.
TEST(BackwardPartsTest, RandomFunctionsAgainstChains) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int count = 1 + static_cast<int>(random() % 12);
    std::vector<BackwardOperation> operations;
    std::set<int> outside;
    for (int i = 0; i < count; ++i) {
      BackwardOperation& made = operations.emplace_back();
      made.transfer = random() % 8 == 0;
      made.outputs = {2 * i, 2 * i + 1};
      for (int input = 0; i > 0 && input < 2; ++input) {
        made.inputs.push_back(static_cast<int>(random() % (2 * i)));
      }
      if (random() % 8 == 0) {
        outside.insert(2 * i + static_cast<int>(random() % 2));
      }
    }
    // Reaches the goal in at most `count` steps.
    std::vector<bool> expected(count, false);
    for (int step = 0; step < count; ++step) {
      for (int i = 0; i < count; ++i) {
        expected[i] = expected[i] || operations[i].transfer || outside.count(2 * i) > 0 || outside.count(2 * i + 1) > 0;
        for (const int input : operations[i].inputs) {
          expected[input / 2] = expected[input / 2] || expected[i];
        }
      }
    }
    const std::vector<BackwardPart> parts = backwardParts(operations, outside);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(parts[i], expected[i] ? kInput : kWeights) << "round " << round << ", operation " << i;
    }
  }
}

}  // namespace
}  // namespace weft::testing
