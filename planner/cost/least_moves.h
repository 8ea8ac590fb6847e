// How long values take at the least to get from rank to rank, whatever steps they take.
//
// Of what each of some ranks needs but one of them has, or what is added up from a part of each of them, all but one
// must receive as much. That comes no faster than over the fastest link; and of ranks on several nodes all nodes but
// one receive as much over their ranks' shares of the network.
#pragma once

#include <algorithm>
#include <cstdint>

#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// Ranks, and how many of them lie on a node at most, in the mean.
struct Spread {
  int64_t ranks = 1;
  int64_t perNode = 1;
};

class LeastMoves {
 public:
  // `areHidden`: may collectives run beside kernels? Then they take no time of their own.
  LeastMoves(const Machine& machine, bool areHidden)
      : areHidden_(areHidden),
        perNode_(machine.devicesPerNode),
        fastest_(std::max(machine.linkBandwidth, machine.networkShare())),
        network_(machine.networkShare()) {}

  // Of a node, as far as that many ranks need it; all are on one where the machine has no nodes.
  int64_t perNode(int64_t ranks) const { return perNode_ > 0 ? std::min(perNode_, ranks) : ranks; }
  // Those that lie on as few nodes as can be.
  Spread close(int64_t ranks) const { return {ranks, perNode(ranks)}; }

  // Of so many bytes, each for all of the ranks from one of them, or added up from all of them on one: the sum over
  // ranks, in picoseconds.
  double time(double bytes, const Spread& spread) const {
    if (areHidden_ || spread.ranks <= 1) {
      return 0;
    }
    const double nodes = static_cast<double>(spread.ranks) / static_cast<double>(spread.perNode);
    const double onLinks = bytes * static_cast<double>(spread.ranks - 1) / fastest_;
    const double onNetwork = nodes > 1 ? bytes * (nodes - 1) / network_ : 0;
    return std::max(onLinks, onNetwork) * kPicosecondsPerSecond;
  }

 private:
  bool areHidden_;
  int64_t perNode_;
  double fastest_, network_;  // bytes a second of one rank
};

}  // namespace weft
