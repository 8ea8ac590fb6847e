#include "planner/graph/name_classes.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/names.h"

namespace weft {

std::string layerPattern(const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  bool found = false;  // the part that ends with a number
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    std::string& part = parts[i];
    const auto letters = std::find_if(part.rbegin(), part.rend(), [](unsigned char c) { return std::isdigit(c) == 0; });
    const auto digits = static_cast<size_t>(letters - part.rbegin());
    const bool isNumber = digits == part.size() && digits > 0;
    if (isNumber || (digits > 0 && !found)) {
      part.replace(part.size() - digits, digits, "*");
      found = true;
    }
  }
  return absl::StrJoin(parts, ".");
}

std::string widestPattern(const std::string& name, const std::map<std::string, std::string>& said,
                          const std::vector<std::string>& names) {
  const std::string pattern = layerPattern(name);
  const std::string& mine = said.at(name);
  const bool alike = std::all_of(names.begin(), names.end(), [&](const std::string& other) {
    const auto found = said.find(other);
    return !globMatches(pattern, other) || (found != said.end() && found->second == mine);
  });
  return alike ? pattern : name;
}

}  // namespace weft
