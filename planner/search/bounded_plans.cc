#include "planner/search/bounded_plans.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/layout/divisors.h"
#include "planner/check_request.h"
#include "planner/open_mesh.h"
#include "planner/search/plan_space.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Those of the submeshes in the record; of unlike ones what divides all of them, on which work takes no more rank time.
int64_t submeshRanksOf(const StageMeshes& meshes) {
  int64_t ranks = 0;
  for (const Mesh& mesh : meshes.ofSubmesh) {
    ranks = std::gcd(ranks, mesh.ranks());
  }
  return ranks;
}

// Of any submesh of the record.
int64_t mostStages(const Decisions& record) {
  std::map<int64_t, int64_t> counts;
  int64_t most = 0;
  for (const int64_t submesh : record.schedule.submeshes) {
    most = std::max(most, ++counts[submesh]);
  }
  return most;
}

}  // namespace

absl::StatusOr<BoundedPlans> boundedPlans(const CompileOptions& request, const ClosedRequest& closed,
                                          const Correction& correction) {
  const Decisions& record = closed.attempt.decisions;
  const StageMeshes meshes = record.meshes();
  const bool isAuto = request.mode == Mode::kAuto;
  const bool isMeshOpen = request.stageMeshes.empty() && (request.mesh.empty() || isOpenMesh(request.mesh));
  BoundedPlans plans;
  plans.ranks = meshes.ranks();
  plans.mostTrading = isAuto && mayHaveUnlikeMeshes(request) ? kMostTrading : 0;
  plans.areAlike = meshes.same() || plans.mostTrading > 0;
  plans.submeshRanks = {submeshRanksOf(meshes)};
  if (isAuto && isMeshOpen) {
    plans.submeshRanks = divisorsOf(plans.ranks);
    const int64_t most = request.maxStages > 0 ? request.maxStages : plans.ranks;
    std::erase_if(plans.submeshRanks, [&](int64_t ranks) { return plans.ranks / ranks > most; });
  }
  plans.mostVirtual = mostStages(record);
  if (isAuto && request.virtualStages == 0) {
    const std::vector<int64_t> counts = virtualStageCounts(request);
    plans.mostVirtual = std::max(plans.mostVirtual, *std::max_element(counts.begin(), counts.end()));
  }
  plans.microBatches = {record.mesh.microBatches()};
  if (isAuto) {
    plans.microBatches = microBatchCounts(*closed.graph, request, 1);
  }
  plans.hidesCollectives = request.overlap;
  plans.statesLeave = request.offload != Offload::kNone;
  WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(request));
  plans.memoryLimit = limits.mean(plans.ranks);
  for (const int64_t bytes : correction.bytes) {
    plans.memoryLimit += plans.memoryLimit > 0 ? std::max<int64_t>(0, -bytes) : 0;
  }
  plans.memoryLimit = closed.attempt.fits ? plans.memoryLimit : 0;
  return plans;
}

}  // namespace weft
