#include "planner/cost/pipeline_idle.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace weft {
namespace {

constexpr int kNoBlock = -1;
constexpr double kPrecision = 1e-4;  // of steps

double stepAt(int64_t number) {
  return std::pow(1 + kPrecision, static_cast<double>(number));
}

int64_t numberBelow(double step) {
  return static_cast<int64_t>(std::floor(std::log(std::max(step, 1.0)) / std::log1p(kPrecision)));
}

// Of steps that are powers of one factor, the longest that is not allowed, within [atLeast, atMost]. So what is found
// does not depend on these bounds: the answer for more plans is never above that for some of them.
template <typename Allows>
double leastAllowed(double atLeast, double atMost, Allows allows) {
  if (atMost <= atLeast) {
    return atLeast;
  }
  int64_t low = numberBelow(atLeast);
  int64_t high = numberBelow(atMost) + 1;
  if (!allows(stepAt(high))) {
    return atMost;
  }
  if (allows(stepAt(low))) {
    return atLeast;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (allows(stepAt(middle)) ? high : low) = middle;
  }
  return std::clamp(stepAt(low), atLeast, atMost);
}

}  // namespace

// A sum of gradients, or in the update, may be regrouped, so that other stages have some of it.
PipelineIdle::PipelineIdle(const GraphView& view, const LeastWork& work, const std::vector<int>& blockOf)
    : view_(view), blockOf_(view.operators(), kNoBlock) {
  for (int op = 0; op < view.operators(); ++op) {
    const GraphOperator& node = view.op(op);
    const bool isOnStage = node.phase == Phase::kForward || node.forward || !node.facts.isSum;
    const bool isCounted = node.phase == Phase::kUpdate || work.runs(op) == WorkRuns::kPerMicroBatch;
    if (isOnStage && isCounted) {
      blockOf_[op] = blockOf[op];
      blocks_ = std::max(blocks_, static_cast<size_t>(blockOf[op] + 1));
    }
  }
  for (const std::vector<int>& family : work.families().operators()) {
    families_.push_back(blockOf_[family.front()]);
  }
}

PipelineIdle::Sums PipelineIdle::sumsOf(const LeastWork::Times& times, const std::vector<Picoseconds>& delays,
                                        const WorkGrid& grid, Counted counted) const {
  Sums sums;
  const auto all = {&sums.forward, &sums.work, &sums.later};
  for (std::vector<double>* each : all) {
    each->assign(blocks_ + 1, 0);
  }
  for (int op = 0; op < view_.operators(); ++op) {
    const bool isUpdate = view_.op(op).phase == Phase::kUpdate;
    if (blockOf_[op] == kNoBlock || (isUpdate && counted == Counted::kCalls)) {
      continue;
    }
    const size_t block = static_cast<size_t>(blockOf_[op]) + 1;
    const double mine = counted == Counted::kCalls ? static_cast<double>(times.ofCall[op] * grid.microBatches)
                                                   : times.ofOperator[op] / static_cast<double>(grid.ranks);
    sums.work[block] += mine;
    if (view_.op(op).phase == Phase::kForward) {
      sums.forward[block] += static_cast<double>(delays[op]);
    } else {
      sums.later[block] += mine;
    }
  }
  // A product of the forward pass may take longer so that its gradients take less: what all take together beyond the
  // least of each may be in the forward pass. What one family of a block saves others have to do.
  std::vector<double> beyond(blocks_ + 1, 0);
  for (size_t family = 0; family < families_.size() && counted == Counted::kAll; ++family) {
    if (families_[family] != kNoBlock) {
      beyond[static_cast<size_t>(families_[family]) + 1] += times.ofFamily[family] / static_cast<double>(grid.ranks);
    }
  }
  for (size_t block = 0; block < beyond.size(); ++block) {
    sums.work[block] += std::max(0.0, beyond[block]);
  }
  for (std::vector<double>* each : all) {
    std::partial_sum(each->begin(), each->end(), each->begin());
  }
  return sums;
}

// Of what runs after all micro-batches, shared evenly by all ranks.
double PipelineIdle::updateTime(const Pipeline& pipeline, const WorkGrid& grid, const LeastWork::Times& times) const {
  double sum = 0;
  for (int op = 0; op < view_.operators(); ++op) {
    sum += view_.op(op).phase == Phase::kUpdate ? times.ofOperator[op] : 0;
  }
  return sum / static_cast<double>(pipeline.submeshes * grid.ranks);
}

// May a submesh have the blocks of both in one step? The second stage, behind the first, may have none.
bool PipelineIdle::allowsBoth(const Sums& sums, const Blocks& first, const Blocks& second, double step) {
  const double ofSecond = sums.work[second.end] - sums.work[second.begin];
  return sums.forward[first.begin] + sums.work[first.end] - sums.work[first.begin] + ofSecond <= step &&
         (second.begin == second.end ||
          sums.forward[second.begin] + sums.later[first.end] - sums.later[first.begin] + ofSecond <= step);
}

// How far a submesh comes whose one stage begins with block `from`.
size_t PipelineIdle::endOf(const Sums& sums, size_t from, double step) {
  size_t to = from;
  while (to + 1 < sums.work.size() && sums.forward[from] + sums.work[to + 1] - sums.work[from] <= step) {
    ++to;
  }
  return to;
}

bool PipelineIdle::allowsOneEach(const Sums& sums, int64_t submeshes, double step) {
  const size_t blocks = sums.work.size() - 1;
  size_t done = 0;
  for (int64_t k = 0; k < submeshes; ++k) {
    done = endOf(sums, done, step);
  }
  return done == blocks;
}

bool PipelineIdle::allowsV(const Sums& sums, int64_t submeshes, double step) {
  const size_t blocks = sums.work.size() - 1;
  const size_t never = blocks + 1;
  std::vector<size_t> begins(blocks + 1, never);  // of the second stages, by the end of the first ones
  begins[0] = blocks;
  for (int64_t k = 0; k < submeshes; ++k) {
    std::vector<size_t> next = begins;
    for (size_t from = 0; from <= blocks; ++from) {
      const size_t end = begins[from];
      if (end == never) {
        continue;
      }
      const auto may = [&](size_t to, size_t begin) { return allowsBoth(sums, {from, to}, {begin, end}, step); };
      size_t second = end;
      while (second > from && may(from, second - 1)) {
        --second;
      }
      for (size_t to = from; to <= end; ++to) {
        while (second < end && !may(to, second)) {
          ++second;
        }
        if (!may(to, second)) {
          break;
        }
        if (second <= to) {
          return true;
        }
        next[to] = std::min(next[to], second);
      }
    }
    begins = std::move(next);
  }
  return false;
}

// With between `first` and `last` blocks in the first stages. What lies between is in none: to have it done for nothing
// is no worse than to wait for it.
bool PipelineIdle::allowsLoop(const Sums& sums, int64_t submeshes, double step, size_t first, size_t last) {
  const size_t blocks = sums.work.size() - 1;
  constexpr size_t kNever = 0;
  // One more than those of the second stages, by the end of the first ones.
  std::vector<size_t> ends(first + 1, kNever);
  ends[0] = last + 1;
  for (int64_t k = 0; k < submeshes; ++k) {
    std::vector<size_t> next = ends;
    for (size_t from = 0; from <= first; ++from) {
      if (ends[from] == kNever) {
        continue;
      }
      const size_t second = ends[from] - 1;
      const auto may = [&](size_t to, size_t end) { return allowsBoth(sums, {from, to}, {second, end}, step); };
      size_t end = second;
      while (end < blocks && may(from, end + 1)) {
        ++end;
      }
      for (size_t to = from; to <= first; ++to) {
        while (end > second && !may(to, end)) {
          --end;
        }
        if (!may(to, end)) {
          break;
        }
        next[to] = std::max(next[to], end + 1);
      }
    }
    ends = std::move(next);
  }
  if (ends[first] != blocks + 1) {
    return false;
  }
  if (first == last) {
    return true;
  }
  const size_t middle = first + (last - first) / 2;
  return allowsLoop(sums, submeshes, step, first, middle) || allowsLoop(sums, submeshes, step, middle + 1, last);
}

// `sums`: of submeshes with half of the ranks, with as many, with half as many more.
bool PipelineIdle::allowsTrades(const std::array<Sums, 3>& sums, int64_t submeshes, double step) {
  const size_t blocks = sums[1].work.size() - 1;
  // By how many more submeshes gave ranks than got some: how many blocks all of them have.
  const auto inHand = static_cast<size_t>(submeshes);
  std::vector<std::optional<size_t>> done(2 * inHand + 1);
  done[inHand] = 0;
  for (int64_t k = 0; k < submeshes; ++k) {
    std::vector<std::optional<size_t>> next(done.size());
    for (size_t hand = 0; hand < done.size(); ++hand) {
      for (size_t size = 0; size < sums.size() && done[hand]; ++size) {
        if (hand + 1 < size || hand + 1 - size >= done.size()) {
          continue;
        }
        std::optional<size_t>& best = next[hand + 1 - size];
        best = std::max(best.value_or(0), endOf(sums[size], *done[hand], step));
      }
    }
    done = std::move(next);
  }
  return done[inHand] == blocks;
}

double PipelineIdle::leastStep(const Pipeline& pipeline, const WorkGrid& grid, const LeastWork::Times& times) const {
  const int64_t submeshes = std::min(pipeline.submeshes, static_cast<int64_t>(blocks_));  // others have nothing to do
  double longest = pipeline.atLeast;
  for (const Counted counted : {Counted::kAll, Counted::kCalls}) {
    const double after = counted == Counted::kCalls ? updateTime(pipeline, grid, times) : 0;
    const Sums sums = sumsOf(times, times.delays, grid, counted);
    const double atMost = std::min(pipeline.atMost - after, sums.work.back());  // one submesh may have all
    const double atLeast = longest - after;
    double least = leastAllowed(atLeast, atMost, [&](double step) { return allowsOneEach(sums, submeshes, step); });
    if (pipeline.virtualStages > 1) {
      // The cheaper question first: of a loop only shorter steps are asked about.
      least = leastAllowed(atLeast, least, [&](double step) { return allowsV(sums, submeshes, step); });
      least = leastAllowed(atLeast, least, [&](double step) { return allowsLoop(sums, submeshes, step, 0, blocks_); });
    }
    longest = after + least;
  }
  return longest;
}

double PipelineIdle::leastStepOfTrades(const Pipeline& pipeline, const WorkGrid& grid, const TimesBySize& times) const {
  const std::array<WorkGrid, 3> grids = {WorkGrid{grid.ranks / 2, grid.microBatches}, grid,
                                         WorkGrid{grid.ranks / 2 * 3, grid.microBatches}};
  double longest = pipeline.atLeast;
  for (const Counted counted : {Counted::kAll, Counted::kCalls}) {
    // What is divided evenly by fewer ranks takes all of them no longer.
    const double after = counted == Counted::kCalls ? updateTime(pipeline, grid, times.smallest) : 0;
    const std::array<Sums, 3> sums = {sumsOf(times.smallest, times.delays, grids[0], counted),
                                      sumsOf(times.alike, times.delays, grids[1], counted),
                                      sumsOf(times.largest, times.delays, grids[2], counted)};
    const double atMost = std::min(pipeline.atMost - after, sums[1].work.back());
    longest = after + leastAllowed(longest - after, atMost,
                                   [&](double step) { return allowsTrades(sums, pipeline.submeshes, step); });
  }
  return longest;
}

}  // namespace weft
