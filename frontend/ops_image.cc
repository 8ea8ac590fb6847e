#include "weft/ops_image.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/ops_support.h"
#include "weft/ops.h"

namespace weft {

using mlir::NamedAttrList;
using mlir::RankedTensorType;

namespace {

std::string list(const Shape& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

bool isPair(Call& call, const char* name, const Shape& pair, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto fits = [&](int64_t value) { return value >= least && value <= kMost; };
  if (pair.size() == 2 && fits(pair[0]) && fits(pair[1])) {
    return true;
  }
  call.fail(
      absl::StrCat(name, " are ", list(pair), "; give two numbers {vertical, horizontal}, each at least ", least));
  return false;
}

// Four dimensions each.
bool areImages(Call& call, const Tensor& x, const Tensor& weight) {
  if (x.shape().size() == 4 && weight.shape().size() == 4) {
    return true;
  }
  call.fail(absl::StrCat("x is ", describe(x), " and weight ", describe(weight), "; each needs four dimensions"));
  return false;
}

NamedAttrList windowAttributes(mlir::OpBuilder& builder, const Shape& strides, const Shape& paddings,
                               const Shape& dilations) {
  NamedAttrList attrs;
  attrs.set("strides", builder.getDenseI64ArrayAttr(strides));
  attrs.set("paddings", builder.getDenseI64ArrayAttr(paddings));
  if (dilations != Shape{1, 1}) {
    attrs.set("dilations", builder.getDenseI64ArrayAttr(dilations));
  }
  return attrs;
}

Tensor pool(Call call, const std::string& mnemonic, const Shape& window, const Pool2dOptions& options) {
  if (!call.ok()) {
    return call.undefined();
  }
  mlir::OpBuilder& builder = call.builder();
  NamedAttrList attrs;
  attrs.set("window", builder.getDenseI64ArrayAttr(window));
  attrs.set("strides", builder.getDenseI64ArrayAttr(options.strides.empty() ? window : options.strides));
  attrs.set("paddings", builder.getDenseI64ArrayAttr(options.paddings));
  return call.make(mnemonic, attrs);
}

// Do the groups fit the channels of a convolution?
bool fitGroups(Call& call, const Tensor& x, const Tensor& weight, int64_t groups) {
  if (groups >= 1 && x.dim(1) == weight.dim(1) * groups && weight.dim(0) % groups == 0) {
    return true;
  }
  call.fail(absl::StrCat("x is ", describe(x), " with ", x.dim(1), " channels, weight ", describe(weight), " takes ",
                         weight.dim(1), " in each of ", groups, " groups and gives ", weight.dim(0),
                         "; the channels must agree, and the groups divide what it gives"));
  return false;
}

// A matrix [to, from] that makes a row of `to` elements of one of `from`.
using Resampling = std::vector<double>;

Resampling bilinear(int64_t from, int64_t to) {
  Resampling matrix(to * from, 0.0);
  for (int64_t i = 0; i < to; ++i) {
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    const double place = std::max((static_cast<double>(i) + 0.5) * ratio - 0.5, 0.0);
    const int64_t below = std::min(static_cast<int64_t>(place), from - 1);
    const int64_t above = std::min(below + 1, from - 1);
    const double share = place - static_cast<double>(below);
    matrix[i * from + below] += 1 - share;
    matrix[i * from + above] += share;
  }
  return matrix;
}

Resampling nearest(int64_t from, int64_t to) {
  Resampling matrix(to * from, 0.0);
  for (int64_t i = 0; i < to; ++i) {
    matrix[i * from + i * from / to] = 1;
  }
  return matrix;
}

Resampling windowMeans(int64_t from, int64_t to) {
  Resampling matrix(to * from, 0.0);
  for (int64_t i = 0; i < to; ++i) {
    const int64_t first = i * from / to;
    const int64_t end = ((i + 1) * from + to - 1) / to;
    for (int64_t j = first; j < end; ++j) {
      matrix[i * from + j] = 1.0 / static_cast<double>(end - first);
    }
  }
  return matrix;
}

// Both dimensions of the images, one after the other: the matrices are constants.
Tensor resampled(const Tensor& x, const Shape& size, Resampling (*matrixOf)(int64_t, int64_t), SourceLine at) {
  const auto matrix = [&](int64_t from, int64_t to) {
    return x.graph()->constant(at, {to, from}, matrixOf(from, to), x.type());
  };
  const Tensor rows = einsum("nchw,gh->ncgw", x, matrix(x.dim(2), size[0]), at);
  return einsum("nchw,gw->nchg", rows, matrix(x.dim(3), size[1]), at);
}

// An image, and a size to bring it to.
bool canResize(Call& call, const Tensor& x, const Shape& size) {
  if (!call.ok() || !isPair(call, "sizes", size, 1)) {
    return false;
  }
  if (x.shape().size() != 4) {
    call.fail(absl::StrCat("x is ", describe(x), "; it needs four dimensions [n, channels, height, width]"));
    return false;
  }
  return true;
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options, SourceLine at) {
  Call call(at, "conv2d", {{"x", x, Takes::kFloats}, {"weight", weight, Takes::kFloats}});
  if (!call.ok() || !areImages(call, x, weight)) {
    return call.undefined();
  }
  if (!fitGroups(call, x, weight, options.groups)) {
    return call.undefined();
  }
  return call.make("conv2d", windowAttributes(call.builder(), options.strides, options.paddings, options.dilations));
}

Tensor convTranspose2d(const Tensor& x, const Tensor& weight, const ConvTranspose2dOptions& options, SourceLine at) {
  Call call(at, "convTranspose2d", {{"x", x, Takes::kFloats}, {"weight", weight, Takes::kFloats}});
  if (!call.ok() || !areImages(call, x, weight) || !isPair(call, "strides", options.strides, 1) ||
      !isPair(call, "paddings", options.paddings, 0) || !isPair(call, "dilations", options.dilations, 1) ||
      !isPair(call, "outputPaddings", options.outputPaddings, 0)) {
    return call.undefined();
  }
  if (options.groups < 1 || x.dim(1) != weight.dim(0) || x.dim(1) % options.groups != 0) {
    return call.fail(absl::StrCat("x is ", describe(x), " with ", x.dim(1), " channels, weight ", describe(weight),
                                  " takes ", weight.dim(0), " in ", options.groups,
                                  " groups; the channels must agree, and the groups divide them"));
  }
  Shape shape = {x.dim(0), weight.dim(1) * options.groups};
  for (int64_t d = 0; d < 2; ++d) {
    if (options.outputPaddings[d] >= options.strides[d]) {
      return call.fail(absl::StrCat("outputPaddings are ", list(options.outputPaddings), " with strides ",
                                    list(options.strides), "; they must be smaller than the strides"));
    }
    shape.push_back((x.dim(2 + d) - 1) * options.strides[d] - 2 * options.paddings[d] +
                    options.dilations[d] * (weight.dim(2 + d) - 1) + options.outputPaddings[d] + 1);
  }
  if (!call.sizes("result", shape)) {
    return call.undefined();
  }
  const mlir::Type result = RankedTensorType::get(shape, call.graph()->elementType(x.type()));
  return call.make("conv2d_input_grad",
                   windowAttributes(call.builder(), options.strides, options.paddings, options.dilations), result);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Conv1dOptions& options, SourceLine at) {
  Call call(at, "conv1d", {{"x", x, Takes::kFloats}, {"weight", weight, Takes::kFloats}});
  if (!call.ok()) {
    return call.undefined();
  }
  if (x.shape().size() != 3 || weight.shape().size() != 3) {
    return call.fail(absl::StrCat("x is ", describe(x), " and weight ", describe(weight),
                                  "; each needs three dimensions, [n, channels, length] and [co, ci, k]"));
  }
  const bool isFar = !call.isFrom(1, kLargest, "stride", static_cast<double>(options.stride)) ||
                     !call.isFrom(0, kLargest, "padding", static_cast<double>(options.padding)) ||
                     !call.isFrom(1, kLargest, "dilation", static_cast<double>(options.dilation));
  if (isFar || !fitGroups(call, x, weight, options.groups)) {
    return call.undefined();
  }
  const auto flat = [&](const Tensor& t) { return reshape(t, {t.dim(0), t.dim(1), 1, t.dim(2)}, at); };
  const Tensor y = conv2d(flat(x), flat(weight),
                          {.strides = {1, options.stride},
                           .paddings = {0, options.padding},
                           .dilations = {1, options.dilation},
                           .groups = options.groups},
                          at);
  return y.valid() ? reshape(y, {y.dim(0), y.dim(1), y.dim(3)}, at) : y;
}

Tensor maxPool2d(const Tensor& x, const Shape& window, const Pool2dOptions& options, SourceLine at) {
  return pool({at, "maxPool2d", {{"x", x, Takes::kFloats}}}, "max_pool2d", window, options);
}

Tensor avgPool2d(const Tensor& x, const Shape& window, const Pool2dOptions& options, SourceLine at) {
  return pool({at, "avgPool2d", {{"x", x, Takes::kFloats}}}, "avg_pool2d", window, options);
}

Tensor adaptiveAvgPool2d(const Tensor& x, const Shape& size, SourceLine at) {
  Call call(at, "adaptiveAvgPool2d", {{"x", x, Takes::kFloats}});
  if (!canResize(call, x, size)) {
    return call.undefined();
  }
  if (x.dim(2) % size[0] == 0 && x.dim(3) % size[1] == 0) {
    return avgPool2d(x, {x.dim(2) / size[0], x.dim(3) / size[1]}, {}, at);
  }
  return resampled(x, size, windowMeans, at);
}

Tensor interpolate(const Tensor& x, const Shape& size, Interpolation form, SourceLine at) {
  Call call(at, "interpolate", {{"x", x, Takes::kFloats}});
  if (!canResize(call, x, size)) {
    return call.undefined();
  }
  const int64_t rows = size[0] / x.dim(2);
  const int64_t columns = size[1] / x.dim(3);
  if (form == Interpolation::kBilinear || size[0] != rows * x.dim(2) || size[1] != columns * x.dim(3)) {
    return resampled(x, size, form == Interpolation::kBilinear ? bilinear : nearest, at);
  }
  // Whole multiples: each element stretches to a block.
  const Tensor apart = reshape(x, {x.dim(0), x.dim(1), x.dim(2), 1, x.dim(3), 1}, at);
  const Tensor blocks = broadcastTo(apart, {x.dim(0), x.dim(1), x.dim(2), rows, x.dim(3), columns}, at);
  return reshape(blocks, {x.dim(0), x.dim(1), size[0], size[1]}, at);
}

namespace {

// Of `function`, whose name errors show.
Tensor normalizedInGroups(const char* function, const Tensor& x, int64_t groups, const Tensor& gamma,
                          const Tensor& beta, double epsilon, SourceLine at) {
  Call call(at, function, {{"x", x, Takes::kFloats}, {"gamma", gamma, Takes::kFloats}, {"beta", beta, Takes::kFloats}});
  if (!call.ok() || !call.isFrom(0, kLargest, "epsilon", epsilon)) {
    return call.undefined();
  }
  const int64_t channels = x.dim(1);
  if (x.shape().size() < 2 || groups < 1 || channels % groups != 0 || gamma.shape() != Shape{channels} ||
      beta.shape() != Shape{channels}) {
    return call.fail(absl::StrCat(
        "x is ", describe(x), " in ", groups, " groups, gamma ", describe(gamma), " and beta ", describe(beta),
        "; x needs [n, channels, ...] with channels that the groups divide, gamma and beta [", channels, "]"));
  }
  const int64_t width = elementsOf(x.shape()) / (x.dim(0) * groups);
  const auto each = [&](double value) {
    return x.graph()->constant(at, {width}, std::vector<double>(width, value), x.type());
  };
  const Tensor rows = reshape(x, {x.dim(0), groups, width}, at);
  const Tensor y = reshape(layerNorm(rows, each(1), each(0), {.epsilon = epsilon}, at), x.shape(), at);
  Shape perChannel(x.shape().size() - 1, 1);
  perChannel[0] = channels;
  return add(mul(y, reshape(gamma, perChannel, at), at), reshape(beta, perChannel, at), at);
}

}  // namespace

Tensor groupNorm(const Tensor& x, int64_t groups, const Tensor& gamma, const Tensor& beta, double epsilon,
                 SourceLine at) {
  return normalizedInGroups("groupNorm", x, groups, gamma, beta, epsilon, at);
}

Tensor instanceNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, SourceLine at) {
  return normalizedInGroups("instanceNorm", x, std::max<int64_t>(x.dim(1), 1), gamma, beta, epsilon, at);
}

}  // namespace weft
