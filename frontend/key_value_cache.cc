#include "weft/key_value_cache.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"

namespace weft::nn {

Decoding decodingAt(Graph& g, int64_t rows, SourceLine at) {
  const Tensor position = g.input("position", {}, kI32, {.batchDim = -1}, at);
  const Tensor places = g.iota({rows}, 0, kI32, at);
  return {position, reshape(compare(places, position, "eq", at), {rows, 1}, at), compare(places, position, "le", at)};
}

KeyValueCache::KeyValueCache(Graph& g, const std::string& name, const Shape& shape, Type type, SourceLine at)
    : g_(g),
      keys_(g.state(g.impl()->scoped(name) + ".keys", shape, type, 0, at)),
      values_(g.state(g.impl()->scoped(name) + ".values", shape, type, 0, at)) {}

Cached KeyValueCache::operator()(const Tensor& k, const Tensor& v, const Decoding& decoding, SourceLine at) const {
  const Scope stage = stageScope(k);
  const Scope call = callScope(k, "KeyValueCache");
  Shape one = keys_.shape();
  if (one.size() == 4) {
    one[2] = 1;
  }
  for (const Tensor& row : {k, v}) {
    if (row.valid() && (row.shape() != one || one.size() != 4)) {
      row.graph()->fail(
          at, absl::StrCat("a row is ", describe(row), " beside a cache [", absl::StrJoin(keys_.shape(), ", "),
                           "] of [batch, heads, rows, width]; it has "
                           "the sizes of the cache and one row"));
      return {};
    }
  }
  const Cached cached = {select(decoding.here, k, keys_, at), select(decoding.here, v, values_, at)};
  g_.assign(keys_, cached.keys, {.alsoForward = true}, at);
  g_.assign(values_, cached.values, {.alsoForward = true}, at);
  return cached;
}

}  // namespace weft::nn
