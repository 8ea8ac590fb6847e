#include "planner/search/bounded_plans.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "ir/layout/divisors.h"
#include "planner/check_request.h"
#include "planner/derive/placement.h"
#include "planner/open_mesh.h"
#include "planner/search/block_program.h"
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

// Of any submesh of the record; 0: a table of the user's has them on submeshes otherwise than in a loop or a V.
int64_t mostStages(const Decisions& record) {
  const std::vector<int64_t>& submeshes = record.schedule.submeshes;
  const int64_t count = submeshCount(submeshes);
  std::vector<int64_t> loop, v;
  for (int64_t stage = 0; stage < std::ssize(submeshes); ++stage) {
    loop.push_back(stage % count);
    v.push_back(std::min(stage, 2 * count - 1 - stage));
  }
  const auto stages = std::ssize(submeshes);
  return submeshes == loop || submeshes == v ? (stages + count - 1) / count : 0;
}

// Of each operator the block that no stage has a part of: the finest that plans of the program are cut between. A
// record that the search began from may have been cut elsewhere, too. Gradients and updates follow the forward pass
// (placement.h): where each block is a stage they show which block they belong to, however many a stage has.
absl::StatusOr<std::vector<int>> blocksOf(const std::shared_ptr<const ProgramGraph>& program,
                                          const CompileOptions& request, const ClosedRequest& closed) {
  WEFT_ASSIGN_OR_RETURN(BlockProgram blocks, BlockProgram::create(program, request));
  if (blocks.areStages()) {
    WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(GraphView(*program), request.stages));
    return std::vector<int>(stages.ofOperator.begin(), stages.ofOperator.end());
  }
  if (!blocks.isLong()) {
    WEFT_ASSIGN_OR_RETURN(blocks, blocks.finer(request));
  }
  const GraphView chosen(*closed.graph);
  std::vector<int> numbers;  // of operators that begin or go on with a block
  int number = kNoStage;
  std::pair<int, std::optional<int64_t>> last = {kNoStage, std::nullopt};  // block and stage
  for (size_t op = 0; op < blocks.blockOf().size(); ++op) {
    const int block = blocks.blockOf()[op];
    const std::optional<int> same = chosen.find(program->operators[op].id);
    const std::pair<int, std::optional<int64_t>> mine = {block, same ? chosen.op(*same).userStage : std::nullopt};
    number += block != kNoStage && mine != last ? 1 : 0;
    last = block != kNoStage ? mine : last;
    numbers.push_back(block == kNoStage ? kNoStage : number);
  }
  const ProgramGraph staged = blocks.withStages(numbers);
  WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(GraphView(staged), {}));
  for (size_t op = 0; op < numbers.size(); ++op) {
    const bool isFree = numbers[op] == kNoStage && staged.operators[op].phase == Phase::kForward;
    numbers[op] = isFree ? kNoStage : static_cast<int>(stages.ofOperator[op]);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<BoundedPlans> boundedPlans(const std::shared_ptr<const ProgramGraph>& program,
                                          const CompileOptions& request, const ClosedRequest& closed,
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
  if (isAuto && request.virtualStages == 0 && plans.mostVirtual > 0) {
    const std::vector<int64_t> counts = virtualStageCounts(request);
    plans.mostVirtual = std::max(plans.mostVirtual, *std::max_element(counts.begin(), counts.end()));
  }
  plans.microBatches = {record.mesh.microBatches()};
  if (isAuto) {
    plans.microBatches = microBatchCounts(*closed.graph, request, 1);
  }
  WEFT_ASSIGN_OR_RETURN(plans.blockOf, blocksOf(program, request, closed));
  plans.hidesCollectives = request.overlap;
  plans.statesLeave = request.offload != Offload::kNone;
  WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(request));
  plans.isMemoryAlike = limits.areAlike();
  plans.memoryLimit = limits.mean(plans.ranks);
  for (const int64_t bytes : correction.bytes) {
    plans.memoryLimit += plans.memoryLimit > 0 ? std::max<int64_t>(0, -bytes) : 0;
  }
  plans.memoryLimit = closed.attempt.fits ? plans.memoryLimit : 0;
  plans.known = closed.attempt.time;
  return plans;
}

}  // namespace weft
