#include "planner/step/place.h"

#include <algorithm>

namespace weft {

bool isPassedBefore(const Place& a, const Place& b) {
  if (a.where != b.where) {
    return a.where < b.where;
  }
  return a.where == RunsIn::kBackward ? a.stage > b.stage : a.stage < b.stage;
}

std::optional<Place> receiverOf(const Place& made, const Place& reader, const std::vector<int64_t>& stages) {
  if (!made.isPerMicroBatch()) {
    return Place{made.where, 0};
  }
  const bool forward = made.where == RunsIn::kForward;
  const auto before = [&](int64_t stage) { return forward ? made.stage < stage : made.stage > stage; };
  const auto possible = std::find_if(stages.begin(), stages.end(), before);
  const int64_t stage = reader.isPerMicroBatch() ? reader.stage : possible != stages.end() ? *possible : stages.front();
  if (before(stage)) {
    return Place{made.where, stage};
  }
  const bool later = forward && reader.where != RunsIn::kForward;
  return later ? std::optional(Place{RunsIn::kBackward, stage}) : std::nullopt;
}

ReaderRegion regionOf(GatherPolicy gather, const Place& place) {
  if (place.isPerMicroBatch() && gather != GatherPolicy::kEachCall) {
    return {true, RunsIn::kForward, place.stage};
  }
  return {false, place.where, place.stage};
}

bool isMadeOnce(const Decisions& decisions, GatherPolicy gather, const Place& place) {
  return place.isPerMicroBatch() && decisions.mesh.microBatches() > 1 && gather == GatherPolicy::kOncePerStep;
}

}  // namespace weft
