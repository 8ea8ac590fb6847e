// How long submeshes wait for the first micro-batch, held against all cuts of small chains.
#include "planner/cost/pipeline_idle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

const OperatorFacts kBias = {.kind = "add", .rule = "a b, 1 b -> a b"};
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kPrecision = 2e-4;  // of the bound

// What an operator takes for a micro-batch on as many ranks as the mean submesh has, and its gradient; in picoseconds.
struct Layer {
  Picoseconds forward = 3;
  Picoseconds backward = 6;
};

// The submesh of each stage, where the ranks of each are these parts of those of the mean one. Forward passes that
// others wait for are as short as on so many parts.
struct Stages {
  std::vector<size_t> submeshes;
  std::vector<double> ranks;
  double passing = 1;
};

Stages oneEach(size_t submeshes) {
  Stages stages = {std::vector<size_t>(submeshes), std::vector<double>(submeshes, 1)};
  std::iota(stages.submeshes.begin(), stages.submeshes.end(), 0);
  return stages;
}

Stages inV(size_t submeshes) {
  Stages stages = oneEach(submeshes);
  for (size_t k = submeshes; k > 0; --k) {
    stages.submeshes.push_back(k - 1);
  }
  return stages;
}

Stages inLoop(size_t submeshes) {
  Stages stages = oneEach(submeshes);
  for (size_t k = 0; k < submeshes; ++k) {
    stages.submeshes.push_back(k);
  }
  return stages;
}

class Chain {
 public:
  explicit Chain(std::vector<Layer> layers) : layers_(std::move(layers)) {
    value_ = b_.add(kBias, {b_.input("x", {64, 8}), b_.parameter("w", {1, 8})}, {64, 8});
    for (size_t i = 1; i < layers_.size(); ++i) {
      value_ = b_.add(kRelu, {value_}, {64, 8});
    }
    for (size_t i = layers_.size(); i > 0; --i) {
      value_ = b_.add(kRelu, {value_}, {64, 8});
      b_.last().phase = Phase::kBackward;
      b_.last().forward = static_cast<int64_t>(i) - 1;
    }
    b_.returns(value_);
  }
  explicit Chain(int layers) : Chain(std::vector<Layer>(layers)) {}

  // Stages have these blocks whole: of so many layers each.
  void cutEvery(size_t layers) { inBlock_ = layers; }

  // Of the parameter that the first layer reads: so long on as many ranks as the mean submesh has.
  void update(Picoseconds time, const OperatorFacts& facts = kRelu) {
    b_.updates({GraphValue::kArgument, 1}, b_.add(facts, {{GraphValue::kArgument, 1}}, {1, 8}));
    b_.last().phase = Phase::kUpdate;
    update_ = time;
  }

  double leastStep(int64_t submeshes, int64_t virtualStages, int64_t microBatches, double atMost = kInfinite) const {
    const Given given(*this);
    const LeastWork::Times times = timesOn(1, microBatches);
    return given.idle.leastStep({submeshes, virtualStages, 0, atMost}, {1, microBatches}, times);
  }

  double leastStepOfTrades(int64_t submeshes, int64_t microBatches) const {
    const Given given(*this);
    const LeastWork::Times half = timesOn(1, microBatches);
    const LeastWork::Times alike = timesOn(2, microBatches);
    const LeastWork::Times more = timesOn(3, microBatches);
    return given.idle.leastStepOfTrades({submeshes, 1, 0, kInfinite}, {2, microBatches},
                                        {half, alike, more, more.delays});
  }

  // The least of what submeshes have to do after what they wait for.
  double leastOfAllCuts(const Stages& stages, double microBatches) const {
    double least = kInfinite;
    std::vector<size_t> ends(stages.submeshes.size(), layers_.size());
    const std::function<void(size_t, size_t)> cut = [&](size_t stage, size_t begin) {
      if (stage + 1 == ends.size()) {
        least = std::min(least, step(stages, ends, microBatches));
        return;
      }
      for (ends[stage] = begin; ends[stage] <= layers_.size(); ends[stage] += inBlock_) {
        const size_t end = ends[stage];
        cut(stage + 1, end);
        ends[stage] = end;
      }
    };
    cut(0, 0);
    return least;
  }

 private:
  struct Given {
    explicit Given(const Chain& chain)
        : view(chain.b_.graph), work(*LeastWork::of(view, Machine(), {})), idle(view, work, chain.blockOf()) {}
    GraphView view;
    LeastWork work;
    PipelineIdle idle;
  };

  // That of the update is the first.
  std::vector<int> blockOf() const {
    std::vector<int> blocks;
    for (size_t op = 0; op < b_.graph.operators.size(); ++op) {
      const size_t layer = op < layers_.size() ? op : 2 * layers_.size() - 1 - std::min(op, 2 * layers_.size() - 1);
      blocks.push_back(static_cast<int>(layer / inBlock_));
    }
    return blocks;
  }

  // On submeshes with so many halves of the ranks of the mean one; of two, as layers say.
  LeastWork::Times timesOn(Picoseconds ranks, int64_t microBatches) const {
    LeastWork::Times times;
    for (size_t op = 0; op < 2 * layers_.size(); ++op) {
      const bool isForward = op < layers_.size();
      const Layer& layer = layers_[isForward ? op : 2 * layers_.size() - 1 - op];
      const Picoseconds each = isForward ? layer.forward : layer.backward;
      times.ofOperator.push_back(static_cast<double>(each * microBatches));
      times.delays.push_back(each / ranks);
      times.ofCall.push_back(each / ranks);
    }
    if (update_ > 0) {
      times.ofOperator.push_back(static_cast<double>(update_));
      times.delays.push_back(update_ / ranks);
      times.ofCall.push_back(update_ / ranks);
    }
    return times;
  }

  double step(const Stages& stages, const std::vector<size_t>& ends, double microBatches) const {
    std::vector<double> forward(ends.size(), 0);
    std::vector<double> work(stages.ranks.size(), 0);
    for (size_t stage = 0; stage < ends.size(); ++stage) {
      for (size_t i = stage == 0 ? 0 : ends[stage - 1]; i < ends[stage]; ++i) {
        const size_t submesh = stages.submeshes[stage];
        forward[stage] += static_cast<double>(layers_[i].forward);
        work[submesh] += microBatches * static_cast<double>(layers_[i].forward + layers_[i].backward);
      }
    }
    double longest = 0;
    double start = 0;
    for (size_t stage = 0; stage < ends.size(); ++stage) {
      const size_t submesh = stages.submeshes[stage];
      longest = forward[stage] > 0 ? std::max(longest, start + work[submesh] / stages.ranks[submesh]) : longest;
      work[submesh] -= microBatches * forward[stage];  // what a second stage of the submesh need not wait for
      start += forward[stage] / stages.passing;
    }
    return longest;
  }

  GraphBuilder b_;
  GraphValue value_;
  std::vector<Layer> layers_;
  size_t inBlock_ = 1;
  Picoseconds update_ = 0;
};

Chain randomChain(std::mt19937& random, size_t layers) {
  std::vector<Layer> made;
  for (size_t i = 0; i < layers; ++i) {
    made.push_back({std::uniform_int_distribution<Picoseconds>(1000000, 9000000)(random),
                    std::uniform_int_distribution<Picoseconds>(1000000, 30000000)(random)});
  }
  return Chain(std::move(made));
}

TEST(PipelineIdle, OneSubmeshDoesNotWait) {
  EXPECT_NEAR(Chain(4).leastStep(1, 2, 4), 4 * 9 * 4, 4 * 9 * 4 * kPrecision);
}

// With two submeshes the second has less to do by a forward pass of the first. Of very many layers that is the answer:
// the first has a part p of them, 3 m p = p + 3 m (1 - p).
TEST(PipelineIdle, LastSubmeshHasLess) {
  for (const int64_t count : {1, 2, 8}) {
    const auto m = static_cast<double>(count);
    const double best = 9 * 1000 * m * 3 * m / (6 * m - 1);
    EXPECT_NEAR(Chain(1000).leastStep(2, 1, count), best, best * 2e-3);
  }
}

// Of five layers one of two submeshes has three.
TEST(PipelineIdle, BlocksAreWhole) {
  EXPECT_NEAR(Chain(5).leastStep(2, 1, 100), 3 * 9 * 100, 3 * 9 * 100 * kPrecision);
  Chain pairs(8);
  pairs.cutEvery(2);
  EXPECT_NEAR(pairs.leastStep(3, 2, 100), 4 * 9 * 100, 4 * 9 * 100 * kPrecision);
  EXPECT_LT(Chain(8).leastStep(3, 2, 100), 3.5 * 9 * 100);
}

// An update takes its submesh that much longer, so others have more of the layers, but not for nothing: it comes after
// what they wait for, too.
TEST(PipelineIdle, UpdatesComeAfterAllMicroBatches) {
  Chain chain(1000);
  const double without = chain.leastStep(2, 1, 1);
  chain.update(1000);
  EXPECT_NEAR(chain.leastStep(2, 1, 1), without + 1000.0 / 2, without * 1e-3);
  Chain busy(4);
  busy.update(1000);
  EXPECT_NEAR(busy.leastStep(2, 1, 1), 9 + 1000, 1009 * kPrecision);
  Chain sums(4);
  OperatorFacts sum = kRelu;
  sum.isSum = true;
  sums.update(1000, sum);
  EXPECT_NEAR(sums.leastStep(2, 1, 1), Chain(4).leastStep(2, 1, 1) + 1000.0 / 2, 500 * kPrecision)
      << "other stages may have some of it";
}

// With few micro-batches a loop is the shortest, if its second stages begin early.
TEST(PipelineIdle, IsTheLeastOfAllCutsOfAlikeLayers) {
  for (const size_t submeshes : {2, 3}) {
    for (const int64_t count : {1, 2, 3, 4}) {
      for (const int layers : {9, 12, 13}) {
        const auto m = static_cast<double>(count);
        const double loop = Chain(layers).leastOfAllCuts(inLoop(submeshes), m);
        const double least = std::min({loop, Chain(layers).leastOfAllCuts(oneEach(submeshes), m),
                                       Chain(layers).leastOfAllCuts(inV(submeshes), m)});
        const double found = Chain(layers).leastStep(static_cast<int64_t>(submeshes), 2, count);
        EXPECT_NEAR(found, least, least * kPrecision) << submeshes << " submeshes, " << layers << " layers, " << count;
      }
    }
  }
}

TEST(PipelineIdle, IsTheLeastOfAllCuts) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const auto submeshes = std::uniform_int_distribution<size_t>(2, 3)(random);
    const int64_t count = std::uniform_int_distribution<int64_t>(1, 5)(random);
    Chain chain = randomChain(random, 2 * std::uniform_int_distribution<size_t>(2, 4)(random));
    if (round % 3 == 0) {
      chain.cutEvery(2);
    }
    const auto m = static_cast<double>(count);
    const double one = chain.leastOfAllCuts(oneEach(submeshes), m);
    EXPECT_LE(chain.leastStep(submeshes, 1, count), one) << round;
    EXPECT_GE(chain.leastStep(submeshes, 1, count), one * (1 - kPrecision)) << round;
    const double two =
        std::min({one, chain.leastOfAllCuts(inV(submeshes), m), chain.leastOfAllCuts(inLoop(submeshes), m)});
    EXPECT_LE(chain.leastStep(submeshes, 2, count), two) << round;
    EXPECT_GE(chain.leastStep(submeshes, 2, count), two * (1 - kPrecision)) << round;
    EXPECT_EQ(chain.leastStep(submeshes, 2, count, 0.9 * two), 0.9 * two) << round;
    // What is known before changes nothing.
    EXPECT_EQ(chain.leastStep(submeshes, 2, count, 1.07 * two), chain.leastStep(submeshes, 2, count)) << round;
  }
}

TEST(PipelineIdle, IsTheLeastOfAllCutsAndTrades) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const Chain chain = randomChain(random, 9);
    const int64_t count = std::uniform_int_distribution<int64_t>(1, 5)(random);
    double least = kInfinite;
    Stages stages = oneEach(4);
    stages.passing = 1.5;
    for (const std::vector<double>& ranks : std::vector<std::vector<double>>{{0.5, 0.5, 1.5, 1.5}, {0.5, 1, 1, 1.5}}) {
      stages.ranks = ranks;
      do {
        least = std::min(least, chain.leastOfAllCuts(stages, static_cast<double>(count)));
      } while (std::ranges::next_permutation(stages.ranks).found);
    }
    stages.ranks = {1, 1, 1, 1};
    least = std::min(least, chain.leastOfAllCuts(stages, static_cast<double>(count)));
    EXPECT_NEAR(chain.leastStepOfTrades(4, count), least / 2, least * kPrecision) << round;
  }
}

}  // namespace
}  // namespace weft::testing
