// Tensors as large as a program can hold: what products of sizes are computed from.
#pragma once

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "runtime/base/limits.h"

namespace weft::ir {

// At least one element, at most kMaxBytes bytes; no product of sizes overflows before that is known.
inline bool isBounded(llvm::ArrayRef<int64_t> shape) {
  constexpr int64_t kMost = kMaxBytes / 8;  // an element has up to 8 bytes
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 1 || size > kMost / elements) {
      return false;
    }
    elements *= size;
  }
  return true;
}

inline bool isBounded(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor && isBounded(tensor.getShape());
}

// The product of positive numbers, at most 2^56: beyond that an estimate of work says no more than "too much".
inline int64_t productAtMost(llvm::ArrayRef<int64_t> factors) {
  constexpr int64_t kMost = int64_t{1} << 56;
  int64_t product = 1;
  for (const int64_t factor : factors) {
    product = factor > kMost / product ? kMost : product * factor;
  }
  return product;
}

}  // namespace weft::ir
