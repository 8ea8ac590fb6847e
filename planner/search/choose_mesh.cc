#include "planner/search/choose_mesh.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/machine/picoseconds.h"
#include "planner/open_mesh.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

std::string described(const std::string& mesh, const Attempt& attempt) {
  return absl::StrFormat("%s %.4g ms, %d bytes%s", mesh, 1e3 * inSeconds(attempt.time), attempt.peakBytes,
                         attempt.fits ? "" : " (more than the limit)");
}

}  // namespace

absl::StatusOr<Attempt> chooseMesh(const CompileOptions& request,
                                   const std::function<absl::StatusOr<Attempt>(const CompileOptions&)>& predict) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> meshes, closedMeshes(request.mesh, request.devices));
  std::optional<Attempt> best;
  std::string taken;
  std::vector<std::string> considered;
  absl::Status refused;
  for (const std::string& mesh : meshes) {
    CompileOptions closed = request;
    closed.mesh = mesh;
    absl::StatusOr<Attempt> attempt = predict(closed);
    if (!attempt.ok()) {
      refused = refused.ok() ? attempt.status() : refused;
      considered.push_back(absl::StrCat(mesh, " cannot be"));
      continue;
    }
    considered.push_back(described(mesh, *attempt));
    if (!best || isBetter(*attempt, *best)) {
      best = *std::move(attempt);
      taken = mesh;
    }
  }
  if (!best) {
    return refused;
  }
  best->decisions.notes.push_back(
      absl::StrCat("mesh '", request.mesh, "' on ", request.devices, " devices: ", taken,
                   " taken; predicted for a step on a rank: ", absl::StrJoin(considered, ", ")));
  return *std::move(best);
}

}  // namespace weft
