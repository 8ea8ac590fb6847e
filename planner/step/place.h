// Where an operator of a step runs, and which readers of a value share what is made for them: a reshard or a mask.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/decisions.h"

namespace weft {

// Where an operator runs: the part of the step, and the pipeline stage.
struct Place {
  RunsIn where = RunsIn::kForward;
  int64_t stage = 0;

  bool isPerMicroBatch() const { return where == RunsIn::kForward || where == RunsIn::kBackward; }
  friend bool operator==(const Place&, const Place&) = default;
};

// The readers that share. Forward and backward of one stage are one region, unless what they read is gathered for each
// of them.
struct ReaderRegion {
  bool bothPasses = false;
  RunsIn where = RunsIn::kForward;  // of one pass
  int64_t stage = 0;

  friend auto operator<=>(const ReaderRegion&, const ReaderRegion&) = default;
};

// Does a micro-batch pass through `a` before `b`? Through the stages in their order forward, back in the opposite one.
bool isPassedBefore(const Place& a, const Place& b);

// The part of the step and the stage in which a submesh that owns `stages` receives what another one makes at `made`
// and `reader` reads, the first of its readers there: the same part, on the reader's stage. What a later stage makes in
// its forward pass reaches earlier ones in the backward pass. Nothing if the stages would wait for each other.
std::optional<Place> receiverOf(const Place& made, const Place& reader, const std::vector<int64_t>& stages);

// `gather`: of what is read; `place`: of the reader.
ReaderRegion regionOf(GatherPolicy gather, const Place& place);
// Is what the calls of all micro-batches read made before the first?
bool isMadeOnce(const Decisions& decisions, GatherPolicy gather, const Place& place);

}  // namespace weft
