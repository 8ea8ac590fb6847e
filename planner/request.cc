#include "planner/request.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/names.h"

namespace weft {
namespace {

const std::map<std::string, Mode>& modes() {
  static const std::map<std::string, Mode> known = {
      {"semi", Mode::kSemi},          {"layouts", Mode::kLayouts},          {"auto", Mode::kAuto},
      {"propagate", Mode::kSemi},     {"semi_auto_parallel", Mode::kSemi},  {"sharding_propagation", Mode::kSemi},
      {"auto_parallel", Mode::kAuto}, {"dynamic_programming", Mode::kAuto}, {"recursive_programming", Mode::kAuto},
  };
  return known;
}

}  // namespace

std::string modeName(Mode mode) {
  return mode == Mode::kAuto ? "auto" : mode == Mode::kLayouts ? "layouts" : "semi";
}

absl::StatusOr<Mode> parseMode(const std::string& name) {
  if (const auto it = modes().find(name); it != modes().end()) {
    return it->second;
  }
  std::vector<std::string> names;
  for (const auto& [known, mode] : modes()) {
    names.push_back(known);
  }
  return absl::InvalidArgumentError(absl::StrCat("mode = '", name, "' is unknown; did you mean '",
                                                 nearestName(name, names), "'? There are semi, layouts and auto"));
}

int CompileOptions::mostZeroLevel() const {
  int most = zeroLevel();
  for (const auto& [pattern, level] : zeroOf) {
    most = std::max(most, level);
  }
  return most;
}

std::vector<std::string> recomputePatterns(const std::string& recompute) {
  std::vector<std::string> patterns;
  const std::vector<std::string> words = absl::StrSplit(recompute, ',');
  for (const std::string& word : words) {
    const std::string pattern(absl::StripAsciiWhitespace(word));
    if (!pattern.empty() && pattern != "auto" && pattern != "none") {
      patterns.push_back(pattern == "full" ? "*" : pattern);
    }
  }
  return patterns;
}

}  // namespace weft
