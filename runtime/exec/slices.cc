#include "runtime/exec/slices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Where the rows of a slice's valid part lie in another array: the offset of its first element and the array's shape.
struct Window {
  std::vector<int64_t> offset;
  std::vector<int64_t> shape;
};

std::vector<int64_t> listOf(const google::protobuf::RepeatedField<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Calls visit(local byte offset, byte offset in the window's array, bytes) for every contiguous row of the slice's
// valid part.
template <typename Visit>
void forEachRow(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const Window& window,
                const Visit& visit) {
  const plan::Slice& slice = tensor.slices(static_cast<int>(rank));
  const int dims = tensor.shape_size();
  const int64_t width = byteSize(dtypeOf(tensor.type()));
  if (dims == 0) {
    visit(0, 0, width);
    return;
  }
  int64_t rows = 1;
  for (int d = 0; d < dims - 1; ++d) {
    rows *= slice.valid(d);
  }
  const int64_t run = slice.valid(dims - 1);
  for (int64_t row = 0; row < (run == 0 ? 0 : rows); ++row) {
    int64_t rest = row;
    int64_t local = 0;
    int64_t other = window.offset[dims - 1];
    int64_t localStride = buffer.shape(dims - 1);
    int64_t otherStride = window.shape[dims - 1];
    for (int d = dims - 2; d >= 0; --d) {
      const int64_t index = rest % slice.valid(d);
      rest /= slice.valid(d);
      local += index * localStride;
      other += (window.offset[d] + index) * otherStride;
      localStride *= buffer.shape(d);
      otherStride *= window.shape[d];
    }
    visit(local * width, other * width, run * width);
  }
}

Window globalWindow(const plan::NamedTensor& tensor, int64_t rank) {
  return {listOf(tensor.slices(static_cast<int>(rank)).offset()), listOf(tensor.shape())};
}

// `value` in the nearest that T has.
template <typename T>
T nearest(double value) {
  if constexpr (std::is_integral_v<T>) {
    // As doubles the limits may round up by one, out of T's range.
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
    return std::isnan(value) ? T{0}
           : value <= kLow   ? std::numeric_limits<T>::min()
           : value >= kHigh  ? std::numeric_limits<T>::max()
                             : static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

// The bits of a bfloat16: the upper half of a float's, rounded to nearest, ties to even. Own arithmetic, as not every
// compiler library converts to it.
uint16_t bfloat16Bits(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  constexpr uint16_t kQuiet = 0x40;
  if (std::isnan(value)) {
    return static_cast<uint16_t>(bits >> 16) | kQuiet;
  }
  const uint32_t odd = (bits >> 16) & 1;
  return static_cast<uint16_t>((bits + 0x7fff + odd) >> 16);
}

template <typename T>
void fillWith(char* local, int64_t bytes, double value) {
  std::fill_n(reinterpret_cast<T*>(local), bytes / static_cast<int64_t>(sizeof(T)), nearest<T>(value));
}

bool hasPad(const plan::Buffer& buffer, const plan::Slice& slice) {
  for (int d = 0; d < buffer.shape_size(); ++d) {
    if (slice.valid(d) != buffer.shape(d)) {
      return true;
    }
  }
  return false;
}

void fillPad(const plan::NamedTensor& tensor, const plan::Buffer& buffer, char* local) {
  const double value = tensor.pad_value();
  switch (dtypeOf(tensor.type())) {
    case DType::kF32:
      return fillWith<float>(local, buffer.bytes(), value);
    case DType::kF64:
      return fillWith<double>(local, buffer.bytes(), value);
    case DType::kI32:
      return fillWith<int32_t>(local, buffer.bytes(), value);
    case DType::kI64:
      return fillWith<int64_t>(local, buffer.bytes(), value);
    case DType::kBF16:
      return fillWith<uint16_t>(local, buffer.bytes(), bfloat16Bits(static_cast<float>(value)));
    case DType::kF16:
      return fillWith<_Float16>(local, buffer.bytes(), value);
    case DType::kBool:
      return fillWith<uint8_t>(local, buffer.bytes(), value != 0 ? 1 : 0);
  }
}

}  // namespace

int64_t globalBytes(const plan::NamedTensor& tensor) {
  int64_t bytes = byteSize(dtypeOf(tensor.type()));
  for (const int64_t size : tensor.shape()) {
    bytes *= size;
  }
  return bytes;
}

int64_t sliceBytes(const plan::NamedTensor& tensor, int64_t rank) {
  int64_t bytes = byteSize(dtypeOf(tensor.type()));
  for (const int64_t size : tensor.slices(static_cast<int>(rank)).valid()) {
    bytes *= size;
  }
  return bytes;
}

static void writeFrom(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const Window& window,
                      const char* from, char* local) {
  if (hasPad(buffer, tensor.slices(static_cast<int>(rank)))) {
    fillPad(tensor, buffer, local);
  }
  forEachRow(tensor, buffer, rank, window,
             [&](int64_t to, int64_t at, int64_t bytes) { std::memcpy(local + to, from + at, bytes); });
}

void scatterSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* global,
                  char* local) {
  writeFrom(tensor, buffer, rank, globalWindow(tensor, rank), static_cast<const char*>(global), local);
}

void writeLocal(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* part,
                char* local) {
  const std::vector<int64_t> valid = listOf(tensor.slices(static_cast<int>(rank)).valid());
  const Window window = {std::vector<int64_t>(valid.size(), 0), valid};
  writeFrom(tensor, buffer, rank, window, static_cast<const char*>(part), local);
}

void gatherSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const char* local,
                 void* global) {
  forEachRow(tensor, buffer, rank, globalWindow(tensor, rank), [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(static_cast<char*>(global) + to, local + from, bytes);
  });
}

}  // namespace weft
