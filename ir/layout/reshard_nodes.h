// What the nodes must at least receive from one another in a reshard, whatever the path.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/layout/reshard_problem.h"

namespace weft::reshard {

// Of a virtual line that cuts nodes evenly; of other lines nothing is said.
class NodeTraffic {
 public:
  explicit NodeTraffic(const Problem& problem);

  // Bytes from other nodes that some node must receive between two states, for each of its ranks.
  double leastBytes(const State& from, const State& to) const;

 private:
  // Elements of a dimension, ascending.
  struct Run {
    int64_t begin = 0;
    int64_t size = 0;
  };
  using Runs = absl::InlinedVector<Run, 8>;

  // What the ranks of node `node` hold together of a dimension split over `digits`.
  Runs heldOf(int64_t size, const Digits& digits, size_t node) const;
  static int64_t common(const Runs& a, const Runs& b);

  const Problem& problem_;
  std::vector<GroupSpan> spans_;      // of the digits between neighboring cuts; empty: nothing is said
  std::vector<int64_t> coordinates_;  // of each node that is looked at, by those digits
  int64_t nodes_ = 1;
  int64_t looked_ = 0;
};

}  // namespace weft::reshard
