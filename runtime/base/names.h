// Names that a user may have mistyped.
#pragma once

#include <string>
#include <vector>

namespace weft {

// Least number of inserted, deleted or changed characters between two names (Levenshtein 1966).
size_t editDistance(const std::string& a, const std::string& b);

// The known name with the least edit distance; empty where nothing is known.
std::string nearestName(const std::string& name, const std::vector<std::string>& known);

}  // namespace weft
