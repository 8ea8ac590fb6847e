// The attributes of one operator as a user of `weft strategy` writes them, and what of them follows from shapes.
//
// Only what decides the shapes has to be said; what does not change how an operator may be split (the rate of dropout,
// a predicate) has a value that anyone may replace. What cannot be known is an error that says what to write.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/layout.h"

namespace weft::tools {

using OperatorAttribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

struct OperatorRequest {
  std::string op;  // "matmul"
  // What the operator says of itself: the attributes it declares; does it make its result of nothing?
  std::vector<std::string> declared;
  bool isSource = false;
  std::vector<Shape> operands;  // their shapes
  std::vector<Shape> results;   // as far as the user says them
  std::map<std::string, OperatorAttribute> attributes;
};

// "dims=[1]", "keep_dims=true", "rows=100" into the request. Errors: no '='; a name that no operator has, with the
// nearest; a value of another form, with an example to write.
absl::Status addAttribute(const std::string& text, OperatorRequest& request);

// Adds the attributes, and the shapes of results, that follow. Errors name what does not follow, with an example.
absl::Status complete(OperatorRequest& request);

}  // namespace weft::tools
