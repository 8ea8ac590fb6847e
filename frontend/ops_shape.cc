#include "weft/ops_shape.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/ops_support.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

constexpr double kMostRepeats = 0x1p40;

std::vector<NamedOperand> listed(const std::vector<Tensor>& xs) {
  std::vector<NamedOperand> operands;
  for (const Tensor& x : xs) {
    operands.push_back({"of xs", x});
  }
  return operands;
}

// A place for a new dimension, counted from the end of the result where it is negative.
bool placeFromStart(Call& call, const Tensor& x, int64_t& dim) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (dim < -rank - 1 || dim > rank) {
    call.fail(
        absl::StrCat("a new dimension ", dim, " of x, which is ", describe(x), "; give ", -rank - 1, " to ", rank));
    return false;
  }
  dim += dim < 0 ? rank + 1 : 0;
  return true;
}

Shape withSize(Shape shape, int64_t dim, int64_t size) {
  shape[dim] = size;
  return shape;
}

Shape inserted(Shape shape, int64_t dim, int64_t size) {
  shape.insert(shape.begin() + dim, size);
  return shape;
}

// A slice that is whole in all dimensions but one.
Tensor sliced(const Tensor& x, int64_t dim, int64_t start, int64_t length, SourceLine at) {
  const Shape none(x.shape().size(), 0);
  return slice(x, withSize(none, dim, start), withSize(x.shape(), dim, length), at);
}

std::vector<Tensor> cut(const Tensor& x, const Shape& sizes, int64_t dim, SourceLine at) {
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(sliced(x, dim, start, size, at));
    start += size;
  }
  return parts;
}

// x where the column less the row is `predicate` diagonal, else 0.
Tensor triangle(const char* function, const Tensor& x, int64_t diagonal, const char* predicate, SourceLine at) {
  Call call(at, function, {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  if (x.shape().size() < 2) {
    return call.fail(absl::StrCat("x is ", describe(x), "; it needs two dimensions, [..., m, n]"));
  }
  const Tensor rows = iotaOf(call, {x.dim(-2), 1}, 0, kI64, at);
  const Tensor columns = iotaOf(call, {x.dim(-1)}, 0, kI64, at);
  return select(compare(sub(columns, rows, at), diagonal, predicate, at), x, 0, at);
}

}  // namespace

Tensor pad(const Tensor& x, const Shape& low, const Shape& high, double value, SourceLine at) {
  Call call(at, "pad", {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  if (const std::string error = whyNoElement(value, x.type()); !error.empty()) {
    return call.fail(absl::StrCat(value, " ", error, ", and x is ", describe(x), "; write another number"));
  }
  NamedAttrList attrs;
  attrs.set("low", call.builder().getDenseI64ArrayAttr(low));
  attrs.set("high", call.builder().getDenseI64ArrayAttr(high));
  attrs.set("value", call.builder().getF64FloatAttr(value));
  return call.make("pad", attrs);
}

Tensor stack(const std::vector<Tensor>& xs, int64_t dim, SourceLine at) {
  Call call(at, "stack", listed(xs));
  if (!call.ok() || !placeFromStart(call, xs.front(), dim)) {
    return call.undefined();
  }
  std::vector<Tensor> lines;
  for (const Tensor& x : xs) {
    if (x.shape() != xs.front().shape()) {
      return call.fail(absl::StrCat("tensors ", describe(xs.front()), " and ", describe(x), "; they need one shape"));
    }
    lines.push_back(reshape(x, inserted(x.shape(), dim, 1), at));
  }
  return concat(lines, dim, at);
}

std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim, SourceLine at) {
  Call call(at, "split", {{"x", x}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return std::vector<Tensor>(sizes.size(), call.undefined());
  }
  const bool positive = std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 0; });
  int64_t total = 0;
  for (const int64_t size : sizes) {
    total = positive && size <= x.dim(dim) - total ? total + size : -1;
    if (total < 0) {
      break;
    }
  }
  if (total != x.dim(dim)) {
    call.fail(absl::StrCat("parts of sizes [", absl::StrJoin(sizes, ", "), "] do not fill dimension ", dim,
                           " of x, which is ", describe(x), "; give sizes of at least 1 with the sum ", x.dim(dim)));
    return std::vector<Tensor>(sizes.size(), call.undefined());
  }
  return cut(x, sizes, dim, at);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t parts, int64_t dim, SourceLine at) {
  Call call(at, "chunk", {{"x", x}});
  if (!call.ok() || !countFromStart(call, x, dim) || !call.isFrom(1, x.dim(dim), "parts", parts)) {
    return std::vector<Tensor>(std::clamp<int64_t>(parts, 1, 1 << 16), call.undefined());
  }
  const int64_t size = (x.dim(dim) + parts - 1) / parts;
  Shape sizes;
  for (int64_t left = x.dim(dim); left > 0; left -= size) {
    sizes.push_back(std::min(size, left));
  }
  return cut(x, sizes, dim, at);
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length, SourceLine at) {
  Call call(at, "narrow", {{"x", x}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return call.undefined();
  }
  const int64_t size = x.dim(dim);
  const int64_t from = start < 0 && start >= -size ? start + size : start;
  if (from < 0 || from >= size || length < 1 || length > size - from) {
    return call.fail(absl::StrCat("start = ", start, " and length = ", length, " reach outside dimension ", dim,
                                  " of x, which is ", describe(x), "; take elements 0 to ", size - 1));
  }
  return length == size ? x : sliced(x, dim, from, length, at);
}

Tensor unsqueeze(const Tensor& x, int64_t dim, SourceLine at) {
  Call call(at, "unsqueeze", {{"x", x}});
  if (!call.ok() || !placeFromStart(call, x, dim)) {
    return call.undefined();
  }
  return reshape(x, inserted(x.shape(), dim, 1), at);
}

Tensor squeeze(const Tensor& x, const Shape& dims, SourceLine at) {
  Call call(at, "squeeze", {{"x", x}});
  Shape gone = dims;
  if (!call.ok() || !listFromStart(call, x, gone)) {
    return call.undefined();
  }
  Shape shape;
  for (int64_t d = 0; d < static_cast<int64_t>(x.shape().size()); ++d) {
    const bool named = std::find(gone.begin(), gone.end(), d) != gone.end();
    if (named && !dims.empty() && x.dim(d) != 1) {
      return call.fail(absl::StrCat("dimension ", d, " of x, which is ", describe(x), ", has size ", x.dim(d),
                                    "; only dimensions of size 1 can go"));
    }
    if (!named || x.dim(d) != 1) {
      shape.push_back(x.dim(d));
    }
  }
  return reshape(x, shape, at);
}

Tensor flatten(const Tensor& x, int64_t first, int64_t last, SourceLine at) {
  Call call(at, "flatten", {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  if (x.shape().empty()) {
    return reshape(x, {1}, at);
  }
  if (!countFromStart(call, x, first) || !countFromStart(call, x, last)) {
    return call.undefined();
  }
  if (first > last) {
    return call.fail(absl::StrCat("first = ", first, " is behind last = ", last, " of x, which is ", describe(x),
                                  "; exchange them"));
  }
  const Shape shape = x.shape();
  Shape joined(shape.begin(), shape.begin() + first);
  joined.push_back(elementsOf(Shape(shape.begin() + first, shape.begin() + last + 1)));
  joined.insert(joined.end(), shape.begin() + last + 1, shape.end());
  return reshape(x, joined, at);
}

Tensor expand(const Tensor& x, const Shape& shape, SourceLine at) {
  Call call(at, "expand", {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  Shape full = shape;
  for (size_t d = 0; d < full.size(); ++d) {
    const bool has = full.size() - d <= x.shape().size();  // aligned at the right
    if (full[d] == -1 && has) {
      full[d] = x.dim(static_cast<int64_t>(d) - static_cast<int64_t>(full.size()));
    }
  }
  if (!call.sizes("(-1 keeps a size) shape", full)) {
    return call.undefined();
  }
  const mlir::Type result = mlir::RankedTensorType::get(full, call.graph()->elementType(x.type()));
  return call.make("broadcast", {}, result);
}

Tensor flip(const Tensor& x, const Shape& dims, SourceLine at) {
  Call call(at, "flip", {{"x", x}});
  Shape turned = dims;
  if (!call.ok() || !listFromStart(call, x, turned)) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("dims", call.builder().getDenseI64ArrayAttr(turned));
  return call.make("flip", attrs);
}

Tensor roll(const Tensor& x, int64_t shift, int64_t dim, SourceLine at) {
  Call call(at, "roll", {{"x", x}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return call.undefined();
  }
  const int64_t size = x.dim(dim);
  const int64_t moved = (shift % size + size) % size;
  if (moved == 0) {
    return x;
  }
  return concat({sliced(x, dim, size - moved, moved, at), sliced(x, dim, 0, size - moved, at)}, dim, at);
}

Tensor repeat(const Tensor& x, int64_t times, int64_t dim, SourceLine at) {
  Call call(at, "repeat", {{"x", x}});
  if (!call.ok() || !countFromStart(call, x, dim) || !call.isFrom(1, kMostRepeats, "times", times)) {
    return call.undefined();
  }
  const Tensor column = reshape(x, inserted(x.shape(), dim + 1, 1), at);
  const Tensor rows = broadcastTo(column, inserted(x.shape(), dim + 1, times), at);
  return rows.valid() ? reshape(rows, withSize(x.shape(), dim, x.dim(dim) * times), at) : rows;
}

Tensor tile(const Tensor& x, const Shape& times, SourceLine at) {
  Call call(at, "tile", {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  const size_t rank = std::max(times.size(), x.shape().size());
  Shape counts(rank - times.size(), 1);
  counts.insert(counts.end(), times.begin(), times.end());
  Shape sizes(rank - x.shape().size(), 1);
  const Shape shape = x.shape();
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  Shape ones;
  Shape stretched;
  for (size_t d = 0; d < rank; ++d) {
    if (!call.isFrom(1, kMostRepeats, "a number of times", static_cast<double>(counts[d]))) {
      return call.undefined();
    }
    if (counts[d] > 1) {
      ones.push_back(1);
      stretched.push_back(counts[d]);
    }
    ones.push_back(sizes[d]);
    stretched.push_back(sizes[d]);
  }
  const Tensor whole = broadcastTo(reshape(x, ones, at), stretched, at);
  if (whole.valid()) {
    std::transform(sizes.begin(), sizes.end(), counts.begin(), sizes.begin(), std::multiplies<>());
  }
  return whole.valid() ? reshape(whole, sizes, at) : whole;
}

Tensor tril(const Tensor& x, int64_t diagonal, SourceLine at) {
  return triangle("tril", x, diagonal, "le", at);
}
Tensor triu(const Tensor& x, int64_t diagonal, SourceLine at) {
  return triangle("triu", x, diagonal, "ge", at);
}

Tensor lengthMask(const Tensor& lengths, int64_t size, SourceLine at) {
  Call call(at, "lengthMask", {{"lengths", lengths, Takes::kIds, "lengths"}});
  if (!call.ok() || !call.sizes("size", {size})) {
    return call.undefined();
  }
  return compare(iotaOf(call, {size}, 0, lengths.type(), at), unsqueeze(lengths, -1, at), "lt", at);
}

}  // namespace weft
