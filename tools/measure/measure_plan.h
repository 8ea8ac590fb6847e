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
  // Runs some steps of the plan, with zeros for inputs. Errors: those of the executor.
  absl::Status add(const plan::Plan& plan, int64_t steps);

  // What the calls of one instruction took, one or more.
  void addCalls(const KernelProfile& call, std::vector<double> seconds);

  // The mean of the calls with the same work, in the order of their kernels' names: some of them take longer than
  // others, as products of transposed operands do, and a step takes the sum of all. Of the calls of one instruction the
  // median counts.
  std::vector<KernelProfile> profiles() const;

 private:
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
