#include "planner/cost/overlap_update.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "planner/cost/overlap.h"
#include "planner/machine/times.h"

namespace weft {
namespace {

using Kind = StepInstruction::Kind;

// Two functions that are called one after another, as one.
class JointFunction {
 public:
  JointFunction(const StepProgram& program, const StorageAssignment& assignment, const Machine& machine)
      : program_(program), assignment_(assignment), machine_(machine) {}

  StepProgram run(int first, int second) && {
    joint_.values = program_.values;
    joint_.functions.emplace_back();
    add(first);
    std::map<std::string, int> named;
    for (const auto* names : {&program_.functions[first].arguments, &program_.functions[first].results}) {
      for (const StepName& name : *names) {
        named[name.name] = name.value;
      }
    }
    for (const StepName& argument : program_.functions[second].arguments) {
      const auto known = named.find(argument.name);
      if (known == named.end()) {
        made().arguments.push_back(argument);
      } else {
        standsFor_[argument.value] = known->second;
      }
    }
    add(second);
    const StepFunction& last = program_.functions[second];
    made().kind = last.kind;
    made().stage = last.stage;
    made().arguments.insert(made().arguments.end(), program_.functions[first].arguments.begin(),
                            program_.functions[first].arguments.end());
    made().results = last.results;
    for (StepName& result : made().results) {
      result.value = valueOf(result.value);
    }
    return std::move(joint_);
  }

 private:
  StepFunction& made() { return joint_.functions[0]; }

  int valueOf(int value) const {
    const auto known = standsFor_.find(value);
    return known == standsFor_.end() ? value : known->second;
  }

  // Without the waits; what is copied is a kernel.
  void add(int f) {
    const std::vector<StepInstruction>& instructions = program_.functions[f].instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].kind == Kind::kWait) {
        continue;
      }
      StepInstruction& copy = made().instructions.emplace_back(instructions[i]);
      for (int& input : copy.inputs) {
        input = valueOf(input);
      }
      if (copy.kind == Kind::kView && !assignment_.views[f][i]) {
        copy.kind = Kind::kKernel;
        copy.time = timeOfCopy(copy.outputs[0]);
      }
    }
    for (const Copy& copy : assignment_.copies[f]) {
      StepInstruction& kernel = made().instructions.emplace_back();
      kernel.inputs = {valueOf(copy.like)};
      kernel.time = timeOfCopy(copy.like);
    }
  }

  Picoseconds timeOfCopy(int value) const { return copyTime(machine_, 2 * program_.values[value].bytes); }

  const StepProgram& program_;
  const StorageAssignment& assignment_;
  const Machine& machine_;
  StepProgram joint_;
  std::map<int, int> standsFor_;  // arguments of the second for values of the first
};

int64_t newBytes(const StepProgram& program, const StepInstruction& collective) {
  int64_t bytes = 0;
  for (size_t output = 0; output < collective.outputs.size(); ++output) {
    const bool inPlace = std::any_of(collective.inPlace.begin(), collective.inPlace.end(),
                                     [&](const InPlacePair& pair) { return pair.output == output; });
    bytes += inPlace ? 0 : program.values[collective.outputs[output]].bytes;
  }
  return bytes;
}

// Where the collectives of the update run, and what they need before it begins. Instructions of the last call had
// places up to `ofLast`.
void addPlaces(const StepProgram& joint, const std::vector<int64_t>& before, int64_t ofLast,
               const std::vector<CollectiveSpan>& spans, OverlappedUpdate& made) {
  const std::vector<StepInstruction>& instructions = joint.functions[0].instructions;
  size_t end = 0;  // of the last call
  for (size_t i = 0; i < instructions.size(); ++i) {
    const bool computesLast = instructions[i].queue == Queue::kCompute && before[i] >= 0 && before[i] < ofLast;
    end = computesLast ? i : end;
  }
  made.time.spans.clear();
  auto span = spans.begin();
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].queue == Queue::kCommunication) {
      if (before[i] >= ofLast) {
        made.bytes += i < end ? newBytes(joint, instructions[i]) : 0;
        made.time.spans.push_back(*span);
      }
      ++span;
    }
  }
}

}  // namespace

std::optional<OverlappedUpdate> overlapUpdate(const StepProgram& program, const StorageAssignment& assignment,
                                              const std::vector<FunctionCall>& calls,
                                              const std::vector<FunctionTime>& times, const Machine& machine) {
  if (calls.size() < 2 || program.functions[calls.back().function].kind != plan::UPDATE) {
    return std::nullopt;
  }
  const int last = calls[calls.size() - 2].function;
  OverlappedUpdate made = {calls.back().function, times[calls.back().function], 0};
  StepProgram joint = JointFunction(program, assignment, machine).run(last, made.function);
  int64_t ofLast = static_cast<int64_t>(assignment.copies[last].size());  // instructions of the joint function
  for (const StepInstruction& instruction : program.functions[last].instructions) {
    ofLast += instruction.kind == Kind::kWait ? 0 : 1;
  }
  const std::vector<int64_t> before = overlapCollectives(joint, 0, machine);
  const std::vector<StepInstruction>& instructions = joint.functions[0].instructions;
  StorageAssignment placed;
  placed.views.emplace_back(instructions.size(), true);
  placed.copies.emplace_back();
  const FunctionTime together = functionTime(joint, placed, 0, machine);
  const Picoseconds total = std::max(made.time.computation, together.total - times[last].total);
  if (total >= made.time.total) {
    return std::nullopt;
  }
  made.time.total = total;
  addPlaces(joint, before, ofLast, together.spans, made);
  for (CollectiveSpan& span : made.time.spans) {
    span.begin -= times[last].total;
    span.end -= times[last].total;
  }
  return made;
}

}  // namespace weft
