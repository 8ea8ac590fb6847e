#include "runtime/base/names.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

// A suggestion is not worth more: so much of a name is compared, and so many letters with one another in all.
constexpr size_t kLongestName = 1024;
constexpr size_t kMostWork = size_t{1} << 27;

// No fewer edits lead from one name to the other: each letter that one has more often costs one.
size_t leastDistance(const std::string& a, const std::string& b) {
  std::array<int64_t, 256> counts = {};
  for (const char c : a) {
    ++counts[static_cast<uint8_t>(c)];
  }
  for (const char c : b) {
    --counts[static_cast<uint8_t>(c)];
  }
  int64_t more = 0;
  int64_t fewer = 0;
  for (const int64_t count : counts) {
    (count > 0 ? more : fewer) += std::abs(count);
  }
  return static_cast<size_t>(std::max(more, fewer));
}

}  // namespace

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
  // The likeliest first, so that most of a long list is never compared letter by letter.
  std::vector<std::pair<size_t, size_t>> order;  // least possible distance, index
  for (size_t i = 0; i < known.size(); ++i) {
    order.emplace_back(leastDistance(name, known[i]), i);
  }
  std::sort(order.begin(), order.end());
  size_t best = known.size();
  size_t distance = std::numeric_limits<size_t>::max();
  size_t work = 0;
  for (const auto& [least, i] : order) {
    if (least > distance || work > kMostWork) {
      break;
    }
    const std::string a = name.substr(0, kLongestName);
    const std::string b = known[i].substr(0, kLongestName);
    work += (a.size() + 1) * (b.size() + 1);
    const size_t found = editDistance(a, b);
    if (found < distance || (found == distance && i < best)) {
      distance = found;
      best = i;
    }
  }
  return best == known.size() ? "" : known[best];
}

std::string similarName(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearestName(name, known);
  return editDistance(name, near) <= std::max<size_t>(2, name.size() / 3) ? near : "";
}

std::string listedWithNearest(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  constexpr size_t kMostListed = 5;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
    const std::string nearest = nearestName(names[i], known);
    shown.push_back("'" + names[i] + "'" + (nearest.empty() ? "" : " (nearest: '" + nearest + "')"));
  }
  const std::string more = names.size() > kMostListed ? absl::StrCat(" and ", names.size() - kMostListed, " more") : "";
  return absl::StrJoin(shown, ", ") + more;
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
