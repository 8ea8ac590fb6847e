// The best cut of a program's blocks into stages: of all ways in which its splits may be decided and all kinds of
// schedule that serve.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cost/shared_cores.h"
#include "planner/machine/machine.h"
#include "planner/request.h"
#include "planner/search/cut_stages.h"
#include "planner/search/pipeline_shape.h"
#include "planner/search/plan_space.h"

namespace weft {

// Needs of the blocks whose splits are decided with that price of memory.
struct PricedBlocks {
  SubmeshCosts costs;
  double bytePrice = 0;
};

struct ChosenCut {
  StageCut cut;
  double bytePrice = 0;
};

class CutChooser {
 public:
  // What it says of schedules and stages is the request's.
  struct Program {
    int64_t limit = 0;       // of memory
    bool trains = true;      // has it a backward pass?
    bool areStages = false;  // are the blocks the user's stages?
    Machine machine = {};
  };
  // `known`: shapes of pipelines that were asked for before.
  CutChooser(const CompileOptions& request, const Program& program, KnownShapes& known)
      : request_(request),
        limit_(program.limit),
        trains_(program.trains),
        areStages_(program.areStages),
        machine_(program.machine),
        known_(known) {}

  // What a step is expected to take: more than the cut's time where it needs more memory than there is. The estimate of
  // memory leaves out that parts of a saving cannot be taken, and much else: a plan that exceeds the limit by a little
  // may fit, at a price.
  double expected(const StageCut& cut) const;

  // One for each kind of schedule.
  std::vector<PipelineShape> shapesOf(const StageGrid& grid, int64_t microBatches);
  // The shape where submeshes have so many ranks each.
  PipelineShape onRanks(PipelineShape shape, const std::vector<int64_t>& ranks) const;
  // Under any schedule, before one is known.
  LoosePipeline looseOf(const StageGrid& grid, int64_t microBatches) const;
  // Nothing: there are no shapes.
  std::optional<ChosenCut> best(const std::vector<PricedBlocks>& blocks,
                                const std::vector<PipelineShape>& shapes) const;
  // Of submeshes that choose their meshes.
  StageCut withMeshes(const MeshChoices& choices, const PipelineShape& shape) const;
  // Of blocks that are known together only, the best under any of these; quick.
  StageCut fluid(const SegmentCost& all, Picoseconds longest, const std::vector<LoosePipeline>& pipelines) const;

 private:
  SharedCores coresOf(const StageGrid& grid) const;

  const CompileOptions& request_;
  int64_t limit_;
  bool trains_;
  bool areStages_;
  Machine machine_;
  KnownShapes& known_;
};

}  // namespace weft
