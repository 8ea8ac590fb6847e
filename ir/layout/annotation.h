// What the user writes of a tensor's layout: the axes of each dimension, whether propagation may add others to them,
// and in which order it hears of them. The meaning is that of Shardy's sharding annotations.
//
//   [{dp},{}]          closed: rows over dp, columns whole
//   [{dp,?},{?}]       open: rows over dp and whatever reaches them behind it, columns as propagation has it
//   [{dp}p0,{tp}p1]    the rows are heard of before the columns, and before everything without a smaller priority
//   (dp,(tp,sp),None)  MindSpore's tuples: closed
//
// Pads stand behind as in a layout.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/layout.h"

namespace weft {

inline constexpr int64_t kMaxPriority = 1000;

struct Annotation {
  Layout layout = {};
  std::vector<bool> open = {};  // of each dimension
  // Of each dimension; 0 is heard first, and is meant where nothing is written.
  std::vector<std::optional<int64_t>> priorities = {};

  int64_t priorityOf(size_t dim) const { return priorities[dim].value_or(0); }
};

// Axis names of each dimension as the text of an annotation: "dp,tp", "None", "?" -> "[{dp,tp},{},{?}]". "None" is
// MindSpore's word for a whole dimension.
std::string annotationText(const std::vector<std::string>& names);

// Errors name the position and what was expected.
absl::StatusOr<Annotation> parseAnnotation(const std::string& text, const Mesh& mesh);

}  // namespace weft
