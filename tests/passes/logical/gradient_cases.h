// Programs whose gradients are checked by finite differences; almost all operators stand in one of them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/support/interpreter.h"

namespace weft::testing {

// A parameter with random values: +-[0.3, 1.3], or [0.3, 1.3] if positive; both keep away from kinks and poles at 0.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  bool positive = false;
};

// Integer input.
struct Ids {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int32_t> values;
};

// `body` computes %y of shape `result` in f64 from %<name> of parameters and ids. The loss is the sum of y times fixed
// random weights, so that every element of y counts with another weight.
struct GradientCase {
  std::string name;
  std::vector<Parameter> parameters;
  std::string body;
  std::vector<int64_t> result;
  std::vector<Ids> ids = {};

  friend void PrintTo(const GradientCase& test, std::ostream* out) { *out << test.name; }
};

std::vector<GradientCase> gradientCases();
// Its @step: forward up to the loss.
std::string gradientModule(const GradientCase& test);

}  // namespace weft::testing
