#include "planner/step/input_part.h"

#include <algorithm>

namespace weft {

std::vector<bool> inputPart(const std::vector<BackwardOperation>& operations, const std::set<int>& readOutside) {
  std::set<int> needed = readOutside;
  std::vector<bool> part(operations.size(), false);
  for (size_t at = operations.size(); at-- > 0;) {
    const BackwardOperation& operation = operations[at];
    part[at] = operation.transfer || std::any_of(operation.outputs.begin(), operation.outputs.end(),
                                                 [&](int value) { return needed.count(value) > 0; });
    if (part[at]) {
      needed.insert(operation.inputs.begin(), operation.inputs.end());
    }
  }
  return part;
}

std::vector<bool> inputPart(const StepFunction& backward) {
  using Kind = StepInstruction::Kind;
  std::vector<BackwardOperation> operations;
  for (const StepInstruction& instruction : backward.instructions) {
    const bool transfer = instruction.kind == Kind::kSend || instruction.kind == Kind::kReceive;
    operations.push_back({transfer, instruction.inputs, instruction.outputs});
  }
  std::set<int> readOutside;
  for (const StepName& result : backward.results) {
    if (result.memory == plan::ACTIVATION) {
      readOutside.insert(result.value);
    }
  }
  return inputPart(operations, readOutside);
}

}  // namespace weft
