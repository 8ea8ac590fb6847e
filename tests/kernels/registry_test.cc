#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/describe/describe.h"
#include "runtime/base/arithmetic.h"
#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

// Every operator of the language that computes at run time.
const std::vector<std::string> kAll = {"neg",
                                       "abs",
                                       "sign",
                                       "floor",
                                       "ceil",
                                       "erf",
                                       "sin",
                                       "cos",
                                       "sigmoid",
                                       "silu",
                                       "softplus",
                                       "hard_swish",
                                       "leaky_relu",
                                       "elu",
                                       "sigmoid_grad",
                                       "silu_grad",
                                       "softplus_grad",
                                       "hard_swish_grad",
                                       "leaky_relu_grad",
                                       "elu_grad",
                                       "pow",
                                       "min",
                                       "cumsum",
                                       "prod",
                                       "prod_grad",
                                       "argmax",
                                       "argmin",
                                       "sort",
                                       "log_softmax",
                                       "log_softmax_grad",
                                       "gather",
                                       "scatter_add",
                                       "flip",
                                       "exp",
                                       "log",
                                       "sqrt",
                                       "rsqrt",
                                       "tanh",
                                       "relu",
                                       "gelu",
                                       "cast",
                                       "relu_grad",
                                       "gelu_grad",
                                       "tanh_grad",
                                       "add",
                                       "sub",
                                       "mul",
                                       "div",
                                       "maximum",
                                       "minimum",
                                       "compare",
                                       "select",
                                       "matmul",
                                       "contract",
                                       "reshape",
                                       "transpose",
                                       "slice",
                                       "pad",
                                       "concat",
                                       "broadcast",
                                       "sum",
                                       "mean",
                                       "max",
                                       "softmax",
                                       "layer_norm",
                                       "softmax_grad",
                                       "layer_norm_grad",
                                       "rms_norm",
                                       "rms_norm_grad",
                                       "rotary",
                                       "channel_sum",
                                       "channel_dot",
                                       "channel_affine",
                                       "sum_squares",
                                       "pick",
                                       "all_finite",
                                       "embedding",
                                       "embedding_grad",
                                       "pick_grad",
                                       "attention",
                                       "dropout",
                                       "random",
                                       "attention_grad",
                                       "fill",
                                       "iota",
                                       "sgd",
                                       "adam",
                                       "adam_direction",
                                       "rms_direction",
                                       "lion_direction",
                                       "descend",
                                       "mask_pad",
                                       "accumulate",
                                       "contract_accumulate",
                                       "dynamic_slice",
                                       "dynamic_update_slice",
                                       "softmax_cross_entropy",
                                       "softmax_cross_entropy_grad"};

TEST(Registry, HasEveryKernel) {
  const KernelRegistry registry = cpuKernels();
  for (const std::string& name : kAll) {
    EXPECT_TRUE(registry.contains(name)) << name;
  }
}

// A kernel that indexes operands it was not given would crash here.
TEST(Registry, NoOperandsAreAnErrorAndNotACrash) {
  const KernelRegistry registry = cpuKernels();
  for (const std::string& name : kAll) {
    const auto kernel = registry.create({name, {}, {}, {}, 0});
    EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(describe({name, {}, {}, {}, 0}, Target::kCpu).workspaceBytes % kAlignment, 0) << name;
  }
}

TEST(Registry, UnknownKernel) {
  expectError({"warp", {}, {}}, absl::StatusCode::kNotFound, "'warp'");
}

TEST(Registry, TakesAUsersKernel) {
  KernelRegistry registry = cpuKernels();
  registry.add("neg", [](const KernelSpec&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return absl::UnimplementedError("replaced");
  });
  EXPECT_EQ(registry.create({"neg", {}, {}, {}, 0}).status().code(), absl::StatusCode::kUnimplemented);
}

// What a description allows in place gives the same bits as separate memory.
struct InPlaceCase {
  Call call;
  std::vector<InPlacePair> pairs;
};

std::vector<InPlaceCase> inPlaceCases() {
  const DType f = DType::kF32;
  const Tensor x = sample(f, {5, 35}, 1, 0.5, 2);
  const Tensor y = sample(f, {5, 35}, 2, 0.5, 2);
  const Tensor row = sample(f, {35}, 3);
  const Tensor leading = sample(f, {5}, 4, 0.5, 2);
  const Tensor labels = tensor(DType::kI32, {5}, {0, 3, 34, -1, 7});
  std::vector<InPlaceCase> cases;
  for (const char* name :
       {"neg",  "exp",   "log",  "sqrt", "rsqrt", "tanh", "relu",    "softmax", "log_softmax", "abs",
        "sign", "floor", "ceil", "erf",  "sin",   "cos",  "sigmoid", "silu",    "softplus",    "hard_swish"}) {
    cases.push_back({{name, {x}, {x.spec()}}, {{0, 0}}});
  }
  for (const char* name :
       {"relu_grad", "tanh_grad", "sigmoid_grad", "silu_grad", "softplus_grad", "hard_swish_grad", "softmax_grad",
        "log_softmax_grad", "add", "sub", "mul", "div", "pow", "maximum", "minimum"}) {
    cases.push_back({{name, {x, y}, {x.spec()}}, {{0, 0}, {1, 0}}});
  }
  for (const char* form : {"tanh", "none"}) {
    cases.push_back({{"gelu", {x}, {x.spec()}, {{"approximate", form}}}, {{0, 0}}});
    cases.push_back({{"gelu_grad", {x, y}, {x.spec()}, {{"approximate", form}}}, {{0, 0}, {1, 0}}});
  }
  for (const auto& [name, number] : {std::pair("leaky_relu", "slope"), std::pair("elu", "alpha")}) {
    cases.push_back({{name, {x}, {x.spec()}, {{number, 0.3}}}, {{0, 0}}});
    cases.push_back({{absl::StrCat(name, "_grad"), {x, y}, {x.spec()}, {{number, 0.3}}}, {{0, 0}, {1, 0}}});
  }
  cases.push_back({{"cumsum", {x}, {x.spec()}, {{"dim", int64_t{0}}}}, {{0, 0}}});
  cases.push_back({{"add", {x, row}, {x.spec()}}, {{0, 0}}});
  const Tensor one = sample(f, {1, 5, 35}, 8);
  cases.push_back({{"add", {x, one}, {one.spec()}}, {{0, 0}, {1, 0}}});
  cases.push_back({{"select", {tensor(DType::kBool, {5, 1}, {1, 0, 1, 0, 1}), x, y}, {x.spec()}}, {{1, 0}, {2, 0}}});
  cases.push_back({{"reshape", {x}, {{f, {35, 5}}}}, {{0, 0}}});
  cases.push_back({{"accumulate", {x, y}, {x.spec()}, {}, {0}}, {{0, 0}}});
  cases.push_back({{"accumulate", {x, y}, {x.spec()}, {}, {1}}, {{0, 0}}});
  cases.push_back({{"accumulate", {x, y}, {x.spec()}, {{"reduce", "max"}}, {1}}, {{0, 0}}});
  cases.push_back(
      {{"contract_accumulate", {sample(f, {35, 35}, 9), x, y}, {{f, {35, 35}}}, {{"spec", "k m, k n -> m n"}}, {2}},
       {{0, 0}}});
  cases.push_back({{"dynamic_update_slice", {x, sample(f, {2, 9}, 8)}, {x.spec()}, {}, {3, 4}}, {{0, 0}}});
  cases.push_back(
      {{"mask_pad", {x}, {x.spec()}, {{"dims", Ints{0}}, {"valid", Ints{3}}, {"fill", 7.0}}, {0}}, {{0, 0}}});
  cases.push_back({{"dropout",
                    {x, scalar(DType::kI32, 3)},
                    {x.spec()},
                    {{"rate", 0.5}, {"seed", int64_t{1}}, {"key", int64_t{2}}, {"global_shape", Ints{5, 35}}},
                    {0, 0}},
                   {{0, 0}}});
  cases.push_back(
      {{"softmax_cross_entropy_grad", {x, labels, leading, leading}, {x.spec()}, {{"ignore_index", int64_t{-1}}}, {0}},
       {{0, 0}}});
  cases.push_back(
      {{"layer_norm", {x, row, row}, {x.spec(), leading.spec(), leading.spec()}, {{"epsilon", 1e-5}}}, {{0, 0}}});
  cases.push_back(
      {{"layer_norm_grad", {x, row, leading, leading, y}, {x.spec(), row.spec(), row.spec()}}, {{0, 0}, {4, 0}}});
  cases.push_back({{"rms_norm", {x, row}, {x.spec(), leading.spec()}}, {{0, 0}}});
  cases.push_back({{"rms_norm_grad", {x, row, leading, y}, {x.spec(), row.spec()}}, {{0, 0}, {3, 0}}});
  const Tensor even = sample(f, {2, 5, 6}, 9);
  const Tensor table = sample(f, {5, 3}, 10);
  for (const int64_t interleaved : {0, 1}) {
    cases.push_back({{"rotary", {even, table, table}, {even.spec()}, {{"interleaved", interleaved}}}, {{0, 0}}});
  }
  const Tensor rows = sample(f, {6, 5, 7}, 5);
  const Tensor other = sample(f, {6, 5, 7}, 6);
  const Tensor statistic = sample(f, {2, 5}, 7);
  cases.push_back({{"channel_affine", {rows, statistic, statistic}, {rows.spec()}}, {{0, 0}}});
  cases.push_back({{"channel_affine", {rows, statistic, other, statistic, statistic}, {rows.spec()}}, {{0, 0}}});
  const Tensor lr = scalar(f, 0.1);
  cases.push_back({{"sgd", {x, y, x, lr}, {x.spec(), x.spec()}, {{"momentum", 0.9}}}, {{0, 0}, {2, 1}}});
  cases.push_back(
      {{"adam", {x, y, x, y, lr, scalar(DType::kI32, 2)}, {x.spec(), x.spec(), x.spec()}}, {{0, 0}, {2, 1}, {3, 2}}});
  const Tensor squares = sample(f, {5, 35}, 8, 0, 1);
  cases.push_back({{"adam_direction", {y, x, squares, scalar(DType::kI32, 2)}, {x.spec(), x.spec(), x.spec()}},
                   {{0, 0}, {1, 1}, {2, 2}}});
  cases.push_back(
      {{"rms_direction", {y, squares}, {x.spec(), x.spec()}, {{"decay", 0.9}, {"gain", 0.1}}}, {{0, 0}, {1, 1}}});
  cases.push_back({{"lion_direction", {y, x}, {x.spec(), x.spec()}}, {{0, 0}, {1, 1}}});
  cases.push_back({{"descend", {x, y, lr, lr}, {x.spec()}, {{"weight_decay", 0.5}}}, {{0, 0}, {1, 0}}});
  return cases;
}

TEST(InPlace, GivesTheSameBits) {
  for (const InPlaceCase& c : inPlaceCases()) {
    const std::vector<Tensor> apart = run(c.call);
    EXPECT_EQ(describe(specOf(c.call), Target::kCpu).inPlace, c.pairs) << c.call.name;
    for (const InPlacePair& pair : c.pairs) {
      SCOPED_TRACE(absl::StrCat(c.call.name, ": output ", pair.output, " in place of input ", pair.input));
      Call call = c.call;
      call.inPlace = pair;
      const std::vector<Tensor> together = run(call);
      for (size_t r = 0; r < apart.size(); ++r) {
        expectSame(together[r], apart[r]);
      }
    }
  }
}

// And nothing is allowed that the test above does not run: asked with more operands of one shape than any kernel has.
TEST(InPlace, IsTestedWhereAllowed) {
  const std::vector<TensorSpec> inputs(8, {DType::kF32, {4, 4}});
  const std::vector<TensorSpec> outputs(4, {DType::kF32, {4, 4}});
  for (const std::string& name : kAll) {
    const KernelDescription description = describe({name, inputs, outputs, {}, 0}, Target::kCpu);
    for (const InPlacePair& pair : description.inPlace) {
      const std::vector<InPlaceCase> cases = inPlaceCases();
      EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                              [&](const InPlaceCase& c) {
                                return c.call.name == name &&
                                       std::find(c.pairs.begin(), c.pairs.end(), pair) != c.pairs.end();
                              }))
          << name << " input " << pair.input << " output " << pair.output;
    }
  }
}

// Operands of other sizes or types never share memory.
TEST(InPlace, OnlyWhereTheBytesFit) {
  const TensorSpec large = {DType::kF32, {4, 4}};
  for (const TensorSpec& other : {TensorSpec{DType::kF32, {4}}, TensorSpec{DType::kI32, {4, 4}}}) {
    EXPECT_EQ(describe({"add", {large, other}, {large}, {}, 0}, Target::kCpu).inPlace,
              (std::vector<InPlacePair>{{0, 0}}));
  }
  EXPECT_TRUE(describe({"add", {large, large}, {}, {}, 0}, Target::kCpu).inPlace.empty());
}

}  // namespace
}  // namespace weft::testing
