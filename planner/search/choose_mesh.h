// The sizes of a mesh that leaves some open (planner/open_mesh.h).
//
// Each mesh that it can be is predicted as if the user had given it, with everything else that is searched: no other
// choice is left out, so the answer is the best of them. With few axes there are few.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "planner/request.h"
#include "planner/search/choose_recompute.h"

namespace weft {

// The attempt that takes the least time within the memory limit; where none fits, that with the least peak. Its record
// notes what it was chosen among. `predict` is asked for each mesh; a mesh that it refuses is left out. Error: it
// refuses all of them; that of the first.
absl::StatusOr<Attempt> chooseMesh(const CompileOptions& request,
                                   const std::function<absl::StatusOr<Attempt>(const CompileOptions&)>& predict);

}  // namespace weft
