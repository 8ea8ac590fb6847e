#include "planner/search/user_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> textsOf(const std::vector<UserWord>& words) {
  std::vector<std::string> texts;
  for (const UserWord& word : words) {
    texts.push_back(word.text);
  }
  return texts;
}

UserStrategy splitOver(const std::string& axis, int64_t line) {
  UserStrategy strategy;
  strategy.byName = true;
  strategy.inNames = {{"", ""}, {"", axis}};
  strategy.line = {"model.cc", line, 1};
  return strategy;
}

// Three layers; their matmuls are h0.up, h1.up, h2.up.
ProgramGraph layers() {
  ProgramGraph graph = chainProgram({.layers = 3}).graph;
  for (int64_t layer = 0; layer < 3; ++layer) {
    graph.operators[2 * layer].name = "h" + std::to_string(layer) + ".up";
  }
  return graph;
}

TEST(UserWords, NothingIsSaidByDefault) {
  EXPECT_THAT(userWords({.mode = Mode::kAuto, .devices = 4, .memoryLimit = 1000}, layers(), 4), IsEmpty());
}

TEST(UserWords, OptionsOneByOne) {
  CompileOptions request;
  request.mesh = "dp=2,tp=2";
  request.micro = 4;
  request.zero = 0;
  request.schedule = "1f1b";
  request.virtualStages = 1;
  request.recompute = "full";
  request.regather = true;
  request.gatherBucket = 4096;
  request.offload = Offload::kState;
  request.maxStages = 2;
  request.stages = {{"w0", {0}}};
  request.zeroOf = {{"w0", 3}, {"w*", 1}};
  request.layouts = {{"w0", "[{tp},{}]"}, {"w1", "[{},{tp}]"}};
  const ProgramGraph graph = layers();
  const std::vector<UserWord> words = userWords(request, graph, 8);
  EXPECT_THAT(textsOf(words),
              ElementsAre("mesh dp=2,tp=2", "micro-batches 4", "ZeRO level 0", "schedule 1f1b",
                          "1 stages on each submesh", "recompute full", "regather", "buckets of gathers of 4096 bytes",
                          "offload state", "at most 2 stages", "stages of parameters", "ZeRO level 3 of w0",
                          "ZeRO level 1 of w*", "layout of w0 [{tp},{}]", "layout of w1 [{},{tp}]"));
  const PlanQuestion open = without(words, {graphForAll(graph), request});
  EXPECT_EQ(open.request.devices, 8) << "of the mesh";
  EXPECT_THAT(userWords(open.request, graph, 8), IsEmpty());
  EXPECT_THAT(textsOf(userWords(without({words[11]}, {graphForAll(graph), request}).request, graph, 8)),
              ::testing::Contains("layout of w1 [{},{tp}]"));
}

// What is said alike of layers at one line is one word; another axis, line or name is another word.
TEST(UserWords, LayersThatAreSaidAlikeAreOneWord) {
  ProgramGraph graph = layers();
  graph.operators[0].strategy = splitOver("tp", 7);
  graph.operators[2].strategy = splitOver("tp", 7);
  graph.operators[4].strategy = splitOver("dp", 7);
  graph.operators[1].constraint = graph.operators[3].constraint = "[{dp},{}]";
  graph.operators[1].name = "h0.act";
  graph.operators[3].name = "h1.act";
  graph.operators[1].line = {"model.cc", 9, 1};
  graph.operators[3].line = {"model.cc", 10, 1};
  graph.operators[4].recomputeScope = graph.operators[5].recomputeScope = 1;
  graph.operators[4].userStage = 1;
  const std::vector<UserWord> words = userWords({}, graph, 1);
  EXPECT_THAT(textsOf(words), ElementsAre("shard of h*.up (model.cc:7)", "constraint [{dp},{}] (model.cc:9)",
                                          "constraint [{dp},{}] (model.cc:10)", "shard of h*.up (model.cc:7)",
                                          "stages of the program", "recompute scopes of the program"));
  const PlanQuestion open = without({words[0], words[2]}, {graphForAll(graph), {}});
  const std::shared_ptr<const ProgramGraph> changed = *open.graphs(1);
  EXPECT_FALSE(changed->operators[0].strategy || changed->operators[2].strategy);
  EXPECT_TRUE(changed->operators[4].strategy);
  EXPECT_EQ(changed->operators[1].constraint, "[{dp},{}]");
  EXPECT_EQ(changed->operators[3].constraint, "");
  EXPECT_EQ(*open.graphs(2), changed) << "of the same graph the same";
}

}  // namespace
}  // namespace weft::testing
