#include "planner/graph/flops.h"

#include <cmath>

namespace weft {
namespace {

std::vector<bool> factorsIn(const std::vector<std::vector<DimFactors>>& tensors, size_t factors) {
  std::vector<bool> in(factors);
  for (const auto& dims : tensors) {
    for (const DimFactors& dim : dims) {
      for (const int f : dim) {
        in[f] = true;
      }
    }
  }
  return in;
}

}  // namespace

double pointsOf(const Rule& rule, const FactorAxes& axes) {
  const size_t factors = rule.factors().size();
  std::vector<bool> counted = factorsIn(rule.operands(), factors);
  if (counted == std::vector<bool>(factors)) {
    counted = factorsIn(rule.results(), factors);
  }
  double points = 1;
  for (size_t f = 0; f < factors; ++f) {
    if (counted[f] && !rule.factors()[f].microBatches) {
      points *= static_cast<double>(rule.factors()[f].size) / static_cast<double>(partsOf(axes[f]));
    }
  }
  return points;
}

double pointsOf(const Rule& rule) {
  return pointsOf(rule, FactorAxes(rule.factors().size()));
}

double flopsOf(const OperatorFacts& facts, const Rule& rule, const FactorAxes& axes) {
  // A whole number, which the quotient of a convolution (2 x image out / image in) need not be.
  return std::round(facts.flopsPerPoint * pointsOf(rule, axes));
}

}  // namespace weft
