#include "planner/assign/strategy_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/planner/assign/random_graph.h"

namespace weft::testing {
namespace {

using assign::chooseStrategies;
using assign::parseStrategyGraph;
using assign::StrategyChoice;
using assign::StrategyGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file(const std::string& nodes, const std::string& edges, const std::string& rest = "") {
  return "{\"problem\":{\"nodes\":{" + nodes + "},\"edges\":{" + edges + "}" + rest + "}}";
}

constexpr char kNodes[] = R"("intervals":[[0,2],[1,3]],"costs":[[3,1],[0,2]],"usages":[[4,9],[2,2]])";
constexpr char kEdges[] = R"("nodes":[[0,1]],"costs":[[0,5,5,0]])";

std::string errorOf(const std::string& text) {
  const absl::StatusOr<StrategyGraph> graph = parseStrategyGraph(text);
  return graph.ok() ? "accepted" : std::string(graph.status().message());
}

StrategyChoice choiceOf(const std::string& text) {
  const absl::StatusOr<StrategyGraph> graph = parseStrategyGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<StrategyChoice> choice = chooseStrategies(*graph, 1);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return *choice;
}

// Does the choice fit, by a count of its own?
void expectTrue(const StrategyGraph& graph, const StrategyChoice& choice) {
  ASSERT_TRUE(choice.feasible);
  std::map<int64_t, int64_t> change;
  double cost = 0;
  for (size_t v = 0; v < graph.nodes(); ++v) {
    cost += graph.costs.of(v)[choice.strategies[v]];
    if (graph.intervals.of(v)[0] < graph.intervals.of(v)[1]) {
      change[graph.intervals.of(v)[0]] += graph.usages.of(v)[choice.strategies[v]];
      change[graph.intervals.of(v)[1]] -= graph.usages.of(v)[choice.strategies[v]];
    }
  }
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    const int64_t* ends = graph.edges.of(e);
    cost +=
        graph.edgeCosts.of(e)[choice.strategies[ends[0]] * graph.costs.sizeOf(ends[1]) + choice.strategies[ends[1]]];
  }
  EXPECT_EQ(cost, choice.cost);
  EXPECT_LE(choice.bound, choice.cost);
  int64_t used = 0;
  for (const auto& [time, usage] : change) {
    used += usage;
    EXPECT_LE(used, graph.usageLimit.value_or(INT64_MAX)) << "at " << time;
  }
}

TEST(StrategyGraph, IsSolved) {
  const StrategyChoice free = choiceOf(file(kNodes, kEdges));
  EXPECT_THAT(free.strategies, ElementsAre(0, 0));
  EXPECT_EQ(free.cost, 3);
  EXPECT_EQ(free.bound, 3);
  EXPECT_EQ(free.gap, 0);
  EXPECT_EQ(free.peakUsage, 6);
  EXPECT_FALSE(choiceOf(file(kNodes, kEdges, ",\"usage_limit\":5")).feasible);
  EXPECT_TRUE(choiceOf(file(kNodes, kEdges, ",\"usage_limit\":5")).provenInfeasible);
  EXPECT_EQ(choiceOf(file(kNodes, kEdges, ",\"usage_limit\":6")).cost, 3);
}

TEST(StrategyGraph, ForbiddenPairsAreNotTaken) {
  const std::string edges = R"("nodes":[[0,1]],"costs":[[1e18,5,1000000000000000000,1e16]])";
  EXPECT_THAT(choiceOf(file(kNodes, edges)).strategies, ElementsAre(0, 1));
  EXPECT_TRUE(choiceOf(file(kNodes, R"("nodes":[[0,1]],"costs":[[1e18,1e18,1e18,1e15]])")).provenInfeasible);
}

TEST(StrategyGraph, FractionsNegativeCostsAndLoops) {
  const StrategyChoice choice =
      choiceOf(file(kNodes, R"("nodes":[[0,1],[1,0],[0,0]],"costs":[[0,-2.5,5,0],[0,0,0,0.1],[7,9,9,0]])"));
  EXPECT_THAT(choice.strategies, ElementsAre(1, 1));
  EXPECT_DOUBLE_EQ(choice.cost, 1 + 2 + 0.1);
  EXPECT_NEAR(choice.bound, choice.cost, 1e-6);  // costs of the solver are multiples of a small part of them
}

// Empty intervals are never live; who dies when another one is born is not beside it.
TEST(StrategyGraph, IntervalsAreHalfOpen) {
  const std::string nodes = R"("intervals":[[0,2],[2,3],[7,7]],"costs":[[0],[0],[0]],"usages":[[5],[5],[50]])";
  EXPECT_TRUE(choiceOf(file(nodes, R"("nodes":[],"costs":[])", ",\"usage_limit\":5")).feasible);
  EXPECT_FALSE(choiceOf(file(nodes, R"("nodes":[],"costs":[])", ",\"usage_limit\":4")).feasible);
}

TEST(StrategyGraph, NamesThatItDoesNotKnowArePassedOver) {
  const std::string text = R"({"solution":[1,{"costs":[]}],"problem":{"name":"A","edges":{"nodes":[],"x":{"y":[null]},
    "costs":[]},"usage_limit":null,"nodes":{)" +
                           std::string(kNodes) + "}}}";
  EXPECT_EQ(choiceOf(text).cost, 1);
}

TEST(StrategyGraph, ErrorsNameThePlace) {
  EXPECT_EQ(errorOf("[]"), "the file: found a list, expected an object");
  EXPECT_EQ(errorOf("{}"), "problem: missing");
  EXPECT_EQ(errorOf(R"({"problem":3})"), "problem: found 3, expected an object");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":[]}})"), "nodes: found a list, expected an object");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":{"costs":{}}}})"),
            "nodes.costs: found an object, expected a list of lists of numbers");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":{"costs":[[1],2]}}})"),
            "nodes.costs[1]: found 2, expected a list of numbers");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":{"costs":[[1],[2,"x"]]}}})"),
            "nodes.costs[1][1]: found a text, expected a number");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":{"usages":[[1],[2,[]]]}}})"),
            "nodes.usages[1][1]: found a list, expected a number");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":{"usages":[[1.5]]}}})"),
            "nodes.usages[0][0]: found 1.5, expected an integer of 64 bits");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":{"costs":[],"costs":[]}}})"), "nodes.costs: stands twice in the file");
  EXPECT_EQ(errorOf(R"({"problem":{"usage_limit":-1}})"),
            "usage_limit: found -1, expected an integer of at least 0; leave it out for none");
  EXPECT_EQ(errorOf(R"({"problem":{"usage_limit":"1"}})"), "usage_limit: found a text, expected an integer");
  EXPECT_EQ(errorOf(R"({"problem":{"nodes":{"costs":[[-1e15]]}}})"),
            "nodes.costs[0][0]: found -1e+15, expected a cost above -1e+15");
}

TEST(StrategyGraph, ErrorsOfFilesThatAreNoJson) {
  const std::string whole = file(kNodes, kEdges, ",\"usage_limit\":5");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(errorOf(whole.substr(0, length)), HasSubstr("no JSON: ")) << length;
  }
  EXPECT_THAT(errorOf(whole.substr(0, 50)), HasSubstr("cut short"));
  EXPECT_THAT(errorOf(R"({"problem":{"nodes":{"costs":[[NaN]]}}})"), HasSubstr("no JSON: "));
  EXPECT_THAT(errorOf(R"({"problem":{"nodes":{"costs":[[1e999]]}}})"), HasSubstr("no JSON: "));
  EXPECT_THAT(errorOf("{\"x\":" + std::string(100, '[')), HasSubstr("nested"));
}

TEST(StrategyGraph, ErrorsOfListsThatDisagree) {
  EXPECT_EQ(errorOf(file(R"("intervals":[],"costs":[],"usages":[])", kEdges)), "nodes.costs: no nodes");
  EXPECT_EQ(errorOf(file(R"("intervals":[[0,1]],"costs":[[1],[2]],"usages":[[1],[1]])", kEdges)),
            "nodes: 2 lists of costs, but 2 of usages and 1 intervals; each node needs one of each");
  EXPECT_EQ(errorOf(file(R"("intervals":[[0,1],[0,1]],"costs":[[1],[2,3]],"usages":[[1],[1,2,3]])", kEdges)),
            "nodes.costs[1]: 2 costs, but usages[1] has 3 entries; each strategy needs both");
  EXPECT_EQ(errorOf(file(R"("intervals":[[0,1]],"costs":[[]],"usages":[[]])", kEdges)),
            "nodes.costs[0]: no strategies; a node needs at least one");
  EXPECT_EQ(errorOf(file(R"("intervals":[[0,1,2]],"costs":[[1]],"usages":[[1]])", kEdges)),
            "nodes.intervals[0]: 3 entries, expected [begin, end]");
  EXPECT_EQ(errorOf(file(R"("intervals":[[-4,1]],"costs":[[1]],"usages":[[1]])", kEdges)),
            "nodes.intervals[0]: begins at -4, expected a time of at least 0");
  EXPECT_EQ(errorOf(file(R"("intervals":[[0,1]],"costs":[[1]],"usages":[[-1]])", kEdges)),
            "nodes.usages[0][0]: found -1, expected at least 0");
  EXPECT_EQ(errorOf(file(kNodes, R"("nodes":[[0,1]],"costs":[])")),
            "edges: 1 pairs of nodes, but 0 lists of costs; each edge needs both");
  EXPECT_EQ(errorOf(file(kNodes, R"("nodes":[[0,1,1]],"costs":[[]])")), "edges.nodes[0]: 3 nodes, expected two");
  EXPECT_EQ(errorOf(file(kNodes, R"("nodes":[[0,2]],"costs":[[]])")),
            "edges.nodes[0]: names node 2, but the nodes are 0 to 1");
  EXPECT_EQ(errorOf(file(kNodes, R"("nodes":[[0,1]],"costs":[[1,2,3]])")),
            "edges.costs[0]: 3 costs, expected 2 x 2, the strategies of nodes 0 and 1");
}

TEST(StrategyGraph, UsagesBeyond64BitsAreRefused) {
  const std::string nodes =
      R"("intervals":[[0,2],[0,2]],"costs":[[0],[0]],"usages":[[4000000000000000000],[4000000000000000000]])";
  const absl::StatusOr<StrategyGraph> graph =
      parseStrategyGraph(file(nodes, R"("nodes":[],"costs":[])", ",\"usage_limit\":5000000000000000000"));
  ASSERT_TRUE(graph.ok());
  EXPECT_THAT(std::string(chooseStrategies(*graph, 1).status().message()), HasSubstr("larger unit"));
}

// What is printed is read again as it was.
TEST(StrategyGraph, RandomOnesFitWhereOneThatFitsWasPlanted) {
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    RandomGraphOptions options;
    options.seed = seed;
    options.nodes = 200 + static_cast<int>(seed) * 5;
    options.followers = seed % 2 == 0 ? 0.7 : 0;
    options.tightness = 0.25 * static_cast<double>(seed % 5);
    const RandomGraph made = randomGraph(options);
    const absl::StatusOr<StrategyGraph> graph = parseStrategyGraph(printStrategyGraph(made.graph));
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(printStrategyGraph(*graph), printStrategyGraph(made.graph));
    const absl::StatusOr<StrategyChoice> choice = chooseStrategies(*graph, 0.01);
    ASSERT_TRUE(choice.ok());
    expectTrue(*graph, *choice);
    EXPECT_LT(choice->gap, 0.15) << seed;
  }
}

}  // namespace
}  // namespace weft::testing
