// Random plans of a program as requests that say all: what a plan may be by docs/auto-mode.md, made without any code of
// the search.
//
// A plan is drawn as a mesh of two axes, a number of submeshes and of stages on each, a cut between two layers for each
// stage, micro-batches, schedule, ZeRO, recomputation, and the splits of operators: strategies of all, of half, of a
// few or of none of them, the rest by propagation or by price.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "planner/graph/program_graph.h"
#include "planner/request.h"

namespace weft::testing {

struct RandomPlan {
  int64_t submeshes = 1, virtualStages = 1, dp = 1, tp = 1, micro = 1;
  std::vector<size_t> first;  // of each stage but the first: its first layer, ascending
  int zero = 0;
  bool regather = false;
  std::string schedule = "auto";
  std::string recompute = "auto";
  bool byPrice = false;              // are splits that nothing says decided by price?
  std::map<int64_t, size_t> splits;  // of operators, by id: number of a strategy
};

struct PlanDomain {
  int64_t devices = 1;
  int64_t rows = 1;  // of the batch
};

class RandomPlans {
 public:
  // Where operators stand for each other in numbers of micro-batches, `graph` is that of any number.
  RandomPlans(const ProgramGraph& graph, const PlanDomain& domain, uint64_t seed);

  RandomPlan draw();
  // The same with one word changed.
  RandomPlan near(RandomPlan plan);
  // The plan on this program, the graph that was given or that of another number of micro-batches.
  ProgramGraph graphOf(const RandomPlan& plan, const ProgramGraph& program);
  CompileOptions optionsOf(const RandomPlan& plan, CompileOptions base) const;
  std::string textOf(const RandomPlan& plan);
  // Splits an operator by the strategy that textOf says so: "(dp||tp|) ()". False: it has none.
  bool split(RandomPlan& plan, int64_t id, const std::string& strategy);

 private:
  size_t below(size_t count) { return generator_() % count; }
  template <typename T>
  const T& oneOf(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  int64_t divisorOf(int64_t number);
  void drawGrid(RandomPlan& plan);
  void drawMicro(RandomPlan& plan);
  void drawSchedule(RandomPlan& plan);
  void drawZero(RandomPlan& plan);
  void drawRecompute(RandomPlan& plan);
  void drawSplits(RandomPlan& plan, int percent);
  void splitOne(RandomPlan& plan);
  const std::vector<std::vector<UserStrategy>>& strategiesOn(const RandomPlan& plan);

  ProgramGraph graph_;
  PlanDomain domain_;
  std::mt19937_64 generator_;
  std::vector<size_t> layerOf_;  // of each forward operator; of others 0
  size_t layers_ = 1;
  std::vector<std::string> kinds_;                                            // of forward operators
  std::map<std::string, std::vector<std::vector<UserStrategy>>> strategies_;  // by mesh, of each operator
};

}  // namespace weft::testing
