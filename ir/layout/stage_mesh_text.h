// The meshes of the submeshes as a user writes them: "dp=2,tp=2;dp=4".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/mesh.h"

namespace weft {

// Reads "dp=2,tp=2;dp=4": an axis that only other meshes name is added with size 1. Errors: a malformed mesh; a time
// axis.
absl::StatusOr<std::vector<Mesh>> parseStageMeshes(const std::string& text, int64_t microBatches);
std::string printStageMeshes(const std::vector<Mesh>& meshes);

}  // namespace weft
