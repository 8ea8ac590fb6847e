#include "planner/search/cut_stages.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "planner/schedule/simulate.h"

namespace weft {
namespace {

// Of `savings`, by rising price, as much as together saves `bytes`, or all of them.
Saving taken(const std::vector<Saving>& savings, int64_t bytes) {
  Saving sum;
  for (const Saving& all : savings) {
    if (!take(all, bytes, sum)) {
      break;
    }
  }
  return sum;
}

// The time after which submeshes of these kinds, if each has as much to do as it has speed, are done, times how many
// there are. `times`: of all segments on a submesh of each kind.
Picoseconds meanTime(const std::vector<Picoseconds>& times, const std::vector<int64_t>& kindOf) {
  if (times.size() == 1) {
    return times.front();
  }
  double speed = 0;  // of all submeshes together
  for (const int64_t kind : kindOf) {
    speed += 1 / static_cast<double>(std::max<Picoseconds>(1, times[kind]));
  }
  return static_cast<Picoseconds>(static_cast<double>(kindOf.size()) / speed);
}

// What takes so long where each rank has a core of its own, where ranks take turns.
Picoseconds timesTurns(Picoseconds time, double turns) {
  return turns == 1 ? time : static_cast<Picoseconds>(std::llround(static_cast<double>(time) * turns));
}

struct Stage {
  Picoseconds time = 0;
  Picoseconds onceTime = 0;
  int64_t bytes = 0;
  bool fits = true;
  bool limited = false;
  int mesh = 0;  // of the choices
};

bool isBetter(const Stage& a, const Stage& b) {
  if (a.fits != b.fits) {
    return a.fits;
  }
  return a.fits ? a.time < b.time : a.bytes < b.bytes;
}

class Cutter {
 public:
  Cutter(const MeshChoices& choices, const PipelineShape& shape, int64_t limit)
      : choices_(choices), segments_(choices.costs[0]->whole.segments()), shape_(shape), limit_(limit) {
    for (const auto& costs : choices.costs) {
      sums_.push_back(&costs->of(shape));
      transfer_ = std::max(transfer_, costs->transfer);
    }
    leastTime_ = leastTime();
    rooms_ = rooms();
  }

  StageCut cut() const {
    const Greedy best = shortest(true);
    if (shape_.virtualStages == 1) {
      return describe(firstOf(best), true);
    }
    // What is best of each stage alone need not be of those of a submesh together: also from stages as short as they
    // can be where nothing is recomputed.
    StageCut alike = simulated(improved(firstOf(shortest(false))));
    if (!best.reachesEnd) {
      return alike;
    }
    StageCut cut = simulated(improved(best.first));
    return alike.fits >= cut.fits && (alike.fits > cut.fits || alike.time < cut.time) ? alike : cut;
  }

  // With `simulates` the time is what the schedule comes to, where its table is known (makespan); else an estimate.
  StageCut describe(std::vector<int> first, bool simulates = false) const {
    StageCut cut{std::move(first), std::vector<int>(shape_.submeshes(), 0)};
    cut.fits = true;
    Picoseconds sum = 0;
    std::vector<int64_t> bytes(shape_.submeshes(), 0);
    std::vector<Picoseconds> busy(shape_.submeshes(), 0);
    std::vector<Picoseconds> onceTimes(shape_.submeshes(), 0);
    const std::vector<Stage> stages = stagesOf(cut.first);
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      const Stage& stage = stages[s];
      sum += stage.time;
      cut.meshes[shape_.submeshOf[s]] = stage.mesh;
      cut.longest = std::max(cut.longest, stage.time);
      bytes[shape_.submeshOf[s]] += stage.bytes;
      busy[shape_.submeshOf[s]] += stage.time;
      onceTimes[shape_.submeshOf[s]] += stage.onceTime;
      cut.fits = cut.fits && stage.fits;
      cut.limited = cut.limited || stage.limited;
    }
    const Picoseconds once = onceTime(onceTimes);
    cut.peakBytes = *std::max_element(bytes.begin(), bytes.end());
    cut.bound = evenly(shape_.microBatches * leastTime_);
    for (int64_t submesh = 0; submesh < shape_.submeshes() && !choices_.limits.empty(); ++submesh) {
      const auto limit = static_cast<double>(limitOf(submesh));
      cut.excess = std::max(cut.excess, limit > 0 ? static_cast<double>(bytes[submesh]) / limit - 1 : 0);
    }
    // The submesh that has most to do decides how often micro-batches follow one another, the other stages how long the
    // first of them take.
    const auto longest = std::max_element(busy.begin(), busy.end());
    cut.busiest = longest - busy.begin();
    const int64_t others = shape_.stages() - shape_.virtualStages;
    const double other = others > 0 ? static_cast<double>(sum - *longest) / static_cast<double>(others) : 0;
    const auto withTurns = [&](Picoseconds path, int64_t microBatches) {
      return std::max(timesTurns(path, shape_.cores.turnsOfOne()), evenly(microBatches * sum));
    };
    cut.time = once + withTurns(2 * (shape_.submeshes() - 1) * transfer_ + shape_.microBatches * *longest +
                                    static_cast<Picoseconds>(std::llround(shape_.ramp * other)),
                                shape_.microBatches);
    if (const std::optional<Picoseconds> time = simulates ? makespan(stages) : std::nullopt) {
      const int64_t more = shape_.microBatches - shape_.table->microBatches();
      cut.time = once + *time + withTurns(more * *longest, more);
    }
    return cut;
  }

  StageCut simulated(const StageCut& cut) const { return describe(cut.first, true); }

 private:
  // Of times of all submeshes together, each of which has its share: how long that takes.
  Picoseconds evenly(Picoseconds sum) const { return timesTurns(sum / shape_.submeshes(), shape_.cores.turnsOfAll()); }

  // Of what runs once, on each submesh.
  Picoseconds onceTime(const std::vector<Picoseconds>& times) const {
    const Picoseconds longest = *std::max_element(times.begin(), times.end());
    const Picoseconds sum = std::accumulate(times.begin(), times.end(), Picoseconds{0});
    return std::max(timesTurns(longest, shape_.cores.turnsOfOne()), evenly(sum));
  }

  // How long the shape's table takes, each function a third of its stage's time: a submesh with more to do than the
  // others, as that with the first and the last stage of a V, may fill with that the time in which it would wait.
  std::optional<Picoseconds> makespan(const std::vector<Stage>& stages) const {
    if (shape_.table == nullptr) {
      return std::nullopt;
    }
    schedule::Times times = {{}, static_cast<double>(transfer_)};
    for (const Stage& stage : stages) {
      const double third = static_cast<double>(stage.time) / 3;
      times.stages.push_back({third, third, third, std::nullopt});
    }
    const std::optional<double> time = shape_.table->makespan(times, shape_.cores);
    return time ? std::optional<Picoseconds>(std::llround(*time)) : std::nullopt;
  }

  // Of all segments, each on the mesh on which it is shortest.
  Picoseconds leastTime() const {
    Picoseconds sum = 0;
    for (int i = 0; i < segments_; ++i) {
      Picoseconds least = sums_[0]->timeOf(i, i + 1);
      for (const SegmentSums* sums : sums_) {
        least = std::min(least, sums->timeOf(i, i + 1));
      }
      sum += least;
    }
    return sum;
  }

  int endOf(const std::vector<int>& first, int64_t stage) const {
    return stage + 1 < shape_.stages() ? first[stage + 1] : segments_;
  }

  // On the first of its choices.
  int firstMeshOf(int64_t stage) const { return choices_.ofSubmesh[shape_.submeshOf[stage]][0]; }
  const SegmentSums& sumsOf(int64_t stage) const { return *sums_[firstMeshOf(stage)]; }
  int64_t limitOf(int64_t submesh) const {
    return choices_.limits.empty() ? limit_ : choices_.limits[choices_.ofSubmesh[submesh][0]];
  }

  // What all segments take at most on the slowest submesh.
  Picoseconds longestOfAll() const {
    Picoseconds longest = 0;
    for (const SegmentSums* kind : sums_) {
      longest = std::max(longest, kind->timeOf(0, segments_) + kind->saving(0, segments_, INT64_MAX).time);
    }
    return longest;
  }

  // Of each stage: its part of the limit.
  std::vector<int64_t> rooms() const {
    std::vector<double> needs;
    std::vector<double> sums(shape_.submeshes(), 0);
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      const StageNeeds all = sumsOf(s).of(0, segments_);
      const double held = all.activations.all() == 0
                              ? 1
                              : static_cast<double>(all.heldBytes + 1) / static_cast<double>(all.activations.all());
      needs.push_back(held + static_cast<double>(shape_.held[s].toWeights));
      sums[shape_.submeshOf[s]] += needs.back();
    }
    std::vector<int64_t> rooms;
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      const int64_t limit = limitOf(shape_.submeshOf[s]);
      rooms.push_back(shape_.virtualStages == 1
                          ? limit
                          : static_cast<int64_t>(static_cast<double>(limit) * needs[s] / sums[shape_.submeshOf[s]]));
    }
    return rooms;
  }

  static int64_t held(const PassedBytes& passed, const HeldMicroBatches& held) {
    return held.toInputs * passed.toInputs + held.toWeights * passed.toWeights + held.between * passed.between;
  }

  std::vector<Stage> stagesOf(const std::vector<int>& first) const {
    if (shape_.virtualStages > 1) {
      return stagesTogether(first);
    }
    std::vector<Stage> stages;
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      stages.push_back(stageOf(s, first[s], endOf(first, s)));
    }
    return stages;
  }

  // Where a submesh has several stages, that is recomputed which saves most for its time, in whichever of them.
  std::vector<Stage> stagesTogether(const std::vector<int>& first) const {
    std::vector<Stage> stages;
    std::vector<int64_t> over(shape_.submeshes(), 0);
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      stages.push_back(allKept(firstMeshOf(s), s, first[s], endOf(first, s)));
      over[shape_.submeshOf[s]] += stages.back().bytes;
    }
    for (int64_t submesh = 0; submesh < shape_.submeshes(); ++submesh) {
      over[submesh] -= limitOf(submesh);
      if (limitOf(submesh) > 0 && over[submesh] > 0) {
        recompute(first, submesh, over[submesh], stages);
      }
    }
    return stages;
  }

  // Recomputes so many bytes of a rank, in the stages of its submesh.
  void recompute(const std::vector<int>& first, int64_t submesh, int64_t bytes, std::vector<Stage>& stages) const {
    std::vector<std::pair<Saving, int64_t>> savings;  // of a rank, by stage
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      if (shape_.submeshOf[s] == submesh) {
        for (const Saving& each : sumsOf(s).savings(first[s], endOf(first, s))) {
          savings.push_back({{shape_.held[s].toWeights * each.bytes, each.time}, s});
        }
      }
    }
    std::stable_sort(savings.begin(), savings.end(),
                     [](const auto& a, const auto& b) { return isCheaper(a.first, b.first); });
    Saving sum;
    for (const auto& [saving, s] : savings) {
      const Saving before = sum;
      const bool isAll = take(saving, bytes, sum);
      stages[s].time += sum.time - before.time;
      stages[s].bytes -= sum.bytes - before.bytes;
      if (!isAll) {
        break;
      }
    }
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      if (shape_.submeshOf[s] == submesh) {
        stages[s].limited = true;
        stages[s].fits = sum.bytes >= bytes;
      }
    }
  }

  StageCut improved(std::vector<int> first) const {
    StageCut cut = describe(std::move(first));
    while (improve(cut)) {
    }
    return cut;
  }

  // Moves the end of a stage of the busiest submesh by a segment, if that makes the step shorter.
  bool improve(StageCut& cut) const {
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      if (shape_.submeshOf[s] != cut.busiest) {
        continue;
      }
      for (const auto& [boundary, by] : {std::pair(s, 1), std::pair(s + 1, -1)}) {
        if (boundary == 0 || boundary == shape_.stages()) {
          continue;
        }
        std::vector<int> moved = cut.first;
        moved[boundary] += by;
        if (moved[boundary] <= moved[boundary - 1] || moved[boundary] >= endOf(moved, boundary)) {
          continue;
        }
        StageCut other = describe(std::move(moved));
        if (other.fits >= cut.fits && other.time < cut.time) {
          cut = std::move(other);
          return true;
        }
      }
    }
    return false;
  }

  // What a stage of the segments from `begin` to `end` takes on the best of its meshes. Of what takes more than `most`
  // that is all that is known.
  Stage stageOf(int64_t stage, int begin, int end, Picoseconds most = INT64_MAX) const {
    const std::vector<int>& meshes = choices_.ofSubmesh[shape_.submeshOf[stage]];
    Stage best = stageOn(meshes[0], stage, begin, end, most);
    for (size_t i = 1; i < meshes.size(); ++i) {
      const Stage other = stageOn(meshes[i], stage, begin, end, most);
      best = isBetter(other, best) ? other : best;
    }
    return best;
  }

  // Where nothing is recomputed.
  Stage allKept(int mesh, int64_t stage, int begin, int end) const {
    const StageNeeds all = sums_[mesh]->of(begin, end);
    return {.time = all.time,
            .onceTime = all.onceTime,
            .bytes = all.heldBytes + all.passingBytes + held(all.activations, shape_.held[stage]),
            .mesh = mesh};
  }

  Stage stageOn(int mesh, int64_t stage, int begin, int end, Picoseconds most) const {
    Stage made = allKept(mesh, stage, begin, end);
    const int64_t over = made.bytes - rooms_[stage];
    if (limitOf(shape_.submeshOf[stage]) == 0 || over <= 0 || made.time > most) {
      return made;
    }
    const int64_t slots = shape_.held[stage].toWeights;
    const Saving saving = sums_[mesh]->saving(begin, end, (over + slots - 1) / slots, most - made.time);
    made.time += saving.time;
    made.bytes -= slots * saving.bytes;
    made.fits = made.bytes <= rooms_[stage];
    made.limited = true;
    return made;
  }

  // Stages that fit and take at most some time, each as long as can be.
  struct Greedy {
    std::vector<int> first;
    bool reachesEnd = false;  // do they have all segments?
    Picoseconds longest = 0;
    Picoseconds next = INT64_MAX;  // the least time that would change a stage
  };

  std::vector<int> firstOf(const Greedy& greedy) const {
    return greedy.reachesEnd ? greedy.first : evenStages(segments_, shape_.stages());
  }

  // Those of which the longest is shortest. `isLimited`: within the memory.
  Greedy shortest(bool isLimited) const {
    // No shorter stages are known to be possible, and none shorter than these to be impossible.
    Picoseconds low = leastTime_ / shape_.stages();
    Greedy best =
        within(describe(evenStages(segments_, shape_.stages())).longest, isLimited);  // near the best of many alike
    if (!best.reachesEnd) {
      low = std::max(low, best.next);
      best = within(longestOfAll(), isLimited);
    }
    Picoseconds high = best.longest;
    while (best.reachesEnd && low < high) {
      Greedy made = within(low + (high - low) / 2, isLimited);
      if (made.reachesEnd) {
        high = made.longest;
        best = std::move(made);
      } else {
        low = made.next;
      }
    }
    return best;
  }

  // Adding a segment to a stage makes it no shorter and no smaller.
  Greedy within(Picoseconds most, bool isLimited) const {
    const auto priced = [&](int64_t s, int begin, int end, Picoseconds longest) {
      return isLimited ? stageOf(s, begin, end, longest) : allKept(firstMeshOf(s), s, begin, end);
    };
    Greedy made;
    int begin = 0;
    for (int64_t s = 0; s < shape_.stages(); ++s) {
      made.first.push_back(begin);
      const int last = segments_ - static_cast<int>(shape_.stages() - s - 1);  // leaves one for each stage behind
      int end = begin;                                                         // so far it fits
      int beyond = last + 1;                                                   // so far it does not
      while (beyond - end > 1) {
        const int middle = end + (beyond - end) / 2;
        const Stage stage = priced(s, begin, middle, most);
        (stage.time > most || !stage.fits ? beyond : end) = middle;
      }
      if (const Stage more = beyond <= last ? priced(s, begin, beyond, INT64_MAX) : Stage{.fits = false}; more.fits) {
        made.next = std::min(made.next, more.time);
      }
      if (end == begin) {
        return made;
      }
      made.longest = std::max(made.longest, priced(s, begin, end, INT64_MAX).time);
      begin = end;
    }
    made.reachesEnd = begin == segments_;
    return made;
  }

  const MeshChoices& choices_;
  int segments_;
  Picoseconds leastTime_ = 0;
  std::vector<const SegmentSums*> sums_;  // of each choice
  Picoseconds transfer_ = 0;
  const PipelineShape& shape_;
  int64_t limit_;
  std::vector<int64_t> rooms_;
};

}  // namespace

std::vector<std::shared_ptr<const SummedCosts>> summedOf(const SubmeshCosts& costs) {
  std::vector<std::shared_ptr<const SummedCosts>> summed;
  for (const SegmentCosts& kind : costs.kinds) {
    summed.push_back(std::make_shared<const SummedCosts>(kind));
  }
  return summed;
}

MeshChoices choicesOf(const SubmeshCosts& costs, std::vector<std::shared_ptr<const SummedCosts>> summed,
                      const PipelineShape& shape) {
  MeshChoices choices;
  choices.costs = std::move(summed);
  for (int64_t submesh = 0; submesh < shape.submeshes(); ++submesh) {
    choices.ofSubmesh.push_back({static_cast<int>(costs.numberOf(submesh))});
  }
  choices.limits = costs.limits;
  return choices;
}

SegmentCost meanOf(const SubmeshCosts& costs) {
  SegmentCost mean = costs.kinds.front().segments[0];
  std::vector<Picoseconds> times;
  for (const SegmentCosts& kind : costs.kinds) {
    times.push_back(kind.segments[0].time);
    mean.onceTime = std::min(mean.onceTime, kind.segments[0].onceTime);
  }
  mean.time = meanTime(times, costs.kindOf);
  return mean;
}

std::vector<int> evenStages(int64_t segments, int64_t stages) {
  std::vector<int> first;
  for (int64_t s = 0; s < stages; ++s) {
    first.push_back(static_cast<int>(s * segments / stages));
  }
  return first;
}

StageCut cutStages(const SubmeshCosts& costs, const PipelineShape& shape, int64_t limit) {
  return cutStages(choicesOf(costs, summedOf(costs), shape), shape, limit);
}

StageCut cutStages(const MeshChoices& choices, const PipelineShape& shape, int64_t limit) {
  return Cutter(choices, shape, limit).cut();
}

StageCut withStages(const SubmeshCosts& costs, const PipelineShape& shape, int64_t limit, std::vector<int> first) {
  return withStages(choicesOf(costs, summedOf(costs), shape), shape, limit, std::move(first));
}

StageCut withStages(const MeshChoices& choices, const PipelineShape& shape, int64_t limit, std::vector<int> first) {
  return Cutter(choices, shape, limit).describe(std::move(first), true);
}

StageCut fluidCut(const SegmentCost& all, Picoseconds longest, const LoosePipeline& pipeline, int64_t limit) {
  const int64_t submeshes = pipeline.submeshes;
  StageCut cut;
  cut.longest = std::max(all.time / submeshes, longest);
  const Picoseconds others = std::max<Picoseconds>(0, all.time - cut.longest) / std::max<int64_t>(1, submeshes - 1);
  cut.peakBytes = all.bytesOfStep() / submeshes + all.bufferBytes +
                  static_cast<int64_t>(pipeline.held * static_cast<double>(all.activations.all()));
  cut.fits = limit == 0 || cut.peakBytes <= limit;
  // The longest may fill with what it has to do beyond the others the time in which these wait.
  const Picoseconds path =
      std::max(pipeline.microBatches * cut.longest,
               pipeline.microBatches * others + static_cast<Picoseconds>(pipeline.idle * static_cast<double>(others)));
  const auto evenly = [&](Picoseconds sum) { return timesTurns(sum / submeshes, pipeline.turnsOfAll); };
  cut.time = evenly(all.onceTime + all.offloadTime) +
             std::max(timesTurns(path, pipeline.turnsOfOne), pipeline.microBatches * evenly(all.time));
  if (cut.fits) {
    return cut;
  }
  const double excess = static_cast<double>(cut.peakBytes - limit);
  const Saving saving = taken(all.savings, 1 + static_cast<int64_t>(excess / pipeline.held));
  cut.limited = true;
  cut.time += evenly(pipeline.microBatches * saving.time);
  cut.peakBytes -= static_cast<int64_t>(pipeline.held * static_cast<double>(saving.bytes));
  cut.fits = cut.peakBytes <= limit;
  return cut;
}

}  // namespace weft
