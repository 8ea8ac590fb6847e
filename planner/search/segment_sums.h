// Sums over the segments of a program, made once for all cuts of them: what any stage needs is then known at once.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/pipeline_shape.h"
#include "planner/search/segment_costs.h"

namespace weft {

// As much of each saving as `bytes` are left to save: adds it to `sum`. False: none are left.
bool take(const Saving& all, int64_t bytes, Saving& sum);

// What the segments of a stage need on one rank, before anything is recomputed.
struct StageNeeds {
  Picoseconds time = 0;      // of one micro-batch
  Picoseconds onceTime = 0;  // with the copies of offload
  int64_t heldBytes = 0;     // for the whole step
  int64_t passingBytes = 0;  // what there is room for once, with the buffer of offload
  PassedBytes activations;
};

class SegmentSums {
 public:
  explicit SegmentSums(const std::vector<SegmentCost>& costs);

  int segments() const { return static_cast<int>(sums_.size()) - 1; }
  Picoseconds timeOf(int begin, int end) const { return sums_[end].time - sums_[begin].time; }
  StageNeeds of(int begin, int end) const;
  // Of these segments as much as together saves `bytes`, or all that can be; the cheapest first. What takes more than
  // `most` is not looked for further.
  Saving saving(int begin, int end, int64_t bytes, Picoseconds most = INT64_MAX) const;
  // All that these segments may save, the cheapest first.
  std::vector<Saving> savings(int begin, int end) const;

 private:
  // Of some segments: what a rank has room for once.
  struct Most {
    int64_t passingBytes = 0;
    int64_t bufferBytes = 0;

    static Most of(const Most& a, const Most& b);
  };

  void sumTimes(const std::vector<SegmentCost>& costs);
  void countSavings(const std::vector<SegmentCost>& costs);
  void fillMost(const std::vector<SegmentCost>& costs);
  const int64_t* countsBefore(int segment) const { return counts_.data() + segment * savings_.size(); }

  std::vector<StageNeeds> sums_;         // of the segments before each
  std::vector<Saving> savings_;          // the cheapest first
  std::vector<int64_t> counts_;          // by segment, then by saving: how often the segments before have it
  std::vector<std::vector<Most>> most_;  // of 1, 2, 4, ... segments, by the first of them
};

// Of the same segments whole, with their backward pass cut, and cut with gathers that run again.
struct SummedCosts {
  explicit SummedCosts(const SegmentCosts& costs)
      : whole(costs.segments), cut(costs.cutSegments), gathering(costs.gatheringSegments), transfer(costs.transfer) {}

  const SegmentSums& of(const PipelineShape& shape) const {
    const SegmentSums& apart = shape.gathersAgain && gathering.segments() > 0 ? gathering : cut;
    return shape.cutsBackward && apart.segments() > 0 ? apart : whole;
  }

  SegmentSums whole, cut, gathering;
  Picoseconds transfer = 0;  // of what passes between segments, the longest
};

}  // namespace weft
