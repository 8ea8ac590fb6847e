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
        costs_(graphs_, request_, *machineOf(request_), memo_) {}

  static CompileOptions closed(const std::string& mesh, int64_t micro, int zero = 1) {
    return {.mode = Mode::kLayouts, .mesh = mesh, .machine = "a100-80g", .micro = micro, .zero = zero};
  }
  SegmentCosts asked(const CompileOptions& request, int64_t parts) {
    const absl::StatusOr<SegmentCosts>& found = costs_.of({request, false, parts, 0});
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }

  CompileOptions request_ = {.mode = Mode::kAuto, .devices = 8, .machine = "a100-80g"};
  ReshardMemo memo_;
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

TEST_F(BlockCostsTest, LevelsShareWhatTheyShare) {
  const SegmentCosts none = asked(closed("dp=4,tp=1", 2, 0), 4);
  const SegmentCosts three = atLevel(none, 0, 3, 4);
  for (size_t s = 0; s < none.segments.size(); ++s) {
    EXPECT_EQ(three.segments[s].parameterBytes, none.segments[s].parameterBytes / 4);
    EXPECT_EQ(three.segments[s].gradientBytes, none.segments[s].gradientBytes / 4);
    EXPECT_EQ(atLevel(three, 3, 0, 4).segments[s].parameterBytes, none.segments[s].parameterBytes);
  }
  CompileOptions again = closed("dp=4,tp=1", 2, 3);
  again.regather = true;
  const absl::StatusOr<SegmentCosts> timed = costs_.withZeroTimes(three, again, 4);
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_GT(timed->segments[0].time, none.segments[0].time) << "gathers in each micro-batch";
  EXPECT_LE(timed->segments[0].onceTime, none.segments[0].onceTime);
}

}  // namespace
}  // namespace weft::testing
