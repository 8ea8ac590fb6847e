// Planning: everything that is chosen about a program, in one place.
//
// The user's words, propagation and defaults give a record (planner/derive/); what they leave open is searched with the
// model of the step (step_model.h):
//   all         in mode kAuto                                         choose_plan.h
//   mesh        sizes "?": every mesh of as many devices              choose_open.h
//   ZeRO        the level kFindZero: every level                      choose_open.h
//   schedule    "auto" with stages: every kind that serves            choose_schedule.h
//   recompute   "auto" under a memory limit                           choose_recompute.h
//   gathers     of parameters under a limit (ZeRO-3): all once per step; where that does not fit or has something
//               recomputed for it, none, and as many bytes as none leaves below the limit
//   splits      in modes kLayouts and kAuto: as time alone has them; where memory is short, also with prices of memory
//   pads        where a split does not divide: the arguments as they are, and padded so that it does derive/even_pads.h
// The shortest that fits is taken. Nothing is compiled.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "planner/cost/step_model.h"
#include "planner/decisions.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/choose_plan.h"

namespace weft {

// The decisions for a program, with a prediction where anything was searched. Errors: what the request asks of the
// program cannot be, at the user's lines (sourcePlaceOf). Where the model sees nothing that fits in the memory limit,
// what comes nearest is planned: the compiler's exact memory has the last word.
absl::StatusOr<Decisions> planProgram(const GraphFor& graphs, const CompileOptions& request,
                                      const Correction& correction);

// What the request becomes with all that it leaves open chosen (choose_open.h, choose_plan.h), and its prediction.
// Errors as above. `memory`: of earlier searches in mode kAuto of the program that `graphs` gives; what this one finds
// is added. It counts where nothing is corrected.
absl::StatusOr<ClosedRequest> closeRequest(const GraphFor& graphs, const CompileOptions& request,
                                           const Correction& correction, SearchMemory* memory = nullptr);

// The prediction of bytes and seconds of a request that leaves nothing open (leavesOpen), searched or not. `memo`: of
// its machine (planning_memo.h). `bytePrice`: of memory, under which splits are decided where that fits; without it
// those are tried that the limit suggests. `useless`: as Predict.
absl::StatusOr<Attempt> predictProgram(const ProgramGraph& graph, const CompileOptions& request,
                                       const Correction& correction, PlanningMemo* memo = nullptr,
                                       std::optional<double> bytePrice = std::nullopt, Picoseconds useless = kAnyTime);

// Of one graph: a program whose operators have the same alternatives for every number of micro-batches.
GraphFor graphForAll(const ProgramGraph& graph);

}  // namespace weft
