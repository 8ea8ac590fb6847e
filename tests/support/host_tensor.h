// A tensor in host memory, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/base/dtype.h"

namespace weft::testing {

// The DType of a C++ element type; bool is stored as one byte, uint8_t.
template <typename T>
constexpr DType dtypeFor() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::kF32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kF64;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return DType::kI32;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return DType::kI64;
  } else {
    static_assert(std::is_same_v<T, uint8_t>, "no such element type");
    return DType::kBool;
  }
}

struct HostTensor {
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  HostTensor() = default;
  // Zeros.
  HostTensor(DType elementType, std::vector<int64_t> dims) : type(elementType), shape(std::move(dims)) {
    bytes.resize(static_cast<size_t>(elements() * byteSize(type)));
  }

  // HostTensor::of<float>({2, 2}, {1, 2, 3, 4}).
  template <typename T>
  static HostTensor of(std::vector<int64_t> dims, const std::vector<T>& values) {
    HostTensor tensor(dtypeFor<T>(), std::move(dims));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
  }

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t dim : shape) {
      count *= dim;
    }
    return count;
  }

  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  template <typename T>
  std::vector<T> values() const {
    return std::vector<T>(data<T>(), data<T>() + elements());
  }

  friend bool operator==(const HostTensor&, const HostTensor&) = default;
};

}  // namespace weft::testing
