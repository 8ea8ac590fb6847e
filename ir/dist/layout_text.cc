#include "ir/dist/layout_text.h"

#include "absl/strings/str_cat.h"

namespace weft::ir::dist {
namespace {

absl::Status error(llvm::StringRef text, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("layout \"", text.str(), "\": ", what, "; expected a form like \"[{dp},{}] partial{tp:sum}\""));
}

// Takes "{...}" from the front; false if it does not stand there.
bool takeBraces(llvm::StringRef& rest) {
  rest = rest.ltrim();
  size_t close = rest.find('}');
  if (!rest.starts_with("{") || close == llvm::StringRef::npos || rest.slice(1, close).contains('{')) {
    return false;
  }
  rest = rest.drop_front(close + 1).ltrim();
  return true;
}

}  // namespace

absl::StatusOr<size_t> layoutDimensions(llvm::StringRef text) {
  llvm::StringRef rest = text.ltrim();
  if (!rest.consume_front("[")) {
    return error(text, "it does not begin with '['");
  }
  size_t dimensions = 0;
  rest = rest.ltrim();
  while (!rest.consume_front("]")) {
    if ((dimensions > 0 && !rest.consume_front(",")) || !takeBraces(rest)) {
      return error(text, absl::StrCat("dimension ", dimensions, " is not a list of axes in braces"));
    }
    ++dimensions;
  }
  for (rest = rest.ltrim(); !rest.empty(); rest = rest.ltrim()) {
    if (!rest.consume_front("partial") && !rest.consume_front("pad")) {
      return error(text, absl::StrCat("\"", rest.str(), "\" after the dimensions"));
    }
    if (!takeBraces(rest)) {
      return error(text, "partial and pad are followed by braces");
    }
  }
  return dimensions;
}

}  // namespace weft::ir::dist
