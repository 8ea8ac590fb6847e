// How long submeshes of a pipeline wait at the least for its first micro-batch.
//
// The stages of a program are a chain through which each micro-batch passes, forward in full before any of its backward
// pass. Of S submeshes let submesh k have r of R ranks, P = R / S, and one or two stages; a and b are the times of
// their forward passes of a micro-batch, b = 0 where there is one. Before its first stage begins, at s, a submesh has
// nothing to do; before its second begins, at u, only forward passes of its first: no backward pass has begun. So with
// the work W of all its operators, in rank time, and W' of all but the forward pass of its first stage, the step T has
//
//   r T >= r s + W        r T >= r u + W'
//
// under every schedule, whatever the order of the stages. s is at least the sum of all a of submeshes that begin
// earlier, u that of all a + b of those whose second stage begins earlier. These sums are small where the last
// submeshes have most of the work, but none has more than it can do in T. So of each operator only so much forward time
// is counted that its work, for all m micro-batches, is at least q m P times that, and the work of its gradients q - 1
// times instead of q: then a + b <= g T with g = r / (q m P). Let all a together be A, all a + b F. Of a sum X of parts
// that are at most c P / (q m P) T each, the sum of all parts before each, times its g, is at least X (X - c T / (q m))
// / 2 where the largest come last, with c = 1 where submeshes are alike, 3/2 where they trade ranks. Added up over all
// submeshes, with times as parts of T and d = 1 / (q m),
//
//   S d (1 - W / (R T)) >= A (A - c d) / 2
//   S d (1 - W / (R T)) >= F (F - c d) / 2 - A / q        with two stages; with one A = F
//
// and T is at least the shortest for which some A allows both.
#pragma once

#include <vector>

#include "planner/cost/least_work.h"
#include "planner/graph/graph_view.h"

namespace weft {

class PipelineIdle {
 public:
  static constexpr int64_t kMostVirtual = 2;  // stages of a submesh

  PipelineIdle(const GraphView& view, const LeastWork& work);

  // Of submeshes with `ranks` each, or 1/2 and 3/2 of it where they trade, `allRanks` together; `times` as of them, for
  // so many micro-batches. In picoseconds.
  struct Pipeline {
    int64_t ranks = 1;
    int64_t allRanks = 1;
    int64_t microBatches = 1;
    int64_t virtualStages = 1;  // of each submesh at most, kMostVirtual or less
    bool trades = false;        // then one stage
  };
  double leastStep(const Pipeline& pipeline, const LeastWork::Times& times) const;

 private:
  struct Pass {
    int forward = 0;
    std::vector<int> backward;
  };
  struct Forward {
    double time = 0;       // of one micro-batch, as it counts, in picoseconds
    double uncounted = 0;  // work of the step in forward operators beyond that, of all ranks together
  };
  Forward forwardOf(double ratio, const Pipeline& pipeline, const LeastWork::Times& times) const;

  std::vector<Pass> passes_;  // of operators that run for each micro-batch
};

}  // namespace weft
