// What a step program says of its values and names, looked up once for the assignment of storages.
//
// Time is counted in *steps* through all functions in order: each instruction takes one, and so does the end of each
// function, where results are returned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "planner/step/step_program.h"

namespace weft {

struct ValueFacts {
  int producer = -1;  // index of the instruction that makes it; -1 for an argument
  // First and last step that makes or reads it, returning it included; -1 for an argument that nothing reads.
  int64_t first = -1;
  int64_t last = -1;
};

struct NameFacts {
  int writers = 0;      // functions that return it
  int lastWriter = -1;  // index of the last of them
  int lastReader = -1;  // index of the last function that takes it as an argument
  // Do backward functions of several stages take it? Where these are cut in two, the schedule decides which is the
  // last.
  bool isReadByStages = false;
  int64_t backwardStage = -1;  // of one that does
};

struct StepFacts {
  std::vector<ValueFacts> values;
  absl::flat_hash_map<std::string, NameFacts> names;
  std::vector<int64_t> starts;  // of each function: the step of its instruction 0

  int64_t endOf(const StepProgram& program, int function) const {
    return starts[function] + static_cast<int64_t>(program.functions[function].instructions.size());
  }
};

StepFacts factsOf(const StepProgram& program);

}  // namespace weft
