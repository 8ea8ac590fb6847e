// Pads: dimensions that are stored longer than the tensor is, so that they divide evenly.
//
// Sources: the batch of the inputs (to a multiple of data-parallel ranks x micro-batches), a pad written in a
// parameter's layout, a strategy by names that splits a parameter into parts which do not divide it, ZeRO on a
// parameter none of whose dimensions divides, and what the planner finds (even_pads.h). From there a pad spreads to
// every dimension that shares a factor, so no operator ever sees two lengths of one factor; partition masks what
// reduces over it.
#pragma once

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/rule.h"
#include "planner/graph/graph_view.h"

namespace weft {

// The stored global shape of every value; equal to the type's shape where nothing is padded.
class StoredShapes {
 public:
  explicit StoredShapes(const GraphView& view);

  const Shape& of(int value) const { return shapes_[value]; }
  void set(int value, Shape shape) { shapes_[value] = std::move(shape); }
  std::vector<Shape> operands(const GraphView& view, int op) const;
  std::vector<Shape> results(const GraphView& view, int op) const;
  friend bool operator==(const StoredShapes&, const StoredShapes&) = default;

 private:
  std::vector<Shape> shapes_;
};

// A layout of a tensor of this shape with the pads of what is stored.
Layout withPads(Layout layout, const Shape& logical, const Shape& stored);

// The rule of an operator over stored shapes.
absl::StatusOr<Rule> ruleOf(const GraphView& view, const StoredShapes& stored, int op);

// Spreads the pads of the listed arguments (index to stored shape) over the graph. Errors, at the operator's line: two
// pads of different length meet, a pad inside a compound dimension.
absl::StatusOr<StoredShapes> spreadPads(const GraphView& view, const std::map<unsigned, Shape>& arguments);

}  // namespace weft
