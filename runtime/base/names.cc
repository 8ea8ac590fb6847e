#include "runtime/base/names.h"

#include <algorithm>
#include <numeric>

namespace weft {

size_t editDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = up;
    }
  }
  return row[b.size()];
}

std::string nearestName(const std::string& name, const std::vector<std::string>& known) {
  const auto closer = [&](const std::string& a, const std::string& b) {
    return editDistance(a, name) < editDistance(b, name);
  };
  const auto best = std::min_element(known.begin(), known.end(), closer);
  return best == known.end() ? "" : *best;
}

bool globMatches(const std::string& pattern, const std::string& name) {
  size_t at = 0;
  size_t star = std::string::npos;  // the last '*' met
  size_t taken = 0;                 // where the rest behind it began in the name
  for (size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[i])) {
      ++at;
      ++i;
    } else if (star != std::string::npos) {
      // The star takes one more character; what earlier stars took need not change.
      at = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string::npos;
}

}  // namespace weft
