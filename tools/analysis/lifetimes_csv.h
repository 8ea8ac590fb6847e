// Lifetimes of buffers as a table: the input of `weft memory`.
//
//   id,lower,upper,size
//   h0,0,3,4096
//
// The columns may stand in any order. A buffer is alive in steps lower, ..., upper - 1. Blank lines and spaces around
// values do not count.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/memory/pack.h"

namespace weft::tools {

struct Lifetimes {
  std::vector<std::string> ids;  // in the order of the file, all different
  std::vector<PackItem> items;
};

// Errors name source:line:column, the column's name, what stands there, and what to write instead.
absl::StatusOr<Lifetimes> parseLifetimes(const std::string& text, const std::string& source);

}  // namespace weft::tools
