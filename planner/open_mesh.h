// A mesh some of whose sizes are left to the planner: "dp=?,tp=2" on 8 devices is dp=4,tp=2; "dp=?,tp=?" any of
// dp=8,tp=1, dp=4,tp=2, dp=2,tp=4, dp=1,tp=8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

bool isOpenMesh(const std::string& mesh);

// All meshes of so many ranks that it can be, as text, with the largest sizes of the first axes first. Errors: a word
// that is no `name=size` or `name=?`, sizes that no choice makes `ranks` of.
absl::StatusOr<std::vector<std::string>> closedMeshes(const std::string& mesh, int64_t ranks);

}  // namespace weft
