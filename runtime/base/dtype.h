// Element types of tensors, shared by compiler, plan and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

enum class DType : uint8_t { kF32, kF64, kBF16, kF16, kI32, kI64, kBool };

// Bytes of one element; bool is one byte.
int64_t byteSize(DType type);

// "f32", "f64", "bf16", "f16", "i32", "i64", "bool".
std::string dtypeName(DType type);

// The inverse of dtypeName; nothing for an unknown name.
std::optional<DType> parseDType(const std::string& name);

bool isFloat(DType type);

}  // namespace weft
