#include "planner/cost/pipeline_idle.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace weft {
namespace {

// What is known of a pipeline, in picoseconds: of the whole step its work on all ranks, shared evenly; of one
// micro-batch its forward pass.
struct Needs {
  double work = 0;
  double workBoth = 0;  // likewise, without what first stages may do in their forward passes beyond the times counted
  double forward = 0;
  double ratio = 3;
  double submeshes = 1;
  bool trades = false;
  int64_t virtualStages = 1;

  // Ranks of a submesh at most, of those of the mean one.
  double most() const { return trades ? 1.5 : 1; }
};

// How long the first parts of a chain delay all that come after, by both as parts of the step. `each`: of one submesh.
double delays(double forward, double each, double most) {
  return std::max(0.0, forward * (forward - most * each) / 2);
}

// May the step be that long?
bool allows(double step, const Needs& needs, double microBatches) {
  const double each = 1 / (microBatches * needs.ratio);  // g of the mean submesh
  const double forward = needs.forward / step;
  const auto room = [&](double work) { return (1 - work / step) * needs.submeshes * each; };
  const double missing = delays(forward, each, needs.most()) - room(needs.workBoth);
  const double firsts = needs.virtualStages == 1 ? forward : std::max(0.0, missing * needs.ratio);
  return firsts <= forward && delays(firsts, each, needs.most()) <= room(needs.work);
}

}  // namespace

PipelineIdle::PipelineIdle(const GraphView& view, const LeastWork& work) {
  std::map<int, size_t> passOf;
  for (int op = 0; op < view.operators(); ++op) {
    if (work.runs(op) != WorkRuns::kPerMicroBatch) {
      continue;
    }
    const std::optional<int64_t>& id = view.op(op).forward;
    const std::optional<int> forward = id ? view.find(*id) : std::nullopt;
    if (view.op(op).phase == Phase::kForward) {
      passOf[op] = passes_.size();
      passes_.push_back({op, {}});
    } else if (forward && view.op(op).phase == Phase::kBackward && passOf.count(*forward) > 0) {
      passes_[passOf[*forward]].backward.push_back(op);
    }
  }
}

// What counts of the forward pass: of each operator so little that its work is at least `ratio` times as much, that of
// its gradients one less.
PipelineIdle::Forward PipelineIdle::forwardOf(double ratio, const Pipeline& pipeline,
                                              const LeastWork::Times& times) const {
  const auto calls = static_cast<double>(pipeline.ranks * pipeline.microBatches);
  Forward sum;
  for (const Pass& pass : passes_) {
    double backward = 0;
    for (const int op : pass.backward) {
      backward += times.ofOperator[op] / calls;
    }
    const double mine = times.ofOperator[pass.forward] / calls;
    const double counted =
        std::min({static_cast<double>(times.delays[pass.forward]), (mine + backward) / ratio, backward / (ratio - 1)});
    sum.time += counted;
    sum.uncounted += std::max(0.0, mine - counted) * calls;
  }
  return sum;
}

double PipelineIdle::leastStep(const Pipeline& pipeline, const LeastWork::Times& times) const {
  const auto all = static_cast<double>(pipeline.allRanks);
  double longest = times.ofRanks / all;
  if (pipeline.ranks == pipeline.allRanks) {
    return longest;
  }
  Needs needs;
  needs.work = longest;
  needs.submeshes = static_cast<double>(pipeline.allRanks / pipeline.ranks);
  needs.trades = pipeline.trades;
  needs.virtualStages = pipeline.virtualStages;
  const auto microBatches = static_cast<double>(pipeline.microBatches);
  // A forward operator may take longer so that its gradients take less: without it the rest of its family may.
  const double alone = times.ofRanks - std::accumulate(times.ofFamily.begin(), times.ofFamily.end(), 0.0);
  for (const double ratio : {2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0}) {
    const Forward forward = forwardOf(ratio, pipeline, times);
    needs.ratio = ratio;
    needs.forward = forward.time;
    needs.workBoth = (alone - forward.uncounted) / all;
    double low = longest;
    double high = needs.work + 2 * needs.submeshes * needs.forward;
    constexpr int kHalvings = 40;
    for (int i = 0; i < kHalvings && !allows(low, needs, microBatches); ++i) {
      const double middle = low + (high - low) / 2;
      (allows(middle, needs, microBatches) ? high : low) = middle;
    }
    longest = std::max(longest, low);
  }
  return longest;
}

}  // namespace weft
