// What a Trainer does beside training: going on from a file, ending early, divergence, inputs and parameters that are
// missing, and what it shows of its progress.
#include "weft/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/progress.h"
#include "runtime/base/random.h"
#include "tests/support/files.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

constexpr int64_t kBatch = 8;

// A net with a mask on its input, and dropout, whose random numbers follow the step.
Tensor buildNet(Graph& g, double rate, const std::string& prefix = "") {
  const Tensor x = g.input("x", {kBatch, 6});
  const Tensor mask = g.input("mask", {6}, kF32, {.batchDim = -1});
  const Tensor hidden = relu(matmul(x * mask, g.parameter(prefix + "w1", {6, 5}, Init::normal(0.5))));
  const Tensor y = matmul(rate > 0 ? dropout(hidden, rate) : hidden, g.parameter("w2", {5, 3}, Init::normal(0.5)));
  return mean(y * y);
}

Program training(const Optimizer& optimizer, const CompileOptions& options = {}) {
  Graph g;
  absl::StatusOr<Program> program = compile(g, buildNet(g, 0.2), optimizer, options);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

std::vector<float> rows(int64_t step) {
  std::vector<float> x(kBatch * 6);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = randomNormal({3, 1, static_cast<uint32_t>(step)}, i);
  }
  return x;
}

const FeedFunction kFeed = [](int64_t step, Feed& feed) { feed.write("x", rows(step)); };

std::string messageOf(const absl::Status& status) {
  return std::string(status.message());
}

TrainerOptions quiet() {
  return {.threadsPerRank = 1, .progress = false};
}

// A trainer whose mask is kept, as all tests but one want it.
struct Masked {
  explicit Masked(const Program& program, const TrainerOptions& options = quiet()) : trainer(program, options) {
    EXPECT_TRUE(trainer.status().ok()) << trainer.status();
    trainer.keepInput("mask", std::vector<float>{1, 1, 0, 1, 1, 1});
  }
  Trainer trainer;
};

std::vector<char> stateOf(Trainer& trainer) {
  std::vector<char> all;
  for (const plan::NamedTensor& tensor : trainer.executor().plan().tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER || tensor.kind() == plan::TENSOR_STATE) {
      const std::vector<char> bytes = *trainer.executor().readTensor(tensor.name());
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  }
  return all;
}

const optim::Groups kGroups = {{"w1", {.lrFactor = 0.5, .weightDecay = 0}}};
const Optimizer kOptimizers[] = {optim::AdamW{.lr = 0.01, .groups = kGroups},
                                 optim::Sgd{.momentum = 0.9},
                                 optim::Sgd{.momentum = 0.9, .dampening = 0.5},
                                 optim::Adagrad{.lrDecay = 0.1},
                                 optim::RmsProp{.momentum = 0.5, .centered = true, .groups = kGroups},
                                 optim::Lamb{},
                                 optim::Lion{.weightDecay = 0.1, .groups = kGroups},
                                 optim::Adafactor{.groups = kGroups}};

// 20 steps are 10, a file, and 10 in another trainer: data, dropout, moments and bias correction go on, to the bit.
TEST(Trainer, GoesOnWhereAFileWasSaved) {
  const TemporaryDirectory dir;
  for (const Optimizer& optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer.kind);
    const Program program = training(optimizer, {.devices = 2});
    Masked whole(program);
    ASSERT_TRUE(whole.trainer.fit(20, kFeed).ok());
    Masked first(program);
    ASSERT_TRUE(first.trainer.fit(10, kFeed).ok());
    ASSERT_TRUE(first.trainer.save(dir / "a", Saved::kAll).ok());
    Masked second(program);
    ASSERT_TRUE(second.trainer.load(dir / "a", Saved::kAll).ok());
    EXPECT_EQ(second.trainer.step(), 10);
    std::vector<int64_t> fed;
    ASSERT_TRUE(second.trainer
                    .fit(10,
                         [&](int64_t step, Feed& feed) {
                           fed.push_back(step);
                           kFeed(step, feed);
                         })
                    .ok());
    EXPECT_EQ(fed.front(), 10);
    EXPECT_EQ(second.trainer.step(), 20);
    std::vector<double> losses = first.trainer.losses();
    losses.insert(losses.end(), second.trainer.losses().begin(), second.trainer.losses().end());
    EXPECT_EQ(losses, whole.trainer.losses());
    EXPECT_EQ(stateOf(second.trainer), stateOf(whole.trainer));
    // Parameters alone are no place to go on from.
    Masked fresh(program);
    ASSERT_TRUE(first.trainer.save(dir / "b").ok() && fresh.trainer.load(dir / "b").ok());
    EXPECT_EQ(fresh.trainer.step(), 0);
  }
}

// State that ZeRO splits, by rows and columns where it is factored, is the same on one rank.
TEST(Trainer, StateGoesToAnotherMesh) {
  const TemporaryDirectory dir;
  for (const Optimizer& optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer.kind);
    Masked split(training(optimizer, {.mesh = "dp=2", .zero = 2}));
    ASSERT_TRUE(split.trainer.fit(3, kFeed).ok() && split.trainer.save(dir / "a", Saved::kAll).ok());
    Masked one(training(optimizer));
    const absl::Status loaded = one.trainer.load(dir / "a", Saved::kAll);
    ASSERT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(stateOf(one.trainer), stateOf(split.trainer));
    EXPECT_EQ(one.trainer.step(), 3);
  }
}

// A rate that is set holds for all optimizers, and at the factors of their groups: with 0 nothing moves.
TEST(Trainer, TheLearningRateIsSetForAStep) {
  const optim::Groups groups = {{"w1", {.lrFactor = 2}}};
  for (const Optimizer& optimizer :
       {Optimizer(optim::Sgd{.momentum = 0.9, .groups = groups}), Optimizer(optim::AdamW{.groups = groups}),
        Optimizer(optim::Adagrad{.lrDecay = 0.5, .groups = groups}), Optimizer(optim::RmsProp{.groups = groups}),
        Optimizer(optim::Lamb{.groups = groups}), Optimizer(optim::Lion{.weightDecay = 0.1, .groups = groups}),
        Optimizer(optim::Adafactor{.weightDecay = 0.1, .groups = groups})}) {
    SCOPED_TRACE(optimizer.kind);
    Masked run(training(optimizer, {.devices = 2}));
    const auto parameters = [&] {
      std::vector<char> all = *run.trainer.executor().readTensor("w1");
      const std::vector<char> more = *run.trainer.executor().readTensor("w2");
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    double rate = 0;
    const FeedFunction feed = [&](int64_t step, Feed& inputs) {
      kFeed(step, inputs);
      inputs.setLearningRate(rate);
    };
    const std::vector<char> before = parameters();
    ASSERT_TRUE(run.trainer.fit(2, feed).ok());
    EXPECT_EQ(parameters(), before);
    rate = 0.01;
    ASSERT_TRUE(run.trainer.fit(1, feed).ok());
    EXPECT_NE(parameters(), before);
  }
}

TEST(Trainer, TheProgramsLearningRateHolds) {
  const TemporaryDirectory dir;
  Masked before(training(optim::AdamW{.lr = 0.01}));
  ASSERT_TRUE(before.trainer.fit(3, kFeed).ok() && before.trainer.save(dir / "a", Saved::kAll).ok());
  const Program program = training(optim::AdamW{.lr = 0.002});
  Masked after(program, {.threadsPerRank = 1});
  ::testing::internal::CaptureStdout();
  const absl::Status loaded = after.trainer.load(dir / "a", Saved::kAll);
  const std::string said = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(said, "learning rate 0.002 of this program holds, not 0.01 of " + (dir / "a") + "\n");
  EXPECT_EQ(after.trainer.executor().readScalar("lr").value(), static_cast<double>(0.002F));
  EXPECT_EQ(after.trainer.step(), 3);
  ::testing::internal::CaptureStdout();
  Masked same(training(optim::AdamW{.lr = 0.01}), {.threadsPerRank = 1});
  EXPECT_TRUE(same.trainer.load(dir / "a", Saved::kAll).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(Trainer, SchedulesTheLearningRate) {
  const Program program = training(optim::Sgd{.lr = 0.5});
  Masked masked(program);
  Masked zero(program);
  const std::vector<char> before = *zero.trainer.executor().readTensor("w1");
  const auto standing = [](int64_t step, Feed& feed) {
    kFeed(step, feed);
    feed.setLearningRate(0);
  };
  ASSERT_TRUE(zero.trainer.fit(3, standing).ok());
  EXPECT_EQ(*zero.trainer.executor().readTensor("w1"), before);
  ASSERT_TRUE(masked.trainer.fit(3, kFeed).ok());
  EXPECT_NE(*masked.trainer.executor().readTensor("w1"), before);
  EXPECT_THAT(messageOf(masked.trainer.fit(1, [](int64_t, Feed& feed) { feed.write("lr", std::vector<float>{0.1F}); })),
              HasSubstr("'lr' is no input of this program, but the optimizer's learning rate; call setLearningRate"));
}

Program evaluation(const Program& trained, const std::string& prefix) {
  Graph g;
  g.output("loss.sum", buildNet(g, 0, prefix));  // a metric by hand
  g.output("loss.weight", g.full({}, 1));
  const absl::StatusOr<Program> program = compileForward(g, Tensor(), forwardOptions(trained, {}));
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

TEST(Trainer, EndsAfterTheStepItIsIn) {
  StopRequest stop;
  TrainerOptions options = quiet();
  options.stop = &stop;
  const Program program = training(optim::Sgd{});
  Masked masked(program, options);
  const absl::Status stopped = masked.trainer.fit(30, [&](int64_t step, Feed& feed) {
    kFeed(step, feed);
    if (step == 4) {
      stop.request(SIGTERM);
    }
  });
  EXPECT_TRUE(absl::IsCancelled(stopped));
  EXPECT_EQ(messageOf(stopped), "stopped by SIGTERM after step 5 of 30");
  EXPECT_EQ(masked.trainer.losses().size(), 5U);
  EXPECT_EQ(masked.trainer.fit(3, kFeed).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(masked.trainer.losses().size(), 5U) << "no step after the request";
  const Program forward = evaluation(program, "");
  EXPECT_TRUE(absl::IsCancelled(masked.trainer.evaluate(forward, 1, kFeed).status()));
}

TEST(Trainer, CountsSteps) {
  Masked masked(training(optim::Sgd{}));
  EXPECT_TRUE(masked.trainer.fit(0, kFeed).ok());
  EXPECT_EQ(messageOf(masked.trainer.fit(-1, kFeed)), "fit was asked for -1 steps; it takes 0 or more");
  EXPECT_TRUE(masked.trainer.losses().empty());
}

// Steps 0 and 1 are good, then x is infinite.
absl::Status diverge(Trainer& trainer) {
  return trainer.fit(5, [](int64_t step, Feed& feed) {
    std::vector<float> x = rows(step);
    x[0] = step < 2 ? x[0] : std::numeric_limits<float>::infinity();
    feed.write("x", x);
  });
}

TEST(Trainer, SaysWhenTheLossIsNotFinite) {
  const TemporaryDirectory dir;
  const Program program = training(optim::Sgd{.lr = 0.1});
  Masked masked(program);
  EXPECT_THAT(messageOf(diverge(masked.trainer)),
              AllOf(HasSubstr("the loss of step 3 is not finite (nan)"), HasSubstr("lower the learning rate")));
  EXPECT_EQ(masked.trainer.losses().size(), 3U);
  EXPECT_THAT(messageOf(masked.trainer.save(dir / "a")), HasSubstr("is not written, since training diverged"));
  EXPECT_TRUE(testing::namesIn(dir.path()).empty());
  EXPECT_TRUE(masked.trainer.save(dir / "a", Saved::kParameters, NonFiniteValues::kSave).ok());

  TrainerOptions onward = quiet();
  onward.stopAtNonFiniteLoss = false;
  Masked going(program, onward);
  EXPECT_TRUE(diverge(going.trainer).ok());
  EXPECT_EQ(going.trainer.losses().size(), 5U);
  EXPECT_TRUE(std::isnan(going.trainer.losses().back()));

  TrainerOptions checked = quiet();
  checked.checkFinite = true;
  Masked named(program, checked);
  EXPECT_THAT(messageOf(diverge(named.trainer)),
              AllOf(HasSubstr("rank 0, operator "), HasSubstr("trainer_test.cc:"), HasSubstr(" has nan at [")));
}

// One declaration of the mask serves both programs; a mistyped parameter is no fresh one.
TEST(Trainer, ForwardProgramsReadWhatWasTrained) {
  const Program program = training(optim::Sgd{});
  Masked masked(program);
  ASSERT_TRUE(masked.trainer.fit(2, kFeed).ok());
  const Program good = evaluation(program, "");
  EXPECT_TRUE(masked.trainer.evaluate(good, 2, kFeed).ok());
  const Program renamed = evaluation(program, "fc.");
  EXPECT_THAT(messageOf(masked.trainer.evaluate(renamed, 2, kFeed).status()),
              HasSubstr("has parameter 'fc.w1' on rank 0, the store has none of this name (nearest: 'w1')"));
  EXPECT_TRUE(masked.trainer.forward(renamed, {.allowNew = true}).ok());
  EXPECT_TRUE(masked.trainer.evaluate(renamed, 2, kFeed).ok());
}

TEST(Trainer, InputsAreWrittenInEveryStep) {
  const Program program = training(optim::Sgd{});
  Trainer bare(program, quiet());
  EXPECT_THAT(messageOf(bare.fit(1, kFeed)), HasSubstr("input 'mask' was not written since the last step"));
  Masked masked(program);
  const absl::Status status = masked.trainer.fit(3, [](int64_t step, Feed& feed) {
    if (step != 1) {
      kFeed(step, feed);
    }
  });
  EXPECT_THAT(messageOf(status), HasSubstr("input 'x' was not written since the last step"));
  EXPECT_EQ(masked.trainer.losses().size(), 1U);
}

TEST(Progress, ShowsStepsOfTheWholeRun) {
  EXPECT_EQ(Progress::text({10, 20, 40}, 15, 1.5, 2.5),
            "[#########...............] step 15/40  loss 1.5000  "
            "2.00 steps/s  13 s left");
  EXPECT_EQ(Progress::text({0, 1, 1}, 1, -std::nan(""), 0),
            "[########################] step 1/1  loss is not finite (nan)");
  EXPECT_THAT(Progress::text({0, 9000, 9000}, 1, 2e30, 1),
              AllOf(HasSubstr("loss 2e+30 "), HasSubstr("2 h 29 min left")));
  EXPECT_THAT(Progress::text({0, 200, 200}, 100, 1, 100), HasSubstr("1 min 40 s left"));
}

// A log, as standard output is here.
TEST(Progress, LogsHaveFewLines) {
  ::testing::internal::CaptureStdout();
  {
    Progress progress({100, 1100, 1100}, true);
    for (int64_t done = 101; done <= 1100; ++done) {
      progress.report(done, done == 300 || done == 301 ? std::nan("") : 1.0);
    }
  }
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 12) << log;
  EXPECT_THAT(log,
              AllOf(HasSubstr("step 300/1100  loss is not finite (nan)"), HasSubstr("step 1100/1100  loss 1.0000")));
  EXPECT_EQ(log.find("step 301"), std::string::npos);
  EXPECT_EQ(log.find('\r'), std::string::npos);
}

}  // namespace
}  // namespace weft
