#include "planner/assign/row_prices.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::assign {
namespace {

constexpr int kPatience = 4;         // updates without a better bound before steps get smaller
constexpr double kShorter = 0.75;    // by this factor
constexpr double kShortest = 0.004;  // and when they have become useless
// The least growth of a bound that counts, as a part of the distance to the target.
constexpr double kGrowth = 1e-3;

}  // namespace

PriceAscent::PriceAscent(RowPrices prices) : prices_(std::move(prices)), best_(prices_) {
  for (const int64_t price : prices_.ofRow) {
    active_.push_back(price > 0 ? 1 : 0);
  }
}

bool PriceAscent::settled() const {
  return step_ < kShortest || std::none_of(active_.begin(), active_.end(), [](char active) { return active != 0; });
}

void PriceAscent::activatePeaks(const std::vector<int64_t>& excess) {
  size_t peak = 0;
  for (size_t row = 0; row < excess.size(); ++row) {
    if (excess[row] <= 0) {
      continue;
    }
    const bool begins = row == 0 || excess[row - 1] <= 0;
    peak = begins || excess[row] > excess[peak] ? row : peak;
    if (row + 1 == excess.size() || excess[row + 1] <= 0) {
      active_[peak] = 1;
    }
  }
}

void PriceAscent::setPrice(size_t row, double price) {
  const auto most = static_cast<double>(kForbidden / static_cast<Cost>(prices_.ofRow.size()));
  prices_.ofRow[row] = std::llround(std::clamp(price, 0.0, std::min(most, static_cast<double>(kMostCost))));
}

void PriceAscent::learn(const std::vector<int64_t>& excess, Cost bound, Cost target) {
  const auto distance = static_cast<double>(std::max<Cost>(target - bound, 1));
  if (bound > bestBound_) {
    failures_ = static_cast<double>(bound - bestBound_) > kGrowth * distance ? 0 : failures_ + 1;
    bestBound_ = bound;
    best_ = prices_;
  } else {
    ++failures_;
  }
  if (failures_ >= kPatience) {
    failures_ = 0;
    step_ *= kShorter;
  }
  activatePeaks(excess);
  const double scale = std::ldexp(1.0, -prices_.shift);
  double norm = 0;
  for (size_t row = 0; row < excess.size(); ++row) {
    if (active_[row] != 0 && (excess[row] > 0 || prices_.ofRow[row] > 0)) {
      norm += std::pow(static_cast<double>(excess[row]) * scale, 2);
    }
  }
  if (norm <= 0) {
    return;
  }
  const double step = step_ * distance / norm;
  for (size_t row = 0; row < excess.size(); ++row) {
    if (active_[row] != 0) {
      setPrice(row, static_cast<double>(prices_.ofRow[row]) + step * static_cast<double>(excess[row]) * scale);
    }
  }
}

void PriceAscent::squeeze(const std::vector<int64_t>& excess) {
  activatePeaks(excess);
  for (size_t row = 0; row < excess.size(); ++row) {
    if (active_[row] != 0 && excess[row] > 0) {
      setPrice(row, 1 + 2 * static_cast<double>(prices_.ofRow[row]));
    }
  }
}

}  // namespace weft::assign
