// Blocks of ranks with meshes of their own give the one-rank answer.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status.h"
#include "tests/equivalence/training_step.h"
#include "weft/weft.h"

namespace weft::testing {
namespace {

// Two matrix products on two stages; over f64, so that only wrong sums differ by more than rounding.
absl::StatusOr<std::string> twoMatmuls(const CompileOptions& options, int64_t batch) {
  Graph g;
  Tensor x = g.input("x", {batch, 8});
  Tensor hidden;
  {
    auto first = g.stage(0);
    hidden = relu(matmul(x, g.parameter("w0", {8, 12})));
  }
  Tensor loss;
  {
    auto second = g.stage(1);
    const Tensor y = g.input("y", {batch, 4});
    const Tensor error = sub(matmul(hidden, g.parameter("w1", {12, 4})), y);
    loss = mean(mul(error, error));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

NamedTensors randomFor(const plan::Plan& plan) {
  std::mt19937_64 generator(5);
  NamedTensors made;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_INPUT || tensor.kind() == plan::TENSOR_PARAMETER) {
      HostTensor value(DType::kF64, {tensor.shape().begin(), tensor.shape().end()});
      for (int64_t i = 0; i < value.elements(); ++i) {
        value.data<double>()[i] = static_cast<double>(generator() >> 11) * 0x1p-53 - 0.5;
      }
      made[tensor.name()] = std::move(value);
    }
  }
  return made;
}

TEST(StageMeshesTest, TwoMatmuls) {
  for (const char* meshes : {"dp=2;dp=1", "dp=1;dp=2", "dp=2;dp=3", "2;3", "dp=4;tp=2"}) {
    for (const int64_t micro : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(meshes, ", micro ", micro));
      CompileOptions options;
      options.gradientOutputs = true;
      const absl::StatusOr<std::string> serial = twoMatmuls(options, 72);
      ASSERT_TRUE(serial.ok()) << serial.status();
      absl::StatusOr<plan::Plan> onePlan =
          compileText(absl::StrReplaceAll(*serial, {{"nn.stage = 1", "nn.stage = 0"}}));
      ASSERT_TRUE(onePlan.ok()) << onePlan.status();
      const NamedTensors arguments = randomFor(*onePlan);
      const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
      ASSERT_TRUE(one.ok()) << one.status();
      options.stageMeshes = meshes;
      options.micro = micro;
      const absl::StatusOr<std::string> text = twoMatmuls(options, 72);
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(differenceFromOneRank(*text, *one, arguments), "");
    }
  }
}

}  // namespace
}  // namespace weft::testing
