// Operators from outside, in training: each against the same composed of the operators that there are, on one rank and
// split, recomputed, searched and in stages; and what is wrong with one, said at the user's line.

#include "weft/own_operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "tests/support/own_operators.h"

namespace weft::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What stands between two layers, for a and b [6, 8].
using Middle = std::function<Tensor(const Tensor& a, const Tensor& b)>;

Tensor ownGate(const Tensor& a, const Tensor& b) {
  return apply(gate(), {a, b}).front();
}
Tensor composedGate(const Tensor& a, const Tensor& b) {
  return a * sigmoid(b);
}

Tensor buildNet(Graph& g, const Middle& middle, int64_t stages = 1) {
  const Tensor x = g.input("x", {6, 5});
  const Tensor target = g.input("target", {6, 3});
  const auto first = [&](const char* name) {
    return matmul(x, g.parameter(name, {5, 8}, Init::normal(0.6))).named(std::string("first.") + name);
  };
  const Tensor a = first("wa");
  const Tensor hidden = middle(a, first("wb"));
  const Scope stage = g.stage(static_cast<int>(stages - 1));
  const Tensor y = matmul(hidden, g.parameter("w2", {8, 3}, Init::normal(0.6))).named("second");
  return mean((y - target) * (y - target));
}

std::vector<double> lossesOf(const absl::StatusOr<Program>& program) {
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return {};
  }
  Trainer trainer(*program, {.progress = false, .kernels = ownKernels()});
  const absl::Status trained = trainer.fit(5, [](int64_t step, Feed& feed) {
    for (const auto& [name, size] : {std::pair("x", 30), std::pair("target", 18)}) {
      std::vector<float> values(size);
      for (int i = 0; i < size; ++i) {
        values[i] = static_cast<float>(randomNormal({3, static_cast<uint32_t>(size), static_cast<uint32_t>(step)}, i));
      }
      feed.write(name, values);
    }
  });
  EXPECT_TRUE(trained.ok()) << trained;
  return trainer.losses();
}

void expectNear(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    // Five steps in f32, each sum of at most 40 terms: 5 x 40 x 6e-8 of the loss.
    EXPECT_NEAR(found[i], expected[i], 1.2e-5 * (1 + std::abs(expected[i]))) << "step " << i;
  }
}

absl::StatusOr<Program> compiled(const Middle& middle, const CompileOptions& options = {}, int64_t stages = 1) {
  Graph g;
  return compile(g, buildNet(g, middle, stages), optim::Sgd{.lr = 0.1, .momentum = 0.9}, options);
}

class OwnOperatorTest : public ::testing::Test {
 protected:
  const std::vector<double> expected_ = lossesOf(compiled(composedGate));
};

TEST_F(OwnOperatorTest, TrainsAsTheSameComposedOfOthers) {
  ASSERT_EQ(expected_.size(), 5u);
  expectNear(lossesOf(compiled(ownGate)), expected_);
}

TEST_F(OwnOperatorTest, IsSplitRecomputedSearchedAndStaged) {
  CompileOptions options;
  options.mesh = "dp=2";
  options.zero = 2;
  expectNear(lossesOf(compiled(ownGate, options)), expected_);
  options = {};
  options.mode = Mode::kAuto;
  options.devices = 4;
  expectNear(lossesOf(compiled(ownGate, options)), expected_);
  options = {};
  options.micro = 3;
  expectNear(lossesOf(compiled(ownGate, options, 2)), expected_);
}

std::vector<const plan::Instruction*> callsOf(const Program& program, const std::string& kernel) {
  std::vector<const plan::Instruction*> calls;
  for (const plan::Function& function : program.plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (instruction.kernel() == kernel) {
        calls.push_back(&instruction);
      }
    }
  }
  return calls;
}

const plan::Instruction& firstCall(const Program& program, const std::string& kernel) {
  const std::vector<const plan::Instruction*> calls = callsOf(program, kernel);
  EXPECT_FALSE(calls.empty()) << kernel << " does not stand in the plan";
  return calls.empty() ? plan::Instruction::default_instance() : *calls.front();
}

const plan::Buffer& bufferOf(const Program& program, const plan::Operand& operand) {
  return program.plan.buffers(static_cast<int>(operand.buffer()));
}

TEST_F(OwnOperatorTest, IsRecomputedByPatternAndByScope) {
  const absl::StatusOr<Program> kept = compiled(ownGate, {.mesh = "dp=2"});
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(callsOf(*kept, "gate").size(), 1U);
  const absl::StatusOr<Program> pattern = compiled(ownGate, {.mesh = "dp=2", .recompute = "gate"});
  const absl::StatusOr<Program> scope =
      compiled([](const Tensor& a, const Tensor& b) { return ownGate(a, b).recomputed(); }, {.mesh = "dp=2"});
  for (const absl::StatusOr<Program>& program : {pattern, scope}) {
    expectNear(lossesOf(program), expected_);
    EXPECT_EQ(callsOf(*program, "gate").size(), 2U);
  }
}

// Where it is said to take long, the search splits it as far as its rule lets it.
TEST_F(OwnOperatorTest, ItsSplitIsSearchedFor) {
  CompileOptions options;
  options.mode = Mode::kAuto;
  options.devices = 2;
  options.maxStages = 1;  // else two stages are shorter, and split nothing
  OwnOperator slow = gate();
  slow.work = 1e7;
  const auto elements = [&] {
    const absl::StatusOr<Program> program =
        compiled([&](const Tensor& a, const Tensor& b) { return apply(slow, {a, b}).front(); }, options);
    expectNear(lossesOf(program), expected_);
    int64_t count = 1;
    for (const int64_t size : bufferOf(*program, firstCall(*program, "gate").outputs(0)).shape()) {
      count *= size;
    }
    return count;
  };
  EXPECT_EQ(elements(), 24);
  slow.rule = [](const std::vector<ValueType>&) { return "r! c!, r! c! -> r c"; };
  EXPECT_EQ(elements(), 48);
}

// Channels: the rule carries the split of the product before it on, and its own strategy is checked against the rule.
TEST_F(OwnOperatorTest, ItsRuleCarriesSplits) {
  CompileOptions options;
  options.mesh = "tp=2";
  const auto split = [](const Tensor& a, const Tensor& b) { return ownGate(a, b).shard({{"", "tp"}, {"", "tp"}}); };
  const absl::StatusOr<Program> program = compiled(split, options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->decisions(), HasSubstr("gate"));
  expectNear(lossesOf(program), expected_);
  const auto wrong = [](const Tensor& a, const Tensor& b) { return ownGate(a, b).shard({{"", "tp"}, {""}}); };
  EXPECT_THAT(std::string(compiled(wrong, options).status().message()), HasSubstr("own_operator_test.cc"));
}

TEST_F(OwnOperatorTest, WithoutItsKernelThePlanIsRefused) {
  const absl::StatusOr<Program> program = compiled(ownGate);
  ASSERT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program, {.progress = false});
  EXPECT_THAT(std::string(trainer.status().message()), HasSubstr("no kernel 'gate'"));
}

// The kernel learns where its rows begin; in its gradient the operator meets itself.
TEST(OwnOperatorFacts, Origins) {
  const auto own = [](const Tensor& a, const Tensor& b) { return apply(addRow(), {a}, {{"k", 0.25}}).front() * b; };
  const auto composed = [](const Tensor& a, const Tensor& b) {
    return (a + 0.25 * (cumsum(0.0 * a + 1.0, 0) - 1.0)) * b;
  };
  const std::vector<double> expected = lossesOf(compiled(composed));
  expectNear(lossesOf(compiled(own)), expected);
  expectNear(lossesOf(compiled(own, {.mesh = "dp=3"})), expected);
  expectNear(lossesOf(compiled(own, {.mesh = "dp=2", .micro = 3})), expected);
}

// A split row is reduced by its greatest, not by its sum.
TEST(OwnOperatorFacts, Reduction) {
  const auto middle = [](auto greatest) {
    return [greatest](const Tensor& a, const Tensor& b) { return unsqueeze(greatest(a), 1) * b; };
  };
  const auto composed = middle([](const Tensor& x) { return max(x, {1}); });
  const auto own = middle([](const Tensor& x) { return apply(rowMax(), {x}).front(); });
  const auto split = middle([](const Tensor& x) { return apply(rowMax(), {x}).front().shard({{"", "tp"}}); });
  const std::vector<double> expected = lossesOf(compiled(composed));
  expectNear(lossesOf(compiled(own)), expected);
  expectNear(lossesOf(compiled(split, {.mesh = "tp=2"})), expected);
  expectNear(lossesOf(compiled(split, {.mesh = "tp=4"})), expected);
}

// A parameter whose columns do not divide is stored longer: what fills it must not be the greatest of a row.
absl::StatusOr<Program> compiledPadded(const OwnOperator& own, const std::string& mesh, const std::string& layout) {
  Graph g;
  const Tensor x = g.input("x", {6, 5});
  const Tensor target = g.input("target", {6, 3});
  const Tensor w = g.parameter("w", {5, 7}, Init::uniform(-2, -1), {.layout = layout});
  const Tensor error = matmul(x, unsqueeze(apply(own, {w}).front(), 1)) - target;
  return compile(g, mean(error * error), optim::Sgd{.lr = 0.1}, {.mesh = mesh});
}

TEST(OwnOperatorFacts, Pads) {
  const std::vector<double> expected = lossesOf(compiledPadded(rowMax(), "1", ""));
  for (const bool whole : {false, true}) {
    expectNear(lossesOf(compiledPadded(rowMax(whole), "tp=2", "[{},{tp}] pad{1:8}")), expected);
  }
  OwnOperator refuses = rowMax(true);
  refuses.padFill = {};
  EXPECT_THAT(std::string(compiledPadded(refuses, "tp=2", "[{},{tp}] pad{1:8}").status().message()),
              AllOf(HasSubstr("own_operator_test.cc"), HasSubstr("row_max cannot run on a padded dimension")));
}

// Scratch memory: what is declared is reserved, and what is not is refused when the plan is loaded.
TEST(OwnOperatorFacts, Scratch) {
  const auto middle = [](const OwnOperator& own) {
    return [own](const Tensor& a, const Tensor& b) { return apply(own, {a}).front() * b; };
  };
  const std::vector<double> expected =
      lossesOf(compiled([](const Tensor& a, const Tensor& b) { return flip(a, {1}) * b; }));
  expectNear(lossesOf(compiled(middle(turned()))), expected);
  expectNear(lossesOf(compiled(middle(turned()), {.mesh = "dp=2"})), expected);
  OwnOperator silent = turned();
  silent.scratchBytesPerElement = 0;  // the matrix is [6, 8]
  silent.gradient = [silent](const OwnGradient& g) { return std::vector<Tensor>{flip(g.resultGradients[0], {1})}; };
  const absl::StatusOr<Program> program = compiled(middle(silent));
  ASSERT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program, {.progress = false, .kernels = ownKernels()});
  EXPECT_THAT(std::string(trainer.status().message()),
              HasSubstr(absl::StrCat("the kernel needs ", kTurnedScratch + 192,
                                     " bytes of workspace, the plan reserves ", kTurnedScratch)));
}

// Where a result may lie in an operand's memory, it does.
TEST(OwnOperatorFacts, InPlace) {
  const auto isInPlace = [](const OwnOperator& own) {
    Graph g;
    const Tensor x = g.input("x", {6, 8});
    g.output("y", tanh(apply(own, {exp(x), x}).front()));
    const absl::StatusOr<Program> program = compileForward(g, Tensor());
    EXPECT_TRUE(program.ok()) << program.status();
    const plan::Instruction& call = firstCall(*program, own.name);
    const plan::Buffer& in = bufferOf(*program, call.inputs(0));
    const plan::Buffer& out = bufferOf(*program, call.outputs(0));
    return in.memory() == out.memory() && in.offset() == out.offset();
  };
  EXPECT_TRUE(isInPlace(gate()));
  OwnOperator apart = gate();
  apart.inPlace = {};
  EXPECT_FALSE(isInPlace(apart));
}

std::string messageOf(const OwnOperator& own, const Shape& second = {6, 8}, const AttributeMap& attributes = {}) {
  const auto middle = [&](const Tensor& a, const Tensor& b) {
    return apply(own, {a, b.graph() == nullptr ? b : slice(b, {0, 0}, second)}, attributes).front();
  };
  return std::string(compiled(middle).status().message());
}

TEST(OwnOperatorErrors, NameTheOperatorAndTheLine) {
  OwnOperator own = gate();
  EXPECT_THAT(messageOf(own, {6, 4}),
              AllOf(HasSubstr("own_operator_test.cc"), HasSubstr("gate: takes matrices of one")));
  own.name = "relu";
  EXPECT_THAT(messageOf(own), HasSubstr("there is an operator 'relu' already"));
  own.name = "My.Op";
  EXPECT_THAT(messageOf(own), HasSubstr("'My.Op' is no name of an operator"));
  own = gate();
  own.rule = [](const std::vector<ValueType>&) { return "b c, b c -> b"; };
  EXPECT_THAT(messageOf(own), AllOf(HasSubstr("gate: its rule 'b c, b c -> b'"), HasSubstr("own_operator_test.cc")));
  EXPECT_THAT(messageOf(gate(), {6, 8}, {{"work", 2.0}}),
              HasSubstr("gate: an attribute cannot be named 'work'; take another name, that one says a fact"));
  EXPECT_THAT(messageOf(gate(), {6, 8}, {{"own.k", 2.0}}), HasSubstr("named 'own.k'; take another name, without '.'"));
}

TEST(OwnOperatorErrors, FactsThatDoNotFit) {
  OwnOperator own = gate();
  own.linear = {{0}, {2}};
  EXPECT_THAT(messageOf(own), HasSubstr("gate: it is said to be linear in operand 2; it has 2 operands and 1 results"));
  own.linear = {{}};
  EXPECT_THAT(messageOf(own),
              HasSubstr("gate: linear holds lists of operands, from 0 to 2 less one; no list is empty"));
  own = gate();
  own.origins = {{.index = 1, .dim = 2}};
  EXPECT_THAT(messageOf(own), HasSubstr("the origin of dimension 2 of operand 1, which there is not"));
  own.origins = {{.ofResult = true, .index = 1}};
  EXPECT_THAT(messageOf(own), HasSubstr("the origin of dimension 0 of result 1, which there is not"));
  own = gate();
  own.inPlace = {{2, 0}};
  EXPECT_THAT(messageOf(own), HasSubstr("result 0 is said to lie in the memory of operand 2"));
  own = gate();
  own.reduce = {ReduceKind::kMax, ReduceKind::kMax};
  EXPECT_THAT(messageOf(own), HasSubstr("it lists 0 pads and 2 reductions; it has 2 operands and 1 results"));
  own = gate();
  own.scratchBytes = -1;
  EXPECT_THAT(messageOf(own), HasSubstr("its scratch memory is -1 bytes"));
  own = gate();
  own.work = std::numeric_limits<double>::infinity();
  EXPECT_THAT(messageOf(own), HasSubstr("gate: work is inf; it is from 0 to 2^40"));
}

TEST(OwnOperatorErrors, OfItsGradient) {
  OwnOperator own = gate();
  own.gradient = {};
  EXPECT_THAT(messageOf(own), HasSubstr("gate has no gradient"));
  own.gradient = [](const OwnGradient& g) { return std::vector<Tensor>{g.resultGradients[0]}; };
  EXPECT_THAT(messageOf(own), HasSubstr("its gradient gives 1 tensors for 2 operands"));
  own.gradient = [](const OwnGradient& g) {
    return std::vector<Tensor>{g.resultGradients[0], sum(g.resultGradients[0], {1})};
  };
  EXPECT_THAT(messageOf(own), HasSubstr("its gradient of operand 1 is 6xf32, the operand 6x8xf32"));
  own.gradient = [](const OwnGradient& g) {
    return std::vector<Tensor>{matmul(g.operands[0], g.operands[0]), Tensor()};
  };
  EXPECT_THAT(messageOf(own), AllOf(HasSubstr("gate: its gradient: "), HasSubstr("matmul")));
}

// A gradient is a function of its own: what the program around it has is not there.
TEST(OwnOperatorErrors, AGradientReadsOnlyWhatItIsGiven) {
  const auto middle = [](const Tensor& a, const Tensor& b) {
    OwnOperator own = gate();
    own.gradient = [b](const OwnGradient& g) { return std::vector<Tensor>{g.resultGradients[0] * b, Tensor()}; };
    return apply(own, {a, b}).front();
  };
  EXPECT_THAT(std::string(compiled(middle).status().message()),
              HasSubstr("gate: its gradient reads a tensor that is none of its operands"));
  OwnOperator own = gate();
  own.gradient = [](const OwnGradient& g) {
    return std::vector<Tensor>{inspect(g.resultGradients[0], "dy"), g.resultGradients[0]};
  };
  EXPECT_THAT(messageOf(own), HasSubstr("gate: its gradient inspects a value or assigns a state"));
  own.gradient = [](const OwnGradient& g) {
    return std::vector<Tensor>{dropout(g.resultGradients[0], 0.5), g.resultGradients[0]};
  };
  EXPECT_THAT(messageOf(own), HasSubstr("gate: its gradient reads a tensor that is none of its operands"));
}

}  // namespace
}  // namespace weft::testing
