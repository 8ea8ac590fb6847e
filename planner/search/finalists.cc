#include "planner/search/finalists.h"

#include <algorithm>

namespace weft {
namespace {

// Sketches that are predicted in full: as many as have so many operators together, within these bounds. Predictions of
// long programs take longer, and their estimates are closer. While none fits, twice as many are; while a saved record
// is the best, the fewest.
constexpr size_t kPredictedOperators = 24000;
constexpr size_t kFewestFinalists = 3;
constexpr size_t kMostFinalists = 40;
// So many times as many while the next is expected to take so much less than the best prediction: where predictions
// take longer than was expected of them, the order of the sketches says little.
constexpr size_t kMoreTried = 3;
// Of those beside the others at most, and of long programs.
constexpr size_t kMostBeside = 8;
constexpr size_t kMostBesideOfLong = 2;
constexpr size_t kMostDoubtful = 1;
constexpr double kFarOff = 1.15;
constexpr double kFarOffOfLong = 1.01;

}  // namespace

bool isBetterPlan(const Finalist& a, const Finalist& b) {
  return isBetter(a.plan.attempt, b.plan.attempt);
}

double farOffFrom(bool isLong) {
  return isLong ? kFarOffOfLong : kFarOff;
}

FinalistPicker::FinalistPicker(const CompileOptions& request) : request_(request), most_(kMostFinalists) {}

FinalistPicker::Answer FinalistPicker::next(const Sketch& sketch, bool isLong, const Best& best) {
  if (tried_ >= mostTried(sketch, best.isRecord)) {
    return Answer::kEnough;
  }
  // Where the best takes less than was expected of it, so may the next.
  const Picoseconds known = isLong ? std::max(usual_.time, usual_.expected) : usual_.time;
  const bool isFarOff =
      usual_.fits && static_cast<double>(sketch.cut.time) > farOffFrom(isLong) * static_cast<double>(known);
  const bool isBeside = this->isBeside(sketch);
  if (isFarOff && !isBeside) {
    return Answer::kEnough;
  }
  const bool fits = best.attempt != nullptr && best.attempt->fits;
  // What others with its mesh take longer than was expected it may take longer, too: one of these is predicted, and
  // takes the place of none.
  const bool isDoubtful =
      isLong && fits && !isBeside && longer(sketch) > 1 &&
      longer(sketch) * static_cast<double>(sketch.cut.time) >= static_cast<double>(best.attempt->time);
  ++(isBeside ? beside_ : isDoubtful ? doubtful_ : tried_);
  const bool isLeftOut = (isBeside && (isFarOff || beside_ > (isLong ? kMostBesideOfLong : kMostBeside))) ||
                         (isDoubtful && doubtful_ > kMostDoubtful);
  // What the record comes to was refined before, with other splits for the batch's axes among them. A pipeline will be:
  // what works on inputs alone runs in each stage that reads it until it is moved (refine_stages.h).
  const bool isRefined = best.isRecord || (!isLong && sketch.grid.stages() > 1);
  const double beside = isRefined ? farOffFrom(isLong) : 1;
  const bool isHopeless =
      fits && static_cast<double>(sketch.cut.bound) >= beside * static_cast<double>(best.attempt->time);
  return isLeftOut || isHopeless ? Answer::kSkip : Answer::kPredict;
}

void FinalistPicker::learn(const Sketch& sketch, const ClosedRequest& made) {
  most_ = std::clamp(kPredictedOperators / made.graph->operators.size(), kFewestFinalists, kMostFinalists);
  double& longer = longer_.try_emplace(keyOf(sketch), 1).first->second;
  longer = std::max(longer, static_cast<double>(made.attempt.time) / static_cast<double>(sketch.cut.time));
  if (!isBeside(sketch) && made.attempt.fits && (!usual_.fits || made.attempt.time < usual_.time)) {
    usual_ = {true, made.attempt.time, sketch.cut.time};
  }
}

FinalistPicker::Key FinalistPicker::keyOf(const Sketch& sketch) {
  return {sketch.grid.mesh, sketch.grid.submeshes, sketch.request.microBatches()};
}

double FinalistPicker::longer(const Sketch& sketch) const {
  const auto known = longer_.find(keyOf(sketch));
  return known == longer_.end() ? 1 : known->second;
}

bool FinalistPicker::isBeside(const Sketch& sketch) const {
  return sketch.grid.isReordered || (sketch.grid.mesh.empty() && request_.stageMeshes.empty());
}

size_t FinalistPicker::mostTried(const Sketch& next, bool isRecordBest) const {
  const size_t most = isRecordBest ? kFewestFinalists : most_;
  if (!usual_.fits) {
    return 2 * most;
  }
  const bool promises = kPromises * static_cast<double>(next.cut.time) < static_cast<double>(usual_.time);
  return promises ? kMoreTried * most : most;
}

}  // namespace weft
