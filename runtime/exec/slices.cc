#include "runtime/exec/slices.h"

#include <cstring>
#include <vector>

#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Calls visit(local byte offset, global byte offset, bytes) for every contiguous row of the slice's valid part.
template <typename Visit>
void forEachRow(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const Visit& visit) {
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
  if (run == 0) {
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row;
    int64_t local = 0;
    int64_t global = slice.offset(dims - 1);
    int64_t localStride = buffer.shape(dims - 1);
    int64_t globalStride = tensor.shape(dims - 1);
    for (int d = dims - 2; d >= 0; --d) {
      const int64_t index = rest % slice.valid(d);
      rest /= slice.valid(d);
      local += index * localStride;
      global += (slice.offset(d) + index) * globalStride;
      localStride *= buffer.shape(d);
      globalStride *= tensor.shape(d);
    }
    visit(local * width, global * width, run * width);
  }
}

template <typename T>
void fillWith(char* local, int64_t bytes, double value) {
  T* elements = reinterpret_cast<T*>(local);
  const T element = static_cast<T>(value);
  for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof(T)); ++i) {
    elements[i] = element;
  }
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
    default:
      // bool and 16-bit floats: only zero is ever asked for, and it is all zero bits.
      std::memset(local, 0, buffer.bytes());
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

void scatterSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* global,
                  char* local) {
  if (hasPad(buffer, tensor.slices(static_cast<int>(rank)))) {
    fillPad(tensor, buffer, local);
  }
  forEachRow(tensor, buffer, rank, [&](int64_t to, int64_t from, int64_t bytes) {
    std::memcpy(local + to, static_cast<const char*>(global) + from, bytes);
  });
}

void gatherSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const char* local,
                 void* global) {
  forEachRow(tensor, buffer, rank, [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(static_cast<char*>(global) + to, local + from, bytes);
  });
}

}  // namespace weft
