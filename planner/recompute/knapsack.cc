#include "planner/recompute/knapsack.h"

#include <algorithm>
#include <numeric>

namespace weft::recompute {

namespace {

int64_t smallestOf(const IntervalClass& intervals) {
  return intervals.points.back().bytes;
}

}  // namespace

Knapsack::Knapsack(std::vector<IntervalClass> classes) : classes_(std::move(classes)) {
  int64_t common = 0;
  for (const IntervalClass& intervals : classes_) {
    least_ += intervals.count * smallestOf(intervals);
    most_ += intervals.count * intervals.points.front().bytes;
    for (const Point& point : intervals.points) {
      common = std::gcd(common, point.bytes - smallestOf(intervals));
    }
  }
  const int64_t range = most_ - least_;
  unit_ = std::max<int64_t>(common, 1);
  unit_ *= (range / unit_ + kMaxUnits - 1) / kMaxUnits > 1 ? (range / unit_ + kMaxUnits - 1) / kMaxUnits : 1;
  units_ = (range + unit_ - 1) / unit_;
  times_.assign(units_ + 1, 0);
  for (const IntervalClass& intervals : classes_) {
    for (int64_t interval = 0; interval < intervals.count; ++interval) {
      std::vector<Picoseconds> next(units_ + 1, kLongestTime);
      std::vector<uint16_t>& taken = taken_.emplace_back(units_ + 1, 0);
      for (size_t p = 0; p < intervals.points.size(); ++p) {
        const int64_t units = unitsOf(intervals.points[p], intervals);
        for (int64_t budget = units; budget <= units_; ++budget) {
          const Picoseconds time = times_[budget - units] + intervals.points[p].time;
          if (time < next[budget]) {
            next[budget] = time;
            taken[budget] = static_cast<uint16_t>(p);
          }
        }
      }
      times_ = std::move(next);
    }
  }
}

int64_t Knapsack::unitsOf(const Point& point, const IntervalClass& intervals) const {
  return (point.bytes - smallestOf(intervals) + unit_ - 1) / unit_;
}

std::optional<Selection> Knapsack::solve(int64_t budget) const {
  if (budget < least_) {
    return std::nullopt;
  }
  // Rounded up, all together may count as more units than the budget of everything.
  Selection selection;
  const bool all = budget >= most_;
  int64_t left = std::min((budget - least_) / unit_, units_);
  size_t interval = taken_.size();
  selection.points.resize(classes_.size());
  for (size_t c = classes_.size(); c-- > 0;) {
    const IntervalClass& intervals = classes_[c];
    for (int64_t i = 0; i < intervals.count; ++i) {
      const int point = all ? 0 : taken_[--interval][left];
      left -= all ? 0 : unitsOf(intervals.points[point], intervals);
      selection.points[c].push_back(point);
      selection.bytes += intervals.points[point].bytes;
      selection.time += intervals.points[point].time;
    }
    // Points lie by falling bytes: later intervals of a class, which the backward pass reaches first, keep more.
    std::sort(selection.points[c].rbegin(), selection.points[c].rend());
  }
  return selection;
}

}  // namespace weft::recompute
