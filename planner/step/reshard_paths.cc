#include "planner/step/reshard_paths.h"

#include "absl/strings/str_cat.h"
#include "planner/step/buckets.h"
#include "planner/step/time_layouts.h"

namespace weft {
namespace {

constexpr int64_t kLargeGradient = kBucketBytes / 2;  // what is larger hardly joins a bucket

// The layouts on the way of a sum partial over the micro-batches. ZeRO-2 and 3 accumulate the sharded gradient: a
// reduce_scatter for each micro-batch, then accumulation.
std::vector<Layout> accumulated(const Layout& current, const LayoutRead& read, const Mesh& mesh) {
  if (!read.scattersEach) {
    Layout summed = current;
    summed.setPartial(withoutTime(current.partial()));
    return {summed};
  }
  Layout scattered = read.wanted;
  scattered.setPartial({{timeAxis(mesh), ReduceKind::kSum}});
  Layout summed = read.wanted;
  summed.setPartial({});
  return {scattered, summed};
}

}  // namespace

bool scattersGradient(const ZeroLevels& levels, const std::string& parameter) {
  return !parameter.empty() && levels.of(parameter) >= 2;
}

absl::StatusOr<std::vector<Layout>> pathOfRead(const Layout& current, const LayoutRead& read, const Mesh& mesh) {
  std::vector<Layout> path;
  if (partialOverTime(current) && !partialOverTime(read.wanted)) {
    path = accumulated(current, read, mesh);
  }
  if (const std::optional<Layout> sliced = sliceTime(current, read.wanted, mesh)) {
    path.push_back(*sliced);
  } else if (read.collects && isCollection(current, read.wanted)) {
    // Each micro-batch in its place on the ranks first.
    Layout placed = likeInTime(read.wanted, current);
    path.push_back(std::move(placed));
  } else if (isCollection(current, read.wanted)) {
    return absl::InvalidArgumentError(absl::StrCat(read.reason, " whole, but it is computed in ", mesh.microBatches(),
                                                   " micro-batches; reduce it over the batch, or use micro = 1"));
  }
  path.push_back(read.wanted);
  return path;
}

std::vector<PlacedLayout> pathOfReduced(Layout current, const Place& producer) {
  std::vector<PlacedLayout> path;
  Place place = producer;
  if (partialOverTime(current)) {
    current.setPartial(withoutTime(current.partial()));
    path.push_back({current, place});
    place.where = RunsIn::kUpdate;
  }
  current.setPartial({});
  path.push_back({current, place});
  return path;
}

Place placeOfReshard(const Layout& current, const Layout& wanted, const std::optional<Place>& producer,
                     const ReshardReader& reader) {
  const bool accumulates = partialOverTime(current) && !partialOverTime(wanted);
  const bool scatters = reader.scattersEach && !current.partial().empty();
  // What the end of the step reads of each micro-batch.
  const bool collects = splitOverTime(current) && reader.place.where == RunsIn::kUpdate;
  if ((accumulates || partialOverTime(wanted) || scatters || collects) && producer) {
    return *producer;
  }
  return {reader.madeOnce ? RunsIn::kPrologue : reader.place.where, reader.place.stage};
}

bool standsBehindProducer(const Layout& current, const Layout& wanted, const ReshardReader& reader, int64_t bytes) {
  const bool accumulates = partialOverTime(current) && !partialOverTime(wanted);
  return reader.scattersEach && !current.partial().empty() && !accumulates && bytes >= kLargeGradient;
}

absl::StatusOr<Layout> layoutOfResult(Layout current, const LeavingResult& result, const Mesh& mesh) {
  const int dim = timeDim(current);
  if (dim >= 0 && result.updated) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", result.name, "' would be replaced by a value that carries the batch, but the step runs in ",
                     mesh.microBatches(), " micro-batches; reduce it over the batch, or use micro = 1"));
  }
  current.setPartial({});
  if (dim >= 0) {
    AxisList axes = withoutTime(current.dim(dim));
    while (result.stripes % partsOf(axes) != 0) {
      axes.pop_back();
    }
    current.setDim(dim, axes);
  }
  return result.updated.value_or(current);
}

}  // namespace weft
