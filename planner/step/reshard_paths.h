// How a value gets from the layout it lies in to the one in which it is read: the layouts it passes through, one
// reshard each, and where each reshard runs.
//
// A sum partial over the micro-batches of a step becomes a reshard over time, which is accumulation: the sum is
// reduced over space for each micro-batch, where its producer runs, or after the last one. A gradient of ZeRO-2 or 3 is
// reduced where it is made also where the step has one micro-batch: whole gradients of all parameters at the end of the
// backward pass are the memory that these levels are to save.
//
// A value that carries the batch exists one micro-batch after the other. The end of the step, which hands it to the
// host, has it whole: a reshard from a layout split over time to one that is not puts each micro-batch's rows in their
// place, where its producer runs. Nothing else in the step may read it so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/step/place.h"
#include "planner/zero_levels.h"

namespace weft {

struct LayoutRead {
  Layout wanted;
  std::string reason;         // "matmul reads operand 1", for people
  bool scattersEach = false;  // the reader finishes the gradient of a parameter of ZeRO level 2 or 3
  bool collects = false;      // the reader is the end of the step: it takes the batch one micro-batch after the other
};

// For whom a reshard is made.
struct ReshardReader {
  Place place;
  bool madeOnce = false;      // before the micro-batches, for all of them (isMadeOnce)
  bool scattersEach = false;  // as LayoutRead
};

// Does an operator that finishes the gradient of `parameter` ("": of none) read it scattered in each micro-batch?
bool scattersGradient(const ZeroLevels& levels, const std::string& parameter);

// The layouts after `current`, the wanted one last; one that equals the one before it needs no reshard. Error: what is
// computed in micro-batches is wanted whole.
absl::StatusOr<std::vector<Layout>> pathOfRead(const Layout& current, const LayoutRead& read, const Mesh& mesh);

// A reshard that makes `layout`, read at `place`.
struct PlacedLayout {
  Layout layout;
  Place place;
};
// The path to a value with no sum partial, reduced where it is made: over the micro-batches first, then, after the last
// one, over the ranks.
std::vector<PlacedLayout> pathOfReduced(Layout current, const Place& producer);

// Where the reshard from `current` to `wanted` runs: with its reader, or before the micro-batches if it is made once
// for all; accumulation over the micro-batches, what is reduced over space in each of them, and the collection of the
// batch with the producer (none: an argument).
Place placeOfReshard(const Layout& current, const Layout& wanted, const std::optional<Place>& producer,
                     const ReshardReader& reader);

// Does a reshard of so many bytes, of the whole tensor, stand behind what makes its operand instead of before its
// reader? A gradient that is scattered in each micro-batch does if it is large: those of all layers would be there
// until the end of the backward pass. Small ones wait there for others, to join them in buckets (buckets.h).
bool standsBehindProducer(const Layout& current, const Layout& wanted, const ReshardReader& reader, int64_t bytes);

// What a result of the step is.
struct LeavingResult {
  std::string name;
  std::optional<Layout> updated = {};  // layout of the argument that it replaces
  int64_t stripes = 1;                 // of the batch (passes/partition/micro_batch_rows.h)
};
// The layout in which a result leaves the step: that of the argument it replaces, else its own with no sum partial and
// the batch whole. A rank's rows of the whole batch lie in one run if those of a micro-batch are whole stripes: where
// the batch is split more finely, axes are dropped from the minor end. Error: it replaces an argument and carries the
// batch, and the step runs in micro-batches.
absl::StatusOr<Layout> layoutOfResult(Layout current, const LeavingResult& result, const Mesh& mesh);

}  // namespace weft
