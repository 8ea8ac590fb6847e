// Which point each interval takes, so that together they keep at most a budget of bytes in the least time: a
// multiple-choice knapsack over classes of equal intervals.
#pragma once

#include <optional>
#include <vector>

#include "planner/recompute/pareto.h"

namespace weft::recompute {

// `count` intervals that all have these points.
struct IntervalClass {
  std::vector<Point> points;
  int64_t count = 1;
};

struct Selection {
  std::vector<std::vector<int>> points;  // of each class, of each of its intervals: by rising bytes
  int64_t bytes = 0;
  Picoseconds time = 0;
};

// Solves for all budgets at once. Bytes are counted in units of their greatest common divisor, or, where that makes
// more than kMaxUnits of them, in coarser units, rounded up: then a selection never keeps more than its budget, and the
// budget lost is at most one unit per interval.
class Knapsack {
 public:
  static constexpr int64_t kMaxUnits = 1 << 14;

  explicit Knapsack(std::vector<IntervalClass> classes);

  int64_t least() const { return least_; }
  int64_t most() const { return most_; }

  // The least time within `budget`; none below least().
  std::optional<Selection> solve(int64_t budget) const;

 private:
  int64_t unitsOf(const Point& point, const IntervalClass& intervals) const;

  std::vector<IntervalClass> classes_;
  int64_t least_ = 0;
  int64_t most_ = 0;
  int64_t unit_ = 1;
  int64_t units_ = 0;
  std::vector<std::vector<uint16_t>> taken_;  // of each interval in turn, by units: its point
  std::vector<Picoseconds> times_;            // by units: the least of all intervals together
};

}  // namespace weft::recompute
