#include "planner/graph/flops.h"

#include <algorithm>
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

bool has(const std::vector<DimFactors>& tensor, size_t factor) {
  return std::any_of(tensor.begin(), tensor.end(), [&](const DimFactors& dim) {
    return std::find(dim.begin(), dim.end(), static_cast<int>(factor)) != dim.end();
  });
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

bool isProduct(const Rule& rule) {
  if (rule.operands().size() != 2 || rule.results().empty()) {
    return false;
  }
  bool sums = false;
  bool placesRows = false;  // does the result have, in parts, what no operand has?
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const bool a = has(rule.operands()[0], f);
    const bool b = has(rule.operands()[1], f);
    const bool made = has(rule.results()[0], f);
    sums = sums || (a && b && !made);
    placesRows = placesRows || (made && !a && !b && !rule.factors()[f].whole);
  }
  return sums && !placesRows;
}

std::optional<ProductShape> productOf(const Rule& rule, const FactorAxes& axes, double flops) {
  if (!isProduct(rule)) {
    return std::nullopt;
  }
  ProductShape shape;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (has(rule.results()[0], f)) {
      const bool columns = has(rule.operands()[1], f);
      int64_t& size = !columns ? shape.m : has(rule.operands()[0], f) ? shape.batch : shape.n;
      size *= std::max<int64_t>(1, rule.factors()[f].size / partsOf(axes[f]));
    }
  }
  shape.k = std::max<int64_t>(1, std::llround(flops / shape.flopsPerSum()));
  return shape;
}

DType arithmeticType(const std::vector<DType>& operands, DType result) {
  std::optional<DType> narrowest;
  for (const DType type : operands) {
    if (isFloat(type) && (!narrowest || byteSize(type) < byteSize(*narrowest))) {
      narrowest = type;
    }
  }
  return narrowest.value_or(result);
}

KernelWork arithmeticOf(const OperatorFacts& facts, const Rule& rule, const FactorAxes& axes) {
  const double flops = flopsOf(facts, rule, axes);
  return {.flops = flops, .product = productOf(rule, axes, flops)};
}

}  // namespace weft
