// What operators take beside tensors.
#pragma once

#include <type_traits>

#include "weft/graph.h"

namespace weft {

// An operand of an element-wise operator: a tensor, or a number, which takes the element type of the tensor beside it
// (beside whole numbers it has to be whole). It remembers the line on which it stands, made from a tensor or a number
// there: an overloaded operator has no argument for that. An operator whose operands stand on several lines has the
// line of its left operand.
class Operand {
 public:
  Operand(const Tensor& tensor, SourceLine at = SourceLine::current()) : tensor_(tensor), at_(at) {}  // NOLINT
  template <typename T>
    requires std::is_arithmetic_v<T>
  Operand(T number, SourceLine at = SourceLine::current())  // NOLINT
      : number_(static_cast<double>(number)), isNumber_(true), at_(at) {}

  bool isNumber() const { return isNumber_; }
  double number() const { return number_; }
  const Tensor& tensor() const { return tensor_; }
  SourceLine at() const { return at_; }

 private:
  Tensor tensor_;
  double number_ = 0;
  bool isNumber_ = false;
  SourceLine at_;
};

}  // namespace weft
