#include "weft/ops_index.h"

#include "frontend/ops_support.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

NamedAttrList lookup(Call& call, const Tensor& x, int64_t dim) {
  NamedAttrList attrs;
  attrs.set("dim", call.builder().getI64IntegerAttr(dim));
  attrs.set("rows", call.builder().getI64IntegerAttr(x.dim(dim)));
  return attrs;
}

// Numbers first ... first + count - 1, appended.
void append(Shape& list, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    list.push_back(first + i);
  }
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, SourceLine at) {
  Call call(at, "gather", {{"x", x, Takes::kNumbers}, {"index", index, Takes::kIds, "indices"}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return call.undefined();
  }
  return call.make("gather", lookup(call, x, dim));
}

Tensor scatterAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& updates, SourceLine at) {
  Call checked(at, "scatterAdd",
               {{"x", x, Takes::kNumbers}, {"index", index, Takes::kIds, "indices"}, {"updates", updates}});
  if (!checked.ok() || !countFromStart(checked, x, dim)) {
    return checked.undefined();
  }
  Call call(at, "scatterAdd", {{"index", index}, {"updates", updates}});
  const mlir::Type result = mlir::RankedTensorType::get(x.shape(), call.graph()->elementType(x.type()));
  return add(x, call.make("scatter_add", lookup(call, x, dim), result), at);
}

// Rows of a table are what an embedding takes: the dimension goes to the front, all others become the columns.
Tensor take(const Tensor& x, const Tensor& indices, int64_t dim, SourceLine at) {
  Call call(at, "take", {{"x", x, Takes::kFloats}, {"indices", indices, Takes::kIds, "indices"}});
  if (!call.ok() || !countFromStart(call, x, dim)) {
    return call.undefined();
  }
  const auto rank = static_cast<int64_t>(x.shape().size());
  const auto more = static_cast<int64_t>(indices.shape().size());
  if (rank == 2 && dim == 0) {
    return embedding(x, indices, at);
  }
  Shape front = {dim};
  append(front, 0, dim);
  append(front, dim + 1, rank - dim - 1);
  const Tensor rows = dim == 0 ? x : transpose(x, front, at);
  const Tensor taken = embedding(reshape(rows, {x.dim(dim), -1}, at), indices, at);
  const Shape columns = rows.shape();
  Shape shape = indices.shape();
  shape.insert(shape.end(), columns.begin() + 1, columns.end());
  const Tensor whole = reshape(taken, shape, at);
  Shape back;
  append(back, more, dim);
  append(back, 0, more);
  append(back, more + dim, rank - dim - 1);
  return dim == 0 ? whole : transpose(whole, back, at);
}

Tensor oneHot(const Tensor& ids, int64_t classes, Type type, SourceLine at) {
  Call call(at, "oneHot", {{"ids", ids, Takes::kIds, "class numbers"}});
  if (!call.ok() || !call.sizes("classes", {classes})) {
    return call.undefined();
  }
  return cast(compare(unsqueeze(ids, -1, at), iotaOf(call, {classes}, 0, ids.type(), at), "eq", at), type, at);
}

}  // namespace weft
