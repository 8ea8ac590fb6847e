// What passes from the forward to the backward pass, and the time that a memory limit costs for it at the least: it is
// kept, or heavy operators run again in the backward pass of every micro-batch.
//
// An operator is heavy where its arithmetic takes longer than its bytes: products, attention. What light operators make
// of its result is made again at little cost, so it may be kept in any of these forms. From the results of a heavy
// operator values go out as a tree, in which each value hangs on one that the operator that makes it reads. Some of
// them the backward pass reads. While all of these are made and none is read for the last time,
//
//   - there are values on the ranks that cut each of them off from the root, in whatever layouts, each whole on the
//     ranks of its submesh together: at least the bytes of the smallest such cut;
//   - or the heavy operator runs again.
//
//   y = x w, z = gelu(y), u = z v      the backward pass reads y and z: y is kept, or x w runs again
//
// How long is that? From when the last of them is made, the longest path of operators leads to the end of the forward
// pass, from the begin of the backward pass another one to the reader: they run one after another on the micro-batch's
// way through the stages. Nothing is said about when other micro-batches run. So however the schedule orders them,
//
//   sum over what is kept of bytes x that time  <=  length of the step x memory of all ranks        in the mean
//   sum over what is kept of bytes of a micro-batch  <=  memory of all ranks        between its two passes
//
// and so many heavy operators run again that both hold: first those that save most for their time, the last one in
// part. Memory is what parameters and states on the ranks, each stored at least once, leave of the limit. A view is the
// value that it shows; what something else may stand for is not counted.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "planner/cost/least_work.h"
#include "planner/graph/graph_view.h"

namespace weft {

class KeptValues {
 public:
  // `statesLeave`: may states lie elsewhere than on the ranks?
  KeptValues(const GraphView& view, const LeastWork& work, bool statesLeave);

  // The shortest step on so many ranks, each with so much memory, in picoseconds; infinite where the parameters alone
  // do not fit. `times`: of `grid`.
  double leastStep(const WorkGrid& grid, const LeastWork::Times& times, int64_t ranks, int64_t memoryLimit) const;

 private:
  // A value that the backward pass reads.
  struct Leaf {
    int value = 0;
    std::vector<int> readers;
  };
  // All that a heavy operator must run again for where it is not kept.
  struct Kept {
    double bytes = 0;  // of the whole batch
    std::vector<Leaf> leaves;
  };

  void findRoots();
  void addLeaves();
  void addStored(bool statesLeave);
  int64_t leastCut(int value) const;
  std::vector<int> backwardReaders(int value) const;
  bool runsInPass(int op, Phase phase) const;
  double delayOf(int op, Phase phase, const LeastWork::Times& times) const;
  std::vector<double> timesAfter(const LeastWork::Times& times) const;
  std::vector<double> timesBefore(const LeastWork::Times& times) const;

  const GraphView& view_;
  const LeastWork& work_;
  std::vector<int> roots_;                  // of each value: the heavy operator whose tree it is in; -1: none
  std::vector<std::vector<int>> children_;  // of each value: those that hang on it
  std::vector<bool> isLeaf_;                // of each value
  std::map<int, Kept> kept_;                // by heavy operator
  double storedBytes_ = 0;                  // of parameters and states
};

}  // namespace weft
