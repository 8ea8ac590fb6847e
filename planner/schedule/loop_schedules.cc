#include "planner/schedule/loop_schedules.h"

#include <algorithm>

namespace weft::schedule {
namespace {

using Order = std::vector<Action>;

// Stage s on rank s mod p, no actions yet.
Table loopTable(const Request& request) {
  Table table;
  table.sequenceSlices = request.sequenceSlices;
  table.orders.resize(request.ranks);
  for (int32_t stage = 0; stage < request.ranks * request.virtualStages; ++stage) {
    table.stageToRank.push_back(stage % request.ranks);
  }
  return table;
}

// A rank's share of a step in units of (virtual stage, micro-batch).
struct Unit {
  int32_t level = 0;  // 0 is the rank's first stage
  int32_t micro = 0;
};

// Sizes of the groups: as many as hold at least `least` micro-batches each, equal up to one, larger ones first. A last
// group smaller than the ranks would leave them waiting in every level, and can even block them for ever.
std::vector<int32_t> groupSizes(int32_t micros, int32_t least) {
  const int32_t count = std::max(1, micros / least);
  std::vector<int32_t> sizes(count, micros / count);
  std::for_each(sizes.begin(), sizes.begin() + micros % count, [](int32_t& size) { ++size; });
  return sizes;
}

// Each group passes all levels before the next one begins.
std::vector<Unit> groupedUnits(const Request& request, const std::vector<int32_t>& sizes) {
  std::vector<Unit> units;
  units.reserve(static_cast<size_t>(request.micros) * request.virtualStages);
  int32_t first = 0;
  for (const int32_t size : sizes) {
    for (int32_t level = 0; level < request.virtualStages; ++level) {
      for (int32_t micro = first; micro < first + size; ++micro) {
        units.push_back({level, micro});
      }
    }
    first += size;
  }
  return units;
}

std::vector<int32_t> groupsOf(const Request& request) {
  return groupSizes(request.micros, std::max(request.group, request.ranks));
}

// The forward and backward actions of one rank, by position in its list of units. Backward takes the levels in
// reverse.
struct RankUnits {
  const Request& request;
  const std::vector<Unit>& units;
  int32_t rank;

  int32_t count() const { return static_cast<int32_t>(units.size()); }
  int32_t stage(int32_t level) const { return level * request.ranks + rank; }
  Action forwardOf(int32_t k) const { return forward(stage(units[k].level), units[k].micro); }
  Action gradientOf(int32_t k, ActionKind kind) const {
    return {stage(request.virtualStages - 1 - units[k].level), kind, units[k].micro};
  }
};

// Warm-up of forwards, then one forward and one backward in turn, then the rest of the backwards.
Order alternate(const RankUnits& rank, int32_t warmUp) {
  Order order;
  for (int32_t k = 0; k < warmUp; ++k) {
    order.push_back(rank.forwardOf(k));
  }
  for (int32_t k = 0; k < rank.count(); ++k) {
    if (warmUp + k < rank.count()) {
      order.push_back(rank.forwardOf(warmUp + k));
    }
    order.push_back(rank.gradientOf(k, ActionKind::kBackward));
  }
  return order;
}

// The same with gradients cut; from input gradient `delay` on each one is followed by the oldest weight gradient that
// waits.
Order alternateSplit(const RankUnits& rank, int32_t warmUp, int32_t delay) {
  Order order;
  int32_t weights = 0;
  for (int32_t k = 0; k < warmUp; ++k) {
    order.push_back(rank.forwardOf(k));
  }
  for (int32_t k = 0; k < rank.count(); ++k) {
    if (warmUp + k < rank.count()) {
      order.push_back(rank.forwardOf(warmUp + k));
    }
    order.push_back(rank.gradientOf(k, ActionKind::kInputGrad));
    if (k >= delay) {
      order.push_back(rank.gradientOf(weights++, ActionKind::kWeightGrad));
    }
  }
  while (weights < rank.count()) {
    order.push_back(rank.gradientOf(weights++, ActionKind::kWeightGrad));
  }
  return order;
}

}  // namespace

Table breadthFirst(const Request& request) {
  Table table = loopTable(request);
  for (int32_t rank = 0; rank < request.ranks; ++rank) {
    Order& order = table.orders[rank];
    for (int32_t stage = rank; stage < table.stages(); stage += request.ranks) {
      for (int32_t micro = 0; micro < request.micros; ++micro) {
        order.push_back(forward(stage, micro));
      }
    }
    for (int32_t stage = table.stages() - request.ranks + rank; stage >= 0; stage -= request.ranks) {
      for (int32_t micro = 0; micro < request.micros; ++micro) {
        order.push_back(backward(stage, micro));
      }
    }
  }
  return table;
}

Table oneForwardOneBackward(const Request& request) {
  Table table = loopTable(request);
  const int32_t slices = request.sequenceSlices;
  const int32_t count = request.micros * slices;
  for (int32_t rank = 0; rank < request.ranks; ++rank) {
    // All slices of the first micro-batch must be through before its last slice turns back.
    const int32_t warmUp = std::min(count, request.ranks - rank - 2 + slices);
    Order& order = table.orders[rank];
    for (int32_t k = 0; k < warmUp; ++k) {
      order.push_back(forward(rank, k));
    }
    for (int32_t k = 0; k < count; ++k) {
      if (warmUp + k < count) {
        order.push_back(forward(rank, warmUp + k));
      }
      order.push_back(backward(rank, k / slices * slices + slices - 1 - k % slices));
    }
  }
  return table;
}

Table interleaved(const Request& request) {
  Table table = loopTable(request);
  const std::vector<int32_t> groups = groupsOf(request);
  const std::vector<Unit> units = groupedUnits(request, groups);
  for (int32_t rank = 0; rank < request.ranks; ++rank) {
    const RankUnits mine{request, units, rank};
    // Twice the distance to the last rank, so that the way down and up is filled. With one level that would only hold
    // more memory: the distance itself does, as in 1f1b.
    const int32_t distance = (request.virtualStages == 1 ? 1 : 2) * (request.ranks - 1 - rank);
    table.orders[rank] = alternate(mine, std::min(mine.count(), (request.virtualStages - 1) * groups[0] + distance));
  }
  return table;
}

Table zeroBubble(const Request& request) {
  Table table = loopTable(request);
  const std::vector<int32_t> groups = groupsOf(request);
  const std::vector<Unit> units = groupedUnits(request, groups);
  // Without more micro-batches than ranks a longer warm-up only moves input gradients back.
  const int32_t depth = request.kind == Kind::kZbH2 && request.micros > request.ranks ? 2 : 1;
  for (int32_t rank = 0; rank < request.ranks; ++rank) {
    const RankUnits mine{request, units, rank};
    const int32_t warmUp = (request.virtualStages - 1) * groups[0] + depth * (request.ranks - 1 - rank);
    table.orders[rank] = alternateSplit(mine, std::min(mine.count(), warmUp), depth * rank);
  }
  return table;
}

}  // namespace weft::schedule
