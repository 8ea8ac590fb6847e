// How long ranks take together that take turns on fewer cores (Machine::cores).
//
// Kernels need a core, and so do collectives: ranks of one host read and add up each other's memory themselves. A rank
// that waits leaves its core to any other of its node (runtime/exec/rank_threads.h), so those that want one have equal
// parts of the node's cores. The ranks of a submesh wait for one another, so that all of them advance as on the node
// where they are slowest; and while three of them are on two cores, the third has its turn after the others.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "planner/schedule/simulate.h"
#include "planner/schedule/validate.h"

namespace weft {

// How many of so many ranks can work at the same time: all where each has a core of its own.
int64_t ranksAtWork(const Machine& machine, int64_t ranks);

struct RanksOnNode {
  int64_t node = 0;
  int64_t ranks = 0;  // of one submesh
};

class SharedCores {
 public:
  SharedCores() = default;  // each rank has its own
  // `ranks`: of each submesh of a program.
  SharedCores(const Machine& machine, const std::vector<int64_t>& ranks);

  // Are there more ranks than cores? If not, all takes what it takes where each rank has a core of its own.
  bool areShared() const { return cores_ > 0; }

  // How many times as long work takes that all ranks have evenly, as in a pipeline that is full.
  double turnsOfAll() const { return turnsOfAll_; }
  // How many times as long that of one submesh takes while the others wait: the most of any.
  double turnsOfOne() const { return turnsOfOne_; }

  // Of what runs once in a step: from when all submeshes begin until the last one ends. `times`: of each, where each
  // rank has a core of its own, in any unit, which the answer has.
  double once(const std::vector<double>& times) const;

  // Of a schedule's micro-batches. What arrives from another submesh does so beside all work. Errors: as simulate().
  absl::StatusOr<double> makespan(const schedule::Table& table, const schedule::Times& times) const;
  // The same for a table that is resolved already; `times` must be in order. For planners that try many times.
  double makespanOfResolved(const schedule::Table& table, const schedule::Resolved& resolved,
                            const schedule::Times& times) const;

  // Of the micro-batches of a program that does not train, transfers left out: each goes through all stages in turn.
  double forward(const std::vector<int64_t>& submeshOfStage, const schedule::Times& times, int64_t microBatches) const;

 private:
  int64_t cores_ = 0;                              // of each node; 0: each rank has its own
  std::vector<std::vector<RanksOnNode>> onNodes_;  // of each submesh
  double turnsOfAll_ = 1;
  double turnsOfOne_ = 1;
};

}  // namespace weft
