// Which memory each value of a step program lives in.
//
// A *storage* is one micro-batch of memory. Values share one where one is made in place of another (element-wise
// operators, all_reduce, updates), is another's view (reshape), or carries the same name in two functions.
//
// What holds at every moment of a step: a storage holds one *cell*, a value and the views of it; an instruction writes
// a storage only when the cell in it is not read any more, or is read by that instruction itself in a way its kernel
// allows in place.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "planner/step/step_program.h"

namespace weft {

struct Storage {
  plan::MemoryClass memory = plan::TRANSIENT;
  int64_t bytes = 0;
  std::string label = {};
};

// A named result that its producer could not write in place: copied when the function ends.
struct Copy {
  int like = -1;  // the value
  int from = -1;
  int to = -1;
};

struct StorageAssignment {
  std::vector<Storage> storages;
  std::vector<int> of;                          // storage of each value; -1 for a value that no function makes or takes
  absl::flat_hash_map<std::string, int> named;  // storage of each name
  std::vector<std::vector<Copy>> copies;        // by function, in the order in which they must run
  std::vector<std::vector<bool>> views;  // by function and instruction: it does nothing, its result lies in its input
};

// The program has passed the gate of the scheduled state, or its like: every value is made before it is read, all of
// one name have as many bytes and one memory class, and every input of a step is an argument.
StorageAssignment assignStorage(const StepProgram& program);

}  // namespace weft
