// Packs tensors with known lifetimes into one region of memory, and says how good the result is.
//
// The problem is dynamic storage allocation: rectangles lifetime x size, choose offsets so that no two that are alive
// together overlap, and keep the region small. It is NP-hard; `maxLive`, the greatest sum of sizes alive at once,
// bounds the region from below, but seven items suffice for an optimum of 5/4 of it.
//
// Three stages, each skipped once the region is as small as the bound:
//   1. greedy orders (largest, longest, heaviest neighborhood first, ...), each item at the lowest or the tightest
//   free
//      place over its lifetime (pack_greedy.h);
//   2. repair: the items that stick out move to the front of the order, and the order is placed again;
//   3. exact search (pack_search.h): does everything fit into C bytes? Asked for C at the bound first, which either
//      gives an optimal packing or lifts the bound.
//
// The effort is a count of elementary steps, never time: the same items and options give the same packing everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/arithmetic.h"

namespace weft {

// Alive in steps lower, ..., upper - 1. An item with no step or no byte takes no room; its offset is 0.
struct PackItem {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t bytes = 0;

  friend bool operator==(const PackItem&, const PackItem&) = default;
};

struct PackOptions {
  int64_t alignment = kAlignment;  // every size is rounded up to it, so every offset is a multiple
  // Elementary steps the repair and the search may take together; about 4e8 a second. The greedy orders come first and
  // are not counted.
  int64_t effort = 100'000'000;
};

struct Packing {
  std::vector<int64_t> offsets;  // multiples of the alignment, one per item
  int64_t bytes = 0;             // of the region
  int64_t maxLive = 0;           // of the aligned sizes
  // The certificate: no packing of these items is smaller. maxLive, or more where the search proved more.
  int64_t lowerBound = 0;
  int64_t greedyBytes = 0;  // the best of the greedy orders
  int64_t effort = 0;       // steps taken after the greedy orders
  bool proved() const { return bytes == lowerBound; }
};

// The sum of all aligned sizes must fit in an int64.
Packing pack(const std::vector<PackItem>& items, const PackOptions& options = {});

}  // namespace weft
