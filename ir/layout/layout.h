// The layout of one tensor on a mesh.
//
// A layout says, for each dimension, into which axes it is split (left = major), over which axes the tensor is
// *partial* (each rank holds a term of a partial sum, max or min), and which dimensions are stored with a pad. Over
// all other axes the tensor is replicated.
//
//   [{dp},{tp}]                 dimension 0 split over dp, 1 over tp
//   [{dp,tp},{}]                dimension 0 over both, dp major
//   [{},{tp}] partial{dp:sum}   every dp rank holds a term of the sum
//   [{dp:(1)2},{}]              the major half of dp
//   [{tp},{}] pad{0:62}         dimension 0 is stored with 62 elements, whatever smaller size the tensor has
//   []                          a scalar
//
// Worked example. Shape 16x32 on dp=2,tp=4 with [{dp},{tp}]: the local shape is 8x8; rank 5 (dp=1, tp=1) holds the
// slice at offset (8, 8).
//
// Limits. Splits are even: the stored size of a dimension divides by the product of its axes (`check` says so with
// both numbers). An axis stands at most once in a layout, partial included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/layout/mesh.h"

namespace weft {

using Shape = std::vector<int64_t>;

enum class ReduceKind : uint8_t { kSum, kMax, kMin };
std::string reduceKindName(ReduceKind kind);

struct Partial {
  Axis axis;
  ReduceKind kind = ReduceKind::kSum;
  friend bool operator==(const Partial&, const Partial&) = default;
  friend auto operator<=>(const Partial&, const Partial&) = default;
};

// A rank's part of a tensor. Sizes count stored elements; `valid` is what of them lies inside the unpadded tensor.
struct Slice {
  Shape offset;
  Shape size;
  Shape valid;
  friend bool operator==(const Slice&, const Slice&) = default;
};

class Layout {
 public:
  Layout() = default;
  // Everything replicated.
  explicit Layout(size_t dimensions) : dims_(dimensions) {}
  Layout(AxisLists dims, std::vector<Partial> partial = {});

  // Parses the forms above. Errors name the position and what was expected.
  static absl::StatusOr<Layout> parse(const std::string& text, const Mesh& mesh);
  std::string print(const Mesh& mesh) const;

  size_t dimensions() const { return dims_.size(); }
  const AxisList& dim(size_t d) const { return dims_[d]; }
  const AxisLists& dims() const { return dims_; }
  const std::vector<Partial>& partial() const { return partial_; }
  void setDim(size_t d, AxisList axes);
  void setPartial(std::vector<Partial> partial);

  // Stored size of dimension d for a tensor whose size there is `size`: the pad if there is one.
  int64_t storedSize(size_t d, int64_t size) const;
  // 0 removes the pad.
  void setPad(size_t d, int64_t stored);
  int64_t pad(size_t d) const { return d < pads_.size() ? pads_[d] : 0; }
  bool hasPad() const;

  // Number of parts of dimension d, over space and time axes.
  int64_t parts(size_t d) const;
  bool isReplicated() const;  // no split and no partial axis
  bool isPartial() const { return !partial_.empty(); }
  // Is any digit of `axis` used, by a split or a partial?
  bool uses(const Axis& axis) const;

  // Checks against a shape: number of dimensions, divisibility (with the nearest legal sizes), an axis used twice.
  absl::Status check(const Shape& shape, const Mesh& mesh) const;

  // Local shape of each rank and micro-batch.
  Shape localShape(const Shape& shape) const;
  // Stored global shape (pads applied).
  Shape storedShape(const Shape& shape) const;
  // What rank `rank` holds during micro-batch `microBatch`.
  Slice slice(const Shape& shape, const Mesh& mesh, int64_t rank, int64_t microBatch = 0) const;
  // Ranks that hold the same slice: groups over the space axes this layout does not use.
  std::vector<std::vector<int64_t>> replicaGroups(const Mesh& mesh) const;

  // One spelling per meaning: adjacent axes of a dimension that continue each other are joined, size-1 axes dropped,
  // partial sorted and joined. Layouts with the same canonical form place the same elements on the same ranks.
  Layout canonical() const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  AxisLists dims_;
  std::vector<Partial> partial_;
  std::vector<int64_t> pads_;  // empty, or one per dimension; 0 = none
};

// The sums of a layout, cut where the mesh's named axes end. However their axes were cut before, by numbers of parts or
// by names, equal sums are equal then, and an operator can pass on the part over one named axis.
std::vector<Partial> sumsCutAtNames(const Layout& layout, const Mesh& mesh);

// Space axes of the mesh that `axes` leave free, as maximal intervals of the line, major first.
AxisList freeAxes(const AxisList& used, const Mesh& mesh);

}  // namespace weft
