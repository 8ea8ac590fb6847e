#include "planner/step/step_facts.h"

#include <algorithm>

namespace weft {
namespace {

void addUse(ValueFacts& value, int64_t step) {
  value.first = value.first < 0 ? step : std::min(value.first, step);
  value.last = std::max(value.last, step);
}

void addInstructions(const StepFunction& function, int64_t step, std::vector<ValueFacts>& values) {
  for (size_t at = 0; at < function.instructions.size(); ++at, ++step) {
    for (const int value : function.instructions[at].inputs) {
      addUse(values[value], step);
    }
    for (const int value : function.instructions[at].outputs) {
      values[value].producer = static_cast<int>(at);
      addUse(values[value], step);
    }
  }
  for (const StepName& result : function.results) {
    addUse(values[result.value], step);
  }
}

void addNames(const StepFunction& function, int index, absl::flat_hash_map<std::string, NameFacts>& names) {
  const bool isBackward =
      function.kind == plan::BACKWARD || function.kind == plan::INPUT_GRAD || function.kind == plan::WEIGHT_GRAD;
  for (const StepName& argument : function.arguments) {
    NameFacts& facts = names[argument.name];
    facts.lastReader = index;
    if (isBackward) {
      facts.isReadByStages |= facts.backwardStage >= 0 && facts.backwardStage != function.stage;
      facts.backwardStage = function.stage;
    }
  }
  for (const StepName& result : function.results) {
    NameFacts& facts = names[result.name];
    ++facts.writers;
    facts.lastWriter = index;
  }
}

}  // namespace

StepFacts factsOf(const StepProgram& program) {
  StepFacts facts;
  facts.values.resize(program.values.size());
  int64_t step = 0;
  for (size_t f = 0; f < program.functions.size(); ++f) {
    facts.starts.push_back(step);
    addInstructions(program.functions[f], step, facts.values);
    addNames(program.functions[f], static_cast<int>(f), facts.names);
    step = facts.endOf(program, static_cast<int>(f)) + 1;
  }
  return facts;
}

}  // namespace weft
