#include "planner/search/choose_cut.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft {
namespace {

// By how many times its time an estimate counts as longer for each time the limit that it exceeds the limit by.
constexpr double kExcess = 8;

// 0, 1, ..., count - 1.
std::vector<int> upTo(int64_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

double CutChooser::expected(const StageCut& cut) const {
  const double excess =
      cut.fits || limit_ == 0 ? 0 : static_cast<double>(cut.peakBytes) / static_cast<double>(limit_) - 1;
  return static_cast<double>(cut.time) * (1 + kExcess * std::max({excess, cut.excess, 0.0}));
}

std::vector<PipelineShape> CutChooser::shapesOf(const StageGrid& grid, int64_t microBatches) {
  std::vector<PipelineShape> shapes = known_.of(request_, grid.submeshes, grid.virtualStages, microBatches, trains_);
  const SharedCores cores = coresOf(grid);
  std::ranges::for_each(shapes, [&](PipelineShape& shape) { shape.cores = cores; });
  return shapes;
}

PipelineShape CutChooser::onRanks(PipelineShape shape, const std::vector<int64_t>& ranks) const {
  shape.cores = SharedCores(machine_, ranks);
  return shape;
}

LoosePipeline CutChooser::looseOf(const StageGrid& grid, int64_t microBatches) const {
  LoosePipeline loose = LoosePipeline::underAny(grid.submeshes, grid.virtualStages, microBatches);
  const SharedCores cores = coresOf(grid);
  loose.turnsOfAll = cores.turnsOfAll();
  loose.turnsOfOne = cores.turnsOfOne();
  return loose;
}

SharedCores CutChooser::coresOf(const StageGrid& grid) const {
  const absl::StatusOr<std::vector<Mesh>> meshes = machine_.cores > 0 ? meshesOf(grid, request_) : std::vector<Mesh>();
  std::vector<int64_t> ranks;
  for (const Mesh& mesh : meshes.ok() ? *meshes : std::vector<Mesh>()) {
    ranks.push_back(mesh.ranks());
  }
  return {machine_, ranks};
}

std::optional<ChosenCut> CutChooser::best(const std::vector<PricedBlocks>& blocks,
                                          const std::vector<PipelineShape>& shapes) const {
  std::optional<ChosenCut> best;
  for (const PricedBlocks& each : blocks) {
    const std::vector<std::shared_ptr<const SummedCosts>> summed = summedOf(each.costs);
    // Is it longer because of the limit, or does it not fit?
    const auto consider = [&](const PipelineShape& shape) {
      StageCut cut = withMeshes(choicesOf(each.costs, summed, shape), shape);
      const bool isLimited = cut.limited || !cut.fits;
      const auto rank = [&](const StageCut& c) { return std::tuple(expected(c), c.peakBytes); };
      if (!best || rank(cut) < rank(best->cut)) {
        best = ChosenCut{std::move(cut), each.bytePrice};
      }
      return isLimited;
    };
    for (const PipelineShape& shape : shapes) {
      const bool mayGatherAgain = shape.cutsBackward && summed.front()->gathering.segments() > 0;
      if (consider(shape) && mayGatherAgain) {
        PipelineShape gathering = shape;
        gathering.gathersAgain = true;
        consider(gathering);
      }
    }
  }
  return best;
}

StageCut CutChooser::fluid(const SegmentCost& all, Picoseconds longest,
                           const std::vector<LoosePipeline>& pipelines) const {
  std::optional<StageCut> best;
  for (const LoosePipeline& each : pipelines) {
    StageCut cut = fluidCut(all, longest, each, limit_);
    best = !best || expected(cut) < expected(*best) ? std::move(cut) : *std::move(best);
  }
  return *std::move(best);
}

StageCut CutChooser::withMeshes(const MeshChoices& choices, const PipelineShape& shape) const {
  if (areStages_ || shape.stages() == 1) {  // as many stages as there are costs
    return withStages(choices, shape, limit_, upTo(shape.stages()));
  }
  const int64_t segments = choices.costs[0]->whole.segments();
  return request_.may(Freedom::kUnevenStages)
             ? cutStages(choices, shape, limit_)
             : withStages(choices, shape, limit_, evenStages(segments, shape.stages()));
}

}  // namespace weft
