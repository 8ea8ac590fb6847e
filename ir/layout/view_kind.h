// What result 0 of an operator is to its operand 0.
#pragma once

#include <cstdint>

namespace weft {

enum class ViewKind : uint8_t {
  kNone,        // the operator computes it
  kShape,       // the same bytes under another shape: the operator needs no instruction
  kAnnotation,  // the same value: the operator only tells the compiler something, and has no place in the local state
};

}  // namespace weft
