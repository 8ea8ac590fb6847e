// A reshard as a problem of digits, apart from the names of its axes.
//
// Everything here is on a *virtual line*: the part of the line of ranks that the two end layouts may change, its axes
// renamed in the order in which the layouts name them. So two reshards that differ only in names of axes are the same
// problem, and one answer serves both. A point of the line where an axis may begin or end is a *cut*; an axis (a
// *digit* here) is a pair of cuts.
//
// Example. On dp=2,tp=4 from [{tp},{}] to [{},{tp}]: the line is tp, dp (dp is free), the cuts are 1, 4, 8.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/layout/reshard.h"

namespace weft::reshard {

// The part [cuts[low], cuts[high]) of the virtual line.
struct Digit {
  uint8_t low = 0;
  uint8_t high = 0;
  friend bool operator==(const Digit&, const Digit&) = default;
  friend auto operator<=>(const Digit&, const Digit&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const Digit& digit) {
    return H::combine(std::move(hash), digit.low, digit.high);
  }
};
// Inline as many as almost all layouts have: the search copies them all the time.
using Digits = absl::InlinedVector<Digit, 8>;

// A layout, in canonical form: digits that continue each other are joined. `partial` holds what is partial and must be
// reduced on the way; all other digits are free (replicated).
struct State {
  absl::InlinedVector<Digits, 4> dims;
  Digits partial;
  friend bool operator==(const State&, const State&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const State& state) {
    return H::combine(std::move(hash), state.dims, state.partial);
  }
};

struct Problem {
  std::vector<int64_t> cuts;  // ascending, from 1 to the number of ranks of the virtual line
  Shape sizes;                // stored size of every dimension
  int64_t unitBytes = 1;      // bytes of one element
  bool scatterable = true;    // partial sums may be reduce_scattered; max and min may not
  // By digit, low * cuts + high: how many of the ranks that differ in it alone are on one node; empty: all are.
  std::vector<int64_t> perNode;
  GroupSpan permuted;  // the ranks of a permute
  // Do the ranks between any two neighboring cuts lie on nodes in one way, wherever the line of ranks has them?
  bool cutsNodesEvenly = false;
  State from;
  State to;

  // Equal for problems that differ in unitBytes alone.
  std::string key() const;
  // The ranks that differ in these digits alone.
  GroupSpan spanOf(const Digits& digits) const;
};

// Appends `digit`, joined to the last one where it continues it.
void appendDigit(Digits& digits, Digit digit);
void appendDigits(Digits& digits, const Digits& more);
// Inserts into a sorted list, joined with its neighbors.
void insertSorted(Digits& digits, Digit digit);

// The text by which equal states are found, and its digits.
std::string keyOf(const State& state);
void appendKey(std::string& key, const Digits& digits);

}  // namespace weft::reshard
