#include <cmath>
#include <complex>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const std::vector<DType> kFloats = {DType::kF32, DType::kF64};

Reals softmaxReference(const Reals& x, int64_t width) {
  Reals y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double most = x[row];
    double total = 0;
    for (int64_t i = 0; i < width; ++i) {
      most = std::max(most, x[row + i]);
    }
    for (int64_t i = 0; i < width; ++i) {
      total += y[row + i] = std::exp(x[row + i] - most);
    }
    for (int64_t i = 0; i < width; ++i) {
      y[row + i] /= total;
    }
  }
  return y;
}

double dot(const Reals& a, const Reals& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    total += a[i] * b[i];
  }
  return total;
}

TEST(Softmax, RowsOfTheLastDimension) {
  for (const DType type : kFloats) {
    for (const Ints& shape : std::vector<Ints>{{7}, {3, 1}, {2, 3, 40}, {0, 4}}) {
      const Tensor x = sample(type, shape, 1, -20, 20);
      // x - max is rounded once: an error of up to 40 eps in the exponent is one of 40 eps in the result.
      expectNear(runOne({"softmax", {x}, {x.spec()}, {{"dim", static_cast<int64_t>(shape.size()) - 1}}}),
                 softmaxReference(x.values, shape.back()), {48 * epsilonOf(type), 0});
    }
  }
  // Large inputs do not overflow.
  expectNear(runOne({"softmax", {tensor(DType::kF32, {2}, {1e30, 1e30})}, {{DType::kF32, {2}}}}), {0.5, 0.5}, {});
  const Tensor x = sample(DType::kF32, {2, 3}, 1);
  expectError({"softmax", {x}, {x.spec()}, {{"dim", int64_t{0}}}}, kInvalid, "last dimension, 1, it was given 0");
}

TEST(SoftmaxGrad, AgreesWithDifferences) {
  for (const DType type : kFloats) {
    const Tensor x = sample(DType::kF64, {3, 19}, 2, -2, 2);
    const Tensor dy = sample(type, {3, 19}, 3);
    const Reals expected =
        numericGradient([&](const Reals& at) { return dot(softmaxReference(at, 19), dy.values); }, x.values);
    const Tensor y = tensor(type, {3, 19}, softmaxReference(x.values, 19));
    // Differences are right to 1e-9; in f32 values below 1 are rounded a few times.
    expectNear(runOne({"softmax_grad", {y, dy}, {y.spec()}}), expected, {0, type == DType::kF32 ? 4e-7 : 1e-9});
  }
}

struct Norm {
  Reals y, mean, rstd;
};

Norm normReference(const Reals& x, const Reals& gamma, const Reals& beta, double epsilon) {
  const size_t width = gamma.size();
  Norm norm{Reals(x.size()), {}, {}};
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0;
    double variance = 0;
    for (size_t i = 0; i < width; ++i) {
      mean += x[row + i] / static_cast<double>(width);
    }
    for (size_t i = 0; i < width; ++i) {
      variance += std::pow(x[row + i] - mean, 2) / static_cast<double>(width);
    }
    norm.mean.push_back(mean);
    norm.rstd.push_back(1 / std::sqrt(variance + epsilon));
    for (size_t i = 0; i < width; ++i) {
      norm.y[row + i] = (x[row + i] - mean) * norm.rstd.back() * gamma[i] + beta[i];
    }
  }
  return norm;
}

TEST(LayerNorm, StatisticsAndResult) {
  for (const DType type : kFloats) {
    for (const Ints& shape : std::vector<Ints>{{35}, {4, 1}, {2, 3, 40}, {0, 4}}) {
      // A mean far from 0: the variance would be lost in f32 sums.
      const Tensor x = sample(type, shape, 4, 1000, 1001);
      const Tensor gamma = sample(type, {shape.back()}, 5);
      const Tensor beta = sample(type, {shape.back()}, 6);
      const Norm expected = normReference(x.values, gamma.values, beta.values, 1e-5);
      const Ints leading(shape.begin(), shape.end() - 1);
      const auto results =
          run({"layer_norm", {x, gamma, beta}, {x.spec(), {type, leading}, {type, leading}}, {{"epsilon", 1e-5}}});
      // Normal values are below 10 (a bound for width 40) and rounded thrice. In f64 the mean of 1000 is rounded too:
      // relative to deviations of 0.3 that is 3000 eps, and rstd reaches 316 for width 1.
      const double slack = type == DType::kF32 ? 30 : 1e6;
      expectNear(results[0], expected.y, {0, slack * epsilonOf(type)});
      expectNear(results[1], expected.mean, {64 * epsilonOf(type), 0});
      expectNear(results[2], expected.rstd, {(type == DType::kF32 ? 2 : 1e5) * epsilonOf(type), 0});
    }
  }
}

TEST(LayerNormGrad, AgreesWithDifferences) {
  for (const DType type : kFloats) {
    const Ints shape = {2, 3, 18};
    const Tensor x = sample(type, shape, 7, -2, 3);
    const Tensor gamma = sample(type, {18}, 8);
    const Tensor beta = sample(type, {18}, 9);
    const Tensor dy = sample(type, shape, 10);
    const Norm norm = normReference(x.values, gamma.values, beta.values, 1e-5);
    const auto loss = [&](const Reals& at, const Reals& g, const Reals& b) {
      return dot(normReference(at, g, b, 1e-5).y, dy.values);
    };
    const auto results = run({"layer_norm_grad",
                              {x, gamma, tensor(type, {2, 3}, norm.mean), tensor(type, {2, 3}, norm.rstd), dy},
                              {x.spec(), gamma.spec(), gamma.spec()}});
    // Differences are right to 1e-8; f32 rounds mean and rstd once each and the result once, values below 10.
    const Tolerance tolerance{0, type == DType::kF32 ? 64 * epsilonOf(type) : 1e-8};
    expectNear(results[0],
               numericGradient([&](const Reals& at) { return loss(at, gamma.values, beta.values); }, x.values),
               tolerance);
    expectNear(results[1],
               numericGradient([&](const Reals& at) { return loss(x.values, at, beta.values); }, gamma.values),
               tolerance);
    expectNear(results[2],
               numericGradient([&](const Reals& at) { return loss(x.values, gamma.values, at); }, beta.values),
               tolerance);
  }
}

TEST(LayerNorm, EpsilonIsASmallNumberUnlessTold) {
  const Tensor x = sample(DType::kF64, {2, 5}, 11, 0, 1e-2);
  const Tensor row = sample(DType::kF64, {5}, 12);
  const TensorSpec leading{DType::kF64, {2}};
  const Call call{"layer_norm", {x, row, row}, {x.spec(), leading, leading}};
  // 1e-5 is as large as the variance here.
  expectNear(run(call)[0], normReference(x.values, row.values, row.values, 1e-5).y, {0, 1e-14});
}

TEST(LayerNorm, Errors) {
  const Tensor x = sample(DType::kF32, {2, 3}, 1);
  const Tensor row = sample(DType::kF32, {3}, 1);
  const Tensor wrong = sample(DType::kF32, {2}, 1);
  const TensorSpec leading{DType::kF32, {2}};
  expectError({"layer_norm", {x, wrong, row}, {x.spec(), leading, leading}, {{"epsilon", 1e-5}}}, kInvalid,
              "input 1 is f32 [2], it must be f32 [3]");
  expectError({"layer_norm", {x, row, row}, {x.spec(), row.spec(), leading}, {{"epsilon", 1e-5}}}, kInvalid,
              "output 1");
}

Reals rmsReference(const Reals& x, const Reals& gamma, double epsilon) {
  const size_t width = gamma.size();
  Reals y;
  for (size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) {
      squares += x[row + i] * x[row + i];
    }
    for (size_t i = 0; i < width; ++i) {
      y.push_back(gamma[i] * x[row + i] / std::sqrt(squares / static_cast<double>(width) + epsilon));
    }
  }
  return y;
}

TEST(RmsNorm, FollowsTheDefinitionAndItsDifferences) {
  for (const DType type : kFloats) {
    for (const Ints& shape : std::vector<Ints>{{35}, {4, 1}, {2, 3, 40}, {0, 4}}) {
      const Tensor x = sample(type, shape, 4, -2, 3);
      const Tensor gamma = sample(type, {shape.back()}, 5);
      const Tensor dy = sample(type, shape, 6);
      const TensorSpec leading = {type, Ints(shape.begin(), shape.end() - 1)};
      const auto results = run({"rms_norm", {x, gamma}, {x.spec(), leading}, {{"epsilon", 0.01}}});
      // Normal values are below 7, the root of the width, and rounded thrice.
      expectNear(results[0], rmsReference(x.values, gamma.values, 0.01), {0, 30 * epsilonOf(type)});
      const auto gradients = run(
          {"rms_norm_grad", {x, gamma, tensor(type, leading.shape, results[1].values), dy}, {x.spec(), gamma.spec()}});
      const auto loss = [&](const Reals& at, const Reals& g) { return dot(rmsReference(at, g, 0.01), dy.values); };
      const Tolerance tolerance{0, type == DType::kF32 ? 128 * epsilonOf(type) : 1e-8};
      expectNear(gradients[0], numericGradient([&](const Reals& at) { return loss(at, gamma.values); }, x.values),
                 tolerance);
      expectNear(gradients[1], numericGradient([&](const Reals& at) { return loss(x.values, at); }, gamma.values),
                 tolerance);
    }
  }
}

TEST(RmsNorm, Errors) {
  const Tensor x = sample(DType::kF32, {2, 3}, 1);
  const Tensor wrong = sample(DType::kF32, {2}, 1);
  const TensorSpec leading{DType::kF32, {2}};
  expectError({"rms_norm", {x, wrong}, {x.spec(), leading}}, kInvalid, "input 1 is f32 [2], it must be f32 [3]");
}

// Each pair is a vector that turns by its angle: as complex numbers, a product with e^(i angle).
TEST(Rotary, TurnsPairs) {
  for (const DType type : kFloats) {
    const Tensor x = sample(type, {2, 3, 6}, 7);
    const Tensor angles = sample(type, {3, 3}, 8, -3, 3);
    Reals cosines, sines;
    for (const double angle : angles.values) {
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
    const Tensor cos = tensor(type, {3, 3}, cosines);
    const Tensor sin = tensor(type, {3, 3}, sines);
    for (const bool interleaved : {false, true}) {
      const AttributeMap attributes = {{"interleaved", int64_t{interleaved ? 1 : 0}}};
      const Tensor y = run({"rotary", {x, cos, sin}, {x.spec()}, attributes})[0];
      Reals expected(x.values.size());
      for (size_t row = 0; row < 6; ++row) {
        for (size_t i = 0; i < 3; ++i) {
          const size_t a = row * 6 + (interleaved ? 2 * i : i);
          const size_t b = row * 6 + (interleaved ? 2 * i + 1 : i + 3);
          const std::complex<double> turned =
              std::complex<double>(x.values[a], x.values[b]) * std::polar(1.0, angles.values[row % 3 * 3 + i]);
          expected[a] = turned.real();
          expected[b] = turned.imag();
        }
      }
      expectNear(y, expected, {0, 4 * epsilonOf(type)});
      AttributeMap back = attributes;
      back["inverse"] = int64_t{1};
      expectNear(run({"rotary", {y, cos, sin}, {x.spec()}, back})[0], x.values, {0, 8 * epsilonOf(type)});
    }
  }
}

TEST(Rotary, Errors) {
  const Tensor odd = sample(DType::kF32, {4, 3}, 1);
  const Tensor even = sample(DType::kF32, {4, 6}, 1);
  const Tensor table = sample(DType::kF32, {4, 2}, 1);
  expectError({"rotary", {odd, table, table}, {odd.spec()}}, kInvalid, "rows of 3");
  expectError({"rotary", {even, table, table}, {even.spec()}}, kInvalid, "input 1 is f32 [4,2], it must be f32 [4,3]");
}

}  // namespace
}  // namespace weft::testing
