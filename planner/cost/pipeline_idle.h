// The shortest step of a pipeline whose submeshes wait for its first micro-batch, however its program is cut into
// stages.
//
// A program is a chain of blocks. Each submesh has one run of it as its stage, or two, and each micro-batch passes
// through all stages, forward in full before any of its backward pass. Until it reaches a submesh's first stage, at
// time s, the submesh has nothing to do; until it reaches the second one, at time u, only forward passes of the first.
// So with W the time of all its work and L that of all but these passes, under every schedule the step T has
//
//   T >= s + W        T >= u + L        s, u: forward times of all blocks before the stage, of one micro-batch
//
// Stages lie on submeshes as the library's schedules have them (planner/schedule/generate.h): one each; two in a loop,
// where submesh k of S has stages k and S + k; or two in a V, where it has k and 2 S - 1 - k. T is at least the
// shortest for which some cut of the chain between blocks keeps both. Whether there is one for a given T is found
// submesh by submesh, in the order of their first stages. To have more blocks done is never worse, as the work of a
// block takes at least as long as its forward pass. So of all cuts for the submeshes so far these are enough:
//
//   V      the first stages are a beginning of the chain, the second ones an end: for each end of the first ones, that
//          with the earliest begin of the second ones
//   loop   the second stages begin where the last first one ends. For each end of the first ones so far, that with the
//          last end of the second ones. All borders between the two kinds that lie between two blocks are asked about
//          at once, with what lies between done for nothing; where that can be, each half of them, down to one
//   trade  submeshes that trade ranks have one stage each: for each number of ranks in hand, the most blocks
//
// W counts a submesh's updates and gradient sums, which run after all micro-batches. Or these are left out, and what
// all updates take, shared evenly by all ranks, comes after the shortest T: the longer of both counts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/cost/least_work.h"
#include "planner/graph/graph_view.h"

namespace weft {

class PipelineIdle {
 public:
  static constexpr int64_t kMostVirtual = 2;  // stages of a submesh

  // `blockOf`: of each operator its block; -1: it may run on any stage. Stages are runs of blocks in ascending order.
  PipelineIdle(const GraphView& view, const LeastWork& work, const std::vector<int>& blockOf);

  // Of so many submeshes with at most so many stages each. In picoseconds, within [atLeast, atMost]: no plan takes
  // less, or less than `atMost`. `times`: on one of them, for `grid`.
  struct Pipeline {
    int64_t submeshes = 1;
    int64_t virtualStages = 1;  // kMostVirtual or less
    double atLeast = 0;
    double atMost = 0;
  };
  double leastStep(const Pipeline& pipeline, const WorkGrid& grid, const LeastWork::Times& times) const;

  // Of submeshes with one stage each of which some traded ranks: as many have half of those of `grid` as have half as
  // many more. `delays`: of each operator, at the least on any of them.
  struct TimesBySize {
    const LeastWork::Times& smallest;
    const LeastWork::Times& alike;
    const LeastWork::Times& largest;
    const std::vector<Picoseconds>& delays;
  };
  double leastStepOfTrades(const Pipeline& pipeline, const WorkGrid& grid, const TimesBySize& times) const;

 private:
  // What submeshes of one size need for the blocks before each, and for all, in picoseconds.
  struct Sums {
    std::vector<double> forward;  // of one micro-batch
    std::vector<double> work;     // of the whole step
    std::vector<double> later;    // of that, what is surely not in forward passes
  };
  // What of it: all, or only calls of the micro-batches, without sums that may be added up after them.
  enum class Counted : uint8_t { kAll, kCalls };
  Sums sumsOf(const LeastWork::Times& times, const std::vector<Picoseconds>& delays, const WorkGrid& grid,
              Counted counted) const;
  double updateTime(const Pipeline& pipeline, const WorkGrid& grid, const LeastWork::Times& times) const;

  // [begin, end)
  struct Blocks {
    size_t begin = 0;
    size_t end = 0;
  };
  static bool allowsBoth(const Sums& sums, const Blocks& first, const Blocks& second, double step);
  static size_t endOf(const Sums& sums, size_t from, double step);
  static bool allowsOneEach(const Sums& sums, int64_t submeshes, double step);
  static bool allowsV(const Sums& sums, int64_t submeshes, double step);
  static bool allowsLoop(const Sums& sums, int64_t submeshes, double step, size_t first, size_t last);
  static bool allowsTrades(const std::array<Sums, 3>& sums, int64_t submeshes, double step);

  const GraphView& view_;
  std::vector<int> blockOf_;   // of each operator; -1: it counts nothing
  std::vector<int> families_;  // of each family: the block that has all of it
  size_t blocks_ = 0;
};

}  // namespace weft
