// Runs small graphs in f64 on one rank: the values of a tensor, and its gradient against central differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace weft::testing {

using Reals = std::vector<double>;
using Build = std::function<Tensor(Graph& g, const Tensor& x)>;

// A compiled program of a graph, ready to run.
class Evaluator {
 public:
  explicit Evaluator(const absl::StatusOr<Program>& program) : kernels_(cpuKernels()) {
    if (!program.ok()) {
      ADD_FAILURE() << program.status();
      return;
    }
    auto executor = Executor::create(program->plan, kernels_);
    if (!executor.ok() || !(*executor)->runInit().ok()) {
      ADD_FAILURE() << executor.status();
      return;
    }
    executor_ = *std::move(executor);
  }

  Reals run(const Reals& x, const std::string& output) {
    Reals values;
    if (executor_ == nullptr) {
      return values;
    }
    absl::Status status = executor_->writeTensor("x", x.data(), x.size() * sizeof(double));
    status.Update(executor_->runStep());
    const absl::StatusOr<std::vector<char>> bytes = executor_->readTensor(output);
    if (!status.ok() || !bytes.ok()) {
      ADD_FAILURE() << status << " " << bytes.status();
      return values;
    }
    values.resize(bytes->size() / sizeof(double));
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }

 private:
  KernelRegistry kernels_;
  std::unique_ptr<Executor> executor_;
};

// The elements of what `build` makes of x, as f64; on several ranks the first dimension of x is split.
inline Reals valuesOf(const Shape& shape, const Reals& x, const Build& build, int devices = 1) {
  Graph g;
  const Tensor input = g.input("x", shape, kF64, {.batchDim = devices > 1 ? 0 : -1});
  const Tensor y = build(g, input);
  g.output("y", y.type() == kF64 ? y : cast(y, kF64));
  return Evaluator(compileForward(g, Tensor(), {.devices = devices})).run(x, "y");
}

// A sum of y's elements in which each has a weight of its own.
inline Tensor weightedSum(Graph& g, const Tensor& y) {
  const Tensor flat = reshape(y, {-1});
  return sum(flat * (1 + 0.37 * g.iota(flat.shape(), 0, kF64)));
}

// One step of gradient descent with rate 1, against central differences: step 1e-5 in f64 is right to about 1e-9 for
// values and third derivatives of order 10.
inline void expectGradient(const Shape& shape, const Reals& x, const Build& build) {
  Graph training;
  training.setParameterType(kF64);
  const Tensor parameter = training.parameter("x", shape);
  const Tensor loss = weightedSum(training, build(training, parameter));
  const Reals after = Evaluator(compile(training, loss, optim::Sgd{.lr = 1.0})).run(x, "x");
  Graph forward;
  const Tensor input = forward.input("x", shape, kF64, {.batchDim = -1});
  forward.output("total", weightedSum(forward, build(forward, input)));
  Evaluator evaluator(compileForward(forward, Tensor()));
  ASSERT_EQ(after.size(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    Reals moved = x;
    moved[i] = x[i] + 1e-5;
    const double above = evaluator.run(moved, "total").at(0);
    moved[i] = x[i] - 1e-5;
    const double below = evaluator.run(moved, "total").at(0);
    const double expected = (above - below) / 2e-5;
    EXPECT_NEAR(x[i] - after[i], expected, 1e-7 * (1 + std::abs(expected))) << "element " << i;
  }
}

inline void expectValues(const Reals& actual, const Reals& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_TRUE(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
          << i << ": " << actual[i];
    } else {
      EXPECT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
    }
  }
}

// 1, 2, 3, ...
inline Reals counted(size_t count) {
  Reals x(count);
  std::iota(x.begin(), x.end(), 1.0);
  return x;
}

// Values that keep away from 0 and from one another.
inline Reals someValues(size_t count) {
  Reals x(count);
  for (size_t i = 0; i < count; ++i) {
    x[i] = (i % 2 == 0 ? 1 : -1) * (0.3 + std::fmod(0.618034 * static_cast<double>(i + 1), 1.0));
  }
  return x;
}

}  // namespace weft::testing
