#include "runtime/comm/fold.h"

#include <algorithm>

namespace weft {
namespace {

// A value unequal to itself is NaN; it stays, on whichever side it stands.
template <typename T>
T greater(T a, T b) {
  return b > a || b != b ? b : a;
}
template <typename T>
T smaller(T a, T b) {
  return b < a || b != b ? b : a;
}

template <typename T>
void foldAs(void* out, const void* a, const void* b, int64_t count, Reduction reduction) {
  T* y = static_cast<T*>(out);
  const T* x0 = static_cast<const T*>(a);
  const T* x1 = static_cast<const T*>(b);
  switch (reduction) {
    case Reduction::kSum:
      for (int64_t i = 0; i < count; ++i) {
        y[i] = x0[i] + x1[i];
      }
      return;
    case Reduction::kMax:
      for (int64_t i = 0; i < count; ++i) {
        y[i] = greater(x0[i], x1[i]);
      }
      return;
    case Reduction::kMin:
      for (int64_t i = 0; i < count; ++i) {
        y[i] = smaller(x0[i], x1[i]);
      }
      return;
  }
}

// Sums of integers wrap around; unsigned, so that this is defined.
template <typename Signed, typename Unsigned>
void foldIntegers(void* out, const void* a, const void* b, int64_t count, Reduction reduction) {
  return reduction == Reduction::kSum ? foldAs<Unsigned>(out, a, b, count, reduction)
                                      : foldAs<Signed>(out, a, b, count, reduction);
}

}  // namespace

bool isReducible(DType type) {
  return type != DType::kBF16 && type != DType::kF16;
}

void fold(DType type, void* out, const void* a, const void* b, int64_t count, Reduction reduction) {
  switch (type) {
    case DType::kF32:
      return foldAs<float>(out, a, b, count, reduction);
    case DType::kF64:
      return foldAs<double>(out, a, b, count, reduction);
    case DType::kI32:
      return foldIntegers<int32_t, uint32_t>(out, a, b, count, reduction);
    case DType::kI64:
      return foldIntegers<int64_t, uint64_t>(out, a, b, count, reduction);
    case DType::kBool:
      return foldAs<uint8_t>(out, a, b, count, reduction == Reduction::kSum ? Reduction::kMax : reduction);
    case DType::kBF16:
    case DType::kF16:
      return;
  }
}

}  // namespace weft
