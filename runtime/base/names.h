// Names that a user writes: mistyped ones, and patterns of them.
#pragma once

#include <string>
#include <vector>

namespace weft {

// Least number of inserted, deleted or changed characters between two names (Levenshtein 1966).
size_t editDistance(const std::string& a, const std::string& b);

// The known name with the least edit distance; empty where nothing is known.
std::string nearestName(const std::string& name, const std::vector<std::string>& known);

// That name if it can be a slip of the pen: at most 2 edits, or a third of the letters of `name`; else empty.
std::string similarName(const std::string& name, const std::vector<std::string>& known);

// Names for an error message, each with its nearest among `known`: "'a' (nearest: 'b'), 'c' and 7 more".
std::string listedWithNearest(const std::vector<std::string>& names, const std::vector<std::string>& known);

// Does a name fit a pattern, in which '*' stands for any characters and '?' for one? Time grows with the product of
// both lengths.
bool globMatches(const std::string& pattern, const std::string& name);

}  // namespace weft
