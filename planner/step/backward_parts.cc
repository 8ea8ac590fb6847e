#include "planner/step/backward_parts.h"

#include <algorithm>

namespace weft {

std::vector<BackwardPart> backwardParts(const std::vector<BackwardOperation>& operations,
                                        const std::set<int>& readOutside) {
  std::set<int> ofInput = readOutside;
  std::set<int> ofWeights;
  std::vector<BackwardPart> parts(operations.size(), BackwardPart::kWeights);
  for (size_t at = operations.size(); at-- > 0;) {
    const BackwardOperation& operation = operations[at];
    const auto isRead = [&](const std::set<int>& needed) {
      return std::any_of(operation.outputs.begin(), operation.outputs.end(),
                         [&](int value) { return needed.count(value) > 0; });
    };
    const bool input = operation.transfer || isRead(ofInput);
    const bool weights = !input || (operation.recomputed && isRead(ofWeights));
    parts[at] = !input ? BackwardPart::kWeights : weights ? BackwardPart::kBoth : BackwardPart::kInput;
    if (input) {
      ofInput.insert(operation.inputs.begin(), operation.inputs.end());
    }
    if (weights) {
      ofWeights.insert(operation.inputs.begin(), operation.inputs.end());
    }
  }
  return parts;
}

std::vector<BackwardPart> backwardParts(const StepFunction& backward, const std::set<std::string>& readOutside) {
  using Kind = StepInstruction::Kind;
  std::vector<BackwardOperation> operations;
  for (const StepInstruction& instruction : backward.instructions) {
    const bool transfer = instruction.kind == Kind::kSend || instruction.kind == Kind::kReceive;
    operations.push_back({transfer, instruction.recomputed, instruction.inputs, instruction.outputs});
  }
  std::set<int> values;
  for (const StepName& result : backward.results) {
    if (readOutside.count(result.name) > 0) {
      values.insert(result.value);
    }
  }
  return backwardParts(operations, values);
}

}  // namespace weft
