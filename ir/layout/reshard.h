// The reshard planner: the cheapest sequence of collectives that turns one layout of a tensor into another.
//
// The layouts reachable from `from` form a graph whose edges are collectives priced by the machine; the plan is a
// shortest path (A*). The same path prices an edge in the search, is lowered by `partition`, and is printed by
// `weft explain`.
//
// Moves, each on one list of axes over which groups are formed:
//   slice           a replicated axis becomes the minor part of a dimension: every rank keeps its part; no traffic
//   all_gather      the minor axes of a dimension become replicated
//   all_to_all      the minor axes of a dimension become the minor axes of another
//   reduce_scatter  partial axes become the minor axes of a dimension (sum only)
//   all_reduce      partial axes become replicated
//   permute         any re-labeling of the split axes that keeps the local shape: ranks exchange whole local tensors
// Time axes: `slice` over a time axis is a view of the micro-batch; all_reduce over a time axis is accumulation over
// the micro-batches. Their price is 0; no other move touches a time axis.
//
// Axes are cut where the two end layouts cut them, and where sizes of axes that trade places ask for it.
// Cuts that do not nest (3x2 against 2x3) meet in the line: {3,2} on one dimension is the same layout as {2,3}.
// There is always a plan, in the worst case through gathering; there is no silent fallback.
//
// What a step does to the data. `groupsOf(step, mesh)` gives the groups; a group lists its members in the order of the
// step's axes, first axis major; n = members, i = a rank's place in its group, local = its tensor before the step.
//   slice           part i of n equal parts of local along targetDim
//   all_gather      the locals of the group, joined along sourceDim in member order
//   all_to_all      every member cuts local into n equal parts along targetDim and sends part j to member j; what
//                   arrives is joined along sourceDim in member order
//   reduce_scatter  the element-wise reduction of the group's locals, of which member i keeps part i along targetDim
//   all_reduce      the element-wise reduction of the group's locals
//   permute         local of rank source[r]; `source` is a bijection of the ranks
// Over time axes the "group" is the rank itself at all micro-batches: slice takes part (micro-batch), all_reduce adds
// up the micro-batches. After each step every rank holds exactly step.layout.slice(...), or its term of it where
// step.layout is partial.
//
// Worked example. 16x32 f32 on dp=2,tp=4 from [{dp},{tp}] to [{tp},{dp}]: the local shapes 8x8 and 4x16 differ, so one
// permute cannot do it. Half of tp moves to dimension 0 by all_to_all, a permute puts the digits in order.
//
// Cost of a step inside one node = launchLatency + linkLatency * hops + bytesReceived / linkBandwidth, with hops of a
// ring: n-1 (all_gather, reduce_scatter, all_to_all), 2(n-1) (all_reduce), 1 (permute); a slice is free; between nodes
// see collectiveCost. Two gathers of 2 ranks take fewer hops than one of 4, but two launches: the price decides which,
// also over axes that are not neighbors in the line of ranks. Axes are not cut for the sake of latency alone.
//
// Limits. The path is the cheapest over these moves and cuts; up to 16 ranks (kMaxFineCuts) axes are cut everywhere if
// that saves bytes, unless a single collective does. Beyond about 7 prime factors of moved ranks the search stops
// early (kMaxSettled) with the best path it has. Of the dimensions that neither end splits one may be split on the way,
// two where partial sums are reduced. Partial sums are never moved to other ranks before they are reduced, a
// path holds at most one permute, and moves over time axes are refused where they would mix the micro-batches of a
// step.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/layout.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"
#include "runtime/base/dtype.h"

namespace weft {

enum class CollectiveKind : uint8_t { kSlice, kAllGather, kAllToAll, kReduceScatter, kAllReduce, kPermute };
// "slice", "all_gather", "all_to_all", "reduce_scatter", "all_reduce", "permute".
std::string collectiveName(CollectiveKind kind);

// The ranks of a group on the machine's nodes. Every group over the same axes has as many of both.
struct GroupSpan {
  int64_t ranks = 1;
  int64_t perNode = 1;  // of them on each node that has any

  int64_t nodes() const { return ranks / perNode; }
};

// The groups over `axes` (time axes apart) of a mesh of so many ranks, whose first rank is the first of a node or of an
// even part of one.
GroupSpan spanOf(const Machine& machine, int64_t meshRanks, const AxisList& axes);

struct ReshardStep {
  CollectiveKind kind = CollectiveKind::kSlice;
  AxisList axes;           // the axes over which groups are formed; empty for permute
  GroupSpan span;          // of a group; of all ranks for a permute
  int64_t sourceDim = -1;  // dimension that loses axes (all_gather, all_to_all)
  int64_t targetDim = -1;  // dimension that gains axes (slice, all_to_all, reduce_scatter)
  ReduceKind reduce = ReduceKind::kSum;
  // Permute: source[r] is the rank whose local tensor rank r receives (possibly r itself).
  std::vector<int64_t> source;
  Layout layout;     // after the step
  Shape localShape;  // after the step
  // Bytes each rank receives, counted as for a ring: all_gather, reduce_scatter, all_to_all (n-1)/n of the larger
  // local side (gathered output; scattered input; local tensor), all_reduce 2 (n-1)/n of the local input, permute the
  // local tensor.
  int64_t bytesReceived = 0;
  Picoseconds cost = 0;  // on the machine
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  Picoseconds cost = 0;
};

// The groups of ranks that exchange data in this step. Permute: the cycles of `source`, each rank followed by the one
// that receives its tensor; ranks that keep theirs are left out. Steps over time axes only: every rank alone.
std::vector<std::vector<int64_t>> groupsOf(const ReshardStep& step, const Mesh& mesh);

// For each rank the rank whose local tensor it receives in a permute from layout `before` to `after`, which have as
// many parts in each dimension: a rank that already holds what it needs keeps it; the others are matched in order.
// Empty if no permutation of the ranks makes the one of the other.
std::vector<int64_t> permuteSources(const Layout& before, const Layout& after, const Mesh& mesh);

// Bytes that each rank receives in one collective over n ranks, each with a tensor of `before` bytes, as above.
int64_t receivedBytes(CollectiveKind kind, int64_t n, int64_t before);

// Cost of one collective over such groups, all of them at once, with bytes received per rank as above. Between nodes
// all groups of a node share its network cards, and a group takes the better of two ways:
//   ring          hops of network latency; each node passes the bytes on once, over its ranks' share of the cards
//   hierarchical  inside nodes over the links, then between nodes, each rank with its part over its own share
// (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005; the hierarchical
// way as in NCCL and Horovod.) The parts of an all_to_all for the own node and for others go beside each other.
Picoseconds collectiveCost(const Machine& machine, CollectiveKind kind, const GroupSpan& span, int64_t bytesReceived);

class ReshardPlanner {
 public:
  ReshardPlanner(Mesh mesh, Machine machine);

  // Plans a tensor of this global shape. Both layouts are layouts of the same ranks; their pads must agree.
  // A partial axis of `to` must be partial in `from` (a reshard never makes a value partial).
  // Errors: layouts that do not fit the shape, a partial axis in `to` that `from` does not have.
  absl::StatusOr<ReshardPlan> plan(const Shape& shape, DType type, const Layout& from, const Layout& to);

  // What a plan costs at the least, without looking for one. Errors as for `plan`.
  absl::StatusOr<Picoseconds> leastCost(const Shape& shape, DType type, const Layout& from, const Layout& to) const;

 private:
  Mesh mesh_;
  Machine machine_;
  std::string machineKey_;  // by which its prices are known
};

}  // namespace weft
