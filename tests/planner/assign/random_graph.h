// Strategy graphs as compilers of irregular programs would write them, from a seed.
//
// Operators in order, each reading a few of those before it, mostly late ones. A strategy is a layout: what an operator
// costs and takes depends on how many parts its layout makes, and an edge costs what it takes to change the layout of
// what passes along it, nothing where both ends agree. Some pairs cannot be. Followers have their reader's layouts and
// no choice beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/assign/strategy_graph.h"

namespace weft::testing {

struct RandomGraphOptions {
  int nodes = 1000;
  double followers = 0.0;  // part of the nodes
  double tightness = 0.5;  // of the memory: 0 is what a random plan takes, 1 what the leanest strategies do
  bool limited = true;
  double forbidden = 0.04;  // part of the pairs of an edge
  uint64_t seed = 1;
};

struct RandomGraph {
  assign::StrategyGraph graph;
  std::vector<int> planted;  // a plan that fits: its greatest usage is the limit
};

RandomGraph randomGraph(const RandomGraphOptions& options);

// As a file of the contest.
std::string printStrategyGraph(const assign::StrategyGraph& graph);

}  // namespace weft::testing
