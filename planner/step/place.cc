#include "planner/step/place.h"

namespace weft {

ReaderRegion regionOf(const Decisions& decisions, GatherPolicy gather, const Place& place) {
  const bool again = gather == GatherPolicy::kNone ? decisions.regather : gather == GatherPolicy::kEachCall;
  if (place.isPerMicroBatch() && !again) {
    return {true, RunsIn::kForward, place.stage};
  }
  return {false, place.where, place.stage};
}

bool isMadeOnce(const Decisions& decisions, GatherPolicy gather, const Place& place) {
  return place.isPerMicroBatch() && decisions.mesh.microBatches() > 1 && gather == GatherPolicy::kOncePerStep;
}

}  // namespace weft
