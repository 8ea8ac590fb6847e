// Which meshes, stages and micro-batches mode auto chooses among.
#include "planner/search/plan_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> gridsOf(const ProgramGraph& graph, CompileOptions request, int64_t userStages = 1,
                                 int64_t segments = 8) {
  request.mode = Mode::kAuto;
  const absl::StatusOr<std::vector<StageGrid>> grids = stageGrids(graph, request, userStages, segments);
  std::vector<std::string> texts;
  if (!grids.ok()) {
    return {std::string(grids.status().message())};
  }
  for (const StageGrid& grid : *grids) {
    texts.push_back(absl::StrCat(grid.submeshes, " x ", grid.mesh,
                                 grid.virtualStages > 1 ? absl::StrCat(" v", grid.virtualStages) : ""));
  }
  return texts;
}

TEST(PlanSpace, TakesEveryFactorization) {
  const ProgramGraph graph = chainProgram({}).graph;
  EXPECT_THAT(gridsOf(graph, {.devices = 4}),
              UnorderedElementsAre("1 x dp=4,tp=1", "1 x dp=2,tp=2", "1 x dp=1,tp=4", "2 x dp=2,tp=1", "2 x dp=1,tp=2",
                                   "4 x dp=1,tp=1", "2 x dp=2,tp=1 v2", "2 x dp=1,tp=2 v2", "4 x dp=1,tp=1 v2"));
  EXPECT_THAT(gridsOf(graph, {.devices = 4}, 1, 2),
              UnorderedElementsAre("1 x dp=4,tp=1", "1 x dp=2,tp=2", "1 x dp=1,tp=4", "2 x dp=2,tp=1", "2 x dp=1,tp=2"))
      << "two segments are at most two stages";
}

TEST(PlanSpace, KeepsWhatIsGiven) {
  const ProgramGraph graph = chainProgram({}).graph;
  EXPECT_THAT(gridsOf(graph, {.mesh = "dp=2,tp=2"}), ElementsAre("1 x dp=2,tp=2"));
  EXPECT_THAT(gridsOf(graph, {.mesh = "dp=2", .devices = 4}), ElementsAre("2 x dp=2", "2 x dp=2 v2"));
  EXPECT_THAT(gridsOf(graph, {.mesh = "dp=?,q=2", .devices = 4, .virtualStages = 1}),
              ElementsAre("1 x dp=2,q=2", "2 x dp=1,q=2"));
  EXPECT_THAT(gridsOf(graph, {.devices = 2}, 2), ElementsAre("2 x dp=1,tp=1"));
  EXPECT_THAT(gridsOf(graph, {.devices = 2, .schedule = "zb_v"}, 4), ElementsAre("2 x dp=1,tp=1 v2"));
  EXPECT_THAT(gridsOf(graph, {.devices = 4, .schedule = "interleaved", .maxStages = 4}),
              ElementsAre("2 x dp=2,tp=1 v2", "2 x dp=1,tp=2 v2"));
  EXPECT_THAT(gridsOf(graph, {.stageMeshes = "dp=2;tp=2"}, 2), ElementsAre("2 x "));
  EXPECT_THAT(gridsOf(graph, {.stageMeshes = "dp=2;tp=2"}), ElementsAre("2 x ", "2 x  v2"));
  EXPECT_THAT(gridsOf(graph, {.stageMeshes = "dp=2;tp=2", .maxStages = 3}), ElementsAre("2 x "));
}

// The axes are those that the user names somewhere.
TEST(PlanSpace, FindsTheAxesThatWordsName) {
  GraphBuilder b = chainProgram({});
  const CompileOptions request = {.devices = 2, .layouts = {{"w0", "[{},{heads}]"}}, .maxStages = 1};
  EXPECT_THAT(gridsOf(b.graph, request), UnorderedElementsAre("1 x dp=2,heads=1", "1 x dp=1,heads=2"));
  b.graph.operators[0].constraint = "[{dp,?}p1,{mp:(1)2}] pad{1:18}";
  EXPECT_THAT(gridsOf(b.graph, {.devices = 2, .maxStages = 1}), UnorderedElementsAre("1 x dp=2,mp=1", "1 x dp=1,mp=2"));
}

TEST(PlanSpace, SaysWhatDoesNotGoTogether) {
  const ProgramGraph graph = chainProgram({}).graph;
  EXPECT_THAT(gridsOf(graph, {.mesh = "dp=2", .devices = 6}, 2),
              ElementsAre(HasSubstr("6 devices and 2 stages of mesh 'dp=2' do not go together")));
  EXPECT_THAT(
      gridsOf(graph, {.devices = 4, .schedule = "interleaved"}, 1, 3),
      ElementsAre(HasSubstr("2 stages on each submesh are at least 4 stages, and there are at most 3 in this")));
  EXPECT_THAT(gridsOf(graph, {.devices = 4, .virtualStages = 3, .maxStages = 5}),
              ElementsAre(HasSubstr("at least 6 stages, and there are at most 5 (maxStages)")));
  EXPECT_THAT(gridsOf(graph, {.stageMeshes = "dp=2;tp=2"}, 3),
              ElementsAre(HasSubstr("the stage meshes 'dp=2;tp=2' are for 2 submeshes, the program names 3 stages")));
  EXPECT_THAT(gridsOf(graph, {.stageMeshes = "dp=2;tp=2", .maxStages = 1}),
              ElementsAre(HasSubstr("for 2 submeshes, and there are at most 1 stages")));
}

TEST(PlanSpace, StageMeshesThatAreTheSameAreOneMesh) {
  const ProgramGraph graph = chainProgram({}).graph;
  const CompileOptions request = {.stageMeshes = "dp=2,tp=2;dp=2,tp=2"};
  EXPECT_THAT(gridsOf(graph, request), ElementsAre("2 x dp=2,tp=2", "2 x dp=2,tp=2 v2"));
  EXPECT_EQ(firstRequest(request, "dp=2,tp=2", 1, true).stageMeshes, "");
  EXPECT_EQ(firstRequest(request, "", 1, true).stageMeshes, request.stageMeshes);
}

TEST(PlanSpace, CutsTheBatchWhereNoRowIsPadded) {
  const ProgramGraph graph = chainProgram({.rows = 24}).graph;
  EXPECT_THAT(microBatchCounts(graph, {}, 2), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(microBatchCounts(graph, {.micro = 5}, 2), ElementsAre(5));
  EXPECT_THAT(microBatchCounts(graph, {}, 5), ElementsAre(1)) << "padded in any case";
}

// Levels of ZeRO above the first follow from it, so blocks are asked about at none of them; where no rank shares
// anything the level says nothing.
TEST(PlanSpace, FirstAsksAtTheFirstLevelOfZeroThatSavesMemory) {
  const auto levelOf = [](int level, bool shares) {
    const CompileOptions request = {.mode = Mode::kAuto, .devices = 4, .zero = level};
    return firstRequest(request, "dp=4", 1, shares).zeroLevel();
  };
  EXPECT_EQ(levelOf(kFindZero, true), 1);
  EXPECT_EQ(levelOf(kFindZero, false), 0);
  EXPECT_EQ(levelOf(0, true), 0);
  for (const int level : {1, 2, 3}) {
    EXPECT_EQ(levelOf(level, true), 1) << level;
    EXPECT_EQ(levelOf(level, false), level);
  }
}

TEST(PlanSpace, LevelsOfZeroThatARequestLeavesOpen) {
  const auto levels = [](const CompileOptions& request) {
    std::vector<std::string> words;
    for (const CompileOptions& each : atOpenLevels(request, firstRequest(request, "dp=4", 1, true))) {
      words.push_back(absl::StrCat(each.zeroLevel(), each.regather ? " regather" : ""));
    }
    return words;
  };
  EXPECT_THAT(levels({.mode = Mode::kAuto}), ElementsAre("0", "1", "2", "3", "3 regather"));
  EXPECT_THAT(levels({.mode = Mode::kAuto, .zero = 2}), ElementsAre("2"));
  EXPECT_THAT(levels({.mode = Mode::kAuto, .zero = 3}), ElementsAre("3", "3 regather"));
  EXPECT_THAT(levels({.mode = Mode::kAuto, .zero = 3, .regather = true}), ElementsAre("3 regather"));
  EXPECT_THAT(levels({.mode = Mode::kAuto, .zero = 3, .without = {Freedom::kGathers}}), ElementsAre("3"));
}

}  // namespace
}  // namespace weft::testing
