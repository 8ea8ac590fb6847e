#include "planner/explain/recompute_words.h"

#include <set>

#include "absl/strings/str_join.h"
#include "planner/derive/recompute_scopes.h"
#include "planner/graph/name_classes.h"

namespace weft {
namespace {

constexpr char kNothing[] = "none";

// Names that the option would read as something else.
bool isPlain(const std::string& name) {
  return name.find_first_of(",*?") == std::string::npos && name != "full" && name != "auto" && name != kNothing;
}

}  // namespace

RecomputeWords recomputeWords(const GraphView& view, const std::vector<int64_t>& stages,
                              const std::vector<bool>& wanted) {
  std::vector<bool> said = recomputedOps(view, stages, kNothing);
  std::vector<std::string> patterns;
  std::set<std::string> tried;
  RecomputeWords words;
  for (int op = 0; op < view.operators(); ++op) {
    if (!wanted[op] || said[op]) {
      continue;
    }
    const std::string& name = view.op(op).label();
    for (const std::string& pattern : {layerPattern(name), name}) {
      if (said[op] || !isPlain(name) || !tried.insert(pattern).second) {
        continue;
      }
      const std::vector<bool> again = recomputedOps(view, stages, pattern);
      bool isExact = again[op];
      for (int other = 0; other < view.operators(); ++other) {
        isExact = isExact && (!again[other] || wanted[other]);
      }
      for (int other = 0; other < view.operators() && isExact; ++other) {
        said[other] = said[other] || again[other];
      }
      if (isExact) {
        patterns.push_back(pattern);
      }
    }
    if (!said[op]) {
      words.operators.push_back(op);
    }
  }
  words.option = patterns.empty() ? kNothing : absl::StrJoin(patterns, ",");
  return words;
}

}  // namespace weft
