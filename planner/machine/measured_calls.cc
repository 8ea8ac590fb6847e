#include "planner/machine/measured_calls.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace weft {
namespace {

constexpr size_t kMostSizes = 4;
// Squares of doublings: calls nearer than this weigh alike.
constexpr double kNear = 0.05;
// What slopes are held down with, beside a weighted variance of the sizes in squares of doublings.
constexpr double kRidge = 0.01;

using Sizes = std::array<double, kMostSizes>;

double logOf(double size) {
  return std::log2(size + 1);
}

// In doublings; what a kernel does not have is 0.
Sizes sizesOf(const KernelWork& work) {
  const double bytes = logOf(static_cast<double>(work.bytes));
  if (!work.product) {
    return {logOf(work.flops), bytes, 0, 0};
  }
  const ProductShape& shape = *work.product;
  return {logOf(static_cast<double>(shape.batch) * static_cast<double>(shape.m)), logOf(static_cast<double>(shape.n)),
          logOf(static_cast<double>(shape.k)), bytes};
}

bool isOf(const KernelProfile& profile, const KernelWork& work) {
  return profile.type == work.type && work.kernel == profile.kernel && (profile.m > 0) == work.product.has_value();
}

// The measured call of the same kernel.
KernelWork workOf(const KernelProfile& profile, const KernelWork& alike) {
  KernelWork work = alike;
  work.flops = static_cast<double>(profile.flops);
  work.bytes = profile.bytes;
  if (work.product) {
    work.product = ProductShape{1, profile.m, profile.n, profile.k};
  }
  return work;
}

// A measured call as seen from another.
struct Sample {
  Sizes away = {};      // in doublings
  double slowdown = 0;  // its logarithm
  double weight = 0;
};

// At `away` 0: fitted to the samples by weighted least squares.
double fitted(const std::vector<Sample>& samples) {
  double weights = 0;
  double meanSlowdown = 0;
  Sizes mean = {};
  for (const Sample& sample : samples) {
    weights += sample.weight;
    meanSlowdown += sample.weight * sample.slowdown;
    for (size_t i = 0; i < kMostSizes; ++i) {
      mean[i] += sample.weight * sample.away[i];
    }
  }
  meanSlowdown /= weights;
  for (double& each : mean) {
    each /= weights;
  }
  // The normal equations of the slopes.
  std::array<Sizes, kMostSizes> matrix = {};
  Sizes right = {};
  for (const Sample& sample : samples) {
    for (size_t i = 0; i < kMostSizes; ++i) {
      const double part = sample.weight / weights * (sample.away[i] - mean[i]);
      right[i] += part * (sample.slowdown - meanSlowdown);
      for (size_t j = 0; j < kMostSizes; ++j) {
        matrix[i][j] += part * (sample.away[j] - mean[j]);
      }
    }
  }
  for (size_t i = 0; i < kMostSizes; ++i) {
    matrix[i][i] += kRidge;
  }
  // It is positive definite: no pivot is below the ridge.
  for (size_t i = 0; i < kMostSizes; ++i) {
    for (size_t row = i + 1; row < kMostSizes; ++row) {
      const double factor = matrix[row][i] / matrix[i][i];
      right[row] -= factor * right[i];
      for (size_t j = i; j < kMostSizes; ++j) {
        matrix[row][j] -= factor * matrix[i][j];
      }
    }
  }
  Sizes slopes = {};
  double at = meanSlowdown;
  for (size_t i = kMostSizes; i-- > 0;) {
    double rest = right[i];
    for (size_t j = i + 1; j < kMostSizes; ++j) {
      rest -= matrix[i][j] * slopes[j];
    }
    slopes[i] = rest / matrix[i][i];
    at -= slopes[i] * mean[i];
  }
  return at;
}

}  // namespace

std::optional<double> measuredSeconds(const Machine& machine, const KernelWork& work) {
  const Sizes sizes = sizesOf(work);
  std::vector<Sample> samples;
  for (const KernelProfile& profile : machine.kernels) {
    if (!isOf(profile, work)) {
      continue;
    }
    const KernelWork measured = workOf(profile, work);
    Sample sample;
    double distance = 0;
    const Sizes others = sizesOf(measured);
    for (size_t i = 0; i < kMostSizes; ++i) {
      sample.away[i] = others[i] - sizes[i];
      distance += sample.away[i] * sample.away[i];
    }
    if (distance == 0) {
      return profile.seconds;
    }
    sample.slowdown = std::log(profile.seconds / plainSeconds(machine, measured));
    sample.weight = 1 / ((distance + kNear) * (distance + kNear));
    samples.push_back(sample);
  }
  if (samples.empty()) {
    return std::nullopt;
  }
  const auto [least, most] = std::minmax_element(
      samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.slowdown < b.slowdown; });
  return plainSeconds(machine, work) * std::exp(std::clamp(fitted(samples), least->slowdown, most->slowdown));
}

std::optional<double> leastSlowdown(const Machine& machine, const KernelWork& work) {
  std::optional<double> least;
  for (const KernelProfile& profile : machine.kernels) {
    if (isOf(profile, work)) {
      const double slowdown = profile.seconds / plainSeconds(machine, workOf(profile, work));
      least = std::min(least.value_or(slowdown), slowdown);
    }
  }
  return least;
}

}  // namespace weft
