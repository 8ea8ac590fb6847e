// What a request leaves open in words of its own: sizes of the mesh ("dp=?,tp=?"), the level of ZeRO (kFindZero);
// closeRequest (plan.h) also asks with each kind of offload where it is kAuto.
//
// Each request that it can be is predicted as if the user had given it, with everything else that is searched: no
// combination is left out, so the answer is the best of them. There are few: with 64 devices and two axes 7 meshes,
// with ZeRO on each of them 5 ways (levels 0 to 3, the last with gathers kept and repeated).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/choose_recompute.h"

namespace weft {

bool leavesOpen(const CompileOptions& request);

struct ClosedRequest {
  CompileOptions request;                     // that leaves nothing open
  std::shared_ptr<const ProgramGraph> graph;  // the program, on the stages that were chosen for it
  Attempt attempt;
  std::optional<double> bytePrice = {};  // of memory, that its splits were predicted with
  int64_t ticks = 0;                     // how often the model was asked: the same on every machine
  // What was changed of it after it was found, for people; in the end they stand in the record.
  std::vector<std::string> notes = {};
};

// The requests that differ in the level of ZeRO and in whether its gathers are repeated, as far as `request` leaves it
// open; by falling memory.
std::vector<CompileOptions> withZero(const CompileOptions& request, bool trains);

// What is expected of a request that leaves nothing open; with splits decided under that price of memory alone, where
// one is given. Of a step that takes `useless` or longer as recomputedIn: it need not be the best, nor fit. Error: it
// cannot be.
using Predict = std::function<absl::StatusOr<Attempt>(const ProgramGraph&, const CompileOptions&,
                                                      std::optional<double> bytePrice, Picoseconds useless)>;

// What takes as long as `best`, where that fits, is useless.
inline Picoseconds uselessBeside(const Attempt& best) {
  return best.fits ? best.time : kAnyTime;
}

// The request that takes the least time within the memory limit; where none fits, that with the least peak. Its record
// notes what it was chosen among. `predict` is asked for each request; one that it refuses is left out. Error: it
// refuses all of them; that of the first.
absl::StatusOr<ClosedRequest> chooseOpen(const std::shared_ptr<const ProgramGraph>& graph,
                                         const CompileOptions& request, const Predict& predict);

}  // namespace weft
