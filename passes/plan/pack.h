// Packs tensors with known lifetimes into one region of memory.
//
// The problem is dynamic storage allocation: rectangles lifetime x size, choose offsets so that no two that are alive
// together overlap, and keep the region small. `maxLive`, the greatest sum of sizes alive at once, bounds it from
// below. Several greedy orders are tried (largest first, longest first, largest area first), each item at the lowest
// offset that is free over its lifetime; the best result is taken. Greedy by size is within a few percent of maxLive on
// the lifetimes of training programs.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

inline constexpr int64_t kAlignment = 64;
int64_t alignUp(int64_t bytes);

// Alive in steps lower, ..., upper - 1.
struct PackItem {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t bytes = 0;
};

struct Packing {
  std::vector<int64_t> offsets;  // multiples of kAlignment, one per item
  int64_t bytes = 0;             // of the region
  int64_t maxLive = 0;           // of the aligned sizes
};

Packing pack(const std::vector<PackItem>& items);

}  // namespace weft
