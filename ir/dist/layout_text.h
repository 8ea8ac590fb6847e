// The form of a layout's text, without a mesh: what #dist.layout can check by itself.
#pragma once

#include "absl/status/statusor.h"
#include "llvm/ADT/StringRef.h"

namespace weft::ir::dist {

// Number of dimensions of "[{dp},{}] partial{tp:sum} pad{0:62}". Errors: brackets or braces that do not match, a word
// other than `partial` and `pad` after the dimensions; the text is quoted.
absl::StatusOr<size_t> layoutDimensions(llvm::StringRef text);

}  // namespace weft::ir::dist
