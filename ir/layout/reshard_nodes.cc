#include "ir/layout/reshard_nodes.h"

#include <algorithm>

namespace weft::reshard {
namespace {

// leastBytes looks at this many nodes at most; any choice of nodes gives a valid bound.
constexpr int64_t kMostLooked = 4;

}  // namespace

NodeTraffic::NodeTraffic(const Problem& problem) : problem_(problem) {
  for (size_t low = 0; problem.cutsNodesEvenly && low + 1 < problem.cuts.size(); ++low) {
    const int64_t inner = problem.perNode[low * problem.cuts.size() + low + 1];
    pieces_.push_back({problem.cuts[low + 1] / problem.cuts[low] / inner, inner});
  }
  for (const Piece& piece : pieces_) {
    nodes_ *= piece.outer;
  }
  looked_ = std::min(nodes_, kMostLooked);
  for (int64_t i = 0; i < looked_; ++i) {
    // Spread over the nodes, with changing minor coordinates.
    int64_t node = nodes_ <= kMostLooked ? i : (i * nodes_ / looked_ + i) % nodes_;
    places_.resize(places_.size() + pieces_.size());
    for (size_t piece = pieces_.size(); piece-- > 0;) {
      places_[i * pieces_.size() + piece] = node % pieces_[piece].outer;
      node /= pieces_[piece].outer;
    }
  }
}

int64_t NodeTraffic::outerOf(const Digits& digits) const {
  int64_t outer = 1;
  for (const Digit digit : digits) {
    for (size_t piece = digit.low; piece < digit.high; ++piece) {
      outer *= pieces_[piece].outer;
    }
  }
  return outer;
}

NodeTraffic::Runs NodeTraffic::heldOf(int64_t size, const Digits& digits, size_t node) const {
  int64_t stride = size;
  for (const Digit digit : digits) {
    stride /= problem_.cuts[digit.high] / problem_.cuts[digit.low];
  }
  Runs runs = {{0, stride}};
  for (size_t d = digits.size(); d-- > 0;) {
    for (size_t piece = digits[d].high; piece-- > digits[d].low;) {
      const Piece& at = pieces_[piece];
      const int64_t first = places_[node * pieces_.size() + piece] * at.inner * stride;
      if (runs.size() == 1 && runs[0].size == stride) {
        runs[0] = {first, at.inner * stride};
      } else {
        const size_t once = runs.size();
        for (int64_t i = 1; i < at.inner; ++i) {
          for (size_t r = 0; r < once; ++r) {
            runs.push_back({runs[r].begin + i * stride, runs[r].size});
          }
        }
        for (Run& run : runs) {
          run.begin += first;
        }
      }
      stride *= at.outer * at.inner;
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
  if (pieces_.empty() || nodes_ == 1) {
    return 0;
  }
  int64_t still = 1;
  for (const Digit digit : to.partial) {
    still *= problem_.cuts[digit.high] / problem_.cuts[digit.low];
  }
  const int64_t stillOuter = outerOf(to.partial);
  const int64_t stillInner = still / stillOuter;
  double whole = static_cast<double>(problem_.unitBytes);
  int64_t partsOuter = 1;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    whole *= static_cast<double>(problem_.sizes[d]);
    partsOuter *= outerOf(to.dims[d]);
  }
  const double wanted = whole / static_cast<double>(partsOuter) * static_cast<double>(stillInner);
  const int64_t terms = outerOf(from.partial) / stillOuter;
  const double perRank = static_cast<double>(nodes_) / static_cast<double>(problem_.cuts.back());
  if (terms > 1) {
    const int64_t holders = nodes_ / (partsOuter * stillOuter);
    const double spread = whole * static_cast<double>(still * (terms + holders - 2)) / static_cast<double>(nodes_);
    return perRank * std::max(wanted, spread);
  }
  double held = wanted;
  for (int64_t node = 0; node < looked_; ++node) {
    double here = static_cast<double>(problem_.unitBytes) * static_cast<double>(stillInner);
    for (size_t d = 0; here > 0 && d < to.dims.size(); ++d) {
      here *= static_cast<double>(common(heldOf(problem_.sizes[d], from.dims[d], node),  //
                                         heldOf(problem_.sizes[d], to.dims[d], node)));
    }
    held = std::min(held, here);
  }
  return perRank * (wanted - held);
}

}  // namespace weft::reshard
