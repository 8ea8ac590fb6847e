// Plans that lie, each in one field of a plan that is right.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/plan/plan.pb.h"

namespace weft::hostile {

struct Case {
  std::string name;
  std::string field;
  plan::Plan plan;
  std::string says = "";  // what an error must name
  bool mayRun = false;    // the lie may be harmless: then the plan runs inside of its memory
};

// A plan without submeshes that has something of everything, on two ranks with the real kernels; and plans of two
// submeshes: of one rank each, and of two ranks that send boxes to one.
plan::Plan wholePlan();
plan::Plan stagedPlan();
plan::Plan boxedPlan();

// A call of one kernel on inputs of zeros, or of `data`.
struct KernelCall {
  std::string kernel;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  AttributeMap attributes = {};
  std::vector<int64_t> scalars = {};
  std::vector<int64_t> data = {};  // of the last input, which has type I64
};
plan::Plan planOf(const KernelCall& call);

// Every integer of the three plans in turn, with numbers that no plan may hold, and with large ones that it may.
std::vector<Case> numberCases();
// Structure: regions, groups, tables, tensors, slices, rings, schedules, submeshes, overlap.
std::vector<Case> structureCases();
// Channels, parts and ranks that wait for one another.
std::vector<Case> channelCases();
// Kernels: attributes, scalars, shapes, types, data.
std::vector<Case> kernelCases();
// All of them.
std::vector<Case> allCases();

}  // namespace weft::hostile
