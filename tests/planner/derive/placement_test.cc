// Which stage operators run on where parameters have stages.
#include "planner/derive/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/derive/derive.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using ParameterStages = std::map<std::string, std::vector<int64_t>>;

// relu(relu(x table) w) table: two operators read the table, and nothing says where each relu runs.
GraphBuilder tied() {
  const Shape square = {8, 8};
  GraphBuilder b;
  const GraphValue table = b.parameter("table", square);
  GraphValue h = b.add(kRelu, {b.add(kMatmul, {b.input("x", square), table}, square)}, square);
  h = b.add(kRelu, {b.add(kMatmul, {h, b.parameter("w", square)}, square)}, square);
  b.returns(b.add(kMatmul, {h, table}, square));
  return b;
}

std::vector<int64_t> stagesWith(const ParameterStages& ofParameters) {
  const GraphBuilder program = tied();
  const absl::StatusOr<Stages> stages = assignStages(GraphView(program.graph), ofParameters);
  EXPECT_TRUE(stages.ok()) << stages.status();
  return stages.ok() ? stages->ofOperator : std::vector<int64_t>();
}

TEST(Placement, AReaderOfAParameterRunsOnOneOfItsStages) {
  EXPECT_THAT(stagesWith({{"w", {1}}}), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(stagesWith({{"table", {0, 2}}, {"w", {1}}}), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(stagesWith({{"table", {0, 1}}, {"w", {1}}}), ElementsAre(0, 0, 1, 1, 1));
}

TEST(Placement, AfterTheLastStageOfAParameterItsReadersRunWithWhatTheyRead) {
  EXPECT_THAT(stagesWith({{"table", {0, 1}}, {"w", {1, 2}}}), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(stagesWith({{"table", {0}}, {"w", {1}}}), ElementsAre(0, 0, 1, 1, 1));
}

TEST(Placement, TheRecordSaysWhichLaterStagesReadAParameter) {
  GraphBuilder program = tied();
  const std::vector<int64_t> stages = {0, 0, 1, 1, 2};
  for (size_t op = 0; op < stages.size(); ++op) {
    program.graph.operators[op].userStage = stages[op];
  }
  const absl::StatusOr<Derivation> made = deriveDecisions(program.graph, {}, {});
  ASSERT_TRUE(made.ok()) << made.status();
  const std::vector<ArgumentDecision>& arguments = made->decisions.arguments;
  EXPECT_EQ(arguments[0].name, "table");
  EXPECT_EQ(arguments[0].stage, 0);
  EXPECT_THAT(arguments[0].laterStages, ElementsAre(2));
  for (size_t i = 1; i < arguments.size(); ++i) {
    EXPECT_THAT(arguments[i].laterStages, IsEmpty()) << arguments[i].name;
  }
}

}  // namespace
}  // namespace weft::testing
