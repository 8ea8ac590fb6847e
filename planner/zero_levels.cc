#include "planner/zero_levels.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/decisions.h"
#include "runtime/base/names.h"

namespace weft {

absl::StatusOr<ZeroPatterns> parseZeroOf(const std::string& text) {
  ZeroPatterns patterns;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const size_t equals = entry.rfind('=');
    int level = 0;
    if (equals == absl::string_view::npos || !absl::SimpleAtoi(entry.substr(equals + 1), &level)) {
      return absl::InvalidArgumentError(
          absl::StrCat("zeroOf: '", entry, "' is not PATTERN=LEVEL; write h*.fc.*=3,wte=1 for levels by parameter"));
    }
    patterns.emplace_back(std::string(entry.substr(0, equals)), level);
  }
  return patterns;
}

std::string printZeroOf(const ZeroPatterns& patterns) {
  return absl::StrJoin(patterns, ",", absl::PairFormatter("="));
}

int64_t zeroLevelOf(const ZeroPatterns& patterns, const std::string& parameter, int64_t rest) {
  const auto first = std::find_if(patterns.begin(), patterns.end(),
                                  [&](const auto& entry) { return globMatches(entry.first, parameter); });
  return first == patterns.end() ? rest : first->second;
}

ZeroLevels::ZeroLevels(const Decisions& record) : rest_(record.zero) {
  for (const ArgumentDecision& argument : record.arguments) {
    if (argument.zero) {
      others_[argument.name] = *argument.zero;
    }
  }
}

int64_t ZeroLevels::of(const std::string& parameter) const {
  const auto other = others_.find(parameter);
  return other == others_.end() ? rest_ : other->second;
}

}  // namespace weft
