#include "ir/layout/reshard_nodes.h"

#include <algorithm>

namespace weft::reshard {
namespace {

// leastBytes looks at this many nodes at most; any choice of nodes gives a valid bound.
constexpr int64_t kMostLooked = 4;

}  // namespace

NodeTraffic::NodeTraffic(const Problem& problem) : problem_(problem) {
  for (uint8_t low = 0; problem.cutsNodesEvenly && low + 1u < problem.cuts.size(); ++low) {
    spans_.push_back(problem.spanOf({{low, static_cast<uint8_t>(low + 1)}}));
    nodes_ *= spans_.back().nodes();
  }
  looked_ = std::min(nodes_, kMostLooked);
  for (int64_t i = 0; i < looked_; ++i) {
    // Spread over the nodes, with changing minor coordinates.
    int64_t node = nodes_ <= kMostLooked ? i : (i * nodes_ / looked_ + i) % nodes_;
    coordinates_.resize(coordinates_.size() + spans_.size());
    for (size_t digit = spans_.size(); digit-- > 0;) {
      coordinates_[i * spans_.size() + digit] = node % spans_[digit].nodes();
      node /= spans_[digit].nodes();
    }
  }
}

NodeTraffic::Runs NodeTraffic::heldOf(int64_t size, const Digits& digits, size_t node) const {
  int64_t stride = size / problem_.spanOf(digits).ranks;
  Runs runs = {{0, stride}};
  for (size_t d = digits.size(); d-- > 0;) {
    for (size_t minor = digits[d].high; minor-- > digits[d].low;) {
      const GroupSpan& span = spans_[minor];
      const int64_t first = coordinates_[node * spans_.size() + minor] * span.perNode * stride;
      if (runs.size() == 1 && runs[0].size == stride) {
        runs[0] = {first, span.perNode * stride};
      } else {
        const size_t once = runs.size();
        for (int64_t i = 1; i < span.perNode; ++i) {
          for (size_t r = 0; r < once; ++r) {
            runs.push_back({runs[r].begin + i * stride, runs[r].size});
          }
        }
        for (Run& run : runs) {
          run.begin += first;
        }
      }
      stride *= span.ranks;
    }
  }
  return runs;
}

int64_t NodeTraffic::common(const Runs& a, const Runs& b) {
  int64_t sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t aEnd = a[i].begin + a[i].size;
    const int64_t bEnd = b[j].begin + b[j].size;
    sum += std::max<int64_t>(0, std::min(aEnd, bEnd) - std::max(a[i].begin, b[j].begin));
    (aEnd < bEnd ? i : j) += 1;
  }
  return sum;
}

// A node receives what its ranks want together and none of them holds. Where the terms of a sum lie on T nodes no node
// holds any of it; of T terms T - 1 leave their node before any node knows the sum, and every other of the H nodes that
// want it receives it after that: T + H - 2 transfers, spread over all nodes at best.
double NodeTraffic::leastBytes(const State& from, const State& to) const {
  if (nodes_ == 1) {
    return 0;
  }
  const GroupSpan still = problem_.spanOf(to.partial);
  double whole = static_cast<double>(problem_.unitBytes);
  int64_t splits = 1;  // over nodes
  for (size_t d = 0; d < to.dims.size(); ++d) {
    whole *= static_cast<double>(problem_.sizes[d]);
    splits *= problem_.spanOf(to.dims[d]).nodes();
  }
  const double wanted = whole / static_cast<double>(splits) * static_cast<double>(still.perNode);
  const int64_t terms = problem_.spanOf(from.partial).nodes() / still.nodes();
  const double perRank = static_cast<double>(nodes_) / static_cast<double>(problem_.cuts.back());
  if (terms > 1) {
    const int64_t holders = nodes_ / (splits * still.nodes());
    const auto transfers = static_cast<double>(still.ranks * (terms + holders - 2));
    return perRank * std::max(wanted, whole * transfers / static_cast<double>(nodes_));
  }
  double held = wanted;
  for (int64_t node = 0; node < looked_; ++node) {
    double here = static_cast<double>(problem_.unitBytes) * static_cast<double>(still.perNode);
    for (size_t d = 0; here > 0 && d < to.dims.size(); ++d) {
      here *= static_cast<double>(common(heldOf(problem_.sizes[d], from.dims[d], node),  //
                                         heldOf(problem_.sizes[d], to.dims[d], node)));
    }
    held = std::min(held, here);
  }
  return perRank * (wanted - held);
}

}  // namespace weft::reshard
