#include "planner/graph/place_text.h"

#include "absl/strings/str_cat.h"

namespace weft {

std::string placeText(const SourcePlace& line) {
  return line.file.empty() ? "" : absl::StrCat(" (", line.file, ":", line.line, ")");
}

}  // namespace weft
