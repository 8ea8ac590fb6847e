#include <set>

#include "kernels/describe/kernel_spec.h"
#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

// Every operator of the language that computes at run time.
const std::vector<std::string> kAll = {"neg",
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
                                       "mask_pad",
                                       "accumulate",
                                       "dynamic_slice",
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
    EXPECT_EQ(workspaceBound({name, {}, {}, {}, 0}) % 64, 0) << name;
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

// What mayRunInPlace allows gives the same bits as separate memory.
struct InPlaceCase {
  Call call;
  std::set<size_t> inputs;
};

std::vector<InPlaceCase> inPlaceCases() {
  const DType f = DType::kF32;
  const Tensor x = sample(f, {5, 35}, 1, 0.5, 2);
  const Tensor y = sample(f, {5, 35}, 2, 0.5, 2);
  const Tensor row = sample(f, {35}, 3);
  const Tensor leading = sample(f, {5}, 4, 0.5, 2);
  const Tensor labels = tensor(DType::kI32, {5}, {0, 3, 34, -1, 7});
  std::vector<InPlaceCase> cases;
  for (const char* name : {"neg", "exp", "log", "sqrt", "rsqrt", "tanh", "relu", "softmax"}) {
    cases.push_back({{name, {x}, {x.spec()}}, {0}});
  }
  for (const char* name :
       {"relu_grad", "tanh_grad", "softmax_grad", "add", "sub", "mul", "div", "maximum", "minimum"}) {
    cases.push_back({{name, {x, y}, {x.spec()}}, {0, 1}});
  }
  for (const char* form : {"tanh", "none"}) {
    cases.push_back({{"gelu", {x}, {x.spec()}, {{"approximate", form}}}, {0}});
    cases.push_back({{"gelu_grad", {x, y}, {x.spec()}, {{"approximate", form}}}, {0, 1}});
  }
  cases.push_back({{"add", {x, row}, {x.spec()}}, {0}});
  cases.push_back({{"select", {tensor(DType::kBool, {5, 1}, {1, 0, 1, 0, 1}), x, y}, {x.spec()}}, {1, 2}});
  cases.push_back({{"reshape", {x}, {{f, {35, 5}}}}, {0}});
  cases.push_back({{"accumulate", {x, y}, {x.spec()}, {}, {0}}, {0}});
  cases.push_back({{"accumulate", {x, y}, {x.spec()}, {}, {1}}, {0}});
  cases.push_back({{"mask_pad", {x}, {x.spec()}, {{"dims", Ints{0}}, {"valid", Ints{3}}, {"fill", 7.0}}, {0}}, {0}});
  cases.push_back({{"dropout",
                    {x, scalar(DType::kI32, 3)},
                    {x.spec()},
                    {{"rate", 0.5}, {"seed", int64_t{1}}, {"key", int64_t{2}}, {"global_shape", Ints{5, 35}}},
                    {0, 0}},
                   {0}});
  cases.push_back(
      {{"softmax_cross_entropy_grad", {x, labels, leading, leading}, {x.spec()}, {{"ignore_index", int64_t{-1}}}, {0}},
       {0}});
  cases.push_back(
      {{"layer_norm", {x, row, row}, {x.spec(), leading.spec(), leading.spec()}, {{"epsilon", 1e-5}}}, {0}});
  cases.push_back({{"layer_norm_grad", {x, row, leading, leading, y}, {x.spec(), row.spec(), row.spec()}}, {0, 4}});
  const Tensor rows = sample(f, {6, 5, 7}, 5);
  const Tensor other = sample(f, {6, 5, 7}, 6);
  const Tensor statistic = sample(f, {2, 5}, 7);
  cases.push_back({{"channel_affine", {rows, statistic, statistic}, {rows.spec()}}, {0}});
  cases.push_back({{"channel_affine", {rows, statistic, other, statistic, statistic}, {rows.spec()}}, {0}});
  const Tensor lr = scalar(f, 0.1);
  cases.push_back({{"sgd", {x, y, x, lr}, {x.spec(), x.spec()}, {{"momentum", 0.9}}}, {0}});
  cases.push_back({{"adam", {x, y, x, y, lr, scalar(DType::kI32, 2)}, {x.spec(), x.spec(), x.spec()}}, {0}});
  return cases;
}

TEST(InPlace, GivesTheSameBits) {
  for (const InPlaceCase& c : inPlaceCases()) {
    const std::vector<Tensor> apart = run(c.call);
    for (size_t i = 0; i < c.call.inputs.size(); ++i) {
      SCOPED_TRACE(c.call.name + " in place on input " + std::to_string(i));
      if (c.inputs.count(i) == 0) {
        continue;
      }
      EXPECT_TRUE(mayRunInPlace(c.call.name, i));
      Call call = c.call;
      call.inPlace = i;
      const std::vector<Tensor> together = run(call);
      for (size_t r = 0; r < apart.size(); ++r) {
        expectSame(together[r], apart[r]);
      }
    }
  }
}

// And nothing is allowed that the test above does not run.
TEST(InPlace, IsTestedWhereAllowed) {
  for (const std::string& name : kAll) {
    for (size_t i = 0; i < 7; ++i) {
      bool tested = false;
      for (const InPlaceCase& c : inPlaceCases()) {
        tested = tested || (c.call.name == name && c.inputs.count(i) > 0);
      }
      EXPECT_EQ(mayRunInPlace(name, i), tested) << name << " input " << i;
    }
  }
}

}  // namespace
}  // namespace weft::testing
