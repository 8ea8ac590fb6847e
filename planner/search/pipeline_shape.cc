#include "planner/search/pipeline_shape.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/base/status.h"

namespace weft {
namespace {

// Times as many micro-batches as submeshes. Of three the pipeline is full: what it holds, and how long it idles where
// all stages are equally long, is the same for more. Where one submesh has more to do than the others, and for some
// micro-batches fills with that the time in which it would wait, it takes some more until that is so.
constexpr int64_t kRoundsToFill = 3;
constexpr int64_t kRoundsToTell = 8;
constexpr int64_t kMostActions = 1 << 16;  // of a table that is simulated again and again

// So many micro-batches, of as many rounds at the most, are to a pipeline as these.
int64_t tellingMicroBatches(int64_t submeshes, int64_t microBatches, int64_t mostRounds) {
  const int64_t most = mostRounds * submeshes;
  return microBatches <= most ? microBatches : most - submeshes + microBatches % submeshes;
}

// The stages as a loop places them.
PipelineShape looped(int64_t submeshes, int64_t virtualStages, int64_t microBatches) {
  PipelineShape shape = {microBatches, virtualStages, "", {}, false, {}, 0};
  for (int64_t stage = 0; stage < submeshes * virtualStages; ++stage) {
    shape.submeshOf.push_back(stage % submeshes);
    shape.held.emplace_back();
  }
  shape.ramp = static_cast<double>(submeshes - 1);
  return shape;
}

// Nothing where the kind does not serve the numbers.
std::optional<PipelineShape> shapeOf(schedule::Kind kind, int64_t submeshes, int64_t virtualStages,
                                     int64_t microBatches) {
  const int64_t run = tellingMicroBatches(submeshes, microBatches, kRoundsToFill);
  schedule::Request request = {
      kind, static_cast<int32_t>(submeshes), static_cast<int32_t>(virtualStages), static_cast<int32_t>(run), 0, 1};
  const absl::StatusOr<schedule::Table> table = schedule::generate(request);
  if (!table.ok()) {
    return std::nullopt;
  }
  const absl::StatusOr<schedule::Simulation> simulated = schedule::simulate(*table, schedule::Times::uniform(1, 1, 1));
  if (!simulated.ok()) {
    return std::nullopt;
  }
  PipelineShape shape = {
      microBatches, virtualStages, schedule::kindName(kind), {}, splitsBackward(*table), heldIn(*table), 0};
  shape.submeshOf.assign(table->stageToRank.begin(), table->stageToRank.end());
  shape.ramp = simulated->makespan / 3 - static_cast<double>(virtualStages * run);
  request.micros = static_cast<int32_t>(tellingMicroBatches(submeshes, microBatches, kRoundsToTell));
  shape.table = std::make_shared<const ShapeTable>(request);
  return shape;
}

bool isDominated(const PipelineShape& shape, const PipelineShape& by) {
  if (by.ramp > shape.ramp) {
    return false;
  }
  for (size_t stage = 0; stage < shape.held.size(); ++stage) {
    const HeldMicroBatches& mine = shape.held[stage];
    const HeldMicroBatches& other = by.held[stage];
    if (by.submeshOf[stage] != shape.submeshOf[stage] || other.toInputs > mine.toInputs ||
        other.toWeights > mine.toWeights || other.between > mine.between) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<double> ShapeTable::makespan(const schedule::Times& times, const SharedCores& cores) const {
  const int64_t actions = int64_t{3} * request_.ranks * request_.virtualStages * request_.micros;
  // Where cores are shared, what each submesh does counts from one action's end to the next.
  if (actions * (cores.areShared() ? request_.ranks : 1) > kMostActions) {
    return std::nullopt;
  }
  if (!made_) {
    const auto make = [&]() -> absl::StatusOr<Made> {
      Made made;
      WEFT_ASSIGN_OR_RETURN(made.table, schedule::generate(request_));
      WEFT_ASSIGN_OR_RETURN(made.resolved, schedule::resolve(made.table));
      return made;
    };
    made_ = make();
  }
  if (!made_->ok()) {
    return std::nullopt;
  }
  return cores.makespanOfResolved((*made_)->table, (*made_)->resolved, times);
}

// Zero-bubble schedules idle for a third of (p - 1) stages; those that hold least, v_min, hold a third of what the
// submeshes together have micro-batches for, those with one stage each a half (planner/schedule/generate.h).
LoosePipeline LoosePipeline::underAny(int64_t submeshes, int64_t virtualStages, int64_t microBatches) {
  const auto count = static_cast<double>(submeshes);
  const double most = virtualStages == 1 ? (count + 1) / 2 : std::max(1.0, count / 3);
  return {submeshes, microBatches, (count - 1) / static_cast<double>(3 * virtualStages),
          std::min(static_cast<double>(microBatches), most) / count};
}

// Of two kinds of activations that a backward pass which is cut tells apart, all count as those that are held shorter.
LoosePipeline LoosePipeline::of(const PipelineShape& shape) {
  int64_t held = 0;
  for (const HeldMicroBatches& stage : shape.held) {
    held += stage.toInputs;
  }
  return {shape.submeshes(),
          shape.microBatches,
          shape.ramp / static_cast<double>(shape.virtualStages),
          static_cast<double>(held) / static_cast<double>(shape.stages() * shape.submeshes()),
          shape.cores.turnsOfAll(),
          shape.cores.turnsOfOne()};
}

std::vector<schedule::Kind> kindsFor(const CompileOptions& request, int64_t virtualStages) {
  std::vector<schedule::Kind> kinds;
  for (const schedule::Kind kind : schedule::allKinds()) {
    const bool loops = kind == schedule::Kind::kInterleaved || kind == schedule::Kind::kBreadthFirst ||
                       kind == schedule::Kind::kZbInterleaved;
    const bool serves = loops ? virtualStages > 1 : schedule::defaultVirtualStages(kind) == virtualStages;
    const bool may = request.may(Freedom::kZeroBubble) || !schedule::cutsBackward(kind);
    if (serves && may && kind != schedule::Kind::kSeq1F1B && kind != schedule::Kind::kGpipe) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

std::vector<PipelineShape> pipelineShapes(const CompileOptions& request, int64_t submeshes, int64_t virtualStages,
                                          int64_t microBatches, bool trains) {
  if (submeshes * virtualStages == 1 || !trains) {
    return {looped(submeshes, virtualStages, microBatches)};
  }
  std::vector<schedule::Kind> kinds = kindsFor(request, virtualStages);
  if (request.schedule != "auto") {
    const absl::StatusOr<schedule::Kind> given = schedule::parseKind(request.schedule);
    kinds = {given.ok() ? *given : schedule::Kind::k1F1B};  // a table of the user's holds about as much
  }
  std::vector<PipelineShape> all;
  for (const schedule::Kind kind : kinds) {
    if (std::optional<PipelineShape> shape = shapeOf(kind, submeshes, virtualStages, microBatches)) {
      all.push_back(*std::move(shape));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const PipelineShape& a, const PipelineShape& b) {
    return std::tie(a.ramp, a.held) < std::tie(b.ramp, b.held);
  });
  std::vector<PipelineShape> shapes;
  for (PipelineShape& shape : all) {
    if (std::none_of(shapes.begin(), shapes.end(), [&](const auto& by) { return isDominated(shape, by); })) {
      shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

std::vector<PipelineShape> KnownShapes::of(const CompileOptions& request, int64_t submeshes, int64_t virtualStages,
                                           int64_t microBatches, bool trains) {
  const int64_t run = tellingMicroBatches(submeshes, microBatches, kRoundsToFill);
  const auto [known, added] =
      known_.try_emplace({request.schedule, request.may(Freedom::kZeroBubble), submeshes, virtualStages, run, trains});
  if (added) {
    known->second = pipelineShapes(request, submeshes, virtualStages, run, trains);
  }
  std::vector<PipelineShape> shapes = known->second;
  const int64_t telling = tellingMicroBatches(submeshes, microBatches, kRoundsToTell);
  for (PipelineShape& shape : shapes) {
    shape.microBatches = microBatches;
    if (shape.table != nullptr) {
      std::shared_ptr<const ShapeTable>& table = tables_[{shape.schedule, submeshes, virtualStages, telling}];
      table = table != nullptr ? table : std::make_shared<const ShapeTable>(shape.table->with(telling));
      shape.table = table;
    }
  }
  return shapes;
}

}  // namespace weft
