// What is known of a mesh from others: asks that are alike, guesses, levels of ZeRO.
#include "planner/search/block_costs.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/check_request.h"
#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

class BlockCostsTest : public ::testing::Test {
 protected:
  BlockCostsTest()
      : graphs_(graphForAll(chainProgram({.layers = 6, .rows = 8192, .width = 1024}).graph)),
        costs_(graphs_, request_, *machineOf(request_), {memo_, memory_}) {}

  static CompileOptions closed(const std::string& mesh, int64_t micro, int zero = 1) {
    return {.mode = Mode::kLayouts, .mesh = mesh, .machine = "a100-80g", .micro = micro, .zero = zero};
  }
  SegmentCosts asked(const CompileOptions& request, int64_t parts) {
    const absl::StatusOr<SegmentCosts> found = costs_.of({request, false, parts, 0});
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }

  CompileOptions request_ = {.mode = Mode::kAuto, .devices = 8, .machine = "a100-80g"};
  PlanningMemo memo_;
  SearchMemory memory_;
  GraphFor graphs_;
  BlockCosts costs_;
};

// Ranks that hold as many rows on as large a mesh beside the batch take as long for a micro-batch.
TEST_F(BlockCostsTest, AsManyRowsAreAlike) {
  const CompileOptions two = closed("dp=2,tp=2", 4);
  const CompileOptions four = closed("dp=4,tp=2", 2);
  EXPECT_TRUE(costs_.alike({four, false, 4, 0}).empty()) << "nothing is known yet";
  asked(two, 2);
  const std::vector<SegmentCosts> guessed = costs_.alike({four, false, 4, 0});
  ASSERT_EQ(guessed.size(), 1U);
  const SegmentCosts own = asked(four, 4);
  ASSERT_EQ(guessed[0].segments.size(), own.segments.size());
  for (size_t s = 1; s < own.segments.size(); ++s) {  // the first slices the batch, whose size differs
    EXPECT_EQ(guessed[0].segments[s].time, own.segments[s].time) << s;
    EXPECT_EQ(guessed[0].segments[s].activations.all(), own.segments[s].activations.all()) << s;
    EXPECT_EQ(guessed[0].segments[s].stateBytes, own.segments[s].stateBytes) << "half of what two ranks share, " << s;
  }
  EXPECT_TRUE(costs_.alike({closed("dp=4,tp=1", 2), false, 4, 0}).empty()) << "another mesh beside the batch";
  asked(closed("dp=2,tp=2", 1), 2);
  EXPECT_TRUE(costs_.alike({closed("dp=1,tp=2", 2, 0), false, 1, 0}).empty()) << "one reduces its gradients itself";
}

// Of 12 rows each of 8 parts has 2, as each of 6.
TEST_F(BlockCostsTest, PartsThatArePaddedAreAlikeFewer) {
  const GraphFor graphs = graphForAll(chainProgram({.layers = 6, .rows = 12, .width = 1024}).graph);
  BlockCosts costs(graphs, request_, *machineOf(request_), {memo_, memory_});
  const absl::StatusOr<SegmentCosts> six = costs.of({closed("dp=2,tp=2", 3), false, 2, 0});
  ASSERT_TRUE(six.ok()) << six.status();
  const BlockAsk eight = {closed("dp=2,tp=2", 4), false, 2, 0};
  const std::vector<SegmentCosts> known = costs.alike(eight);
  ASSERT_EQ(known.size(), 1U);
  const absl::StatusOr<SegmentCosts> own = costs.of(eight);
  ASSERT_TRUE(own.ok()) << own.status();
  const auto time = static_cast<double>(together(*own).segments[0].time);
  EXPECT_NEAR(static_cast<double>(together(known[0]).segments[0].time), time, 0.02 * time) << "pads are filled";
  EXPECT_TRUE(costs.alike({closed("dp=2,tp=2", 2), false, 2, 0}).empty()) << "3 rows";
}

// The mesh of a batch that is not split has the same axes beside it as that of one that is.
TEST_F(BlockCostsTest, AnAxisOfSizeOneIsNone) {
  const CompileOptions whole = closed("dp=1,tp=2", 4, 0);
  const CompileOptions split = closed("dp=2,tp=2", 2);
  EXPECT_EQ(costs_.relativeOf({whole, false, 1, 0}), costs_.relativeOf({split, false, 2, 0}));
  const CompileOptions batchAlone = closed("dp=4,tp=1", 2);
  EXPECT_EQ(smallerThan(costs_.relativeOf({split, false, 2, 0})),
            std::vector{costs_.relativeOf({batchAlone, false, 4, 0})});
}

// Groups of the same axis that lie on one node, or on several, take unlike times.
TEST_F(BlockCostsTest, OrdersOfAxesAreNotAlike) {
  const CompileOptions inside = closed("dp=4,tp=4", 4);
  const CompileOptions apart = closed("tp=4,dp=4", 4);
  asked(inside, 4);
  EXPECT_TRUE(costs_.alike({apart, false, 4, 0}).empty()) << "eight devices to a node";
  EXPECT_EQ(smallerThan(costs_.relativeOf({apart, false, 4, 0})),
            std::vector{costs_.relativeOf({inside, false, 4, 0})});
  const SegmentCost guessed = costs_.guess({apart, false, 4, 0}).at(0).all;
  const SegmentCost known = together(asked(inside, 4)).segments[0];
  EXPECT_GT(guessed.time, known.time) << "what is sent in each micro-batch goes over the network";
  EXPECT_LT(guessed.onceTime, known.onceTime) << "gradients do not";
  EXPECT_EQ(costs_.relativeOf({closed("tp=2,dp=4", 4), false, 4, 0}),
            costs_.relativeOf({closed("dp=4,tp=2", 4), false, 4, 0}))
      << "on one node";
  EXPECT_EQ(costs_.relativeOf({closed("tp=2,dp=16", 4), false, 16, 0}),
            costs_.relativeOf({closed("tp=2,dp=8", 8), false, 8, 0}))
      << "each on a node of its own";
}

// What the backward pass reads inside a layer may be made again.
TEST_F(BlockCostsTest, SavingsRiseInPrice) {
  const GraphFor graphs = graphForAll(chainProgram({.layers = 6, .rows = 8192, .width = 1024, .relus = 2}).graph);
  BlockCosts costs(graphs, request_, *machineOf(request_), {memo_, memory_});
  const CompileOptions asked = closed("dp=2,tp=2", 4);
  const absl::StatusOr<SegmentCosts> found = costs.of({asked, false, 2, 0});
  ASSERT_TRUE(found.ok()) << found.status();
  for (const auto* segments : {&found->segments, &found->cutSegments}) {
    const SegmentCost& middle = segments->at(2);
    ASSERT_FALSE(middle.savings.empty());
    int64_t bytes = 0;
    for (size_t i = 0; i < middle.savings.size(); ++i) {
      EXPECT_FALSE(i > 0 && isCheaper(middle.savings[i], middle.savings[i - 1])) << i;
      EXPECT_GT(middle.savings[i].bytes, 0);
      bytes += middle.savings[i].bytes;
    }
    EXPECT_LE(bytes, middle.activations.all());
  }
}

// Between two asks a guess lies between them; of a larger mesh it is hardly too much.
TEST_F(BlockCostsTest, GuessesAreHardlyTooHigh) {
  asked(closed("dp=2,tp=1", 2), 2);
  asked(closed("dp=2,tp=1", 32), 2);
  for (const int64_t micro : {4, 8, 16}) {
    const CompileOptions middle = closed("dp=2,tp=1", micro);
    const std::vector<BlockTotals> guessed = costs_.guess({middle, false, 2, 0});
    ASSERT_EQ(guessed.size(), 1U);
    const SegmentCost own = together(asked(middle, 2)).segments[0];
    EXPECT_LE(static_cast<double>(guessed[0].all.time), 1.02 * static_cast<double>(own.time)) << micro;
    EXPECT_GE(static_cast<double>(guessed[0].all.time), 0.5 * static_cast<double>(own.time)) << micro;
  }
  const CompileOptions larger = closed("dp=2,tp=4", 4);
  const std::vector<BlockTotals> guessed = costs_.guess({larger, false, 2, 0});
  ASSERT_EQ(guessed.size(), 1U);
  EXPECT_LE(guessed[0].all.time, together(asked(larger, 2)).segments[0].time) << "its collectives come on top";
}

// Kernels of few rows are inefficient: of many rows a rank takes less than in proportion.
TEST_F(BlockCostsTest, GuessesOfMoreRowsFollowSmallerMeshes) {
  const CompileOptions few = closed("dp=2,tp=2", 1024);
  const CompileOptions many = closed("dp=2,tp=2", 2);
  for (const CompileOptions& known : {few, closed("dp=2,tp=1", 1024), closed("dp=2,tp=1", 2)}) {
    asked(known, 2);
  }
  const std::vector<BlockTotals> guessed = costs_.guess({many, false, 2, 0});
  ASSERT_EQ(guessed.size(), 1U);
  const Picoseconds own = together(asked(many, 2)).segments[0].time;
  EXPECT_LE(guessed[0].all.time, own);
  EXPECT_GE(2 * guessed[0].all.time, own);
}

// A price of memory makes splits no faster: what is known without one counts for guesses from asks with one.
TEST_F(BlockCostsTest, PricedGuessesAreNoFasterThanOthers) {
  const CompileOptions few = closed("dp=2,tp=2", 1024);
  const CompileOptions many = closed("dp=2,tp=2", 2);
  const Picoseconds unpriced = together(asked(few, 2)).segments[0].time;
  ASSERT_TRUE(costs_.of({many, false, 2, 1.0}).ok());
  const std::vector<BlockTotals> guessed = costs_.guess({few, false, 2, 1.0});
  ASSERT_EQ(guessed.size(), 2U);
  EXPECT_GE(guessed[1].all.time, unpriced);
}

// What was asked about at a higher level has its collectives in each micro-batch, which others need not have.
TEST_F(BlockCostsTest, HigherLevelsTellNothingWhereTheLevelIsOpen) {
  request_.zero = kFindZero;
  CompileOptions high = closed("dp=4,tp=1", 2, 3);
  high.regather = true;
  asked(high, 4);
  const CompileOptions low = closed("dp=4,tp=1", 2);
  EXPECT_TRUE(costs_.alike({low, false, 4, 0}).empty());
  EXPECT_TRUE(costs_.guess({low, false, 4, 0}).empty());
  asked(low, 4);
  EXPECT_EQ(costs_.alike({low, false, 4, 0}).size(), 1U);
}

// Whatever the level of the others.
TEST_F(BlockCostsTest, WhatHasALevelOfItsOwnKeepsIt) {
  for (const int pinned : {0, 3}) {
    CompileOptions request = request_;
    request.zeroOf = {{"w2", pinned}};
    BlockCosts costs(graphs_, request, *machineOf(request_), {memo_, memory_});
    const auto at = [&](int level) {
      CompileOptions asked = closed("dp=4,tp=1", 2, level);
      asked.zeroOf = request.zeroOf;
      const absl::StatusOr<SegmentCosts>& found = costs.of({asked, false, 4, 0});
      EXPECT_TRUE(found.ok()) << found.status();
      return *found;
    };
    const SegmentCosts guessed = atLevel(at(1), 1, 2, 4);
    const SegmentCosts own = at(2);
    for (size_t s = 0; s + 1 < own.segments.size(); ++s) {  // the last has no weight
      EXPECT_EQ(guessed.segments[s].parameterBytes, own.segments[s].parameterBytes) << s;
      EXPECT_EQ(guessed.segments[s].gradientBytes, own.segments[s].gradientBytes) << s;
    }
    EXPECT_EQ(own.segments[2].parameterBytes, 0) << "held: " << own.segments[2].heldBytes;
    EXPECT_GT(own.segments[2].heldBytes, 1024 * 1024 * 4);
  }
}

TEST_F(BlockCostsTest, LevelsShareWhatTheyShare) {
  const SegmentCosts none = asked(closed("dp=4,tp=1", 2, 0), 4);
  const SegmentCosts three = atLevel(none, 0, 3, 4);
  for (size_t s = 0; s < none.segments.size(); ++s) {
    EXPECT_EQ(three.segments[s].parameterBytes, none.segments[s].parameterBytes / 4);
    EXPECT_EQ(three.segments[s].gradientBytes, none.segments[s].gradientBytes / 4);
    EXPECT_EQ(atLevel(three, 3, 0, 4).segments[s].parameterBytes, none.segments[s].parameterBytes);
  }
  const SegmentCosts held = {{{.parameterBytes = 8, .gradientBytes = 8, .stateBytes = 8, .heldBytes = 8}}, {}, 0};
  for (const int level : {0, 1, 2, 3}) {
    EXPECT_EQ(atLevel(held, 0, level, 4).segments[0].bytesOfStep(), 32 - 6 * level) << level;
  }
  // What is copied to the host is the state.
  const SegmentCosts host = {{{.stateBytes = 8, .offloadTime = 80, .bufferBytes = 16}}, {}, 0};
  for (const int level : {1, 2, 3}) {
    EXPECT_EQ(atLevel(host, 0, level, 4).segments[0].offloadTime, 20);
    EXPECT_EQ(atLevel(host, 0, level, 4).segments[0].bufferBytes, 4);
    EXPECT_EQ(atLevel(atLevel(host, 0, level, 4), level, 0, 4).segments[0].offloadTime, 80);
  }
  const absl::StatusOr<SegmentCosts> once = costs_.withZeroTimes(three, closed("dp=4,tp=1", 2, 3), 4);
  ASSERT_TRUE(once.ok()) << once.status();
  CompileOptions again = closed("dp=4,tp=1", 2, 3);
  again.regather = true;
  const absl::StatusOr<SegmentCosts> timed = costs_.withZeroTimes(three, again, 4);
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_GT(once->segments[0].time, none.segments[0].time) << "gradients are scattered in each micro-batch";
  EXPECT_GT(timed->segments[0].time, once->segments[0].time) << "gathers in each micro-batch";
  EXPECT_GT(once->segments[0].heldBytes, timed->segments[0].heldBytes) << "what is gathered once stays";
  EXPECT_LE(timed->segments[0].onceTime, none.segments[0].onceTime);
}

}  // namespace
}  // namespace weft::testing
