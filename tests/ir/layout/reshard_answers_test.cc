// Answers that are shared between sizes are those of each size by itself, in whatever order they are asked for.
#include "ir/layout/reshard_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weft::reshard {
namespace {

// Eight ranks in three digits of two; a matrix whose ends are split by whole digits.
std::vector<Problem> problems() {
  const std::vector<Digits> splits = {{}, {{0, 1}}, {{1, 3}}, {{0, 3}}, {{2, 3}, {0, 1}}};
  std::vector<Problem> all;
  for (const Digits& from : splits) {
    for (const Digits& to : splits) {
      for (const Digits& partial : {Digits{}, Digits{{1, 2}}}) {
        Problem problem;
        problem.cuts = {1, 2, 4, 8};
        problem.sizes = {24, 16};
        problem.permuted = {8, 8};
        problem.from = {{from, {}}, {}};
        problem.to = {{{}, to}, {}};
        const bool isFree = from.empty() || from == Digits{{0, 1}};
        if (isFree) {
          problem.from.partial = partial;
        }
        all.push_back(problem);
      }
    }
  }
  return all;
}

TEST(ReshardAnswers, AreThoseOfEachSize) {
  Machine machine;
  machine.linkLatency = 2e-6;
  machine.launchLatency = 5e-6;
  const std::string key = pricesKey(machine);
  std::set<size_t> lengths;
  for (const bool rising : {true, false}) {
    for (const Problem& shape : problems()) {
      std::vector<int64_t> units = {1, 7, 100, 300, 4096, 65536, 70000, 999999};
      if (!rising) {
        std::reverse(units.begin(), units.end());
      }
      for (const int64_t unit : units) {
        Problem problem = shape;
        problem.unitBytes = unit;
        const Answer answer = answerOf(problem, machine, key);
        const Space space(problem, machine);
        EXPECT_EQ(answer.total.time, pathPrice(space, answer.path).time);
        EXPECT_NEAR(static_cast<double>(answer.total.time),
                    static_cast<double>(pathPrice(space, cheapestPath(space)).time), 16)
            << problem.key() << " with units of " << unit;
        lengths.insert(answer.path.size());
      }
    }
  }
  EXPECT_GT(lengths.size(), 2U) << "paths of several lengths were met";
}

// Machines that differ in a figure have answers of their own.
TEST(ReshardAnswers, DependOnTheMachine) {
  Machine slow;
  slow.linkBandwidth /= 2;
  EXPECT_NE(pricesKey(slow), pricesKey(Machine()));
  Problem problem = problems()[12];
  problem.unitBytes = 4096;
  EXPECT_LT(answerOf(problem, Machine(), pricesKey(Machine())).total.time,
            answerOf(problem, slow, pricesKey(slow)).total.time);
}

}  // namespace
}  // namespace weft::reshard
