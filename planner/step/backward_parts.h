// Which part of a backward function makes the gradient of the stage's input, where a schedule runs it apart from the
// gradients of the weights: everything that a transfer or another stage depends on. Receives belong to it, so that
// messages are taken in order. What it recomputes, and the gradients of the weights read too, is recomputed with them:
// kept from one to the other it would take the room that recomputing is to save.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "planner/step/step_program.h"

namespace weft {

enum class BackwardPart : uint8_t { kInput, kWeights, kBoth };

// An operation as the cut sees it; values under any numbers.
struct BackwardOperation {
  bool transfer = false;    // a send or a receive
  bool recomputed = false;  // it may run in both parts: a copy of a forward operation, a gather (repeats.h)
  std::vector<int> inputs = {};
  std::vector<int> outputs = {};
};

// The part of each operation of a backward function, in order. `readOutside`: values that other stages read.
std::vector<BackwardPart> backwardParts(const std::vector<BackwardOperation>& operations,
                                        const std::set<int>& readOutside);

// The same of a function of a step program. `readOutside`: names of results that the backward functions of other stages
// of its submesh read. Nothing is sent to them, and their gradients of weights may run before those of this stage.
std::vector<BackwardPart> backwardParts(const StepFunction& backward, const std::set<std::string>& readOutside);

}  // namespace weft
