// When a plan's transient memory peaks, and which tensors it holds then. Lifetimes are read off the instruction lists.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace weft::tools {

struct LiveTensor {
  std::string name;    // of the operator that makes it
  std::string source;  // file:line of that operator
  std::string shape;   // "f32[4,8]"
  int64_t bytes = 0;   // with what rounds it up to the alignment
  int64_t offset = 0;
  int first = 0;  // first and last instruction that touches it
  int last = 0;
};

struct TransientPeak {
  std::string function;
  int instruction = 0;  // the first at which this much is alive
  std::string name;     // of that instruction
  std::string source;
  int64_t bytes = 0;                // alive there
  std::vector<LiveTensor> tensors;  // all of them, the largest first
};

// A plan without transient memory gives no function and no tensors.
TransientPeak transientPeak(const plan::Plan& plan);

// An instruction that asks for much memory while it runs, and how little would be needed without it.
struct Demand {
  std::string function;
  std::string name;  // of the operator
  std::string source;
  int64_t bytes = 0;      // of the region at this instruction
  int64_t own = 0;        // of these the instruction's own operands and results; of scratch memory all
  int64_t otherwise = 0;  // the most at any other instruction
};

// The instruction at the transient peak.
Demand transientDemand(const plan::Plan& plan);
// The one with most scratch memory; no function if none needs any.
Demand workspaceDemand(const plan::Plan& plan);

}  // namespace weft::tools
