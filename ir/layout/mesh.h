// The mesh: all ranks as a grid of named axes.
//
// Idea. N ranks, numbered 0..N-1, stand in a line. Cutting the line into `pre` equal parts and each part into `size`
// equal parts gives a digit to every rank: rank / (N / (pre * size)) % size. Such a digit is an Axis. Everything that
// says "axis" in Weft is one of these: the named axes of a mesh (row-major: the first name is the major digit), a
// sub-axis `dp:(1)2` of a named axis, and the parts of the implicit axis `all`, the line itself. Because all of them
// are digits of one line, layouts written against different meshes of the same ranks can be compared and combined.
//
// Time axes (`micro`) are digits of a second line: the micro-batches of one step that run one after another.
//
// Example. On mesh dp=2,tp=4 (8 ranks): dp = space(1)2, tp = space(2)4, `dp:(1)2` is dp itself, `tp:(1)2` is
// space(2)2, `tp:(2)2` is space(4)2, `all:(1)4` is space(1)4 = dp and the major half of tp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

namespace weft {

enum class AxisKind : uint8_t { kSpace, kTime };

// A digit of the line of ranks (kSpace) or of the line of micro-batches (kTime).
struct Axis {
  AxisKind kind = AxisKind::kSpace;
  int64_t pre = 1;
  int64_t size = 1;

  int64_t end() const { return pre * size; }
  friend bool operator==(const Axis&, const Axis&) = default;
  friend auto operator<=>(const Axis&, const Axis&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const Axis& axis) {
    return H::combine(std::move(hash), axis.kind, axis.pre, axis.size);
  }
};

// The axes that split one dimension or factor, major first, and those of each dimension or factor. Searches copy
// millions: lists of one axis, and tensors of up to four dimensions, allocate nothing.
using AxisList = absl::InlinedVector<Axis, 1>;
using AxisLists = absl::InlinedVector<AxisList, 4>;

// Do two axes share a digit, in whole or in part? Axes whose cuts do not nest (3x2 against 2x3) overlap as well
// unless their intervals [pre, end) of the line are disjoint.
bool overlap(const Axis& a, const Axis& b);

// May both stand in one layout: are they different digits of one way to cut the line? Not 2 of 2x3 beside 2 of 3x2.
bool compatible(const Axis& a, const Axis& b);

// Replaces a, b by one axis if b continues a (a.end() == b.pre).
std::optional<Axis> join(const Axis& a, const Axis& b);

// Number of parts that splitting over all of `axes` makes: the product of their sizes.
inline int64_t partsOf(const AxisList& axes) {
  int64_t parts = 1;
  for (const Axis& axis : axes) {
    parts *= axis.size;
  }
  return parts;
}

struct NamedAxis {
  std::string name;
  Axis axis;
};

class Mesh {
 public:
  // One rank, no named axis.
  Mesh() = default;

  // Parses "dp=2,tp=4", also "<dp=2, tp=4>", "8" (only the implicit axis `all`) and "" (one rank). An axis named
  // `micro` is a time axis, wherever it stands. Errors name the offending part: size < 1, more than kMaxRanks ranks or
  // kMaxMicroBatches micro-batches (runtime/base/limits.h), a name twice, the reserved name `all`.
  static absl::StatusOr<Mesh> parse(const std::string& text);

  int64_t ranks() const { return ranks_; }                // product of the space axes
  int64_t microBatches() const { return microBatches_; }  // product of the time axes
  const std::vector<NamedAxis>& axes() const { return axes_; }

  // This mesh with a time axis `micro` of `count` micro-batches (replacing one that is there).
  Mesh withMicro(int64_t count) const;
  // This mesh without time axes.
  Mesh ofRanks() const;

  // "dp", "dp:(1)2", "all", "all:(2)2", "micro" to an axis. Errors: unknown axis (lists the known ones), a sub-axis
  // that does not divide its axis.
  absl::StatusOr<Axis> resolve(const std::string& text) const;

  // The inverse of resolve: the shortest name; for an axis that spans several named ones, their names joined with
  // ',' ("dp,tp:(1)2"), and the form `all:(pre)size` where the named axes do not cut so.
  std::string name(const Axis& axis) const;

  // "dp=2,tp=4,micro=3".
  std::string print() const;

  // The digit of `axis` at a rank (space) or micro-batch (time).
  int64_t coordinate(const Axis& axis, int64_t rankOrMicroBatch) const;

  // Ranks that differ only in the digits of `axes` (space axes): one list per group, members ordered with the first
  // axis major, groups ordered by their smallest rank.
  std::vector<std::vector<int64_t>> groups(const AxisList& axes) const;

  friend bool operator==(const Mesh&, const Mesh&);

 private:
  std::vector<NamedAxis> axes_;
  int64_t ranks_ = 1;
  int64_t microBatches_ = 1;
};

}  // namespace weft
