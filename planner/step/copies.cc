#include "planner/step/copies.h"

#include <algorithm>

namespace weft {

std::vector<Copy> orderCopies(std::vector<Copy> copies, const std::function<int(const Copy&)>& temporary) {
  std::vector<Copy> ordered;
  copies.erase(std::remove_if(copies.begin(), copies.end(), [](const Copy& copy) { return copy.from == copy.to; }),
               copies.end());
  while (!copies.empty()) {
    const auto free = std::find_if(copies.begin(), copies.end(), [&](const Copy& copy) {
      return std::none_of(copies.begin(), copies.end(), [&](const Copy& other) { return other.from == copy.to; });
    });
    if (free != copies.end()) {
      ordered.push_back(*free);
      copies.erase(free);
      continue;
    }
    // Only cycles are left: the first source moves out of the way.
    Copy aside = copies.front();
    aside.to = temporary(aside);
    ordered.push_back(aside);
    for (Copy& copy : copies) {
      copy.from = copy.from == aside.from ? aside.to : copy.from;
    }
  }
  return ordered;
}

}  // namespace weft
