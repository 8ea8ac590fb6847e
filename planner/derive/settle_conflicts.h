// Decides by price where several answers are legal: an axis that two factors of an operator ask for, two sources that
// disagree about a factor, a split that costs more to carry on than to drop.
//
// Of the forward operators that have a choice (candidates.h) all are decided together: the sum of their arithmetic,
// of the reshards between them, and of the reshards of the gradients that follow from both (least_cost.h). A
// gradient has the splits of its value and is partial over the axes of its readers that its own dimensions lack; the
// contributions of readers that leave it alike are added before they are reduced. A value that several readers want
// alike is resharded once, and one that the step returns is added up. What the user fixed stays, and so does all
// where nothing asks for more than it can have. Repeated layers decide once (alike_layers.h).
//
// What reshards take is found of those alone that an assignment makes; others count with their least until then
// (reshard_tables.h).
//
// The gradient of a parameter is wanted as its state lies (zero.h), in each micro-batch from ZeRO-2 on. Its update
// works on that part, and its new value is gathered from there; with ZeRO-3 the parameter is where it is read, once.
// With CompileOptions::regather what the backward pass reads is resharded for it again, parameters in each micro-batch.
//
// Memory has a price where the caller names one: of what the backward pass reads of each operator, for one micro-batch,
// or the time to make it again where that is less; and of its parameters, gradients and states as ZeRO stores them.
// What nobody reads later is gone soon: partial sums before they are added up, what is gathered for one reader.
//
// An operator whose whole factor is split takes what its alternative takes (alternative_prices.h); where that is chosen
// the operator is listed in `expansions`.
//
// Not in the price: buckets, overlap, recomputation, and sums that are passed on before they are reduced.
#pragma once

#include "absl/status/status.h"
#include "planner/assign/eliminate.h"
#include "planner/decisions.h"
#include "planner/derive/candidates.h"
#include "planner/derive/reshard_prices.h"
#include "planner/machine/machine.h"

namespace weft {

struct PricedMachine {
  const Machine& machine;
  double bytePrice = 0;  // of one byte of a rank, in picoseconds of a step; 0: memory has no price
  ReshardMemo& memo;
  double slack = 0;  // by which part of its cost the answer may be above the least
  // What only slices is copied. Where the batch's axes split the batch alone little is sliced; where they are free a
  // value may be made whole so that each reader slices it its own way.
  bool pricesSlices = false;
  // What was minimized before of much the same program; none: nothing.
  EliminationMemo* minimized = nullptr;
  // Splits of operators to make better where they cannot be minimized; none: none are known.
  const Decisions* begin = nullptr;
};

// Changes the axes of forward operators that have several candidates, if there is any conflict. `memo` keeps what is
// found out about reshards on the machine. Error: a defect, a reshard that cannot be planned.
absl::Status settleConflicts(const SettledGraph& graph, const PricedMachine& machine, const Candidates& candidates,
                             Shardings& shardings);

}  // namespace weft
