// f32 products through oneDNN against f64 through plain loops, over the shapes a transformer uses: weights, their
// gradients, attention. Tolerance: rounding of k additions of f32, bounded by k x 2^-24 x the sum of magnitudes; 4x for
// the scale of intermediate results.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel.h"
#include "runtime/base/random.h"

namespace weft {
namespace {

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) {
    n *= size;
  }
  return n;
}

struct Call {
  std::string name;
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> outputs;
  AttributeMap attributes;
  std::vector<int64_t> scalars;
};

template <typename T>
std::vector<std::vector<double>> runCall(const Call& call, const std::vector<std::vector<double>>& data) {
  const DType type = sizeof(T) == 8 ? DType::kF64 : DType::kF32;
  KernelSpec spec{call.name, {}, {}, call.attributes, call.scalars.size()};
  std::vector<std::vector<T>> inputs;
  std::vector<std::vector<T>> outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    spec.inputs.push_back({type, call.inputs[i]});
    inputs.emplace_back(data[i].begin(), data[i].end());
    in.push_back(inputs.back().data());
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    spec.outputs.push_back({type, call.outputs[i]});
    outputs.emplace_back(elements(call.outputs[i]), T(-77));
  }
  for (auto& values : outputs) {
    out.push_back(values.data());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i] = inputs[i].data();
  }
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = cpuKernels().create(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_LE((*kernel)->workspaceBytes(), workspaceBound(spec)) << call.name;
  std::vector<char> workspace((*kernel)->workspaceBytes() + 64);
  auto address = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
  KernelArguments args{in.data(), out.data(), call.scalars.data(), reinterpret_cast<void*>(address)};
  const absl::Status status = (*kernel)->run(args);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::vector<double>> result;
  for (const auto& values : outputs) {
    result.emplace_back(values.begin(), values.end());
  }
  return result;
}

// f32 against f64 on the same (f32-exact) numbers.
void compare(const Call& call, double tolerance) {
  std::vector<std::vector<double>> data;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    data.emplace_back();
    for (int64_t k = 0; k < elements(call.inputs[i]); ++k) {
      data.back().push_back(randomNormal({3, static_cast<uint32_t>(i), 0}, k));
    }
  }
  const auto single = runCall<float>(call, data);
  const auto wide = runCall<double>(call, data);
  for (size_t o = 0; o < wide.size(); ++o) {
    double largest = 0;
    double worst = 0;
    for (size_t k = 0; k < wide[o].size(); ++k) {
      largest = std::max(largest, std::abs(wide[o][k]));
      const double difference = std::abs(single[o][k] - wide[o][k]);
      worst = difference <= worst ? worst : difference;
    }
    EXPECT_LE(worst, tolerance * std::max(largest, 1e-3)) << call.name << " output " << o;
  }
}

Call contract(const std::string& spec, std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t> c) {
  return {"contract", {std::move(a), std::move(b)}, {std::move(c)}, {{"spec", spec}}, {}};
}

TEST(ContractionTest, TransformerShapes) {
  compare(contract("b t c, c q n -> b t q n", {16, 128, 192}, {192, 3, 192}, {16, 128, 3, 192}), 1e-5);
  compare(contract("b t c, b t q n -> c q n", {16, 128, 192}, {16, 128, 3, 192}, {192, 3, 192}), 1e-5);
  compare(contract("b t q n, c q n -> b t c", {16, 128, 3, 192}, {192, 3, 192}, {16, 128, 192}), 1e-5);
  compare(contract("b0 m k, b0 m n -> k n", {16, 128, 192}, {16, 128, 768}, {192, 768}), 1e-5);
  compare(contract("b0 m n, k n -> b0 m k", {16, 128, 768}, {192, 768}, {16, 128, 192}), 1e-5);
  compare(contract("b0 m n, n k -> b0 m k", {16, 128, 65}, {65, 192}, {16, 128, 192}), 1e-5);
  compare(contract("b0 m k, n k -> b0 m n", {16, 128, 192}, {65, 192}, {16, 128, 65}), 1e-5);
  compare(contract("b0 m k, b0 m n -> n k", {16, 128, 192}, {16, 128, 65}, {65, 192}), 1e-5);
  compare(contract("m k, n k -> n m", {24, 40}, {56, 40}, {56, 24}), 1e-5);
  compare(contract("a b k, c k b -> b a c", {4, 6, 10}, {5, 10, 6}, {6, 4, 5}), 1e-5);
}

TEST(ContractionTest, MatmulTransposesAndSmallSizes) {
  for (const int64_t ta : {0, 1}) {
    for (const int64_t tb : {0, 1}) {
      for (const int64_t m : {1, 7, 64}) {
        for (const int64_t n : {1, 5, 33}) {
          for (const int64_t k : {1, 9, 128}) {
            Call call{"matmul", {}, {{m, n}}, {{"transpose_a", ta}, {"transpose_b", tb}}, {}};
            call.inputs.push_back(ta != 0 ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k});
            call.inputs.push_back(tb != 0 ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n});
            compare(call, 1e-5);
          }
        }
      }
    }
  }
}

TEST(AttentionTest, ForwardAndGradient) {
  for (const int64_t rows : {32, 128}) {
    for (const int64_t width : {16, 32}) {
      const std::vector<int64_t> x = {2, 3, rows, width};
      const std::vector<int64_t> lse = {2, 3, rows};
      const AttributeMap attributes = {{"causal", int64_t{1}}, {"scale", 0.25}};
      compare({"attention", {x, x, x}, {x, lse}, attributes, {0}}, 1e-5);
      compare({"attention_grad", {x, x, x, x, lse, x}, {x, x, x}, attributes, {0}}, 1e-4);
    }
  }
}

}  // namespace
}  // namespace weft
