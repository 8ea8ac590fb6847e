#include "planner/search/cut_stages.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace weft {
namespace {

// Sums over the segments before each, so that those of a stage are differences.
class Sums {
 public:
  explicit Sums(const std::vector<SegmentCost>& costs) : sums_(costs.size() + 1), costs_(costs) {
    for (size_t i = 0; i < costs.size(); ++i) {
      sums_[i + 1] = sums_[i];
      sums_[i + 1].time += costs[i].time;
      sums_[i + 1].forwardTime += costs[i].forwardTime;
      sums_[i + 1].onceTime += costs[i].onceTime;
      sums_[i + 1].heldBytes += costs[i].heldBytes;
      sums_[i + 1].activationBytes += costs[i].activationBytes;
    }
  }

  SegmentCost of(int begin, int end) const {
    SegmentCost sum;
    sum.time = sums_[end].time - sums_[begin].time;
    sum.forwardTime = sums_[end].forwardTime - sums_[begin].forwardTime;
    sum.onceTime = sums_[end].onceTime - sums_[begin].onceTime;
    sum.heldBytes = sums_[end].heldBytes - sums_[begin].heldBytes;
    sum.activationBytes = sums_[end].activationBytes - sums_[begin].activationBytes;
    for (int i = begin; i < end; ++i) {
      sum.passingBytes = std::max(sum.passingBytes, costs_[i].passingBytes);
    }
    return sum;
  }

 private:
  std::vector<SegmentCost> sums_;
  const std::vector<SegmentCost>& costs_;
};

struct Stage {
  Picoseconds time = 0;
  Picoseconds forwardTime = 0;
  Picoseconds onceTime = 0;
  int64_t bytes = 0;
  bool fits = true;
  bool limited = false;
};

class Cutter {
 public:
  Cutter(const SegmentCosts& costs, const PipelineShape& shape, int64_t limit)
      : segments_(static_cast<int>(costs.kept.size())),
        kept_(costs.kept),
        recomputed_(costs.recomputed),
        transfer_(costs.transfer),
        shape_(shape),
        submeshes_(shape.stages / shape.virtualStages),
        limit_(limit) {}

  StageCut cut() const {
    Picoseconds low = 0;
    Picoseconds high = kept_.of(0, segments_).time + recomputed_.of(0, segments_).time;
    std::optional<std::vector<int>> best = within(high);
    while (best && low < high) {
      const Picoseconds middle = low + (high - low) / 2;
      if (std::optional<std::vector<int>> cut = within(middle)) {
        best = std::move(cut);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return describe(best ? *best : even());
  }

  StageCut describe(std::vector<int> first) const {
    StageCut cut{std::move(first)};
    cut.fits = true;
    Picoseconds sum = 0;
    Picoseconds forward = 0;
    Picoseconds forwardOfLongest = 0;
    std::vector<int64_t> bytes(submeshes_, 0);
    std::vector<Picoseconds> onceTimes(submeshes_, 0);
    for (int64_t s = 0; s < shape_.stages; ++s) {
      const Stage stage = stageOf(s, cut.first[s], endOf(cut.first, s));
      sum += stage.time;
      forward += stage.forwardTime;
      forwardOfLongest = stage.time > cut.longest ? stage.forwardTime : forwardOfLongest;
      cut.longest = std::max(cut.longest, stage.time);
      bytes[s % submeshes_] += stage.bytes;
      onceTimes[s % submeshes_] += stage.onceTime;
      cut.fits = cut.fits && stage.fits;
      cut.limited = cut.limited || stage.limited;
    }
    const Picoseconds once = *std::max_element(onceTimes.begin(), onceTimes.end());
    cut.peakBytes = *std::max_element(bytes.begin(), bytes.end());
    cut.bound = shape_.microBatches * kept_.of(0, segments_).time / submeshes_;
    // The longest submesh works without a gap once 1/v of the ramp has passed: one that has v stages begins with the
    // next while others fill. Where gradients of weights may wait, they fill all but the first forward pass's ramp.
    // No micro-batch passes faster than through all stages, which is longer with few of them.
    const int64_t turns = shape_.microBatches * shape_.virtualStages;
    const Picoseconds busy = shape_.splitsBackward
                                 ? (forward - forwardOfLongest) / shape_.virtualStages + turns * cut.longest
                                 : sum / shape_.virtualStages + (turns - 1) * cut.longest;
    // Of split ones the last follows all forward passes of the others, and half of its backward pass is waited for.
    const Picoseconds passage = shape_.splitsBackward ? forward + (shape_.microBatches - 1) * forwardOfLongest +
                                                            (sum - forward) / 2 + cut.longest / 3
                                                      : sum + (shape_.microBatches - 1) * cut.longest;
    cut.time = once + 2 * (submeshes_ - 1) * transfer_ + std::max(busy, passage);
    return cut;
  }

 private:
  int endOf(const std::vector<int>& first, int64_t stage) const {
    return stage + 1 < shape_.stages ? first[stage + 1] : segments_;
  }

  // How many micro-batches a stage holds activations of at once.
  int64_t inFlight(int64_t stage) const {
    const int64_t submesh = stage % submeshes_;
    const int64_t ahead =
        shape_.virtualStages == 1
            ? submeshes_ - submesh
            : (2 * (submeshes_ - submesh - 1) + (shape_.virtualStages - 1) * submeshes_ + 1) / shape_.virtualStages + 1;
    return std::min(shape_.microBatches, ahead);
  }

  // What a stage of the segments from `begin` to `end` takes.
  Stage stageOf(int64_t stage, int begin, int end) const {
    const SegmentCost kept = kept_.of(begin, end);
    const SegmentCost least = recomputed_.of(begin, end);
    const auto bytesOf = [&](const SegmentCost& cost) {
      return cost.heldBytes + cost.passingBytes + inFlight(stage) * cost.activationBytes;
    };
    Stage made = {kept.time, kept.forwardTime, kept.onceTime, bytesOf(kept), true, false};
    const int64_t room = limit_ / shape_.virtualStages;
    if (limit_ == 0 || made.bytes <= room) {
      return made;
    }
    const int64_t fewer = made.bytes - bytesOf(least);
    const double part = fewer > 0 ? static_cast<double>(made.bytes - room) / static_cast<double>(fewer) : 2;
    made.fits = part <= 1;
    made.limited = true;
    const double taken = std::min(part, 1.0);
    made.time += static_cast<Picoseconds>(taken * static_cast<double>(least.time - kept.time));
    made.bytes -= static_cast<int64_t>(taken * static_cast<double>(std::max<int64_t>(fewer, 0)));
    return made;
  }

  // Stages of at most that time that fit, each as long as can be; nothing where there are none. Adding a segment to a
  // stage makes it no shorter and no smaller.
  std::optional<std::vector<int>> within(Picoseconds most) const {
    std::vector<int> first;
    int begin = 0;
    for (int64_t s = 0; s < shape_.stages; ++s) {
      first.push_back(begin);
      const int last = segments_ - static_cast<int>(shape_.stages - s - 1);  // leaves one for each stage behind
      int end = begin;
      while (end < last) {
        const Stage stage = stageOf(s, begin, end + 1);
        if (stage.time > most || !stage.fits) {
          break;
        }
        ++end;
      }
      if (end == begin) {
        return std::nullopt;
      }
      begin = end;
    }
    return begin == segments_ ? std::optional(first) : std::nullopt;
  }

  std::vector<int> even() const {
    std::vector<int> first;
    for (int64_t s = 0; s < shape_.stages; ++s) {
      first.push_back(static_cast<int>(s * segments_ / shape_.stages));
    }
    return first;
  }

  int segments_;
  Sums kept_;
  Sums recomputed_;
  Picoseconds transfer_;
  PipelineShape shape_;
  int64_t submeshes_;
  int64_t limit_;
};

}  // namespace

StageCut cutStages(const SegmentCosts& costs, const PipelineShape& shape, int64_t limit) {
  return Cutter(costs, shape, limit).cut();
}

StageCut withStages(const SegmentCosts& costs, const PipelineShape& shape, int64_t limit, std::vector<int> first) {
  return Cutter(costs, shape, limit).describe(std::move(first));
}

}  // namespace weft
