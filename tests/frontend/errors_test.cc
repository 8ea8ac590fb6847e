// Bad input: each mistake gets an error with the user's own line, both values and what to do; nothing crashes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/common/flags.h"
#include "weft/weft.h"

namespace weft {
namespace {

using testing::HasSubstr;

// The error of a graph that `build` makes and compiles on `options`; build returns the loss.
template <typename Build>
std::string errorOf(const Build& build, const CompileOptions& options = {}) {
  Graph g;
  const Tensor loss = build(g);
  const absl::StatusOr<Program> program = compile(g, loss, optim::Sgd{}, options);
  return program.ok() ? "" : std::string(program.status().message());
}

// "errors_test.cc:LINE" of the line after which it is called.
std::string line(int number) {
  return "errors_test.cc:" + std::to_string(number);
}

Tensor lossOf(const Tensor& x) {
  return mean(mul(x, x));
}

TEST(ImageErrorTest, ChannelsAndWindowsShowTheLineAndBothSizes) {
  const int at = __LINE__ + 4;
  const std::string channels = errorOf([](Graph& g) {
    const Tensor x = g.input("x", {4, 3, 8, 8});
    const Tensor w = g.parameter("w", {6, 1, 3, 3});
    return lossOf(conv2d(x, w));
  });
  EXPECT_THAT(channels, HasSubstr(line(at)));
  EXPECT_THAT(channels,
              HasSubstr("x is f32 [4, 3, 8, 8] with 3 channels, weight f32 [6, 1, 3, 3] takes 1 in each of 1 groups"));
  const std::string window = errorOf(
      [](Graph& g) { return lossOf(mul(maxPool2d(g.input("x", {4, 3, 8, 8}), {9, 2}), g.parameter("w", {1}))); });
  EXPECT_THAT(window, HasSubstr("a window of [9, 2] is larger than the image 4x3x8x8xf32"));
}

TEST(ShardErrorTest, SplitDoesNotDivide) {
  const int at = __LINE__ + 4;
  const std::string error = errorOf(
      [](Graph& g) {
        Tensor y = matmul(g.input("x", {6, 8}), g.parameter("w", {8, 10}));
        y.shard({{4, 1}, {1, 1}});
        return lossOf(y);
      },
      {.devices = 4});
  EXPECT_THAT(error, HasSubstr(line(at)));
  EXPECT_THAT(error, HasSubstr("6"));
  EXPECT_THAT(error, HasSubstr("4"));
  EXPECT_THAT(error, HasSubstr("nearest legal split"));
}

TEST(ShardErrorTest, WrongNumberOfOperands) {
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{2, 1}, {1, 1}, {1, 1}}));
      },
      {.devices = 2});
  EXPECT_THAT(error, HasSubstr("3 operands, the operator 2"));
}

TEST(ShardErrorTest, WrongNumberOfDimensions) {
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{2, 1, 1}, {1, 1}}));
      },
      {.devices = 2});
  EXPECT_THAT(error, HasSubstr("3 entries, the tensor 2 dimensions"));
}

TEST(ShardErrorTest, EmptyBraces) {
  const std::string error =
      errorOf([](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({})); },
              {.devices = 2});
  EXPECT_THAT(error, HasSubstr("the strategy says nothing"));
}

TEST(ShardErrorTest, SplitBelowOne) {
  const std::string error = errorOf(
      [](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{0, 1}, {1, 1}})); },
      {.devices = 2});
  EXPECT_THAT(error, HasSubstr("0 parts"));
}

TEST(ShardErrorTest, NamesAndNumbersMixed) {
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{2, 1}, {"tp", ""}}));
      },
      {.devices = 2});
  EXPECT_THAT(error, HasSubstr("mixes numbers of parts and axis names"));
}

TEST(ShardErrorTest, ContradictorySplitsOfOneFactor) {
  const std::string error = errorOf(
      [](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{1, 2}, {4, 1}})); },
      {.devices = 4});
  EXPECT_THAT(error, HasSubstr("2"));
  EXPECT_THAT(error, HasSubstr("4"));
}

TEST(ShardErrorTest, ContradictoryNames) {
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{"", "dp"}, {"tp", ""}}));
      },
      {.mesh = "dp=2,tp=2"});
  EXPECT_THAT(error, HasSubstr("dimension 'k'"));
  EXPECT_THAT(error, HasSubstr("write the same axes in both"));
}

TEST(ShardErrorTest, SecondStrategy) {
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(
            matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{2, 1}, {1, 1}}).shard({{1, 1}, {1, 2}}));
      },
      {.devices = 2});
  EXPECT_THAT(error, HasSubstr("another strategy already"));
}

TEST(ShardErrorTest, MorePartsThanRanks) {
  const std::string error = errorOf(
      [](Graph& g) { return lossOf(matmul(g.input("x", {8, 8}), g.parameter("w", {8, 8})).shard({{4, 1}, {1, 4}})); },
      {.devices = 8});
  EXPECT_THAT(error, HasSubstr("16"));
  EXPECT_THAT(error, HasSubstr("8"));
}

TEST(ShardErrorTest, UnknownAxis) {
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{"dq", ""}, {"", ""}}));
      },
      {.mesh = "dp=2,tp=2"});
  EXPECT_THAT(error, HasSubstr("dq"));
  EXPECT_THAT(error, HasSubstr("dp"));
}

TEST(ShardErrorTest, AxisUsedTwice) {
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})).shard({{"dp", "dp"}, {"dp", ""}}));
      },
      {.mesh = "dp=2,tp=2"});
  EXPECT_THAT(error, HasSubstr("dp"));
}

TEST(ShardErrorTest, WholeFactor) {
  const std::string error = errorOf(
      [](Graph& g) { return lossOf(softmax(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4}))).shard({{1, 2}})); },
      {.devices = 2});
  EXPECT_THAT(error, HasSubstr("whole"));
}

TEST(ShardErrorTest, InputHasNoOperator) {
  const std::string error =
      errorOf([](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}).shard({{2, 1}}), g.parameter("w", {8, 4}))); });
  EXPECT_THAT(error, HasSubstr("no operator to shard"));
}

TEST(LayoutErrorTest, BadLayoutText) {
  const std::string error = errorOf(
      [](Graph& g) { return lossOf(constrain(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})), "[{dp},{")); },
      {.mesh = "dp=2"});
  EXPECT_THAT(error, HasSubstr("errors_test.cc"));
}

TEST(LayoutErrorTest, ConstraintDoesNotDivide) {
  const std::string error = errorOf(
      [](Graph& g) { return lossOf(constrain(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 5})), "[{},{tp}]")); },
      {.mesh = "tp=2"});
  EXPECT_THAT(error, HasSubstr("5"));
}

TEST(LayoutErrorTest, ParameterPatternWithWrongDimensions) {
  CompileOptions options;
  options.mesh = "tp=2";
  options.layouts = {{"w", "[{tp}]"}};
  const std::string error =
      errorOf([](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4}))); }, options);
  EXPECT_THAT(error, HasSubstr("'w'"));
  EXPECT_THAT(error, HasSubstr("1 dimensions, the parameter 2"));
}

TEST(LayoutErrorTest, ParameterThatDoesNotDivide) {
  CompileOptions options;
  options.mesh = "tp=2";
  options.layouts = {{"w", "[{},{tp}]"}};
  const std::string error =
      errorOf([](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 61}))); }, options);
  EXPECT_THAT(error, HasSubstr("61"));
}

TEST(GraphErrorTest, MatmulShapes) {
  const int at = __LINE__ + 2;
  const std::string error =
      errorOf([](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {9, 4}))); });
  EXPECT_THAT(error, HasSubstr(line(at)));
  EXPECT_THAT(error, HasSubstr("8"));
  EXPECT_THAT(error, HasSubstr("9"));
}

TEST(GraphErrorTest, BroadcastShapes) {
  EXPECT_THAT(errorOf([](Graph& g) { return lossOf(add(g.input("x", {4, 8}), g.parameter("w", {3}))); }),
              HasSubstr("errors_test.cc"));
}

TEST(GraphErrorTest, ReshapeElements) {
  EXPECT_THAT(errorOf([](Graph& g) { return lossOf(reshape(g.input("x", {4, 8}), {5, 7})); }),
              HasSubstr("32 elements"));
}

TEST(GraphErrorTest, NameTwice) {
  EXPECT_THAT(errorOf([](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("x", {8, 4}))); }),
              HasSubstr("named 'x' already"));
}

TEST(GraphErrorTest, EmptyDimension) {
  EXPECT_THAT(errorOf([](Graph& g) { return lossOf(g.input("x", {4, 0})); }), HasSubstr("size 0"));
}

TEST(GraphErrorTest, LossIsNoScalar) {
  EXPECT_THAT(errorOf([](Graph& g) { return matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})); }),
              HasSubstr("float scalar"));
}

TEST(GraphErrorTest, HeadsDoNotDivide) {
  EXPECT_THAT(errorOf([](Graph& g) { return lossOf(nn::TransformerBlock(g, "h0", 30, 4)(g.input("x", {2, 4, 30}))); }),
              HasSubstr("30 is not a multiple of 4 heads"));
}

TEST(GraphErrorTest, TensorOfAnotherGraph) {
  Graph other;
  const Tensor foreign = other.input("f", {4, 8});
  EXPECT_THAT(errorOf([&](Graph& g) { return lossOf(add(g.input("x", {4, 8}), foreign)); }), HasSubstr("another one"));
}

TEST(GraphErrorTest, FileShape) {
  EXPECT_THAT(
      errorOf([](Graph& g) {
        return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4}, Init::zeros(), {.fileShape = {30}})));
      }),
      HasSubstr("file shape 30"));
}

// The error of one step of a classifier of 6 classes, with class-split logits on tp, that is fed by `fill`.
std::string stepErrorOf(const std::string& mesh, const FeedFunction& fill) {
  Graph g;
  const Tensor ids = g.input("ids", {4}, kI32);
  const Tensor labels = g.input("labels", {4}, kI32);
  const Tensor h = embedding(g.parameter("table", {10, 8}), ids);
  Tensor logits = matmul(h, g.parameter("w", {8, 6}));
  if (mesh.find("tp") != std::string::npos) {
    logits.shard({{"", ""}, {"", "tp"}});
  }
  CompileOptions options;
  options.mesh = mesh;
  const absl::StatusOr<Program> program = compile(g, mean(softmaxCrossEntropy(logits, labels)), optim::Sgd{}, options);
  if (!program.ok()) {
    return "does not compile: " + std::string(program.status().message());
  }
  Trainer trainer(*program, {.threadsPerRank = 1, .progress = false});
  return std::string(trainer.fit(1, fill).message());
}

FeedFunction feedOf(const std::vector<int32_t>& ids, const std::vector<int32_t>& labels) {
  return [=](int64_t, Feed& feed) {
    feed.write("ids", ids);
    feed.write("labels", labels);
  };
}

TEST(DataErrorTest, GoodDataIsTaken) {
  EXPECT_EQ(stepErrorOf("dp=2", feedOf({0, 1, 2, 9}, {0, 1, 2, 5})), "");
  EXPECT_EQ(stepErrorOf("tp=2", feedOf({0, 1, 2, 9}, {0, 1, 2, 5})), "");
}

TEST(DataErrorTest, LabelOutOfRange) {
  for (const char* mesh : {"dp=2", "tp=2"}) {  // on tp the loss is expanded over split classes
    const std::string error = stepErrorOf(mesh, feedOf({0, 1, 2, 3}, {0, 1, 2, 6}));
    EXPECT_THAT(error, HasSubstr("label 6")) << mesh;
    EXPECT_THAT(error, HasSubstr("outside 0..5")) << mesh;
    EXPECT_THAT(error, HasSubstr("errors_test.cc:")) << mesh;
    EXPECT_THAT(error, HasSubstr("rank ")) << mesh;
  }
}

TEST(DataErrorTest, IdOutOfRange) {
  const std::string error = stepErrorOf("dp=2", feedOf({0, -1, 2, 3}, {0, 1, 2, 5}));
  EXPECT_THAT(error, HasSubstr("id -1"));
  EXPECT_THAT(error, HasSubstr("outside 0..9"));
}

TEST(DataErrorTest, FeedOfWrongSize) {
  const std::string error = stepErrorOf("dp=2", feedOf({0, 1, 2}, {0, 1, 2, 5}));
  EXPECT_THAT(error, HasSubstr("'ids'"));
  EXPECT_THAT(error, HasSubstr("12"));
  EXPECT_THAT(error, HasSubstr("16"));
}

TEST(DataErrorTest, FeedOfAnUnknownName) {
  const std::string error =
      stepErrorOf("dp=2", [](int64_t, Feed& feed) { feed.write("image", std::vector<int32_t>{0, 1, 2, 3}); });
  EXPECT_THAT(error, HasSubstr("'image'"));
  EXPECT_THAT(error, HasSubstr("ids"));
}

// x w0 w1 w2 with each product on the stage of the list.
std::string stagesError(const std::vector<int>& stages, const CompileOptions& options = {}) {
  return errorOf(
      [&](Graph& g) {
        Tensor x = g.input("x", {8, 4});
        for (size_t i = 0; i < stages.size(); ++i) {
          const Scope stage = g.stage(stages[i]);
          x = tanh(matmul(x, g.parameter("w" + std::to_string(i), {4, 4}, Init::normal(1.0))));
        }
        return lossOf(x);
      },
      options);
}

TEST(StageErrorTest, LaterStageIsRead) {
  const std::string error = stagesError({0, 2, 1});
  EXPECT_THAT(error, HasSubstr("is on stage 1, but reads a value of stage 2"));
  EXPECT_THAT(error, HasSubstr("put it on stage 2 or later"));
  EXPECT_THAT(error, HasSubstr("errors_test.cc:"));
}

TEST(StageErrorTest, StageWithoutOperators) {
  EXPECT_THAT(stagesError({0, 2, 2}), HasSubstr("no operator is on stage 1, but some are on stage 2"));
  EXPECT_THAT(stagesError({0, -1, 2}), HasSubstr("is on stage -1; stages are 0, 1, ..."));
}

TEST(StageErrorTest, ManyStagesWithoutOperators) {
  EXPECT_THAT(stagesError({1, 5, 5}), HasSubstr("no operator is on stage 0, 2 to 4, but some are on stage 5"));
}

TEST(ScheduleErrorTest, UnknownKind) {
  CompileOptions options;
  options.schedule = "zb_h3";
  const std::string error = stagesError({0, 1, 1}, options);
  EXPECT_THAT(error, HasSubstr("zb_h3"));
  EXPECT_THAT(error, HasSubstr("zb_h1"));
}

TEST(ScheduleErrorTest, TooFewMicroBatches) {
  CompileOptions options;
  options.schedule = "dualpipe_v";
  options.micro = 2;
  EXPECT_THAT(stagesError({0, 1, 2, 3}, options), HasSubstr("at least two micro-batches per rank"));
}

TEST(ScheduleErrorTest, StagesDoNotDivide) {
  CompileOptions options;
  options.schedule = "zb_v";
  EXPECT_THAT(stagesError({0, 1, 2}, options), HasSubstr("3 stages do not divide into submeshes of 2"));
}

TEST(ScheduleErrorTest, NotExecuted) {
  CompileOptions options;
  options.schedule = "seq1f1b";
  EXPECT_THAT(stagesError({0, 1}, options), HasSubstr("take 1f1b"));
}

TEST(ScheduleErrorTest, Table) {
  CompileOptions options;
  options.schedule = "table";
  options.micro = 2;
  options.scheduleTable = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(stagesError({0, 1}, options), "");
  EXPECT_THAT(stagesError({0, 1, 2}, options), HasSubstr("is for 2 stages and 2 micro-batches, the program has 3"));
  options.scheduleTable = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1X1\n";
  EXPECT_THAT(stagesError({0, 1}, options), HasSubstr("line 2"));
  options.scheduleTable = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1B1\n";
  EXPECT_THAT(stagesError({0, 1}, options), HasSubstr("a gradient is computed twice"));
  options.scheduleTable = "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n";  // each waits for the other
  EXPECT_THAT(stagesError({0, 1}, options), HasSubstr("0F1"));
}

TEST(MemoryLimitTest, NamesTheLeastThatIsPossible) {
  CompileOptions options;
  options.micro = 4;
  ASSERT_EQ(stagesError({0, 1}, options), "");
  options.memoryLimit = 1000;
  const std::string error = stagesError({0, 1}, options);
  EXPECT_THAT(error, HasSubstr("no schedule fits in 1000 bytes per rank; the least is "));
  EXPECT_THAT(error, HasSubstr("whatever is recomputed"));
  EXPECT_THAT(stagesError({0}, options), HasSubstr("the limit is 1000"));
  options.recompute = "none";
  EXPECT_THAT(stagesError({0, 1}, options), HasSubstr("CompileOptions::recompute"));
  EXPECT_THAT(stagesError({0}, options), HasSubstr("CompileOptions::recompute"));
}

// Options as a program is compiled with them; tests/planner has all of them.
TEST(OptionErrorTest, StagesAndPatterns) {
  CompileOptions options;
  options.virtualStages = 2;
  EXPECT_THAT(stagesError({0}, options), HasSubstr("virtualStages = 2, but the program has 1 pipeline stage;"));
  EXPECT_EQ(stagesError({0, 1}, options), "");
  options = {.recompute = "tahn"};
  EXPECT_THAT(stagesError({0, 1}, options), HasSubstr("matches 'tahn'; the nearest is 'tanh'"));
  options = {.recompute = "tanh"};
  EXPECT_EQ(stagesError({0, 1}, options), "");
  options = {.layouts = {{"w7", "[{},{}]"}}};
  EXPECT_THAT(stagesError({0, 1}, options), HasSubstr("matches 'w7'; the nearest is 'w0'"));
  options = {.schedule = "zb_h3"};
  EXPECT_THAT(stagesError({0}, options), HasSubstr("did you mean 'zb_h1'?"));
}

TEST(OptionErrorTest, AlsoOfForwardProgramsAndModules) {
  Graph g;
  const Tensor loss = lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})));
  const CompileOptions options = {.devices = -1};
  EXPECT_THAT(std::string(compileForward(g, loss, options).status().message()), HasSubstr("devices = -1"));
  EXPECT_THAT(std::string(logicalModule(g, loss, optim::Sgd{}, options).status().message()), HasSubstr("devices = -1"));
  EXPECT_THAT(std::string(logicalModule(g, loss, optim::Sgd{.lr = -1}).status().message()), HasSubstr("lr = -1"));
}

// A forward program shares the training program's layouts, whichever parameters it has.
TEST(OptionErrorTest, ForwardProgramOfAPart) {
  Graph whole;
  const Tensor h = matmul(whole.input("x", {4, 8}), whole.parameter("w", {8, 4}));
  const absl::StatusOr<Program> training = compile(whole, lossOf(matmul(h, whole.parameter("head", {4, 2}))),
                                                   optim::Adam{}, {.mesh = "dp=2", .zero = 3, .recompute = "matmul"});
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_TRUE(training->notes.empty());
  Graph part;
  part.output("h", matmul(part.input("x", {4, 8}), part.parameter("w", {8, 4})));
  const absl::StatusOr<Program> forward = compileForward(part, Tensor(), forwardOptions(*training, {.mesh = "dp=2"}));
  ASSERT_TRUE(forward.ok()) << forward.status();
  EXPECT_THAT(forward->notes, testing::ElementsAre(HasSubstr("no parameter matches 'head'")));
}

TEST(OptionErrorTest, ThreadsOfATrainer) {
  Graph g;
  const absl::StatusOr<Program> program =
      compile(g, lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4}))), optim::Sgd{});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(std::string(Trainer(*program, {.threadsPerRank = -1}).status().message()),
              HasSubstr("threadsPerRank = -1; give a number from 1"));
}

TEST(OptionErrorTest, Mesh) {
  const auto build = [](Graph& g) { return lossOf(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4}))); };
  EXPECT_THAT(errorOf(build, {.mesh = "dp=0"}), HasSubstr("dp"));
  EXPECT_THAT(errorOf(build, {.mesh = "dp=2,dp=2"}), HasSubstr("dp"));
  EXPECT_THAT(errorOf(build, {.mesh = "dp=x"}), HasSubstr("dp=x"));
  EXPECT_THAT(errorOf(build, {.mesh = "dp=2", .micro = 0}), HasSubstr("micro = 0"));
  EXPECT_THAT(errorOf(build, {.mesh = "dp=2", .zero = 4}), HasSubstr("zero = 4"));
  EXPECT_THAT(errorOf(build, {.mesh = "dp=2", .clipNorm = -1}), HasSubstr("clipNorm = -1"));
  EXPECT_THAT(errorOf(build, {.mesh = "dp=2", .decisions = "{"}), HasSubstr("decisions"));
  EXPECT_THAT(errorOf(build, {.mesh = "dp=2", .decisions = "{\"mesh\":\"dp=2\"}"}), HasSubstr("decisions"));
}

TEST(OptionErrorTest, OperatorThatMixesMicroBatches) {
  const int at = __LINE__ + 3;
  const std::string error = errorOf(
      [](Graph& g) {
        return lossOf(softmax(transpose(matmul(g.input("x", {4, 8}), g.parameter("w", {8, 4})), {1, 0})));
      },
      {.mesh = "dp=2", .micro = 2});
  EXPECT_THAT(error, HasSubstr(line(at)));
  EXPECT_THAT(error, HasSubstr("micro = 1"));
}

TEST(FlagErrorTest, UnknownAndMalformed) {
  examples::CommonFlags common;
  const auto parse = [&](std::vector<std::string> words) {
    examples::Flags flags;
    common.addTo(flags);
    words.insert(words.begin(), "program");
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    bool helped = false;
    return std::string(flags.parse(static_cast<int>(arguments.size()), arguments.data(), &helped).message());
  };
  EXPECT_THAT(parse({"--step", "3"}), HasSubstr("did you mean --steps"));
  EXPECT_THAT(parse({"--steps", "many"}), HasSubstr("takes an integer, not 'many'"));
  EXPECT_THAT(parse({"--steps"}), HasSubstr("needs a value"));
  EXPECT_THAT(parse({"steps"}), HasSubstr("no flag"));
  EXPECT_THAT(parse({"--steps", "-1"}), HasSubstr("--steps -1: give a number from 0 to 1000000000"));
  EXPECT_EQ(common.steps, 10);
}

}  // namespace
}  // namespace weft
