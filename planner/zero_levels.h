// ZeRO by parameter: the levels that a user gives to some of them, and those that a record has.
//
// Levels are given by patterns of names ('*' and '?'), "h*.fc.*=3,wte=1": the first that matches counts, and the
// request's `zero` for what none matches. The record has one level for the parameters that say no other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

struct Decisions;

inline constexpr int kMostZeroLevel = 3;

// Pattern and level.
using ZeroPatterns = std::vector<std::pair<std::string, int>>;

// "h*.fc.*=3,wte=1"; "" is none. Error: an entry that is not of this form; checkRequest says whether a level is one.
absl::StatusOr<ZeroPatterns> parseZeroOf(const std::string& text);
std::string printZeroOf(const ZeroPatterns& patterns);

// The level of a parameter of that name; `rest` where no pattern matches.
int64_t zeroLevelOf(const ZeroPatterns& patterns, const std::string& parameter, int64_t rest);

// The levels of a record by the names of its parameters.
class ZeroLevels {
 public:
  explicit ZeroLevels(const Decisions& record);

  int64_t of(const std::string& parameter) const;

 private:
  int64_t rest_;
  std::map<std::string, int64_t> others_;
};

}  // namespace weft
