#include "frontend/ops_support.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {

using mlir::NamedAttrList;

Tensor unary(const Function& function, const Tensor& x, Takes takes, SourceLine at) {
  Call call(at, function.name, {{"x", x, takes}});
  return call.ok() ? call.make(function.mnemonic) : call.undefined();
}

Pair tensorsOf(const char* function, const Operand& a, const Operand& b, SourceLine at) {
  return {a.isNumber() ? scalarLike(b.tensor(), a, function, at) : a.tensor(),
          b.isNumber() ? scalarLike(a.tensor(), b, function, at) : b.tensor()};
}

Tensor binary(const Function& function, Takes takes, const Operand& a, const Operand& b, SourceLine at) {
  const Pair pair = tensorsOf(function.name, a, b, at);
  Call call(at, function.name, {{"a", pair.a, takes}, {"b", pair.b, takes}});
  return call.ok() ? call.make(function.mnemonic) : call.undefined();
}

Tensor selectAs(const char* function, const Tensor& condition, const Operand& a, const Operand& b, SourceLine at) {
  if (a.isNumber() && b.isNumber()) {
    return Call(at, function, {{"condition", condition}})
        .fail(absl::StrCat("a and b are the numbers ", a.number(), " and ", b.number(),
                           ", which have no element type; make one a tensor, Graph::full({}, ", a.number(), ")"));
  }
  const Pair pair = tensorsOf(function, a, b, at);
  Call call(at, function, {{"condition", condition, Takes::kBools}, {"a", pair.a}, {"b", pair.b}});
  return call.ok() ? call.make("select") : call.undefined();
}

Tensor reduce(const Function& function, Takes takes, const Tensor& x, Shape dims, bool keepDims, SourceLine at) {
  Call call(at, function.name, {{"x", x, takes}});
  if (!call.ok() || !listFromStart(call, x, dims)) {
    return call.undefined();
  }
  const int64_t count = elementsOf(sizesOf(x.shape(), dims));
  mlir::OpBuilder& builder = call.builder();
  NamedAttrList attrs;
  attrs.set("dims", builder.getDenseI64ArrayAttr(dims));
  attrs.set("keep_dims", builder.getBoolAttr(keepDims));
  if (std::string(function.mnemonic) == "mean") {
    attrs.set("count", builder.getI64IntegerAttr(count));
  }
  return call.make(function.mnemonic, attrs);
}

int64_t elementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Shape sizesOf(const Shape& shape, const Shape& dims) {
  Shape sizes;
  for (const int64_t dim : dims) {
    sizes.push_back(shape[dim]);
  }
  return sizes;
}

Shape firstDims(size_t count) {
  Shape dims(count);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

bool countFromStart(Call& call, const Tensor& x, Shape& dims) {
  return std::all_of(dims.begin(), dims.end(), [&](int64_t& dim) { return countFromStart(call, x, dim); });
}

bool countFromStart(Call& call, const Tensor& x, int64_t& dim) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (dim < -rank || dim >= rank) {
    call.fail(absl::StrCat("dimension ", dim, " of x, which is ", describe(x), "; its dimensions are 0 to ", rank - 1));
    return false;
  }
  dim += dim < 0 ? rank : 0;
  return true;
}

bool listFromStart(Call& call, const Tensor& x, Shape& dims) {
  const Shape given = dims;
  if (!countFromStart(call, x, dims)) {
    return false;
  }
  if (dims.empty()) {
    dims = firstDims(x.shape().size());
  }
  std::sort(dims.begin(), dims.end());
  if (std::adjacent_find(dims.begin(), dims.end()) != dims.end()) {
    call.fail(absl::StrCat("dims [", absl::StrJoin(given, ", "), "] of x, which is ", describe(x),
                           "; name each dimension once"));
    return false;
  }
  return true;
}

Tensor iotaOf(const Call& call, const Shape& shape, int64_t dim, Type type, SourceLine at) {
  NamedAttrList attrs;
  attrs.set("dim", call.builder().getI64IntegerAttr(dim));
  const mlir::Type result = mlir::RankedTensorType::get(shape, call.graph()->elementType(type));
  return call.graph()->create({at, "iota", "iota"}, {}, attrs, result);
}

Tensor exchangedWithLast(const Tensor& x, int64_t dim, SourceLine at) {
  Shape order = firstDims(x.shape().size());
  std::swap(order[dim], order.back());
  return dim + 1 == static_cast<int64_t>(order.size()) ? x : transpose(x, order, at);
}

}  // namespace weft
