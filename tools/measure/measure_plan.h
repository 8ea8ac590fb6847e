// Measuring the kernels of a program in its own steps.
//
// A kernel that is called again and again on the same memory finds it in caches; in a step it finds what the kernels
// before it left there, and other ranks at work beside it. So what a plan's kernels take is taken from its steps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "runtime/plan/plan.pb.h"

namespace weft::tools {

// Collects what the calls of kernels take in the steps of plans.
class KernelMeasurement {
 public:
  // Runs so many steps of each of the plans, with zeros for inputs: some of all of them in turn, so that what else
  // keeps the host busy for a while spoils the kernels of all alike. Errors: those of the executor, with
  // the number of the plan.
  absl::Status add(const std::vector<plan::Plan>& plans, int64_t steps);

  // What the calls of one instruction took, one or more.
  void addCalls(const KernelProfile& call, const std::vector<double>& seconds);

  // The mean of the calls with the same work, in the order of their kernels' names: some of them take longer than
  // others, as products of transposed operands do, and a step takes the sum of all. Of the calls of one instruction the
  // median counts.
  std::vector<KernelProfile> profiles() const;

 private:
  // Of an instruction of a plan on a rank, by their numbers.
  using Instruction = std::tuple<size_t, int64_t, size_t>;
  struct InstructionCalls {
    KernelProfile call;
    std::vector<double> seconds;
  };
  using CallsOfTurns = std::map<Instruction, InstructionCalls>;
  static absl::Status addTurn(const plan::Plan& plan, size_t number, int64_t steps, CallsOfTurns& calls);

  // By all that profiles say of a call but its seconds.
  using Work = std::tuple<std::string, DType, int64_t, int64_t, int64_t, int64_t, int64_t>;
  struct Calls {
    KernelProfile call;
    double seconds = 0;  // of all of them
    int64_t count = 0;
  };
  std::map<Work, Calls> calls_;
};

}  // namespace weft::tools
