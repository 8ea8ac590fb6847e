// Greedy packings: items one after another, each at a place that is free over its lifetime.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/memory/pack_sections.h"

namespace weft {

enum class Fit {
  kLowest,    // the lowest free place
  kTightest,  // the smallest gap between placed items that is large enough; else on top
};

struct Offsets {
  std::vector<int64_t> of;  // one per item of the component
  int64_t height = 0;
};

// Adds the steps it takes to `effort`. Per item: the placed items alive with it, with a logarithm, or all placed items,
// whichever is less. Stops where it becomes `tooHigh`: the height is as much or more then, and not all have offsets.
Offsets placeInOrder(const PackComponent& component, const std::vector<int>& order, Fit fit, int64_t& effort,
                     int64_t tooHigh = INT64_MAX);

// The best of all orders and fits; stops at the component's maxLive. `order` receives the order that won.
Offsets bestGreedy(const PackComponent& component, std::vector<int>& order);

// Places `order` again and again; between, the items that reach above `aim` move ahead of the items alive with them.
// Stops at `aim` or when `effort` is used up, counting down. Returns the best packing seen, never worse than `best`.
Offsets repair(const PackComponent& component, std::vector<int> order, Offsets best, int64_t aim, int64_t& effort);

}  // namespace weft
