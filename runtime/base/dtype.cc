#include "runtime/base/dtype.h"

#include <array>
#include <cstddef>

namespace weft {
namespace {

struct Entry {
  const char* name;
  int64_t bytes;
  bool isFloat;
};

// In the order of DType.
constexpr std::array<Entry, 7> kTypes = {{{"f32", 4, true},
                                          {"f64", 8, true},
                                          {"bf16", 2, true},
                                          {"f16", 2, true},
                                          {"i32", 4, false},
                                          {"i64", 8, false},
                                          {"bool", 1, false}}};

const Entry& entry(DType type) {
  return kTypes[static_cast<size_t>(type)];
}

}  // namespace

int64_t byteSize(DType type) {
  return entry(type).bytes;
}

std::string dtypeName(DType type) {
  return entry(type).name;
}

std::optional<DType> parseDType(const std::string& name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (name == kTypes[i].name) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

bool isFloat(DType type) {
  return entry(type).isFloat;
}

}  // namespace weft
