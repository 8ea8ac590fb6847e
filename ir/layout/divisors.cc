#include "ir/layout/divisors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft {

std::vector<int64_t> divisorsOf(int64_t n) {
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d == 0) {
      low.push_back(d);
      if (d * d != n) {
        high.push_back(n / d);
      }
    }
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::string nearestDivisors(int64_t size, int64_t wanted) {
  std::vector<int64_t> all = divisorsOf(size);
  auto above = std::upper_bound(all.begin(), all.end(), wanted);
  std::string text;
  if (above != all.begin()) {
    absl::StrAppend(&text, *(above - 1));
  }
  if (above != all.end()) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", *above);
  }
  return text.empty() ? "any" : text;
}

}  // namespace weft
