// Steps that a graph writes itself: gradients as values (weft::grad), updates by assignment and by optimizers of one's
// own, several losses, on one rank and on many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "runtime/base/random.h"
#include "runtime/plan/statistics.h"
#include "tests/support/files.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using Reals = std::vector<double>;

constexpr int64_t kBatch = 12;

// Where a step runs.
struct Way {
  std::string name;
  CompileOptions options;
  int64_t stages = 1;

  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

std::vector<Way> ways() {
  return {
      {"Micro", {.micro = 4}},
      {"Data", {.mesh = "dp=2"}},
      {"DataThatPads", {.mesh = "dp=5"}},
      {"Zero1", {.mesh = "dp=2", .micro = 2, .zero = 1}},
      {"Zero2", {.mesh = "dp=4", .micro = 3, .zero = 2}},
      {"Zero3", {.mesh = "dp=2", .micro = 2, .zero = 3}},
      {"Tensor", {.mesh = "dp=2,tp=2", .zero = 2}},
      {"Stages", {.mesh = "dp=2", .micro = 4}, 2},
      {"StagesZero3", {.mesh = "dp=2", .micro = 4, .zero = 3, .schedule = "zb_h1"}, 2},
      {"Auto", {.mode = Mode::kAuto, .devices = 4}},
  };
}

// Two layers, the second on the last stage.
struct Net {
  Net(Graph& g, const Way& way, const std::string& name, const Tensor& x) {
    const auto scope = g.scope(name);
    const bool split = way.options.mesh.find("tp") != std::string::npos;
    Tensor hidden;
    {
      const auto stage = g.stage(0);
      parameters = {g.parameter("w1", {6, 8}, Init::normal(0.5)), g.parameter("b1", {8}, Init::normal(0.5))};
      const Tensor product = matmul(x, parameters[0]);
      hidden = tanh((split ? product.shard({{"dp", ""}, {"", "tp"}}) : product) + parameters[1]);
    }
    const auto stage = g.stage(static_cast<int>(way.stages - 1));
    parameters.push_back(g.parameter("w2", {8, 3}, Init::normal(0.5)));
    y = matmul(hidden, parameters[2]);
    loss = mean(y * y);
  }

  std::vector<Tensor> parameters;
  Tensor y;
  Tensor loss;
};

Tensor batchOf(Graph& g) {
  g.setParameterType(kF64);
  return g.input("x", {kBatch, 6}, kF64);
}

Reals rows(int64_t step) {
  Reals x(kBatch * 6);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = randomNormal({3, 1, static_cast<uint32_t>(step)}, i);
  }
  return x;
}

// A program: what the graph is, its loss and its optimizer.
struct Step {
  Tensor loss;
  Optimizer optimizer = optim::Own{};
};
using Build = std::function<Step(Graph& g, const Way& way)>;

absl::StatusOr<Program> compiled(const Build& build, const Way& way) {
  Graph g;
  const Step step = build(g, way);
  CompileOptions options = way.options;
  options.seed = 5;
  return compile(g, step.loss, step.optimizer, options);
}

using Values = std::map<std::string, Reals>;

// Parameters and state whose names begin so.
Values valuesOf(Executor& executor, const std::string& prefix) {
  Values values;
  for (const plan::Plan* submesh : submeshesOf(executor.plan())) {
    for (const plan::NamedTensor& tensor : submesh->tensors()) {
      const bool stays = tensor.kind() == plan::TENSOR_PARAMETER || tensor.kind() == plan::TENSOR_STATE;
      if (stays && tensor.name().rfind(prefix, 0) == 0) {
        const absl::StatusOr<std::vector<char>> bytes = executor.readTensor(tensor.name());
        EXPECT_TRUE(bytes.ok()) << bytes.status();
        Reals& read = values[tensor.name()];
        read.resize(bytes->size() / sizeof(double));
        std::memcpy(read.data(), bytes->data(), bytes->size());
      }
    }
  }
  return values;
}

// The same after three steps; none after an error.
Values after(const Build& build, const Way& way, const std::string& prefix = "net") {
  const absl::StatusOr<Program> program = compiled(build, way);
  if (!program.ok()) {
    ADD_FAILURE() << way.name << ": " << program.status();
    return {};
  }
  Trainer trainer(*program, {.threadsPerRank = 1, .progress = false, .checkFinite = true});
  const absl::Status trained = trainer.fit(3, [](int64_t step, Feed& feed) { feed.write("x", rows(step)); });
  EXPECT_TRUE(trained.ok()) << way.name << ": " << trained;
  return trained.ok() ? valuesOf(trainer.executor(), prefix) : Values();
}

void expectSame(const Values& values, const Values& expected, double tolerance = 1e-12) {
  ASSERT_FALSE(expected.empty());
  for (const auto& [name, reals] : expected) {
    const auto it = values.find(name);
    ASSERT_TRUE(it != values.end() && it->second.size() == reals.size()) << name;
    for (size_t i = 0; i < reals.size(); ++i) {
      ASSERT_NEAR(it->second[i], reals[i], tolerance * (1 + std::abs(reals[i]))) << name << "[" << i << "]";
    }
  }
}

// --- programs ---

Step bySgd(Graph& g, const Way& way) {
  const Net net(g, way, "net", batchOf(g));
  return {net.loss, optim::Sgd{.lr = 0.25}};
}

Step descending(Graph& g, const Way& way) {
  const Net net(g, way, "net", batchOf(g));
  const std::vector<Tensor> gradients = grad(net.loss, net.parameters);
  for (size_t i = 0; i < gradients.size(); ++i) {
    g.assign(net.parameters[i], net.parameters[i] - 0.25 * gradients[i]);
  }
  return {net.loss};
}

// Momentum of one's own, and a moving average of what the parameters become.
Step withMomentum(Graph& g, const Way& way) {
  const Net net(g, way, "net", batchOf(g));
  const std::vector<Tensor> gradients = grad(net.loss, net.parameters);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& w = net.parameters[i];
    const std::string number = std::to_string(i);
    const Tensor momentum = g.state("net.momentum" + number, w.shape(), kF64, 0);
    const Tensor average = g.state("net.average" + number, w.shape(), kF64, 0);
    const Tensor next = 0.9 * momentum + gradients[i];
    const Tensor moved = w - 0.25 * next;
    g.assign(momentum, next);
    g.assign(w, moved);
    g.assign(average, 0.75 * average + 0.25 * moved);
  }
  return {net.loss};
}

// State that follows what the parameters were, and a scale that the backward pass reads after the forward pass has.
Step withState(Graph& g, const Way& way) {
  const Tensor x = batchOf(g);
  const Tensor scale = g.state("net.scale", {6}, kF64, 1);
  const Net net(g, way, "net", x * scale);
  g.assign(scale, 0.5 * scale);
  for (const Tensor& w : net.parameters) {
    const Tensor average = g.state("net.average" + std::to_string(w.id()), w.shape(), kF64, 0);
    g.assign(average, 0.75 * average + 0.25 * w);
  }
  const Tensor seen = g.state("net.seen", {6}, kF64, 0);
  g.assign(seen, seen + sum(x, {0}));
  const Tensor last = g.state("net.last", {}, kF64, 0);
  g.assign(last, net.loss);
  return {net.loss, optim::Sgd{.lr = 0.25}};
}

// Gradients scaled by their norm before an optimizer has them.
Step clippedByHand(Graph& g, const Way& way) {
  const Net net(g, way, "net", batchOf(g));
  std::vector<Tensor> gradients = grad(net.loss, net.parameters);
  Tensor squares;
  for (const Tensor& gradient : gradients) {
    squares = squares.valid() ? squares + sum(gradient * gradient) : sum(gradient * gradient);
  }
  const Tensor scale = minimum(0.05 / (sqrt(squares) + 1e-6), 1.0);
  for (Tensor& gradient : gradients) {
    gradient = gradient * scale;
  }
  g.update(net.parameters, gradients, optim::AdamW{.lr = 0.01});
  return {net.loss};
}

// A generator and a critic, each with a loss and an optimizer of its own; the critic's values are the generator's loss.
Step adversarial(Graph& g, const Way& way) {
  const Tensor x = batchOf(g);
  const Net generator(g, way, "net.generator", x);
  const auto stage = g.stage(static_cast<int>(way.stages - 1));
  const Tensor w = g.parameter("net.critic.w", {3, 1}, Init::normal(0.5));
  const Tensor made = mean(tanh(matmul(generator.y, w)));
  const Tensor real = mean(tanh(matmul(narrow(x, 1, 0, 3), w)));
  const Tensor criticLoss = made - real;
  const Tensor generatorLoss = 0 - made;
  g.update(generator.parameters, grad(generatorLoss, generator.parameters), optim::Adam{.lr = 0.01});
  g.update({w}, grad(criticLoss, {w}), optim::RmsProp{.lr = 0.04});
  return {criticLoss + generatorLoss};
}

// The optimizer of compile() has the first layer, the graph the second.
Step mixed(Graph& g, const Way& way) {
  const Net net(g, way, "net", batchOf(g));
  const Tensor& last = net.parameters.back();
  g.assign(last, last - 0.25 * grad(net.loss, {last}).front());
  return {net.loss, optim::Sgd{.lr = 0.25}};
}

struct Named {
  std::string name;
  Build build;
  friend void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }
};

const std::vector<Named> kSteps = {{"Descending", descending},
                                   {"WithMomentum", withMomentum},
                                   {"ClippedByHand", clippedByHand},
                                   {"Adversarial", adversarial},
                                   {"Mixed", mixed},
                                   {"WithState", withState}};

// --- on many ranks as on one ---

class OwnStepTest : public ::testing::TestWithParam<std::tuple<Named, Way>> {};

TEST_P(OwnStepTest, IsThatOfOneRank) {
  const auto& [step, way] = GetParam();
  expectSame(after(step.build, way), after(step.build, {"OneRank", {}}));
}

INSTANTIATE_TEST_SUITE_P(Steps, OwnStepTest,
                         ::testing::Combine(::testing::ValuesIn(kSteps), ::testing::ValuesIn(ways())),
                         [](const auto& info) { return std::get<0>(info.param).name + std::get<1>(info.param).name; });

// --- the same as what compile() does ---

TEST(OwnStep, DescendsAsTheOptimizer) {
  expectSame(after(descending, {"OneRank", {}}), after(bySgd, {"OneRank", {}}));
  expectSame(after(mixed, {"OneRank", {}}), after(bySgd, {"OneRank", {}}));
}

TEST(OwnStep, MomentumIsThatOfTheOptimizer) {
  const Build optimizer = [](Graph& g, const Way& way) {
    return Step{Net(g, way, "net", batchOf(g)).loss, optim::Sgd{.lr = 0.25, .momentum = 0.9}};
  };
  const Values own = after(withMomentum, {"OneRank", {}});
  expectSame(own, after(optimizer, {"OneRank", {}}, "net.w"));
}

TEST(OwnStep, ScalesAsClipNorm) {
  const Build optimizer = [](Graph& g, const Way& way) {
    return Step{Net(g, way, "net", batchOf(g)).loss, optim::AdamW{.lr = 0.01}};
  };
  expectSame(after(clippedByHand, {"OneRank", {}}), after(optimizer, {"OneRank", {.clipNorm = 0.05}}, "net.w"));
}

// The averages and the scale by arithmetic of the test: w does not change where the rate is 0.
TEST(OwnStep, StateChangesOnceAStep) {
  const Build still = [](Graph& g, const Way& way) { return Step{withState(g, way).loss, optim::Sgd{.lr = 0}}; };
  for (const Way& way : {Way{"OneRank", {}}, Way{"Micro", {.micro = 4}}, Way{"Stages", {.micro = 4}, 2}}) {
    const Values values = after(still, way);
    EXPECT_EQ(values.at("net.scale"), Reals(6, 0.125)) << way.name;
    Reals sums(6);
    for (int64_t step = 0; step < 3; ++step) {
      const Reals x = rows(step);
      for (size_t i = 0; i < x.size(); ++i) {
        sums[i % 6] += x[i];
      }
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      EXPECT_NEAR(values.at("net.seen")[i], sums[i], 1e-12) << way.name;
    }
    const Reals& w = values.at("net.b1");
    const auto average = std::find_if(values.begin(), values.end(), [&](const auto& value) {
      return value.first.rfind("net.average", 0) == 0 && value.second.size() == w.size();
    });
    ASSERT_NE(average, values.end());
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_NEAR(average->second[i], w[i] * (1 - 0.75 * 0.75 * 0.75), 1e-12) << way.name;
    }
  }
}

// Two losses with an optimizer each are two programs with one loss each, where neither has the other's parameters. The
// second learning rate is four times the program's.
TEST(OwnStep, TwoLossesAreTwoPrograms) {
  const auto net = [](Graph& g, const Way& way, const std::string& name) { return Net(g, way, name, batchOf(g)); };
  const Build both = [&](Graph& g, const Way& way) {
    const Tensor x = batchOf(g);
    const Net a(g, way, "net.a", x);
    const Net b(g, way, "net.b", x);
    g.update(a.parameters, grad(a.loss, a.parameters), optim::Adam{.lr = 0.01});
    g.update(b.parameters, grad(b.loss, b.parameters), optim::Sgd{.lr = 0.04, .momentum = 0.5});
    return Step{a.loss + b.loss};
  };
  const Build first = [&](Graph& g, const Way& way) {
    return Step{net(g, way, "net.a").loss, optim::Adam{.lr = 0.01}};
  };
  const Build second = [&](Graph& g, const Way& way) {
    return Step{net(g, way, "net.b").loss, optim::Sgd{.lr = 0.04, .momentum = 0.5}};
  };
  const Values values = after(both, {"OneRank", {}});
  expectSame(values, after(first, {"OneRank", {}}, "net.a"), 1e-7);  // the learning rate is f32
  expectSame(values, after(second, {"OneRank", {}}, "net.b"), 1e-7);
}

// What the graph reads of a parameter is what it was before the step.
TEST(OwnStep, ParametersChangePlaces) {
  const Build swap = [](Graph& g, const Way&) {
    const Tensor x = batchOf(g);
    const Tensor a = g.parameter("net.a", {6}, Init::constant(1));
    const Tensor b = g.parameter("net.b", {6}, Init::constant(2));
    g.assign(a, b);
    g.assign(b, a * 3);
    return Step{mean(x * (a + b))};
  };
  for (const Way& way : {Way{"OneRank", {}}, Way{"Zero3", {.mesh = "dp=2", .zero = 3}}}) {
    const Values values = after(swap, way);
    EXPECT_EQ(values.at("net.a"), Reals(6, 6)) << way.name;  // 1, 2 -> 2, 3 -> 3, 6 -> 6, 9
    EXPECT_EQ(values.at("net.b"), Reals(6, 9)) << way.name;
  }
}

// --- gradients as outputs, and of gradients ---

Reals outputOf(const absl::StatusOr<Program>& program, const Reals& x, const std::string& name) {
  Reals values;
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return values;
  }
  Trainer trainer(*program, {.threadsPerRank = 1, .progress = false});
  absl::Status status = trainer.status();
  status.Update(trainer.executor().writeTensor("x", x.data(), x.size() * sizeof(double)));
  status.Update(trainer.executor().runStep());
  const absl::StatusOr<std::vector<char>> bytes = trainer.executor().readTensor(name);
  if (!status.ok() || !bytes.ok()) {
    ADD_FAILURE() << status << bytes.status();
    return values;
  }
  values.resize(bytes->size() / sizeof(double));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

// Of the inputs, in a program that trains nothing: 2 x w^2 for the loss sum((x w)^2).
TEST(Grad, OfAnInputInAForwardProgram) {
  for (const char* mesh : {"dp=1", "dp=3"}) {
    Graph g;
    const Tensor x = batchOf(g);
    const Tensor w = g.parameter("w", {6}, Init::constant(3));
    g.output("dx", grad(sum(square(x * w)), {x}).front());
    const Reals values = rows(0);
    const Reals found = outputOf(compileForward(g, Tensor(), {.mesh = mesh}), values, "dx");
    ASSERT_EQ(found.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(found[i], 18 * values[i], 1e-12 * (1 + std::abs(found[i]))) << i;
    }
  }
}

// Of a value on the way, and zeros where y does not depend on x.
TEST(Grad, OfAnyValue) {
  Graph g;
  const Tensor x = batchOf(g);
  const Tensor hidden = exp(x);
  const Tensor unused = g.parameter("unused", {2});
  const std::vector<Tensor> found = grad(sum(hidden * hidden), {hidden, unused});
  g.output("dh", found[0] / hidden);
  g.output("du", found[1]);
  const Reals values = rows(0);
  EXPECT_EQ(outputOf(compileForward(g, Tensor()), values, "dh"), Reals(values.size(), 2.0));
  EXPECT_EQ(outputOf(compileForward(g, Tensor()), values, "du"), Reals(2, 0.0));
}

// x^3 three times: 3 x^2, 6 x, 6.
TEST(Grad, OfGradients) {
  Graph g;
  const Tensor x = batchOf(g);
  const Tensor first = grad(sum(x * x * x), {x}).front();
  const Tensor second = grad(sum(first), {x}).front();
  g.output("second", second);
  g.output("third", grad(sum(second), {x}).front());
  const Reals values = rows(0);
  const absl::StatusOr<Program> program = compileForward(g, Tensor());
  const Reals found = outputOf(program, values, "second");
  ASSERT_EQ(found.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(found[i], 6 * values[i], 1e-12 * (1 + std::abs(found[i]))) << i;
  }
  EXPECT_EQ(outputOf(program, values, "third"), Reals(values.size(), 6.0));
}

// A loss with a penalty on its gradient in the inputs (Gulrajani et al., "Improved training of Wasserstein GANs",
// 2017), trained by an optimizer. For y = sum(w x^2) the penalty mean((2 w x)^2) is known.
Step penalized(Graph& g, bool byHand) {
  const Tensor x = batchOf(g);
  const Tensor w = g.parameter("net.w", {6}, Init::normal(0.5));
  const Tensor loss = mean(w * x * x);
  const Tensor slope = byHand ? 2 * w * x : grad(sum(w * x * x), {x}).front();
  return {loss + mean(square(slope)), optim::Sgd{.lr = 0.1}};
}

TEST(Grad, InALoss) {
  const Build own = [](Graph& g, const Way&) { return penalized(g, false); };
  const Build byHand = [](Graph& g, const Way&) { return penalized(g, true); };
  const Values expected = after(byHand, {"OneRank", {}});
  for (const Way& way : {Way{"OneRank", {}}, Way{"Data", {.mesh = "dp=2", .zero = 2}}, Way{"Micro", {.micro = 3}}}) {
    expectSame(after(own, way), expected);
  }
}

// Likewise on the gradient in a parameter, which an update of one's own reads, too: for the loss c = sum(w^3) / 3 it is
// w^2, and the gradient of c + sum((dc/dw)^2) is w^2 + 4 w^3.
TEST(Grad, OfAParameterInALoss) {
  const Build penalized = [](Graph& g, const Way&) {
    const Tensor x = batchOf(g);
    const Tensor w = g.parameter("net.w", {6}, Init::constant(0.5));
    const Tensor seen = g.state("net.seen", {6}, kF64, 0);
    const Tensor loss = sum(w * w * w) / 3 + 0 * mean(x);
    const Tensor slope = grad(loss, {w}).front();
    g.assign(seen, 2 * slope);
    return Step{loss + sum(square(slope)), optim::Sgd{.lr = 0.1}};
  };
  double w = 0.5;
  double seen = 0;
  for (int step = 0; step < 3; ++step) {
    seen = 2 * w * w;
    w -= 0.1 * (w * w + 4 * w * w * w);
  }
  for (const Way& way : {Way{"OneRank", {}}, Way{"Data", {.mesh = "dp=2", .zero = 2}}}) {
    expectSame(after(penalized, way), {{"net.w", Reals(6, w)}, {"net.seen", Reals(6, seen)}}, 1e-7);
  }
}

// --- files ---

TEST(OwnStep, GoesOnFromAFile) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory / "run.safetensors";
  const absl::StatusOr<Program> program = compiled(withMomentum, {"Zero2", {.mesh = "dp=2", .zero = 2}});
  ASSERT_TRUE(program.ok()) << program.status();
  const FeedFunction feed = [](int64_t step, Feed& inputs) { inputs.write("x", rows(step)); };
  Trainer whole(*program, {.threadsPerRank = 1, .progress = false});
  ASSERT_TRUE(whole.fit(2, feed).ok());
  ASSERT_TRUE(whole.save(path, Saved::kAll).ok());
  ASSERT_TRUE(whole.fit(2, feed).ok());
  Trainer resumed(*program, {.threadsPerRank = 1, .progress = false});
  ASSERT_TRUE(resumed.load(path, Saved::kAll).ok());
  EXPECT_EQ(resumed.step(), 2);
  ASSERT_TRUE(resumed.fit(2, feed).ok());
  EXPECT_EQ(valuesOf(whole.executor(), "net"), valuesOf(resumed.executor(), "net"));
}

// --- errors ---

std::string errorOf(const std::function<void(Graph& g, const Tensor& w, const Tensor& y)>& call) {
  Graph g;
  const Tensor x = batchOf(g);
  const Tensor w = g.parameter("w", {6}, Init::normal(0.5));
  const Tensor y = sum(x * w);
  call(g, w, y);
  const absl::StatusOr<Program> program = compile(g, y, optim::Own{}, {.clipNorm = 0});
  return program.ok() ? "" : std::string(program.status().message());
}

TEST(OwnStepErrors, NameWhatIsWrong) {
  EXPECT_EQ(errorOf([](Graph& g, const Tensor& w, const Tensor& y) { g.assign(w, grad(y, {w}).front()); }), "");
  EXPECT_THAT(errorOf([](Graph&, const Tensor& w, const Tensor&) { grad(w, {w}); }), HasSubstr("own_step_test.cc:"));
  EXPECT_THAT(errorOf([](Graph&, const Tensor& w, const Tensor&) { grad(w, {w}); }),
              HasSubstr("grad: y is f64 [6]; a scalar is differentiated: take its sum or mean"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor&, const Tensor& y) { grad(y, {g.iota({6}, 0)}); }),
              HasSubstr("has to be f32 or f64"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor& y) { g.assign(w, y); }),
              HasSubstr("assign: parameter 'w' is f64 [6], the new value f64 []; both must agree"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) { g.assign(w, w, {.alsoForward = true}); }),
              HasSubstr("a forward program changes no parameters: keep it in a state"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) {
                g.assign(w, w * 2);
                g.update({w}, {w}, optim::Sgd{});
              }),
              HasSubstr("update: parameter 'w' is replaced twice in one step; combine both values first"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) { g.update({w}, {}, optim::Sgd{}); }),
              HasSubstr("update: 1 parameters and 0 gradients; give one gradient for each"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor& y) { g.update({w}, {y}, optim::Sgd{}); }),
              HasSubstr("update: parameter 'w' is f64 [6], its gradient f64 []; both must agree"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) { g.update({w}, {w}, optim::Sgd{.lr = -1}); }),
              HasSubstr("update: optimizer sgd: lr = -1; give a finite number of at least 0"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) { g.update({w}, {w}, optim::Own{}); }),
              HasSubstr("update: optimizer own moves nothing; take another one, or Graph::assign"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) { g.update({w * 2}, {w}, optim::Sgd{}); }),
              HasSubstr("the value of an operator is no state and no parameter"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor&, const Tensor&) {
                const Tensor frozen = g.parameter("f", {6}, Init::ones(), {.frozen = true});
                g.assign(frozen, frozen * 2);
              }),
              HasSubstr("assign: parameter 'f' is frozen; leave that out, or the update"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) {
                g.update({w}, {w}, optim::Sgd{.groups = {{"w", {.frozen = true}}}});
              }),
              HasSubstr("parameter 'w' is in a frozen group of the optimizer"));
  EXPECT_THAT(errorOf([](Graph& g, const Tensor& w, const Tensor&) {
                const Tensor v = g.parameter("v", {6});
                g.update({w}, {w}, optim::Sgd{.lr = 0});
                g.update({v}, {v}, optim::Sgd{.lr = 1});
              }),
              HasSubstr("the first optimizer of the program has the learning rate 0, another one 1"));
}

TEST(OwnStepErrors, ClipNormHasNothingToClip) {
  Graph g;
  const Tensor w = g.parameter("w", {6}, Init::normal(0.5));
  EXPECT_THAT(std::string(compile(g, sum(w), optim::Own{}, {.clipNorm = 1}).status().message()),
              HasSubstr("clipNorm = 1 with optim::Own"));
}

TEST(OwnStepErrors, AnOperatorWithoutAGradient) {
  Graph g;
  const Tensor w = g.parameter("w", {6}, Init::normal(0.5));
  const Tensor first = grad(sum(gelu(w)), {w}).front();
  g.assign(w, grad(sum(first), {w}).front());
  EXPECT_THAT(std::string(compile(g, sum(w), optim::Own{}).status().message()),
              HasSubstr("nn.gelu_grad has no gradient, and the loss depends through it on parameter 'w'"));
}

// A backward pass in which stages run forward again is no schedule.
TEST(OwnStepErrors, GradientsOfGradientsAcrossStages) {
  const Build penalized = [](Graph& g, const Way& way) {
    const Tensor x = batchOf(g);
    Tensor h;
    {
      const auto stage = g.stage(0);
      h = square(matmul(x, g.parameter("net.w1", {6, 6}, Init::normal(0.5))));
    }
    const auto stage = g.stage(static_cast<int>(way.stages - 1));
    const Tensor y = sum(matmul(h, g.parameter("net.w2", {6, 3}, Init::normal(0.5))));
    return Step{y + mean(square(grad(y, {x}).front())), optim::Sgd{.lr = 0.1}};
  };
  ASSERT_TRUE(compiled(penalized, {"OneStage", {.micro = 2}}).ok());
  EXPECT_THAT(std::string(compiled(penalized, {"Stages", {.micro = 2}, 2}).status().message()),
              HasSubstr("the stages would wait for each other; put both on one stage"));
}

}  // namespace
}  // namespace weft
