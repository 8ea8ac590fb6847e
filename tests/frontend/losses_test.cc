// The losses against their formulas, and their gradients against differences.
#include <algorithm>

#include "tests/frontend/evaluate.h"

namespace weft::testing {
namespace {

// A few roundings of f64.
constexpr double kRounding = 1e-13;

// Prediction and target are the halves of x.
Tensor half(const Tensor& x, int64_t which) {
  return squeeze(narrow(x, 0, which, 1), {0});
}

Reals paired(const Reals& x, const std::function<double(double, double)>& f) {
  const size_t count = x.size() / 2;
  Reals y;
  for (size_t i = 0; i < count; ++i) {
    y.push_back(f(x[i], x[count + i]));
  }
  return y;
}

double total(const Reals& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

using Loss = std::function<Tensor(const Tensor& a, const Tensor& b, LossReduction reduction)>;

void checkLoss(const Loss& loss, const std::function<double(double, double)>& f) {
  const Reals x = someValues(24);
  const Reals each = paired(x, f);
  const auto of = [&](LossReduction reduction) {
    return [&loss, reduction](Graph&, const Tensor& input) { return loss(half(input, 0), half(input, 1), reduction); };
  };
  expectValues(valuesOf({2, 3, 4}, x, of(LossReduction::kNone)), each, kRounding);
  expectValues(valuesOf({2, 3, 4}, x, of(LossReduction::kSum)), {total(each)}, kRounding);
  expectValues(valuesOf({2, 3, 4}, x, of(LossReduction::kMean)), {total(each) / 12}, kRounding);
  expectGradient({2, 3, 4}, x, of(LossReduction::kNone));
}

TEST(Losses, OfDifferences) {
  checkLoss([](const Tensor& a, const Tensor& b, LossReduction r) { return mseLoss(a, b, r); },
            [](double a, double b) { return (a - b) * (a - b); });
  checkLoss([](const Tensor& a, const Tensor& b, LossReduction r) { return l1Loss(a, b, r); },
            [](double a, double b) { return std::abs(a - b); });
  checkLoss([](const Tensor& a, const Tensor& b, LossReduction r) { return huberLoss(a, b, 0.8, r); },
            [](double a, double b) {
              const double d = std::abs(a - b);
              return d <= 0.8 ? d * d / 2 : 0.8 * (d - 0.4);
            });
  checkLoss([](const Tensor& a, const Tensor& b, LossReduction r) { return smoothL1Loss(a, b, 0.8, r); },
            [](double a, double b) {
              const double d = std::abs(a - b);
              return d <= 0.8 ? d * d / 1.6 : d - 0.4;
            });
}

TEST(Losses, BinaryCrossEntropy) {
  for (const double weight : {1.0, 2.5}) {
    checkLoss([=](const Tensor& a, const Tensor& b,
                  LossReduction r) { return bceWithLogits(a, b, {.positiveWeight = weight, .reduction = r}); },
              [=](double x, double t) {
                const double s = 1 / (1 + std::exp(-x));
                return -(weight * t * std::log(s) + (1 - t) * std::log(1 - s));
              });
  }
  const Build far = [](Graph&, const Tensor& x) {
    return bceWithLogits(x, 0 * x + 1, {.reduction = LossReduction::kNone});
  };
  expectValues(valuesOf({2}, {-1000, 1000}, far), {1000, 0}, kRounding);
}

// Rows of 4 of `x`.
Reals rowOf(const Reals& x, size_t r) {
  return {x.begin() + static_cast<int64_t>(4 * r), x.begin() + static_cast<int64_t>(4 * r + 4)};
}

Reals logSoftmaxOf(Reals row) {
  double sum = 0;
  for (const double value : row) {
    sum += std::exp(value);
  }
  for (double& value : row) {
    value -= std::log(sum);
  }
  return row;
}

TEST(Losses, KlDivergence) {
  const Reals x = someValues(24);
  Reals expected;
  for (size_t r = 0; r < 3; ++r) {
    const Reals q = logSoftmaxOf(rowOf(x, r));
    const Reals p = logSoftmaxOf(rowOf(x, 3 + r));
    expected.push_back(0);
    for (size_t i = 0; i < 4; ++i) {
      expected.back() += std::exp(p[i]) * (p[i] - q[i]);
    }
  }
  const auto build = [](LossReduction reduction) {
    return [reduction](Graph&, const Tensor& input) {
      return klDivergence(logSoftmax(half(input, 0)), softmax(half(input, 1)), reduction);
    };
  };
  expectValues(valuesOf({2, 3, 4}, x, build(LossReduction::kNone)), expected, kRounding);
  expectValues(valuesOf({2, 3, 4}, x, build(LossReduction::kMean)), {total(expected) / 3}, kRounding);
  expectGradient({2, 3, 4}, x, build(LossReduction::kNone));
  // What cannot happen costs nothing, even where it is held impossible.
  const Build zero = [](Graph&, const Tensor& input) { return klDivergence(log(half(input, 0)), half(input, 1)); };
  expectValues(valuesOf({2, 2}, {1, 0, 1, 0}, zero), {0}, 0);
}

TEST(Losses, CosineSimilarity) {
  const Reals x = someValues(24);
  const Build build = [](Graph&, const Tensor& input) { return cosineSimilarity(half(input, 0), half(input, 1), 0); };
  Reals expected;
  for (size_t i = 0; i < 4; ++i) {
    double ab = 0;
    double aa = 0;
    double bb = 0;
    for (size_t r = 0; r < 3; ++r) {
      const double a = x[4 * r + i];
      const double b = x[12 + 4 * r + i];
      ab += a * b;
      aa += a * a;
      bb += b * b;
    }
    expected.push_back(ab / std::sqrt(aa * bb));
  }
  expectValues(valuesOf({2, 3, 4}, x, build), expected, kRounding);
  expectGradient({2, 3, 4}, x, build);
  expectValues(valuesOf({2, 3, 4}, Reals(24, 0.0), build), Reals(4, 0.0), 0);
}

// -sum of p log softmax(x), p smoothed.
double crossEntropyOf(const Reals& row, Reals p, double smoothing) {
  const Reals log = logSoftmaxOf(row);
  double loss = 0;
  for (size_t i = 0; i < 4; ++i) {
    loss -= ((1 - smoothing) * p[i] + smoothing / 4) * log[i];
  }
  return loss;
}

TEST(Losses, CrossEntropyOfLabels) {
  const Reals x = someValues(16);
  for (const double smoothing : {0.0, 0.3}) {
    // Labels 0, 1, 2 and one that is ignored, 3.
    const auto build = [&](LossReduction reduction) {
      return [=](Graph& g, const Tensor& input) {
        return crossEntropy(input, g.iota({4}, 0, kI32),
                            {.labelSmoothing = smoothing, .ignoreIndex = 3, .reduction = reduction});
      };
    };
    Reals expected;
    for (size_t r = 0; r < 3; ++r) {
      Reals p(4, 0.0);
      p[r] = 1;
      expected.push_back(crossEntropyOf(rowOf(x, r), p, smoothing));
    }
    expected.push_back(0);
    expectValues(valuesOf({4, 4}, x, build(LossReduction::kNone)), expected, kRounding);
    expectValues(valuesOf({4, 4}, x, build(LossReduction::kMean)), {total(expected) / 3}, kRounding);
    expectValues(valuesOf({4, 4}, x, build(LossReduction::kMean), 2), {total(expected) / 3}, kRounding);
    expectValues(valuesOf({4, 4}, x, build(LossReduction::kSum)), {total(expected)}, kRounding);
    expectGradient({4, 4}, x, build(LossReduction::kNone));
  }
}

TEST(Losses, CrossEntropyOfProbabilities) {
  const Reals x = someValues(24);
  for (const double smoothing : {0.0, 0.3}) {
    const Build build = [=](Graph&, const Tensor& input) {
      return crossEntropy(half(input, 0), softmax(half(input, 1)), {.labelSmoothing = smoothing});
    };
    double expected = 0;
    for (size_t r = 0; r < 3; ++r) {
      Reals p = logSoftmaxOf(rowOf(x, 3 + r));
      std::transform(p.begin(), p.end(), p.begin(), [](double value) { return std::exp(value); });
      expected += crossEntropyOf(rowOf(x, r), p, smoothing) / 3;
    }
    expectValues(valuesOf({2, 3, 4}, x, build), {expected}, kRounding);
    expectGradient({2, 3, 4}, x, build);
  }
}

}  // namespace
}  // namespace weft::testing
