// The moment of a step at which a rank has most memory in use, and what is alive then.
//
// The step is walked through, call by call and instruction by instruction: an activation is alive from the first to the
// last instruction that touches it for its micro-batch, a transient within its call, all other regions all the time.
// What is alive bounds the planned bytes from below: no arrangement of the same step needs less.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace weft::tools {

struct StepTensor {
  std::string memory;  // "activation", ...
  std::string name;
  std::string source;  // file:line of the operator that makes it, or first reads it
  std::string shape;
  int64_t bytes = 0;         // together
  int64_t microBatches = 0;  // alive at once, of activations; else 1
};

struct StepPeak {
  std::string function;
  int64_t microBatch = 0;
  std::string name;  // of the instruction
  std::string source;
  int64_t bytes = 0;                // alive
  std::vector<StepTensor> tensors;  // the largest first
};

// What is alive while each instruction of the step runs: the calls of the step in their order, all instructions of
// each.
struct StepCurve {
  int64_t staying = 0;  // bytes of all other regions
  std::vector<int64_t> activations;
  std::vector<int64_t> transients;
};

// Memory of rank 0 over one step; `plan` must be valid and of one submesh. Its greatest sum is stepPeak().bytes.
StepCurve stepCurve(const plan::Plan& plan);

// Memory of rank 0 over one step; `plan` must be valid and of one submesh. A plan without a step: all that stays, no
// function.
StepPeak stepPeak(const plan::Plan& plan);

}  // namespace weft::tools
