#include "planner/step/place.h"

namespace weft {

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
