#include "runtime/base/read_text.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace weft {

absl::StatusOr<std::string> readText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  std::error_code unknown;
  const bool directory = std::filesystem::is_directory(path, unknown);
  // An empty file is not an error, but inserting nothing into a stream sets its fail bit.
  if (!file || directory || (file.peek() != std::ifstream::traits_type::eof() && !(text << file.rdbuf()))) {
    return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  }
  return text.str();
}

}  // namespace weft
