// Attributes of a kernel call, free of protobuf and LLVM.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/status.h"

namespace weft {

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
using AttributeMap = std::map<std::string, Attribute>;

// attribute<int64_t>(map, "dim"): the value, or an error that names the attribute and what it should hold.
template <typename T>
absl::StatusOr<T> attribute(const AttributeMap& map, const std::string& name) {
  const auto it = map.find(name);
  if (it == map.end()) {
    return absl::InvalidArgumentError("attribute '" + name + "' is missing");
  }
  if (const T* value = std::get_if<T>(&it->second)) {
    return *value;
  }
  return absl::InvalidArgumentError("attribute '" + name + "' has another type than the kernel reads");
}

// The same with a value for an absent attribute.
template <typename T>
absl::StatusOr<T> attributeOr(const AttributeMap& map, const std::string& name, T otherwise) {
  if (map.find(name) == map.end()) {
    return otherwise;
  }
  return attribute<T>(map, name);
}

}  // namespace weft
