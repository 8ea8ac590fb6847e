#include "planner/derive/zero_words.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/graph/name_classes.h"

namespace weft {

ZeroPatterns zeroWords(const Decisions& record) {
  std::map<std::string, std::string> said;
  std::vector<std::string> names;
  for (const ArgumentDecision& argument : record.arguments) {
    names.push_back(argument.name);
    if (argument.zero) {
      said[argument.name] = absl::StrCat(*argument.zero);
    }
  }
  ZeroPatterns patterns;
  for (const ArgumentDecision& argument : record.arguments) {
    if (argument.zero && zeroLevelOf(patterns, argument.name, -1) < 0) {
      patterns.emplace_back(widestPattern(argument.name, said, names), static_cast<int>(*argument.zero));
    }
  }
  return patterns;
}

std::string zeroText(const Decisions& record) {
  const ZeroPatterns others = zeroWords(record);
  return others.empty() ? absl::StrCat(record.zero)
                        : absl::StrCat(record.zero, " (", absl::StrJoin(others, ", ", absl::PairFormatter(" ")), ")");
}

}  // namespace weft
