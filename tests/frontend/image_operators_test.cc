// The functions of weft/ops_image.h against plain sums, and their gradients against differences.
#include <algorithm>
#include <cmath>

#include "tests/frontend/evaluate.h"

namespace weft::testing {
namespace {

constexpr double kRounding = 1e-13;

// An image [n, c, h, w] by place.
class Image {
 public:
  Image(Shape shape, Reals values) : shape_(std::move(shape)), values_(std::move(values)) {}
  double at(int64_t n, int64_t c, int64_t i, int64_t j) const {
    return values_[((n * shape_[1] + c) * shape_[2] + i) * shape_[3] + j];
  }
  double& at(int64_t n, int64_t c, int64_t i, int64_t j) {
    return values_[((n * shape_[1] + c) * shape_[2] + i) * shape_[3] + j];
  }
  const Shape& shape() const { return shape_; }
  const Reals& values() const { return values_; }

 private:
  Shape shape_;
  Reals values_;
};

Image someImage(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    count *= size;
  }
  return {shape, someValues(count)};
}

// f(n, c, i, j) for every place of a new image.
template <typename F>
Image made(const Shape& shape, const F& f) {
  Image y = someImage(shape);
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t i = 0; i < shape[2]; ++i) {
        for (int64_t j = 0; j < shape[3]; ++j) {
          y.at(n, c, i, j) = f(n, c, i, j);
        }
      }
    }
  }
  return y;
}

Tensor constant(Graph& g, const Image& image) {
  return g.constant(image.shape(), image.values(), kF64);
}

void expectImage(const Image& x, const Image& expected, const Build& build) {
  expectValues(valuesOf(x.shape(), x.values(), build), expected.values(), kRounding);
  expectGradient(x.shape(), x.values(), build);
}

// Every place of x adds its window of weights to the result.
TEST(ConvTranspose2d, AddsWindows) {
  const Image x = someImage({2, 4, 3, 2});
  const Image weight = someImage({4, 3, 3, 2});  // two groups of two channels, three out of each
  const ConvTranspose2dOptions options = {
      .strides = {2, 3}, .paddings = {1, 0}, .outputPaddings = {1, 2}, .dilations = {1, 2}, .groups = 2};
  const Shape shape = {2, 6, (3 - 1) * 2 - 2 + 2 + 1 + 1, (2 - 1) * 3 + 2 + 2 + 1};
  Image y = made(shape, [](auto...) { return 0.0; });
  made({2, 4, 3, 2}, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    for (int64_t o = 0; o < 3; ++o) {
      for (int64_t a = 0; a < 3; ++a) {
        for (int64_t b = 0; b < 2; ++b) {
          const int64_t row = i * 2 - 1 + a;
          const int64_t column = j * 3 + 2 * b;
          if (row >= 0 && row < shape[2] && column < shape[3]) {
            y.at(n, c / 2 * 3 + o, row, column) += x.at(n, c, i, j) * weight.at(c, o, a, b);
          }
        }
      }
    }
    return 0.0;
  });
  expectImage(x, y, [&](Graph& g, const Tensor& t) { return convTranspose2d(t, constant(g, weight), options); });
}

TEST(Conv1d, SlidesAWindow) {
  const Shape shape = {2, 4, 7};
  const Reals x = someValues(56);
  const Reals weight = someValues(6 * 2 * 3);
  Reals expected;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t o = 0; o < 6; ++o) {
      for (int64_t i = 0; i < 3; ++i) {  // (7 + 2 - 2 * 2 - 1) / 2 + 1
        double total = 0;
        for (int64_t c = 0; c < 2; ++c) {
          for (int64_t a = 0; a < 3; ++a) {
            const int64_t at = 2 * i - 1 + 2 * a;
            total += at >= 0 && at < 7 ? x[(n * 4 + o / 3 * 2 + c) * 7 + at] * weight[(o * 2 + c) * 3 + a] : 0;
          }
        }
        expected.push_back(total);
      }
    }
  }
  const Build build = [&](Graph& g, const Tensor& t) {
    return conv1d(t, g.constant({6, 2, 3}, weight, kF64), {.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
  };
  expectValues(valuesOf(shape, x, build), expected, kRounding);
  expectGradient(shape, x, build);
}

TEST(AdaptiveAvgPool2d, WindowsThatDivideAndThatDoNot) {
  const Image x = someImage({2, 3, 6, 5});
  for (const Shape& size : std::vector<Shape>{{3, 5}, {2, 1}, {4, 3}, {1, 1}}) {
    const Image y = made({2, 3, size[0], size[1]}, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
      double total = 0;
      int64_t count = 0;
      for (int64_t row = i * 6 / size[0]; row < std::ceil((i + 1) * 6.0 / static_cast<double>(size[0])); ++row) {
        for (int64_t col = j * 5 / size[1]; col < std::ceil((j + 1) * 5.0 / static_cast<double>(size[1])); ++col) {
          total += x.at(n, c, row, col);
          ++count;
        }
      }
      return total / static_cast<double>(count);
    });
    expectImage(x, y, [&](Graph&, const Tensor& t) { return adaptiveAvgPool2d(t, size); });
  }
}

TEST(Interpolate, Nearest) {
  const Image x = someImage({2, 2, 3, 4});
  for (const Shape& size : std::vector<Shape>{{6, 8}, {3, 12}, {5, 7}, {2, 2}}) {
    const Image y = made({2, 2, size[0], size[1]}, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
      return x.at(n, c, i * 3 / size[0], j * 4 / size[1]);
    });
    expectImage(x, y, [&](Graph&, const Tensor& t) { return interpolate(t, size); });
  }
}

TEST(Interpolate, Bilinear) {
  const Image x = someImage({1, 2, 3, 4});
  for (const Shape& size : std::vector<Shape>{{6, 8}, {5, 7}, {2, 3}}) {
    const auto place = [](int64_t i, int64_t from, int64_t to) {
      return std::max((static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5, 0.0);
    };
    const Image y = made({1, 2, size[0], size[1]}, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
      const double row = place(i, 3, size[0]);
      const double column = place(j, 4, size[1]);
      double total = 0;
      for (int64_t a = 0; a < 3; ++a) {
        for (int64_t b = 0; b < 4; ++b) {
          // A tent of width one around the place; beyond the last pixel its value goes on.
          const double down = std::max(0.0, 1 - std::abs(std::min(row, 2.0) - static_cast<double>(a)));
          const double across = std::max(0.0, 1 - std::abs(std::min(column, 3.0) - static_cast<double>(b)));
          total += down * across * x.at(n, c, a, b);
        }
      }
      return total;
    });
    expectImage(x, y, [&](Graph&, const Tensor& t) { return interpolate(t, size, Interpolation::kBilinear); });
  }
}

TEST(GroupNorm, NormalizesGroupsAndChannels) {
  const Image x = someImage({2, 4, 3, 2});
  const Reals gamma = {0.5, -1, 2, 1.5};
  const Reals beta = {1, 0, -1, 0.25};
  for (const int64_t groups : {1, 2, 4}) {
    const int64_t channels = 4 / groups;
    const Image y = made({2, 4, 3, 2}, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
      double total = 0;
      double squares = 0;
      const int64_t first = c / channels * channels;
      made({1, channels, 3, 2}, [&](int64_t, int64_t k, int64_t a, int64_t b) {
        const double value = x.at(n, first + k, a, b);
        total += value;
        squares += value * value;
        return 0.0;
      });
      const auto count = static_cast<double>(channels * 6);
      const double mean = total / count;
      return gamma[c] * (x.at(n, c, i, j) - mean) / std::sqrt(squares / count - mean * mean + 0.01) + beta[c];
    });
    const Build build = [&](Graph& g, const Tensor& t) {
      const Tensor scale = g.constant({4}, gamma, kF64);
      const Tensor shift = g.constant({4}, beta, kF64);
      return groups == 4 ? instanceNorm(t, scale, shift, 0.01) : groupNorm(t, groups, scale, shift, 0.01);
    };
    expectImage(x, y, build);
  }
}

}  // namespace
}  // namespace weft::testing
