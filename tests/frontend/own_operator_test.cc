// An operator from outside, in training: the parametric relu (He et al. 2015) as a user would write it, against the
// same composed of the operators that there are, on one rank and split, recomputed, searched and in stages.

#include "weft/own_operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/random.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// y = x where x > 0, else slope x, for x [.., channels] and slope [channels].
OwnOperator prelu() {
  OwnOperator own;
  own.name = "prelu";
  own.results = [](const std::vector<ValueType>& in, const AttributeMap&) -> absl::StatusOr<std::vector<ValueType>> {
    if (in.size() != 2 || in[0].shape.empty() || in[1].shape != Shape{in[0].shape.back()}) {
      return absl::InvalidArgumentError("takes x [.., channels] and slope [channels]");
    }
    return std::vector<ValueType>{in[0]};
  };
  own.rule = [](const std::vector<ValueType>& in) {
    const std::string rows = in[0].shape.size() == 3 ? "b t" : "b";
    return rows + " c, c -> " + rows + " c";
  };
  own.work = 2;
  own.gradient = [](const OwnGradient& g) -> std::vector<Tensor> {
    const Tensor& x = g.operands[0];
    const Tensor& dy = g.resultGradients[0];
    const Tensor isPositive = compare(x, 0, "gt");
    Shape rows;
    for (size_t d = 0; d + 1 < x.shape().size(); ++d) {
      rows.push_back(static_cast<int64_t>(d));
    }
    return {select(isPositive, dy, dy * g.operands[1]), sum(select(isPositive, 0, dy * x), rows)};
  };
  return own;
}

class PreluKernel : public Kernel {
 public:
  explicit PreluKernel(const KernelSpec& spec)
      : count_(spec.inputs[0].elements()), channels_(spec.inputs[1].elements()) {}
  absl::Status run(const KernelArguments& args) override {
    const auto* x = static_cast<const float*>(args.inputs[0]);
    const auto* slope = static_cast<const float*>(args.inputs[1]);
    auto* y = static_cast<float*>(args.outputs[0]);
    for (int64_t i = 0; i < count_; ++i) {
      y[i] = x[i] > 0 ? x[i] : slope[i % channels_] * x[i];
    }
    return absl::OkStatus();
  }

 private:
  int64_t count_;
  int64_t channels_;
};

KernelRegistry preluKernels() {
  KernelRegistry kernels;
  kernels.add("prelu", [](const KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    if (spec.inputs.size() != 2 || spec.inputs[0].type != DType::kF32) {
      return absl::InvalidArgumentError("prelu takes two f32 tensors");
    }
    return std::make_unique<PreluKernel>(spec);
  });
  return kernels;
}

using Activation = std::function<Tensor(const Tensor& x, const Tensor& slope)>;

Tensor ownPrelu(const Tensor& x, const Tensor& slope) {
  return apply(prelu(), {x, slope}).front();
}
Tensor composedPrelu(const Tensor& x, const Tensor& slope) {
  return select(compare(x, 0, "gt"), x, x * slope);
}

Tensor buildNet(Graph& g, const Activation& activation, int64_t stages = 1) {
  const Tensor x = g.input("x", {6, 5});
  const Tensor target = g.input("target", {6, 3});
  const Tensor slope = g.parameter("slope", {8}, Init::constant(0.25));
  const Tensor hidden = activation(matmul(x, g.parameter("w1", {5, 8}, Init::normal(0.6))).named("first"), slope);
  const Scope stage = g.stage(static_cast<int>(stages - 1));
  const Tensor y = matmul(hidden, g.parameter("w2", {8, 3}, Init::normal(0.6))).named("second");
  return mean((y - target) * (y - target));
}

std::vector<double> lossesOf(const absl::StatusOr<Program>& program) {
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return {};
  }
  Trainer trainer(*program, {.progress = false, .kernels = preluKernels()});
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
    EXPECT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << "step " << i;
  }
}

class OwnOperatorTest : public ::testing::Test {
 protected:
  static absl::StatusOr<Program> compiled(const Activation& activation, const CompileOptions& options = {},
                                          int64_t stages = 1) {
    Graph g;
    return compile(g, buildNet(g, activation, stages), optim::Sgd{.lr = 0.2, .momentum = 0.9}, options);
  }

  const std::vector<double> expected_ = lossesOf(compiled(composedPrelu));
};

TEST_F(OwnOperatorTest, TrainsAsTheSameComposedOfOthers) {
  ASSERT_EQ(expected_.size(), 5u);
  expectNear(lossesOf(compiled(ownPrelu)), expected_);
}

TEST_F(OwnOperatorTest, IsSplitRecomputedSearchedAndStaged) {
  CompileOptions options;
  options.mesh = "dp=2";
  options.zero = 2;
  expectNear(lossesOf(compiled(ownPrelu, options)), expected_);
  options = {};
  options.recompute = "prelu";
  expectNear(lossesOf(compiled(ownPrelu, options)), expected_);
  options = {};
  options.mode = Mode::kAuto;
  options.devices = 4;
  expectNear(lossesOf(compiled(ownPrelu, options)), expected_);
  options = {};
  options.micro = 3;
  expectNear(lossesOf(compiled(ownPrelu, options, 2)), expected_);
}

// Channels: the rule carries the split of the product before it on, and its own strategy is checked against the rule.
TEST_F(OwnOperatorTest, ItsRuleCarriesSplits) {
  CompileOptions options;
  options.mesh = "tp=2";
  const auto split = [](const Tensor& x, const Tensor& slope) {
    return apply(prelu(), {x, slope}).front().shard({{"", "tp"}});
  };
  const absl::StatusOr<Program> program = compiled(split, options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->decisions(), HasSubstr("prelu"));
  expectNear(lossesOf(program), expected_);
  const auto wrong = [](const Tensor& x, const Tensor& slope) {
    return apply(prelu(), {x, slope}).front().shard({{"", "tp"}, {""}});
  };
  EXPECT_THAT(std::string(compiled(wrong, options).status().message()), HasSubstr("own_operator_test.cc"));
}

TEST_F(OwnOperatorTest, WithoutItsKernelThePlanIsRefused) {
  const absl::StatusOr<Program> program = compiled(ownPrelu);
  ASSERT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program, {.progress = false});
  EXPECT_THAT(std::string(trainer.status().message()), HasSubstr("no kernel 'prelu'"));
}

std::string messageOf(const OwnOperator& own, const Shape& slope = {8}) {
  const auto activation = [&](const Tensor& x, const Tensor&) {
    return apply(own, {x, x.graph() == nullptr ? x : reshape(slice(x, {0, 0}, {1, slope[0]}), slope)}).front();
  };
  Graph g;
  return std::string(compile(g, buildNet(g, activation), optim::Sgd{}).status().message());
}

TEST(OwnOperatorErrors, NameTheOperatorAndTheLine) {
  OwnOperator own = prelu();
  EXPECT_THAT(messageOf(own, {4}),
              AllOf(HasSubstr("own_operator_test.cc"), HasSubstr("prelu: takes x [.., channels] and slope")));
  own.name = "relu";
  EXPECT_THAT(messageOf(own), HasSubstr("there is an operator 'relu' already"));
  own.name = "My.Op";
  EXPECT_THAT(messageOf(own), HasSubstr("'My.Op' is no name of an operator"));
  own = prelu();
  own.rule = [](const std::vector<ValueType>&) { return "b c, c -> b"; };
  EXPECT_THAT(messageOf(own), AllOf(HasSubstr("prelu: its rule 'b c, c -> b'"), HasSubstr("own_operator_test.cc")));
  own = prelu();
  own.gradient = {};
  EXPECT_THAT(messageOf(own), HasSubstr("prelu has no gradient"));
  own.gradient = [](const OwnGradient& g) { return std::vector<Tensor>{g.resultGradients[0]}; };
  EXPECT_THAT(messageOf(own), HasSubstr("its gradient gives 1 tensors for 2 operands"));
  own.gradient = [](const OwnGradient& g) { return std::vector<Tensor>{g.resultGradients[0], g.resultGradients[0]}; };
  EXPECT_THAT(messageOf(own), HasSubstr("its gradient of operand 1 is 6x8xf32, the operand 8xf32"));
  own.gradient = [](const OwnGradient& g) {
    return std::vector<Tensor>{matmul(g.operands[0], g.operands[0]), Tensor()};
  };
  EXPECT_THAT(messageOf(own), AllOf(HasSubstr("prelu: its gradient: "), HasSubstr("matmul")));
}

}  // namespace
}  // namespace weft
