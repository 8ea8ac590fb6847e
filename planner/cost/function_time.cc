#include "planner/cost/function_time.h"

#include <algorithm>
#include <map>

#include "planner/cost/two_queues.h"
#include "planner/machine/times.h"

namespace weft {
namespace {

using Kind = StepInstruction::Kind;

class FunctionClock {
 public:
  FunctionClock(const StepProgram& program, const StepFunction& function, const Machine& machine)
      : program_(program), machine_(machine), queues_(machine) {
    time_.kind = function.kind;
    time_.stage = function.stage;
    overlaps_ = std::any_of(function.instructions.begin(), function.instructions.end(),
                            [](const StepInstruction& instruction) { return instruction.kind == Kind::kWait; });
  }

  void compute(Picoseconds time) {
    time_.computation += time;
    queues_.compute(time);
  }
  void copy(int value) { compute(copyTime(machine_, 2 * program_.values[value].bytes)); }

  void communicate(const StepInstruction& collective) {
    time_.communication += collective.time;
    const Picoseconds end = queues_.communicate(collective.time);
    if (!overlaps_) {
      queues_.waitUntil(end);
      return;
    }
    for (const int output : collective.outputs) {
      ends_[output] = end;
    }
    time_.spans.push_back({collective.label, end - collective.time, end});
  }

  void wait(const StepInstruction& wait) {
    for (const int input : wait.inputs) {
      if (const auto end = ends_.find(input); end != ends_.end()) {
        queues_.waitUntil(end->second);
      }
    }
  }

  FunctionTime run() && {
    time_.total = queues_.idle();
    return std::move(time_);
  }

 private:
  const StepProgram& program_;
  const Machine& machine_;
  TwoQueues queues_;
  bool overlaps_ = false;
  std::map<int, Picoseconds> ends_;  // of the collectives that make these values
  FunctionTime time_;
};

}  // namespace

FunctionTime functionTime(const StepProgram& program, const StorageAssignment& assignment, size_t function,
                          const Machine& machine) {
  const std::vector<StepInstruction>& instructions = program.functions[function].instructions;
  FunctionClock clock(program, program.functions[function], machine);
  for (size_t i = 0; i < instructions.size(); ++i) {
    const StepInstruction& instruction = instructions[i];
    if (instruction.queue == Queue::kCommunication) {
      clock.communicate(instruction);
    } else if (instruction.kind == Kind::kWait) {
      clock.wait(instruction);
    } else if (instruction.kind == Kind::kView && !assignment.views[function][i]) {
      clock.copy(instruction.outputs[0]);
    } else {
      clock.compute(instruction.time);
    }
  }
  for (const Copy& copy : assignment.copies[function]) {
    clock.copy(copy.like);
  }
  return std::move(clock).run();
}

}  // namespace weft
