// How long ranks take together that take turns on fewer cores (Machine::cores).
//
// Kernels need a core. Ranks that want one at the same time, be it more than there are, have equal parts of all cores,
// so that each advances as much slower. Those of a submesh want one at the same times. Collectives do not count: a
// machine file of such a host says what they take among as many ranks (docs/machines.md). What a function does is
// counted as all its kernels, then all its collectives.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/cost/function_time.h"
#include "planner/machine/machine.h"
#include "planner/schedule/simulate.h"

namespace weft {

class SharedCores {
 public:
  // Of each submesh of a program its ranks and its functions.
  SharedCores(const Machine& machine, std::vector<int64_t> ranks,
              const std::vector<absl::Span<const FunctionTime>>& functions);

  // Are there more ranks than cores? If not, all takes what it takes where each rank has a core of its own.
  bool areShared() const { return ranksPerCore_ > 0; }

  // Of the functions of a kind that runs once in a step: from when all submeshes begin until the last one ends.
  // `times`: of each, where each rank has a core of its own, in any unit, which the answer has.
  double once(plan::FunctionKind kind, const std::vector<double>& times) const;

  // Of a schedule's micro-batches. What arrives from another submesh does so beside all work. Errors: as simulate().
  absl::StatusOr<double> makespan(const schedule::Table& table, const schedule::Times& times) const;

  // Of the micro-batches of a program that does not train, transfers left out: each goes through all stages in turn.
  double forward(const std::vector<int64_t>& submeshOfStage, const schedule::Times& times, int64_t microBatches) const;

 private:
  double cores() const { return allRanks_ / ranksPerCore_; }
  schedule::StageTimes partsOf(int64_t stage) const;

  std::vector<int64_t> ranks_;
  double allRanks_ = 0;
  double ranksPerCore_ = 0;               // 0: each has its own
  std::vector<double> before_, after_;    // of each submesh: the part of the time that kernels take
  std::vector<schedule::StageTimes> of_;  // likewise of stages; what is not there communicates nothing
};

}  // namespace weft
