// Pipelines as far as the search for a cut into stages needs them: what a kind of schedule holds and how long it idles.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/shared_cores.h"
#include "planner/request.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/simulate.h"
#include "planner/schedule/validate.h"
#include "planner/stage_table.h"

namespace weft {

// A schedule, which is made when it is first simulated.
class ShapeTable {
 public:
  explicit ShapeTable(const schedule::Request& request) : request_(request) {}

  int64_t microBatches() const { return request_.micros; }
  // The same of so many micro-batches.
  ShapeTable with(int64_t microBatches) const {
    schedule::Request request = request_;
    request.micros = static_cast<int32_t>(microBatches);
    return ShapeTable(request);
  }
  // How long it takes with these times of the stages; nothing where it is too long to be simulated again and again.
  std::optional<double> makespan(const schedule::Times& times, const SharedCores& cores) const;

 private:
  struct Made {
    schedule::Table table;
    schedule::Resolved resolved;
  };

  schedule::Request request_;
  mutable std::optional<absl::StatusOr<Made>> made_;
};

struct PipelineShape {
  int64_t microBatches = 1;
  int64_t virtualStages = 1;           // on each submesh
  std::string schedule;                // its kind; empty without stages or without a backward pass
  std::vector<int64_t> submeshOf;      // of each stage
  bool cutsBackward = false;           // do gradients of weights run later than those of inputs?
  std::vector<HeldMicroBatches> held;  // by each stage
  // How long a step takes beyond all micro-batches on one submesh, in times of one stage and micro-batch, where all
  // stages take equally long and forward pass, gradients of inputs and of weights a third of it each.
  double ramp = 0;
  bool gathersAgain = false;  // with SegmentCosts::gatheringSegments, where it cuts the backward pass?
  // Of as many micro-batches as tell how long a step takes; null: a step is as long as its ramp says.
  std::shared_ptr<const ShapeTable> table = nullptr;
  SharedCores cores = {};  // of the submeshes' ranks

  int64_t stages() const { return static_cast<int64_t>(submeshOf.size()); }
  int64_t submeshes() const { return stages() / virtualStages; }
};

// What is known of a pipeline without a cut of its program into stages.
struct LoosePipeline {
  int64_t submeshes = 1;
  int64_t microBatches = 1;
  double idle = 0;  // how long a submesh waits in a step, in times that one micro-batch takes it
  double held = 1;  // activations of a submesh in the mean, in parts of those that one micro-batch has in all stages
  // As those of SharedCores; 1 where each rank has a core of its own.
  double turnsOfAll = 1;
  double turnsOfOne = 1;

  // Under a schedule that idles and holds as little as any, where each rank has a core of its own.
  static LoosePipeline underAny(int64_t submeshes, int64_t virtualStages, int64_t microBatches);
  // Under that of the shape, where stages are equally long.
  static LoosePipeline of(const PipelineShape& shape);
};

// Kinds of schedule that put so many stages on each submesh, but gpipe, which takes as long as 1f1b and holds more.
// `request`: of those that cut the backward pass, none where it may not (Freedom::kZeroBubble).
std::vector<schedule::Kind> kindsFor(const CompileOptions& request, int64_t virtualStages);

// One shape for each kind of schedule that `request` allows and that serves the numbers, without those that another is
// no longer than and holds no more than in any stage; the shortest first. `trains`: is there a backward pass?
// Empty: no kind serves them.
std::vector<PipelineShape> pipelineShapes(const CompileOptions& request, int64_t submeshes, int64_t virtualStages,
                                          int64_t microBatches, bool trains);

// What was found, by all that it depends on.
class KnownShapes {
 public:
  // As pipelineShapes.
  std::vector<PipelineShape> of(const CompileOptions& request, int64_t submeshes, int64_t virtualStages,
                                int64_t microBatches, bool trains);

 private:
  using Key = std::tuple<std::string, bool, int64_t, int64_t, int64_t, bool>;  // the first two of the request
  std::map<Key, std::vector<PipelineShape>> known_;
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, std::shared_ptr<const ShapeTable>> tables_;
};

}  // namespace weft
