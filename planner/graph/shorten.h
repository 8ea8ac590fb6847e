// A program with most of its repeated layers left out: what a long one needs is known from what these need.
//
// Of a stretch of alike segments the first ones and the last are left; the last joins them as if none had been between.
// With a layer go the operators of its backward pass, its parameters with all that updates them, and its terms in sums
// over all layers (the norm of all gradients).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/graph/graph_view.h"
#include "planner/graph/segments.h"

namespace weft {

struct Shortened {
  ProgramGraph graph;  // operators keep their ids, those left out are no more; arguments are numbered anew
  // Of each segment of the program: the one that stands for it, itself if it is left.
  std::vector<int> standsFor;
};

// Does the request say the same of both operators, of both arguments? What the program says of them is compared here.
struct SaidAlike {
  std::function<bool(int, int)> operators = [](int, int) { return true; };
  std::function<bool(int, int)> arguments = [](int, int) { return true; };
};

// The program that `view` shows, with kLayersLeft segments of each stretch that repeats. Nothing where no stretch is
// longer, or layers that look alike in the forward pass differ in what belongs to them, or something but sums reads
// them from afar.
inline constexpr int kLayersLeft = 3;
std::optional<Shortened> shortened(const GraphView& view, const Segments& segments, const SaidAlike& said);

}  // namespace weft
