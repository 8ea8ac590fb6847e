// What the functions of weft/ops.h share: operators of common forms, dimensions counted from the end.
#pragma once

#include <limits>

#include "frontend/call.h"

namespace weft {

inline constexpr double kLargest = std::numeric_limits<float>::max();

// A function of the API, and the operator of the dialect behind it.
struct Function {
  Function(const char* name) : Function(name, name) {}  // NOLINT: most have one name
  Function(const char* name, const char* mnemonic) : name(name), mnemonic(mnemonic) {}

  const char* name;
  const char* mnemonic;
};

// An operator of one operand without attributes.
Tensor unary(const Function& function, const Tensor& x, Takes takes, SourceLine at);
Tensor binary(const Function& function, Takes takes, const Operand& a, const Operand& b, SourceLine at);
// weft::select under another name.
Tensor selectAs(const char* function, const Tensor& condition, const Operand& a, const Operand& b, SourceLine at);
// A reduction; no dims = all.
Tensor reduce(const Function& function, Takes takes, const Tensor& x, Shape dims, bool keepDims, SourceLine at);

struct Pair {
  Tensor a;
  Tensor b;
};
// Both operands as tensors: a number takes the type of the other one.
Pair tensorsOf(const char* function, const Operand& a, const Operand& b, SourceLine at);

int64_t elementsOf(const Shape& shape);
// The sizes of these dimensions.
Shape sizesOf(const Shape& shape, const Shape& dims);
// 0, 1, ... count - 1.
Shape firstDims(size_t count);

// Counts negative dimensions of x from its end; an error where x has no such dimension.
bool countFromStart(Call& call, const Tensor& x, Shape& dims);
// The same for one dimension.
bool countFromStart(Call& call, const Tensor& x, int64_t& dim);
// The same for a list in which no dimension may stand twice; sorted. None: all.
bool listFromStart(Call& call, const Tensor& x, Shape& dims);

// Global indices in dimension `dim`.
Tensor iotaOf(const Call& call, const Shape& shape, int64_t dim, Type type, SourceLine at);

// Exchanges dimension `dim` with the last one: x itself where it is the last.
Tensor exchangedWithLast(const Tensor& x, int64_t dim, SourceLine at);

}  // namespace weft
