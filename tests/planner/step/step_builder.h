// Small step programs, written instruction by instruction.
//
//   StepBuilder b;
//   b.function(plan::FORWARD);
//   const int x = b.argument("x", plan::INPUT);
//   const int h = b.kernel({x});                       // a value of 64 bytes
//   b.returns(b.kernel({h}, {.inPlace = {{0, 0}}}), "v0", plan::ACTIVATION);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/step/step_program.h"

namespace weft::testing {

inline constexpr int64_t kBytes = 64;

class StepBuilder {
 public:
  using Kind = StepInstruction::Kind;

  // What follows goes into this function.
  void function(plan::FunctionKind kind, int64_t stage = 0) {
    program.functions.push_back({.kind = kind, .stage = stage});
  }

  int argument(const std::string& name, plan::MemoryClass memory, int64_t bytes = kBytes) {
    now().arguments.push_back({value(bytes), name, memory});
    return now().arguments.back().value;
  }

  void returns(int value, const std::string& name, plan::MemoryClass memory) {
    now().results.push_back({value, name, memory});
  }

  // The output of a new instruction; last() for what else it has.
  int kernel(std::vector<int> inputs, StepInstruction instruction = {}, int64_t bytes = kBytes) {
    instruction.inputs = std::move(inputs);
    instruction.outputs = {value(bytes)};
    now().instructions.push_back(std::move(instruction));
    return last().outputs[0];
  }
  // May be written over any one of its inputs.
  int inPlace(const std::vector<int>& inputs) {
    const int output = kernel(inputs);
    for (size_t input = 0; input < inputs.size(); ++input) {
      last().inPlace.push_back({input, 0});
    }
    return output;
  }
  int view(int input) { return kernel({input}, {.kind = Kind::kView}); }
  int constant(int number) { return kernel({}, {.kind = Kind::kConstant, .constant = number}); }
  int receive(int64_t mailbox) { return kernel({}, {.kind = Kind::kReceive, .mailboxBytes = mailbox}); }
  // Reads values and makes none.
  void read(const std::vector<int>& inputs) { now().instructions.push_back({.kind = Kind::kSend, .inputs = inputs}); }

  StepInstruction& last() { return now().instructions.back(); }

  StepProgram program;

 private:
  StepFunction& now() { return program.functions.back(); }
  int value(int64_t bytes) {
    program.values.push_back({bytes});
    return static_cast<int>(program.values.size()) - 1;
  }
};

}  // namespace weft::testing
