// What a request leaves open in words of its own: sizes of the mesh ("dp=?,tp=?"), the level of ZeRO (kFindZero).
//
// Each request that it can be is predicted as if the user had given it, with everything else that is searched: no
// combination is left out, so the answer is the best of them. There are few: with 64 devices and two axes 7 meshes,
// with ZeRO on each of them 5 ways (levels 0 to 3, the last with gathers kept and repeated).
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "planner/request.h"
#include "planner/search/choose_recompute.h"

namespace weft {

bool leavesOpen(const CompileOptions& request);

struct ClosedRequest {
  CompileOptions request;  // that leaves nothing open
  Attempt attempt;
};

// The request that takes the least time within the memory limit; where none fits, that with the least peak. Its record
// notes what it was chosen among. `predict` is asked for each request; one that it refuses is left out. `trains`: has
// the program an update, so that ZeRO means anything? Error: it refuses all of them; that of the first.
absl::StatusOr<ClosedRequest> chooseOpen(const CompileOptions& request, bool trains,
                                         const std::function<absl::StatusOr<Attempt>(const CompileOptions&)>& predict);

}  // namespace weft
