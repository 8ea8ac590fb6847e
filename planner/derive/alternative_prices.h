// What an operator takes where a factor is split that its rule calls whole: then its alternative stands for it.
//
// The operators of the alternative are a small program of its operands, which lie as the operator would have them. The
// splits spread through it (propagation.h), and its price is the sum of what its operators take and of the reshards
// between them, up to its results, which lie as those of the operator would. So an alternative is held against its
// operator before it is taken; once it is, its operators are decided about like all others.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/derive/reshard_prices.h"
#include "planner/derive/shardings.h"
#include "planner/submesh_machines.h"

namespace weft {

// Of each operator, for each factor: may it be split though the rule calls it whole, as an alternative may stand for
// the operator? Not where operators of the backward pass that follow the operator have the same loop and need it whole.
// What the user says of the factor is not asked here.
std::vector<std::vector<bool>> factorsOfAlternatives(const SettledGraph& graph, const Shardings& shardings);

// Is one of the operator's whole factors split?
bool needsAlternative(const Rule& rule, const FactorAxes& axes);

class AlternativePrices {
 public:
  // All outlive it.
  AlternativePrices(const SettledGraph& graph, const SubmeshMachines& machines, ReshardMemo& memo);
  ~AlternativePrices();

  // Of an operator with a whole factor split, in all micro-batches of a step; kImpossible where the alternative cannot
  // stand for it. `rule`: the operator's. Error: a reshard that cannot be planned.
  absl::StatusOr<Picoseconds> of(int op, const Rule& rule, const FactorAxes& axes);

 private:
  class Body;
  // Of an operator, and of those like it.
  struct Made {
    int op;
    std::unique_ptr<Body> body;  // null: its alternative cannot stand for it
  };

  bool areAlike(int a, int b) const;
  Body* bodyOf(int op);

  const SettledGraph& graph_;
  const SubmeshMachines& machines_;
  ReshardMemo& memo_;
  std::vector<Made> made_;
  std::map<int, Body*> bodies_;  // by operator
};

}  // namespace weft
