// Levels of ZeRO for single classes of weights: which are asked about, in which order, and what is kept of the answers.
#include "planner/search/mix_zero.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A plan of three weights on four ranks in eight micro-batches, of one level, and predictions by table.
class MixZeroTest : public ::testing::Test {
 protected:
  static constexpr Picoseconds kBefore = 1000;

  ClosedRequest planOf(int level, bool fits = true) {
    const auto graph = std::make_shared<const ProgramGraph>(chainProgram({.layers = 3, .rows = 64, .width = 64}).graph);
    const CompileOptions closed = {.mesh = "dp=4", .micro = 8, .zero = level, .zeroOf = request_.zeroOf};
    absl::StatusOr<Attempt> attempt = predictProgram(*graph, closed, {});
    EXPECT_TRUE(attempt.ok()) << attempt.status();
    attempt->time = kBefore;
    attempt->fits = fits;
    return {closed, graph, *attempt};
  }

  // What becomes of the plan where levels of single weights take so long, "w0=1,w1=1"; others are refused. Negative:
  // they do not fit.
  ClosedRequest mixed(const ClosedRequest& plan, const std::map<std::string, Picoseconds>& times) {
    asked_.clear();
    const Predict predict = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double>,
                                Picoseconds) -> absl::StatusOr<Attempt> {
      asked_.push_back(printZeroOf(closed.zeroOf));
      const auto found = times.find(asked_.back());
      if (found == times.end()) {
        return absl::InvalidArgumentError("refused");
      }
      Attempt made = plan.attempt;
      made.time = std::abs(found->second);
      made.fits = found->second > 0;
      return made;
    };
    const absl::StatusOr<ClosedRequest> made = mixZero(plan, request_, predict);
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
  }

  CompileOptions request_ = {.mode = Mode::kAuto, .devices = 4, .memoryLimit = 1000000};
  std::vector<std::string> asked_;
};

TEST_F(MixZeroTest, LowersOneClassAfterTheOtherWhileThatPays) {
  const ClosedRequest made = mixed(planOf(2), {{"w0=1", 900}, {"w0=1,w1=1", 800}, {"w0=1,w1=1,w2=1", 799}});
  EXPECT_THAT(asked_, ElementsAre("w0=1", "w0=1,w1=1", "w0=1,w1=1,w2=1"));
  EXPECT_EQ(printZeroOf(made.request.zeroOf), "w0=1,w1=1") << "a thousandth is not worth a level of its own";
  EXPECT_EQ(made.attempt.time, 800);
  EXPECT_EQ(made.ticks, 3);
  EXPECT_THAT(made.notes.back(), HasSubstr("level 2, but w0=1,w1=1"));
}

TEST_F(MixZeroTest, BeginsWithTheClassThatMayGainMost) {
  for (const int level : {2, 1}) {
    ClosedRequest plan = planOf(level, level == 2);
    auto graph = std::make_shared<ProgramGraph>(*plan.graph);
    for (GraphArgument& argument : graph->arguments) {
      argument.type.shape[0] *= argument.name == "w2" ? 4 : argument.name == "w1" ? 2 : 1;
    }
    plan.graph = graph;
    const std::map<std::string, Picoseconds> shorter =
        level == 2 ? std::map<std::string, Picoseconds>{{"w2=1", 900}, {"w2=1,w1=1", 800}, {"w2=1,w1=1,w0=1", 700}}
                   : std::map<std::string, Picoseconds>{{"w2=2", 900}, {"w2=2,w1=2", 800}, {"w2=2,w1=2,w0=2", 700}};
    const ClosedRequest made = mixed(plan, shorter);
    EXPECT_EQ(made.attempt.time, 700) << level;
    EXPECT_EQ(asked_.size(), 3U) << level;
  }
}

TEST_F(MixZeroTest, StaysAsItIsWhereThatDoesNotPay) {
  for (const Picoseconds time : {Picoseconds{1100}, Picoseconds{-500}}) {
    const ClosedRequest made = mixed(planOf(3), {{"w0=1", time}});
    EXPECT_THAT(asked_, ElementsAre("w0=1"));
    EXPECT_THAT(made.request.zeroOf, IsEmpty());
    EXPECT_EQ(made.attempt.time, kBefore);
  }
  EXPECT_EQ(mixed(planOf(3), {}).attempt.time, kBefore) << "refused";
}

TEST_F(MixZeroTest, RaisesWhereMemoryIsShort) {
  const ClosedRequest made = mixed(planOf(1, false), {{"w0=2", 2000}});
  EXPECT_EQ(printZeroOf(made.request.zeroOf), "w0=2") << "what fits is better than what does not";
  EXPECT_TRUE(made.attempt.fits);
  mixed(planOf(1), {});
  EXPECT_THAT(asked_, IsEmpty()) << "it fits, and nothing is recomputed";
}

TEST_F(MixZeroTest, KeepsWhatTheUserSays) {
  request_.zeroOf = {{"w0", 3}};
  const ClosedRequest made = mixed(planOf(2), {{"w0=3,w1=1", 900}});
  EXPECT_EQ(printZeroOf(made.request.zeroOf), "w0=3,w1=1");
  request_.zero = 2;
  mixed(planOf(2), {});
  request_.zero.reset();
  for (const Freedom freedom : {Freedom::kZero, Freedom::kZeroClasses}) {
    request_.without = {freedom};
    mixed(planOf(2), {});
    EXPECT_THAT(asked_, IsEmpty()) << "the level is said, or may not be chosen: " << freedomName(freedom);
  }
}

// Gradients of one micro-batch are reduced once at every level.
TEST_F(MixZeroTest, AsksOnlyWhereThereIsSomethingToGain) {
  ClosedRequest plan = planOf(2);
  plan.attempt.time = kAnyTime / 4;
  mixed(plan, {});
  EXPECT_THAT(asked_, IsEmpty());
}

}  // namespace
}  // namespace weft::testing
