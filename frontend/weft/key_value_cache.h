// Generation token by token: a forward program that keeps on the device what it has seen.
//
//   const Tensor ids = g.input("ids", {batch, 1}, kI32);
//   const nn::Decoding at = nn::decodingAt(g, rows);                  // input "position"
//   ...
//   const nn::Cached seen = nn::KeyValueCache(g, "cache", {batch, heads, rows, width})(k, v, at);
//   const Tensor mixed = scaledDotProductAttention(q, seen.keys, seen.values, {.mask = at.seen});
#pragma once

#include <string>

#include "weft/graph.h"
#include "weft/modules.h"

namespace weft::nn {

// Where a step of generation is: the same row for the whole batch.
struct Decoding {
  Tensor position;  // i32 scalar, from 0
  Tensor here;      // bool [rows, 1]: the row of this step
  Tensor seen;      // bool [rows]: it and those before it
};
// With the position as an input of the program, named "position". `rows`: most that can be generated.
Decoding decodingAt(Graph& g, int64_t rows, SourceLine at = SourceLine::current());

struct Cached {
  Tensor keys;    // [batch, heads, rows, width]
  Tensor values;  // likewise; rows that are not seen yet hold anything
};

// Keys and values of the rows so far: states `name`.keys and `name`.values, first zeros, which the program replaces in
// every step, forward programs too.
class KeyValueCache : public Module {
 public:
  // `shape`: [batch, heads, rows, width].
  KeyValueCache(Graph& g, const std::string& name, const Shape& shape, Type type = kF32,
                SourceLine at = SourceLine::current());
  // With k and v [batch, heads, 1, width] at the row of this step.
  Cached operator()(const Tensor& k, const Tensor& v, const Decoding& decoding,
                    SourceLine at = SourceLine::current()) const;

 private:
  Graph& g_;
  Tensor keys_;
  Tensor values_;
};

}  // namespace weft::nn
