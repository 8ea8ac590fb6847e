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
// Memory is what else lies on the ranks all the step leaves of the limit: parameters, states, accumulated gradients. A
// view is the value that it shows; what something else may stand for is not counted.
//
// Bytes have a price, of all ranks' time. At any price the step is at least as long as all work together with the price
// of what lies on the ranks, each heavy operator's values or its time to run again, whichever is less, and weights with
// their gradients as is best at that price (family_times.h), less the price of all memory: no plan pays for more. The
// best of all prices counts (Everett, "Generalized Lagrange multiplier method", 1963).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "planner/cost/least_work.h"
#include "planner/graph/graph_view.h"

namespace weft {

class KeptValues {
 public:
  struct Memory {
    int64_t ranks = 1;         // of all submeshes together
    int64_t atWork = 1;        // of them, that can work at the same time
    int64_t limit = 0;         // bytes of each
    bool statesLeave = false;  // may states lie elsewhere?
  };
  KeptValues(const GraphView& view, const LeastWork& work, const Memory& memory);

  // What a heavy operator must keep on a grid, and the time to run it again, of all ranks and micro-batches.
  struct Item {
    int root = 0;
    double bytes = 0;      // of one micro-batch
    double bytesTime = 0;  // of all, times how long they are there
    double again = 0;
  };

  struct LeastStep {
    double time = 0;       // in picoseconds; infinite where the parameters alone do not fit
    double bytePrice = 0;  // for which what is kept between the passes makes the step longest
    std::vector<Item> items = {};
  };
  // `times`, `families`: of `grid`. A step longer than `atMost` need not be found.
  LeastStep leastStep(const WorkGrid& grid, const LeastWork::Times& times, FamilyTimes::OnGrid& families,
                      double atMost) const;
  // `times` with the price of what weights need, and of what is kept between the passes, or runs again, on the submesh
  // that it is from. `items`: of the least step. `blockOf`: of each operator (pipeline_idle.h).
  LeastWork::Times priced(const std::vector<Item>& items, const LeastWork::Times& times, FamilyTimes::OnGrid& families,
                          const std::vector<int>& blockOf, double bytePrice) const;

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

  bool isInOneBlock(int root, const std::vector<int>& blockOf) const;
  std::vector<Item> itemsOf(const WorkGrid& grid, const LeastWork::Times& times) const;
  void findRoots();
  void addLeaves();
  void addStored();
  int64_t leastCut(int value) const;
  std::vector<int> backwardReaders(int value) const;
  bool runsInPass(int op, Phase phase) const;
  double delayOf(int op, Phase phase, const LeastWork::Times& times) const;
  std::vector<double> timesAfter(const LeastWork::Times& times) const;
  std::vector<double> timesBefore(const LeastWork::Times& times) const;

  const GraphView& view_;
  const LeastWork& work_;
  Memory memory_;
  std::vector<int> roots_;                  // of each value: the heavy operator whose tree it is in; -1: none
  std::vector<std::vector<int>> children_;  // of each value: those that hang on it
  std::vector<bool> isLeaf_;                // of each value
  std::map<int, Kept> kept_;                // by heavy operator
  double storedBytes_ = 0;                  // of parameters and states, once
};

}  // namespace weft
