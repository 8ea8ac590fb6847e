// Which part of a backward function makes the gradient of the stage's input, where a schedule runs it apart from the
// gradients of the weights: everything that a transfer or another stage depends on. Receives belong to it, so that
// messages are taken in order.
#pragma once

#include <set>
#include <vector>

#include "planner/step/step_program.h"

namespace weft {

// An operation as the cut sees it; values under any numbers.
struct BackwardOperation {
  bool transfer = false;  // a send or a receive
  std::vector<int> inputs = {};
  std::vector<int> outputs = {};
};

// For each operation of a backward function, in order: does it belong to the gradient of the input? `readOutside`:
// values that other stages read.
std::vector<bool> inputPart(const std::vector<BackwardOperation>& operations, const std::set<int>& readOutside);

// The same of a function of a step program: other stages of its submesh read the activations that it returns.
std::vector<bool> inputPart(const StepFunction& backward);

}  // namespace weft
