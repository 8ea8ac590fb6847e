// How long submeshes wait for the first micro-batch, held against all cuts of small chains.
#include "planner/cost/pipeline_idle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

const OperatorFacts kBias = {.kind = "add", .rule = "a b, 1 b -> a b"};

// So many layers, each 3 ps forward and 6 ps backward of each micro-batch on as many ranks as the mean submesh has.
class Chain {
 public:
  explicit Chain(int layers) : layers_(layers) {
    GraphValue value = b_.add(kBias, {b_.input("x", {64, 8}), b_.parameter("w", {1, 8})}, {64, 8});
    for (int i = 1; i < layers; ++i) {
      value = b_.add(kRelu, {value}, {64, 8});
    }
    for (int i = layers; i > 0; --i) {
      value = b_.add(kRelu, {value}, {64, 8});
      b_.last().phase = Phase::kBackward;
      b_.last().forward = i - 1;
    }
    b_.returns(value);
  }

  double leastStep(const PipelineIdle::Pipeline& pipeline) const {
    const GraphView view(b_.graph);
    const absl::StatusOr<LeastWork> work = LeastWork::of(view, Machine(), {});
    EXPECT_TRUE(work.ok()) << work.status();
    LeastWork::Times times;
    for (int op = 0; op < view.operators(); ++op) {
      const Picoseconds each = view.op(op).phase == Phase::kForward ? 3 : 6;
      times.ofOperator.push_back(static_cast<double>(each * pipeline.ranks * pipeline.microBatches));
      times.delays.push_back(pipeline.trades ? each * 2 / 3 : each);
      times.ofRanks += times.ofOperator.back();
    }
    return PipelineIdle(view, *work).leastStep(pipeline, times);
  }

  // The least of what submeshes with these ranks, as parts of those of the mean one, have to do after what they wait
  // for. `order`: the submesh of each stage.
  double leastOfAllCuts(const std::vector<size_t>& order, const std::vector<double>& ranks, double microBatches) const {
    double least = 1e18;
    std::vector<double> layers(order.size(), 0);
    const std::function<void(size_t, int)> cut = [&](size_t stage, int left) {
      if (stage + 1 == order.size()) {
        layers[stage] = left;
        least = std::min(least, step(order, ranks, layers, microBatches));
        return;
      }
      for (int mine = 0; mine <= left; ++mine) {
        layers[stage] = mine;
        cut(stage + 1, left - mine);
      }
    };
    cut(0, layers_);
    return least;
  }

 private:
  static double step(const std::vector<size_t>& order, const std::vector<double>& ranks,
                     const std::vector<double>& layers, double microBatches) {
    std::vector<double> work(ranks.size(), 0);
    for (size_t stage = 0; stage < order.size(); ++stage) {
      work[order[stage]] += 9 * microBatches * layers[stage] / ranks[order[stage]];
    }
    double longest = 0;
    double start = 0;
    for (size_t stage = 0; stage < order.size(); ++stage) {
      const double forward = 3 * layers[stage] / ranks[order[stage]];
      longest = std::max(longest, start + work[order[stage]]);
      work[order[stage]] -= microBatches * forward;  // what a second stage of the submesh need not wait for
      start += forward;
    }
    return longest;
  }

  GraphBuilder b_;
  int layers_;
};

constexpr double kRounding = 1 + 1e-9;

TEST(PipelineIdle, OneSubmeshDoesNotWait) {
  EXPECT_NEAR(Chain(4).leastStep({2, 2, 4, 1, false}), 4 * 9 * 4, 1e-6);
}

// With two submeshes the second has less to do by a forward pass of the first. Of very many layers that is the answer:
// the first has a part p of them, 3 m p = p + 3 m (1 - p).
TEST(PipelineIdle, LastSubmeshHasLess) {
  for (const int64_t count : {1, 2, 8}) {
    const auto m = static_cast<double>(count);
    const double all = 9 * 1000 * m;
    const double step = Chain(1000).leastStep({2, 4, count, 1, false});
    EXPECT_GT(step, all / 2);
    EXPECT_LE(step, all * 3 * m / (6 * m - 1));
    EXPECT_GT(step, all / 2 + 0.4 * (all * 3 * m / (6 * m - 1) - all / 2));
  }
}

TEST(PipelineIdle, NoCutIsShorter) {
  const Chain chain(12);
  for (const int64_t count : {1, 2, 3, 6}) {
    const auto m = static_cast<double>(count);
    const double one = chain.leastStep({2, 6, count, 1, false});
    EXPECT_GT(one, 12 * 9 * m / 3);
    EXPECT_LE(one, chain.leastOfAllCuts({0, 1, 2}, {1, 1, 1}, m) * kRounding);
    const double two = chain.leastStep({2, 6, count, 2, false});
    EXPECT_LE(two, one);
    for (const std::vector<size_t>& order : std::vector<std::vector<size_t>>{
             {0, 1, 2, 0, 1, 2}, {0, 1, 2, 2, 1, 0}, {0, 1, 2, 1, 2, 0}, {0, 1, 0, 2, 1, 2}, {0, 0, 1, 1, 2, 2}}) {
      EXPECT_LE(two, chain.leastOfAllCuts(order, {1, 1, 1}, m) * kRounding);
    }
  }
}

TEST(PipelineIdle, NoCutIsShorterWhereSubmeshesTrade) {
  const Chain chain(40);
  for (const int64_t count : {1, 2, 4}) {
    const auto m = static_cast<double>(count);
    const double step = chain.leastStep({2, 8, count, 1, true});
    for (const std::vector<double>& ranks : std::vector<std::vector<double>>{
             {1, 1, 1, 1}, {1.5, 0.5, 1, 1}, {0.5, 1.5, 0.5, 1.5}, {1.5, 1.5, 0.5, 0.5}, {1.5, 0.5, 1.5, 0.5}}) {
      EXPECT_LE(step, chain.leastOfAllCuts({0, 1, 2, 3}, ranks, m) * kRounding);
    }
    EXPECT_GT(step, 40 * 9 * m / 4);
  }
}

// The larger one of two has the first layers: then the bound is near the best cut.
TEST(PipelineIdle, TwoThatTradeAreNearTheBound) {
  const Chain chain(1000);
  const double step = chain.leastStep({2, 4, 1, 1, true});
  const double best = chain.leastOfAllCuts({0, 1}, {1.5, 0.5}, 1);
  EXPECT_LE(step, best * kRounding);
  EXPECT_LE(step, chain.leastOfAllCuts({0, 1}, {0.5, 1.5}, 1) * kRounding);
  EXPECT_GT(step, 0.93 * best);
}

TEST(PipelineIdle, NoCutIntoTwoStagesEachIsShorter) {
  const Chain chain(60);
  for (const int64_t count : {1, 2, 3, 4}) {
    const auto m = static_cast<double>(count);
    const double step = chain.leastStep({2, 4, count, 2, false});
    EXPECT_LE(step, chain.leastOfAllCuts({0, 1, 0, 1}, {1, 1}, m) * kRounding) << count;
    EXPECT_LE(step, chain.leastOfAllCuts({0, 1, 1, 0}, {1, 1}, m) * kRounding) << count;
  }
}

// With two stages a submesh begins earlier, but with few micro-batches it then runs out of forward passes.
TEST(PipelineIdle, SecondStagesAreLate) {
  const Chain chain(64);
  const double work = 64.0 * 9 * 8 / 8;
  EXPECT_GT(chain.leastStep({1, 8, 8, 2, false}), 1.01 * work);
  EXPECT_LT(chain.leastStep({1, 8, 8, 2, false}), chain.leastStep({1, 8, 8, 1, false}));
}

}  // namespace
}  // namespace weft::testing
