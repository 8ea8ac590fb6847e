// Result types of the operators that move a window over images: convolution and pooling.
#include "ir/nn/infer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace weft::ir::infer {
namespace {

using llvm::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

std::string list(ArrayRef<int64_t> values) {
  std::string text = "[";
  llvm::raw_string_ostream out(text);
  llvm::interleaveComma(values, out);
  out << "]";
  return text;
}

// Two numbers, each at least `least`.
LogicalResult checkPair(const InferSite& site, int check, const char* name, ArrayRef<int64_t> values, int64_t least) {
  const auto fits = [&](int64_t value) { return value >= least && value <= kMaxBytes; };
  if (values.size() != 2 || !fits(values[0]) || !fits(values[1])) {
    return site.error(check, llvm::Twine(name) + " are " + list(values) + "; they must be two numbers [vertical, " +
                                 "horizontal], each at least " + llvm::Twine(least) + " and at most " +
                                 llvm::Twine(kMaxBytes));
  }
  return success();
}

// `batches`: may there be several dimensions before the channels?
LogicalResult checkImage(const InferSite& site, Value x, const char* name, bool batches = false) {
  const int64_t rank = plainType(x).getRank();
  if (rank < 4 || (rank > 4 && !batches)) {
    return site.error(
        2, llvm::Twine(name) + " is " + printType(x) + "; it must have four dimensions" + (batches ? " or more" : ""));
  }
  return success();
}

// Places of the window in both directions.
LogicalResult places(const InferSite& site, Value x, ArrayRef<int64_t> window, const WindowSteps& steps,
                     int64_t (&result)[2]) {
  if (failed(checkPair(site, 4, "strides", steps.strides, 1)) ||
      failed(checkPair(site, 5, "paddings", steps.paddings, 0)) ||
      (!steps.dilations.empty() && failed(checkPair(site, 9, "dilations", steps.dilations, 1)))) {
    return failure();
  }
  for (int d = 0; d < 2; ++d) {
    const int64_t apart = steps.dilations.empty() ? 1 : steps.dilations[d];
    const int64_t reach = (window[d] - 1) * apart + 1;
    const int64_t room = dimensionOf(x, plainType(x).getRank() - 2 + d) + 2 * steps.paddings[d] - reach;
    if (room < 0) {
      return site.error(6, "a window of " + list(window) + " is larger than the image " + printType(x) +
                               " with paddings " + list(steps.paddings) + "; use a smaller window or more padding");
    }
    result[d] = room / steps.strides[d] + 1;
  }
  return success();
}

}  // namespace

LogicalResult conv2d(const InferSite& site, Value x, Value weight, const WindowSteps& steps) {
  if (plainType(x).getElementType() != plainType(weight).getElementType()) {
    return site.error(1, "element types differ: " + printType(x) + " and " + printType(weight) + "; cast one of them");
  }
  if (failed(checkImage(site, x, "the image", true)) || failed(checkImage(site, weight, "the weight"))) {
    return failure();
  }
  const int64_t rank = plainType(x).getRank();
  const int64_t channels = dimensionOf(x, rank - 3);
  const int64_t taken = dimensionOf(weight, 1);
  if (channels % taken != 0 || dimensionOf(weight, 0) % (channels / taken) != 0) {
    return site.error(3, "the image " + printType(x) + " has " + llvm::Twine(channels) + " channels, the weight " +
                             printType(weight) + " takes " + llvm::Twine(taken) + " and gives " +
                             llvm::Twine(dimensionOf(weight, 0)) +
                             "; they must be the same channels, or groups that divide both");
  }
  int64_t out[2];
  if (failed(places(site, x, {dimensionOf(weight, 2), dimensionOf(weight, 3)}, steps, out))) {
    return failure();
  }
  llvm::SmallVector<int64_t> shape(plainType(x).getShape().drop_back(3));
  shape.append({dimensionOf(weight, 0), out[0], out[1]});
  return site.give({withShape(x, shape)});
}

LogicalResult pool2d(const InferSite& site, Value x, ArrayRef<int64_t> window, const WindowSteps& steps) {
  int64_t out[2];
  if (failed(checkImage(site, x, "the image")) || failed(checkPair(site, 3, "window sizes", window, 1)) ||
      failed(places(site, x, window, steps, out))) {
    return failure();
  }
  if (steps.paddings[0] >= window[0] || steps.paddings[1] >= window[1]) {
    return site.error(7, "paddings " + list(steps.paddings) + " are not smaller than the window " + list(window) +
                             ": a window could lie outside the image");
  }
  return site.give({withShape(x, {dimensionOf(x, 0), dimensionOf(x, 1), out[0], out[1]})});
}

LogicalResult poolGrad(const InferSite& site, mlir::ValueRange operands, ArrayRef<int64_t> window,
                       const WindowSteps& steps) {
  Value x = operands[0];
  Value dy = operands[1];
  if (failed(pool2d(site, x, window, steps))) {
    return failure();
  }
  if (plainType(dy) != site.types[0]) {
    return site.error(8, "dy is " + printType(dy) + "; an image " + printType(x) + " and a window " + list(window) +
                             " give another size");
  }
  return site.give({plainType(x)});
}

}  // namespace weft::ir::infer
