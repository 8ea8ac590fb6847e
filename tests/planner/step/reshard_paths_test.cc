#include "planner/step/reshard_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "planner/step/buckets.h"
#include "planner/step/pad_masks.h"
#include "planner/step/time_layouts.h"
#include "tests/planner/step/step_case.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Mesh& mesh() {
  static const Mesh made = *Mesh::parse("dp=2,micro=4");
  return made;
}

Layout layout(const std::string& text) {
  return layoutOn(mesh(), text);
}

std::vector<std::string> path(const std::string& from, const std::string& to, bool scattersEach = false) {
  const absl::StatusOr<std::vector<Layout>> path =
      pathOfRead(layout(from), {layout(to), "relu reads operand 0", scattersEach}, mesh());
  std::vector<std::string> texts;
  for (const Layout& next : path.ok() ? *path : std::vector<Layout>()) {
    texts.push_back(next.print(mesh()));
  }
  return path.ok() ? texts : std::vector<std::string>{std::string(path.status().message())};
}

TEST(PathOfRead, StraightWhereTimeStays) {
  EXPECT_THAT(path("[{dp},{}]", "[{},{dp}]"), ElementsAre("[{},{dp}]"));
  EXPECT_THAT(path("[{dp,micro},{}]", "[{micro},{}]"), ElementsAre("[{micro},{}]"));
  EXPECT_THAT(path("[{},{}] partial{micro:sum,dp:sum}", "[{},{}] partial{micro:sum}"),
              ElementsAre("[{},{}] partial{micro:sum}"));
}

TEST(PathOfRead, AccumulatesThenReduces) {
  EXPECT_THAT(path("[{},{}] partial{dp:sum,micro:sum}", "[{},{}]"), ElementsAre("[{},{}] partial{dp:sum}", "[{},{}]"));
  EXPECT_THAT(path("[{},{}] partial{dp:sum,micro:sum}", "[{dp},{}]"),
              ElementsAre("[{},{}] partial{dp:sum}", "[{dp},{}]"));
}

// Each rank accumulates its shard alone, so that the whole gradient is never kept.
TEST(PathOfRead, ZeroTwoScattersGradientsInEachMicroBatch) {
  EXPECT_THAT(path("[{},{}] partial{dp:sum,micro:sum}", "[{dp},{}]", true),
              ElementsAre("[{dp},{}] partial{micro:sum}", "[{dp},{}]", "[{dp},{}]"));
}

TEST(ScattersGradient, AsTheLevelOfItsParameterHasIt) {
  Decisions record;
  record.zero = 1;
  record.arguments = {{.name = "whole"}, {.name = "sums", .zero = 2}, {.name = "all", .zero = 3}};
  const ZeroLevels levels(record);
  EXPECT_FALSE(scattersGradient(levels, ""));
  EXPECT_FALSE(scattersGradient(levels, "whole"));
  EXPECT_TRUE(scattersGradient(levels, "sums"));
  EXPECT_TRUE(scattersGradient(levels, "all"));
  record.zero = 2;
  EXPECT_FALSE(scattersGradient(ZeroLevels(record), ""));
  EXPECT_TRUE(scattersGradient(ZeroLevels(record), "whole"));
}

TEST(PathOfRead, TakesAMicroBatchFirst) {
  EXPECT_THAT(path("[{dp},{}]", "[{micro},{}]"), ElementsAre("[{dp,micro},{}]", "[{micro},{}]"));
}

TEST(PathOfRead, MicroBatchesAreNotGathered) {
  EXPECT_THAT(
      path("[{micro},{}]", "[{},{}]"),
      ElementsAre("relu reads operand 0 whole, but it is computed in 4 micro-batches; reduce it over the batch, "
                  "or use micro = 1"));
}

TEST(PathOfReduced, OverTheMicroBatchesThenAfterThemOverTheRanks) {
  const Place producer = {RunsIn::kBackward, 2};
  const std::vector<PlacedLayout> both = pathOfReduced(layout("[{},{}] partial{dp:sum,micro:sum}"), producer);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].layout.print(mesh()), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(both[0].place, producer);
  EXPECT_EQ(both[1].layout.print(mesh()), "[{},{}]");
  EXPECT_EQ(both[1].place, (Place{RunsIn::kUpdate, 2}));
  const std::vector<PlacedLayout> one = pathOfReduced(layout("[{micro},{}] partial{dp:sum}"), producer);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].layout.print(mesh()), "[{micro},{}]");
  EXPECT_EQ(one[0].place, producer);
}

TEST(PlaceOfReshard, AccumulationRunsWithTheProducerAllElseWithTheReader) {
  const Place producer = {RunsIn::kBackward, 0}, reader = {RunsIn::kUpdate, 1};
  const auto place = [&](const std::string& from, const std::string& to, bool once = false) {
    return placeOfReshard(layout(from), layout(to), producer, {reader, once});
  };
  EXPECT_EQ(place("[{},{}] partial{dp:sum,micro:sum}", "[{},{}] partial{dp:sum}"), producer);
  EXPECT_EQ(place("[{},{}] partial{dp:sum,micro:sum}", "[{dp},{}] partial{micro:sum}"), producer);
  EXPECT_EQ(place("[{},{}] partial{dp:sum}", "[{},{}]"), reader);
  EXPECT_EQ(place("[{dp},{}]", "[{},{}]", /*once=*/true), (Place{RunsIn::kPrologue, 1}));
  EXPECT_EQ(placeOfReshard(layout("[{},{}] partial{micro:sum}"), layout("[{},{}]"), std::nullopt, {reader}), reader);
  // What the end of the step takes of each micro-batch.
  EXPECT_EQ(place("[{micro},{}] partial{dp:sum}", "[{micro},{}]"), producer);
  EXPECT_EQ(place("[{dp,micro},{}]", "[{dp},{}]"), producer);
  const Place backward = {RunsIn::kBackward, 1};
  EXPECT_EQ(placeOfReshard(layout("[{dp,micro},{}]"), layout("[{micro},{}]"), Place{RunsIn::kForward, 1}, {backward}),
            backward);
}

TEST(PlaceOfReshard, GradientsOfLevel2AreScatteredWhereTheyAreMadeAlsoOfOneMicroBatch) {
  const Place producer = {RunsIn::kBackward, 0}, reader = {RunsIn::kUpdate, 0};
  const Layout partial = layout("[{},{}] partial{dp:sum}"), shared = layout("[{dp},{}]");
  EXPECT_EQ(placeOfReshard(partial, shared, producer, {.place = reader, .scattersEach = true}), producer);
  EXPECT_EQ(placeOfReshard(partial, shared, producer, {reader}), reader);
  // What is no sum is cut by its reader.
  EXPECT_EQ(placeOfReshard(layout("[{},{}]"), shared, producer, {.place = reader, .scattersEach = true}), reader);
}

// All gradients of level 2 would be there at once if each waited for its reader at the end of the pass; small ones may.
TEST(StandsBehindProducer, LargeGradientsThatAreScatteredInEachMicroBatch) {
  const Layout partial = layout("[{},{}] partial{dp:sum,micro:sum}"), summed = layout("[{dp},{}] partial{micro:sum}");
  const ReshardReader scatters = {.place = {RunsIn::kUpdate, 0}, .scattersEach = true};
  constexpr int64_t kLarge = kBucketBytes;
  EXPECT_TRUE(standsBehindProducer(partial, summed, scatters, kLarge));
  EXPECT_FALSE(standsBehindProducer(partial, summed, scatters, kBucketBytes / 4));
  EXPECT_FALSE(standsBehindProducer(summed, layout("[{dp},{}]"), scatters, kLarge)) << "accumulation";
  EXPECT_FALSE(standsBehindProducer(layout("[{},{}]"), layout("[{dp},{}]"), scatters, kLarge)) << "is no sum";
  EXPECT_FALSE(standsBehindProducer(partial, summed, {.place = {RunsIn::kUpdate, 0}}, kLarge));
}

TEST(LayoutOfResult, ReducedOrAsTheArgumentItReplaces) {
  EXPECT_EQ(layoutOfResult(layout("[{dp},{}] partial{micro:sum}"), {"y"}, mesh())->print(mesh()), "[{dp},{}]");
  EXPECT_EQ(layoutOfResult(layout("[{},{}]"), {"w", layout("[{},{dp}]")}, mesh())->print(mesh()), "[{},{dp}]");
  EXPECT_THAT(
      std::string(layoutOfResult(layout("[{micro},{}]"), {"w", layout("[{},{}]")}, mesh()).status().message()),
      HasSubstr("'w' would be replaced by a value that carries the batch, but the step runs in 4 micro-batches"));
}

TEST(LayoutOfResult, TheBatchIsWholeAndSplitIntoNoMoreThanItsStripes) {
  const auto left = [&](const std::string& current, int64_t stripes) {
    return layoutOfResult(layout(current), {"y", std::nullopt, stripes}, mesh())->print(mesh());
  };
  EXPECT_EQ(left("[{dp,micro},{}]", 2), "[{dp},{}]");
  EXPECT_EQ(left("[{},{dp,micro}] pad{1:16}", 2), "[{},{dp}] pad{1:16}");
  EXPECT_EQ(left("[{dp,micro},{}]", 1), "[{},{}]") << "a rank's rows would not be one run of the batch";
  EXPECT_EQ(left("[{micro},{dp}]", 1), "[{},{dp}]");
  EXPECT_EQ(left("[{micro},{}] partial{dp:sum}", 1), "[{},{}]");
}

TEST(PathOfRead, TheEndOfTheStepTakesTheBatchOneMicroBatchAfterTheOther) {
  const auto taken = [&](const std::string& from, const std::string& to) {
    std::vector<std::string> texts;
    const auto path = pathOfRead(layout(from), {.wanted = layout(to), .reason = "y leaves", .collects = true}, mesh());
    for (const Layout& next : *path) {
      texts.push_back(next.print(mesh()));
    }
    return texts;
  };
  EXPECT_THAT(taken("[{dp,micro},{}]", "[{dp},{}]"), ElementsAre("[{dp,micro},{}]", "[{dp},{}]"));
  EXPECT_THAT(taken("[{micro},{}] partial{dp:sum}", "[{},{}]"), ElementsAre("[{micro},{}]", "[{},{}]"));
  EXPECT_THAT(taken("[{dp,micro},{}]", "[{},{}]"), ElementsAre("[{micro},{}]", "[{},{}]"));
}

TEST(TimeLayouts, OneMicroBatch) {
  const Layout timed = layout("[{dp,micro},{}] partial{} pad{0:16}");
  EXPECT_EQ(timeDim(timed), 0);
  EXPECT_EQ(timeDim(layout("[{dp},{}] partial{micro:sum}")), -1);
  EXPECT_TRUE(partialOverTime(layout("[{dp},{}] partial{micro:sum}")));
  EXPECT_EQ(withoutTime(timed), layout("[{dp},{}]"));
  EXPECT_EQ(withoutTime(layout("[{},{}] partial{dp:sum,micro:sum}")), layout("[{},{}] partial{dp:sum}"));
  EXPECT_EQ(microBatchShape({13, 3}, timed, 4), Shape({4, 3}));
  EXPECT_EQ(microBatchShape({13, 3}, layout("[{dp},{}] pad{0:16}"), 4), Shape({16, 3}));
  EXPECT_EQ(likeInTime(layout("[{},{dp,micro}] partial{}"), timed), layout("[{micro},{dp}]"));
  EXPECT_EQ(sliceTime(layout("[{dp},{}]"), timed, mesh()), layout("[{dp,micro},{}]"));
  EXPECT_EQ(sliceTime(timed, timed, mesh()), std::nullopt);
  EXPECT_EQ(sliceTime(layout("[{dp},{}]"), layout("[{},{}]"), mesh()), std::nullopt);
}

TEST(PadMasks, ReducedFactorsHoldWhatChangesNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  OperatorFacts facts = {"reduce", "a+ b -> b"};
  const Rule rule = ruleOn(facts.rule, {{10, 4}}, {{4}});
  const Layout padded = layout("[{dp},{}] pad{0:10}");
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, padded), ElementsAre(PadMask{0, 0.0}));
  facts.reduce = {ReduceKind::kMax};
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, padded), ElementsAre(PadMask{0, -kInfinity}));
  facts.reduce = {ReduceKind::kMin};
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, padded), ElementsAre(PadMask{0, kInfinity}));
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kI32}, padded), ElementsAre(PadMask{0, kInfinity}));
  facts.reduce = {ReduceKind::kMax};
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kBool}, padded), ElementsAre(PadMask{0, 0.0})) << "none is true";
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, layout("[{},{}] pad{1:4}")), IsEmpty()) << "b is not reduced";
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, layout("[{dp},{}]")), IsEmpty());
}

// Rows of a gradient are added up by their labels: those that are 0 may go to any label.
TEST(PadMasks, IntegersBesideRealNumbersAreLeftAlone) {
  OperatorFacts facts = {"embedding_grad", "a+, a+ c -> v c"};
  const Rule rule = ruleOn(facts.rule, {{10}, {10, 4}}, {{7, 4}});
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kI32, DType::kF32}, layout("[{dp}] pad{0:10}")), IsEmpty());
  EXPECT_THAT(padMasks(facts, rule, 1, {DType::kI32, DType::kF32}, layout("[{dp},{}] pad{0:10}")),
              ElementsAre(PadMask{0, 0.0}));
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kI32, DType::kI32}, layout("[{dp}] pad{0:10}")),
              ElementsAre(PadMask{0, 0.0}));
}

TEST(PadMasks, WholeFactorsHoldWhatTheOperatorSaysOrAreRefused) {
  OperatorFacts facts = {"softmax", "a v! -> a v"};
  const Rule rule = ruleOn(facts.rule, {{8, 10}}, {{8, 10}});
  const Layout padded = layout("[{},{}] pad{1:10}");
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, padded), ElementsAre(PadMask{1, 0.0}));
  facts.padFill = {-1.5};
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, padded), ElementsAre(PadMask{1, -1.5}));
  facts.padFill = {std::nullopt};
  EXPECT_THAT(padMasks(facts, rule, 0, {DType::kF32}, padded), ElementsAre(PadMask{1, std::nullopt}));
}

}  // namespace
}  // namespace weft::testing
