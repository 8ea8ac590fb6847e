// Every operator of the nn dialect in a small training program, with dimensions that many numbers of parts divide.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/equivalence/training_step.h"

namespace weft::testing {

struct OperatorCase {
  std::string name;
  std::string mnemonic;
  std::vector<TensorLine> operands;  // floats become parameters, integers and bools inputs
  std::string attributes;            // "dim = 1 : i64"
  std::vector<TensorLine> results;
  // How many of the first results the loss reads (each element with a weight of its own); the others are only outputs.
  size_t weighted = 1;
  // Operators without a gradient stand behind a stop_gradient.
  bool differentiable = true;
  // The result that only the operator's gradient may read: expanded it has another type.
  std::optional<size_t> hidden = std::nullopt;

  // The operator carries nn.name = "target" and `strategy` ("" or the text of nn.strategy).
  TrainingProgram program(const std::string& strategy) const;

  friend void PrintTo(const OperatorCase& test, std::ostream* out) { *out << test.name; }
};

std::vector<OperatorCase> operatorCases();

}  // namespace weft::testing
