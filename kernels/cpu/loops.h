// Loops over tensors with strides, and sums whose order is fixed by their length alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

// Before a loop whose iterations touch only their own element: lets the compiler make vectors of it although output and
// input may be the same memory (never memory shifted against each other).
#define WEFT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")

namespace weft::cpu {

// A loop over a shape that follows K tensors by their strides. Dimensions that all of them walk with one stride are
// merged once, when it is made; visiting allocates nothing.
template <size_t K>
class StridedLoop {
 public:
  using Steps = std::array<int64_t, K>;

  StridedLoop(const std::vector<int64_t>& shape, const std::array<std::vector<int64_t>, K>& strides) {
    for (size_t d = 0; d < shape.size(); ++d) {
      empty_ = empty_ || shape[d] == 0;
      if (shape[d] != 1) {
        Steps steps;
        for (size_t k = 0; k < K; ++k) {
          steps[k] = strides[k][d];
        }
        push(shape[d], steps);
      }
    }
    if (shape_.empty()) {
      push(1, Steps{});
    }
  }

  // visit(offsets of the K tensors, count, strides of the K tensors): one innermost row at a time; never for an empty
  // shape.
  template <typename Visit>
  void run(const Visit& visit) const {
    if (!empty_) {
      walk(0, Steps{}, visit);
    }
  }

  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<Steps>& steps() const { return steps_; }

 private:
  void push(int64_t size, const Steps& steps) {
    bool merges = !shape_.empty();
    for (size_t k = 0; k < K; ++k) {
      merges = merges && steps_.back()[k] == steps[k] * size;
    }
    if (merges) {
      shape_.back() *= size;
      steps_.back() = steps;
    } else {
      shape_.push_back(size);
      steps_.push_back(steps);
    }
  }

  template <typename Visit>
  void walk(size_t d, Steps offsets, const Visit& visit) const {
    if (d + 1 == shape_.size()) {
      visit(offsets, shape_[d], steps_[d]);
      return;
    }
    for (int64_t i = 0; i < shape_[d]; ++i) {
      walk(d + 1, offsets, visit);
      for (size_t k = 0; k < K; ++k) {
        offsets[k] += steps_[d][k];
      }
    }
  }

  std::vector<int64_t> shape_;
  std::vector<Steps> steps_;
  bool empty_ = false;
};

// Copies between two strided tensors. Where one side runs across the other (a transposition) it goes in square tiles,
// so that both sides use whole cache lines.
template <typename T>
class StridedCopy {
 public:
  StridedCopy(const std::vector<int64_t>& shape, const std::vector<int64_t>& from, const std::vector<int64_t>& to)
      : StridedCopy(StridedLoop<2>(shape, {from, to})) {}

  void run(const T* from, T* to) const {
    outer_.run([&](const auto& at, int64_t count, const auto& step) {
      for (int64_t i = 0; i < count; ++i) {
        copyTile(from + at[0] + i * step[0], to + at[1] + i * step[1]);
      }
    });
  }

 private:
  static constexpr int64_t kTile = 16;

  explicit StridedCopy(const StridedLoop<2>& merged) : outer_({}, {}) {
    std::vector<int64_t> shape = merged.shape();
    auto steps = merged.steps();
    columns_ = shape.back();
    column_ = steps.back();
    shape.pop_back();
    steps.pop_back();
    // The dimension in which the side that jumps along the columns is contiguous.
    const size_t side = column_[0] == 1 ? 1 : 0;
    for (size_t d = 0; d < shape.size() && column_[side] != 1; ++d) {
      if (steps[d][side] == 1) {
        rows_ = shape[d];
        row_ = steps[d];
        shape.erase(shape.begin() + static_cast<int64_t>(d));
        steps.erase(steps.begin() + static_cast<int64_t>(d));
        break;
      }
    }
    std::array<std::vector<int64_t>, 2> strides;
    for (const auto& step : steps) {
      strides[0].push_back(step[0]);
      strides[1].push_back(step[1]);
    }
    outer_ = StridedLoop<2>(shape, strides);
    empty_ = rows_ == 0 || columns_ == 0;
  }

  void copyTile(const T* from, T* to) const {
    if (empty_) {
      return;
    }
    if (rows_ == 1 && column_[0] == 1 && column_[1] == 1) {
      std::memcpy(to, from, columns_ * sizeof(T));
      return;
    }
    for (int64_t r = 0; r < rows_; r += kTile) {
      for (int64_t c = 0; c < columns_; c += rows_ == 1 ? columns_ : kTile) {
        const int64_t lastRow = std::min(rows_, r + kTile);
        const int64_t lastColumn = rows_ == 1 ? columns_ : std::min(columns_, c + kTile);
        for (int64_t i = r; i < lastRow; ++i) {
          for (int64_t j = c; j < lastColumn; ++j) {
            to[i * row_[1] + j * column_[1]] = from[i * row_[0] + j * column_[0]];
          }
        }
      }
    }
  }

  StridedLoop<2> outer_;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  std::array<int64_t, 2> row_{};
  std::array<int64_t, 2> column_{};
  bool empty_ = false;
};

// Lanes of a fold: element i goes to lane i % 16, then lanes are folded in pairs. Enough lanes to hide the latency of
// an addition, and an order that depends on n alone.
inline constexpr int64_t kLanes = 16;

// fold(f(0), f(1), ..., f(n-1)) from `start`, which must be neutral.
template <typename A, typename Value, typename Fold>
A laneFold(int64_t n, A start, const Value& value, const Fold& fold) {
  std::array<A, kLanes> lanes;
  lanes.fill(start);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = fold(lanes[lane], value(i + lane));
    }
  }
  for (int64_t lane = 0; i + lane < n; ++lane) {
    lanes[lane] = fold(lanes[lane], value(i + lane));
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) {
      lanes[lane] = fold(lanes[lane], lanes[lane + half]);
    }
  }
  return lanes[0];
}

// The sum of value(0) ... value(n-1) in A, double unless told.
template <typename A = double, typename Value>
A laneSum(int64_t n, const Value& value) {
  return laneFold(n, A(0), [&](int64_t i) { return static_cast<A>(value(i)); }, [](A a, A b) { return a + b; });
}

// The larger; a NaN wins, as in numpy's maximum.
template <typename T>
T larger(T a, T b) {
  return b > a || b != b ? b : a;
}
template <typename T>
T smaller(T a, T b) {
  return b < a || b != b ? b : a;
}

// The largest of n > 0 elements.
template <typename T>
T largest(const T* x, int64_t n) {
  return laneFold(n, x[0], [&](int64_t i) { return x[i]; }, larger<T>);
}

}  // namespace weft::cpu
