#include "weft/ops_reduction.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/ops_support.h"
#include "weft/ops.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

// x's shape with the dimensions of size 1.
Shape keptShape(const Tensor& x, const Shape& dims) {
  Shape shape = x.shape();
  for (const int64_t dim : dims) {
    shape[dim] = 1;
  }
  return shape;
}

// x's shape without the dimensions.
Shape droppedShape(const Tensor& x, const Shape& dims) {
  Shape shape;
  for (size_t d = 0; d < x.shape().size(); ++d) {
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end()) {
      shape.push_back(x.shape()[d]);
    }
  }
  return shape;
}

Tensor variance(const char* function, const Tensor& x, Shape dims, const VarianceOptions& options, SourceLine at) {
  Call call(at, function, {{"x", x, Takes::kFloats}});
  if (!call.ok() || !listFromStart(call, x, dims)) {
    return call.undefined();
  }
  const int64_t count = elementsOf(sizesOf(x.shape(), dims)) - (options.unbiased ? 1 : 0);
  if (count < 1) {
    return call.fail(absl::StrCat("dims [", absl::StrJoin(dims, ", "), "] of x, which is ", describe(x),
                                  ", have 1 element; set unbiased = false, or take more dimensions"));
  }
  const Tensor centered = sub(x, mean(x, dims, true, at), at);
  return div(sum(mul(centered, centered, at), dims, options.keepDims, at), count, at);
}

Tensor argExtremum(const char* function, const Tensor& x, int64_t dim, const ArgOptions& options, SourceLine at) {
  Call call(at, function, {{"x", x}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return call.undefined();
  }
  if (options.type != kI32 && options.type != kI64) {
    return call.fail(absl::StrCat("indices of type ", typeName(options.type), "; they are kI32 or kI64"));
  }
  NamedAttrList attrs;
  attrs.set("dim", call.builder().getI64IntegerAttr(dim));
  Tensor index = call.make(function, attrs);
  if (options.keepDims && index.valid()) {
    index = reshape(index, keptShape(x, {dim}), at);
  }
  return options.type == kI32 ? index : cast(index, options.type, at);
}

Sorted sorted(Call& call, const Tensor& x, int64_t dim, int64_t count, bool descending, SourceLine at) {
  NamedAttrList attrs;
  attrs.set("count", call.builder().getI64IntegerAttr(count));
  attrs.set("descending", call.builder().getBoolAttr(descending));
  const std::vector<Tensor> results = Call(at, "sort", {{"x", exchangedWithLast(x, dim, at)}}).makeAll("sort", attrs);
  if (results.size() < 2) {
    return {call.undefined(), call.undefined()};
  }
  return {exchangedWithLast(results[0], dim, at), exchangedWithLast(results[1], dim, at)};
}

}  // namespace

Tensor min(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce("min", Takes::kNumbers, x, dims, keepDims, at);
}
Tensor any(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce({"any", "max"}, Takes::kBools, x, dims, keepDims, at);
}
Tensor all(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce({"all", "min"}, Takes::kBools, x, dims, keepDims, at);
}

Tensor prod(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  Call call(at, "prod", {{"x", x, Takes::kNumbers}});
  Shape reduced = dims;
  if (!call.ok() || !listFromStart(call, x, reduced)) {
    return call.undefined();
  }
  Tensor y = x;
  for (auto dim = reduced.rbegin(); dim != reduced.rend(); ++dim) {
    NamedAttrList attrs;
    attrs.set("dim", call.builder().getI64IntegerAttr(*dim));
    y = Call(at, "prod", {{"x", y}}).make("prod", attrs);
  }
  return keepDims ? reshape(y, keptShape(x, reduced), at) : y;
}

Tensor var(const Tensor& x, const Shape& dims, const VarianceOptions& options, SourceLine at) {
  return variance("var", x, dims, options, at);
}
Tensor stddev(const Tensor& x, const Shape& dims, const VarianceOptions& options, SourceLine at) {
  return sqrt(variance("stddev", x, dims, options, at), at);
}

Tensor logSumExp(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  Call call(at, "logSumExp", {{"x", x, Takes::kFloats}});
  Shape reduced = dims;
  if (!call.ok() || !listFromStart(call, x, reduced)) {
    return call.undefined();
  }
  // Any finite shift is right; without its gradient that of the result is softmax.
  const Tensor most = stopGradient(max(x, reduced, true, at), at);
  const Tensor infinite = compare(abs(most, at), std::numeric_limits<double>::infinity(), "eq", at);
  const Tensor shift = select(infinite, 0, most, at);
  const Tensor y = add(log(sum(exp(sub(x, shift, at), at), reduced, true, at), at), shift, at);
  return keepDims ? y : reshape(y, droppedShape(x, reduced), at);
}

Tensor argmax(const Tensor& x, int64_t dim, const ArgOptions& options, SourceLine at) {
  return argExtremum("argmax", x, dim, options, at);
}
Tensor argmin(const Tensor& x, int64_t dim, const ArgOptions& options, SourceLine at) {
  return argExtremum("argmin", x, dim, options, at);
}

Tensor cumsum(const Tensor& x, int64_t dim, bool reverse, SourceLine at) {
  Call call(at, "cumsum", {{"x", x, Takes::kNumbers}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("dim", call.builder().getI64IntegerAttr(dim));
  attrs.set("reverse", call.builder().getBoolAttr(reverse));
  return call.make("cumsum", attrs);
}

Sorted sort(const Tensor& x, const SortOptions& options, SourceLine at) {
  Call call(at, "sort", {{"x", x, Takes::kNumbers}});
  int64_t dim = options.dim;
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return {call.undefined(), call.undefined()};
  }
  return sorted(call, x, dim, x.dim(dim), options.descending, at);
}

Sorted topK(const Tensor& x, int64_t k, const TopKOptions& options, SourceLine at) {
  Call call(at, "topK", {{"x", x, Takes::kNumbers}});
  int64_t dim = options.dim;
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return {call.undefined(), call.undefined()};
  }
  if (k < 1 || k > x.dim(dim)) {
    call.fail(absl::StrCat("k = ", k, " of dimension ", options.dim, " of x, which is ", describe(x), "; give 1 to ",
                           x.dim(dim)));
    return {call.undefined(), call.undefined()};
  }
  return sorted(call, x, dim, k, options.largest, at);
}

Tensor logSoftmax(const Tensor& x, int64_t dim, SourceLine at) {
  Call call(at, "logSoftmax", {{"x", x, Takes::kFloats}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return call.undefined();
  }
  const Tensor last = exchangedWithLast(x, dim, at);
  return exchangedWithLast(unary({"logSoftmax", "log_softmax"}, last, Takes::kFloats, at), dim, at);
}

}  // namespace weft
