// The space the reshard planner searches: layouts of one tensor, and the collectives between them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/layout/reshard_nodes.h"
#include "ir/layout/reshard_problem.h"

namespace weft::reshard {

struct Move {
  CollectiveKind kind = CollectiveKind::kSlice;
  Digits axes;
  int source = -1;
  int target = -1;
  friend bool operator==(const Move&, const Move&) = default;
};

// What a move costs.
struct Price {
  Picoseconds time = 0;
  int64_t bytes = 0;  // received

  friend Price operator+(const Price& a, const Price& b) { return {a.time + b.time, a.bytes + b.bytes}; }
};

class Space {
 public:
  Space(const Problem& problem, const Machine& machine);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  const Problem& problem() const { return problem_; }
  int64_t ranks() const { return problem_.cuts.back(); }
  int64_t sizeOf(Digit digit) const { return sizes_[indexOf(digit)]; }
  int64_t productOf(const Digits& digits) const;
  int64_t localBytes(const State& state) const;
  // One collective over groups of these digits, of all ranks for a permute, each with a tensor of `before` bytes.
  Price priceOf(CollectiveKind kind, const Digits& digits, int64_t before) const;

  // Every move that leads out of a state, or into it, with the state at the other end. Permutes are not among them:
  // they join the two halves of the search.
  using Visit = std::function<void(const Move&, State other, const Price&)>;
  void movesFrom(const State& state, const Visit& visit) const;
  void movesInto(const State& state, const Visit& visit) const;

  // States with the same signature are one permute apart.
  std::string signatureOf(const State& state) const;

  // What any path costs at the least: one launch if anything moves, hops that reach as many ranks as the neediest rank
  // wants data of, and bytes that the busiest rank must receive over the fastest links, or the busiest node over the
  // network.
  Picoseconds leastTime(const State& from, const State& to) const;

 private:
  struct Suffix {
    Digits moved;  // the minor digits that leave
    Digits kept;
  };
  Digits freeOf(const State& state) const;
  // All digits inside `digit`, itself included.
  Digits partsOf(Digit digit) const;
  // Digits that end where `digit` ends.
  Digits tailsOf(Digit digit) const;
  std::vector<Suffix> suffixesOf(const Digits& digits) const;
  bool divides(uint8_t a, uint8_t b) const { return problem_.cuts[b] % problem_.cuts[a] == 0; }
  bool fits(const State& state, int d) const;
  Digits without(const Digits& digits, Digit part) const;
  void forEachSequence(const Digits& digits, const std::function<void(const Digits&)>& visit) const;
  Digits inside(const Digits& digits, Digit limit) const;

  void slices(const State& state, const Visit& visit) const;
  void gathers(const State& state, const Visit& visit) const;
  void exchanges(const State& state, bool forward, const Visit& visit) const;
  void reductions(const State& state, const Visit& visit) const;
  void unslices(const State& state, const Visit& visit) const;
  void ungathers(const State& state, const Visit& visit) const;
  void unreductions(const State& state, const Visit& visit) const;
  size_t indexOf(Digit digit) const { return digit.low * problem_.cuts.size() + digit.high; }
  // The part that witness `w` holds of a dimension split over `digits`.
  int64_t partAt(const Digits& digits, size_t w) const;
  struct Least {
    int64_t hops = 0;
    int64_t bytes = 0;
  };
  // One dimension of the tensor: its digits and the size of a part, at both ends.
  struct DimChange {
    const Digits* from;
    const Digits* to;
    int64_t before;
    int64_t after;
  };
  // `wanted`: bytes of a part in the end; `terms`: of each sum, that have to be added up.
  Least leastAtWitness(const std::vector<DimChange>& dims, int64_t wanted, int64_t terms, size_t w) const;
  int64_t leastForTerms(const State& to, int64_t terms) const;

  Problem problem_;
  const Machine& machine_;
  NodeTraffic nodes_;
  std::vector<int64_t> sizes_;      // by digit
  std::vector<int64_t> witnesses_;  // ranks at which leastTime looks
  std::vector<int64_t> places_;     // by digit and witness: its coordinate
};

// A path through the space: moves with the states they lead to.
struct PathStep {
  Move move;
  State after;
  friend bool operator==(const PathStep&, const PathStep&) = default;
};
using Path = std::vector<PathStep>;

// What any path from the one state to the other costs at the least, as steps are rounded.
Picoseconds leastPathTime(const Space& space, const State& from, const State& to);

// Of all steps of a path from problem.from.
Price pathPrice(const Space& space, const Path& path);

struct Answer {
  Path path;
  Price total;
  // Steps that move data.
  int collectives() const;
};

// The cheapest path from problem.from to problem.to.
Path cheapestPath(const Space& space);

}  // namespace weft::reshard
