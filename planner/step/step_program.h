// The step program: what the ranks of one submesh run in a step, as plain data.
//
// Instructions read and make values; a value belongs to one function. Functions pass values on by name: a result and
// the arguments of the same name are the same memory. There is no type, no shape and no kernel here, only what memory
// and time depend on: bytes, scratch, what may be written in place, what is sent. The plan passes build the program of
// a whole step from the local state, the cost model that of one segment.
//
// A value that is kept for the backward pass, and the parameter that both functions read:
//
//   forward   arguments x, w    0: kernel x, w -> h    results h as "v0", an activation
//   backward  arguments h', w'  0: kernel h', w' -> g  ...             (h' is named "v0" too)
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kernels/describe/describe.h"
#include "planner/machine/picoseconds.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// A value of one function: what its producer leaves in memory.
struct StepValue {
  int64_t bytes = 0;
};

// Each queue of a machine runs its instructions in their order. Transfers between stages take no time of either.
enum class Queue : uint8_t { kCompute, kCommunication };

struct StepInstruction {
  // A collective is a kernel. A view makes no bytes of its own if its result may lie where input 0 does. A wait ends
  // the collectives that make its inputs, where they run beside computation (planner/cost/overlap.h); it makes nothing.
  enum class Kind : uint8_t { kKernel, kView, kConstant, kSend, kReceive, kWait };

  Kind kind = Kind::kKernel;
  std::vector<int> inputs = {};  // values, as indices into StepProgram::values
  std::vector<int> outputs = {};
  std::vector<InPlacePair> inPlace = {};  // which outputs may take the memory of which inputs
  int64_t workspaceBytes = 0;             // scratch while it runs
  int64_t mailboxBytes = 0;               // of a receive: room for the messages under way
  int constant = -1;                      // of a constant: equal ones have equal numbers
  bool recomputed = false;                // in the backward pass: AnnotatedOp::repeated
  std::string label = {};                 // for people
  bool named = false;                     // by the user? Then an accumulator that it writes takes its label
  Picoseconds time = 0;                   // on the request's machine; 0 where nobody asks (the plan passes)
  Queue queue = Queue::kCompute;          // of a collective kCommunication, where somebody asks for times
};

// A value under the name by which functions pass it on.
struct StepName {
  int value = -1;
  std::string name;
  plan::MemoryClass memory = plan::ACTIVATION;
};

struct StepFunction {
  plan::FunctionKind kind = plan::INIT;
  int64_t stage = 0;
  std::vector<StepName> arguments = {};
  std::vector<StepName> results = {};
  std::vector<StepInstruction> instructions = {};
};

struct StepProgram {
  std::vector<StepValue> values;
  std::vector<StepFunction> functions;  // in the order in which a step runs them, INIT first
  std::set<std::string> visible;        // names that the host reads or writes
};

// Does a function of this kind run for each micro-batch of a step?
bool isPerMicroBatch(plan::FunctionKind kind);

}  // namespace weft
