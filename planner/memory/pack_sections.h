// Lifetimes reduced to what matters for packing.
//
// Only which items are alive together counts, not how long. A *section* is a greatest set of items alive at one step (a
// maximal clique of the interval graph); in the order of time every item covers a run of sections, two items are alive
// together if and only if they share a section, and there are at most as many sections as items. Where nothing is alive
// time falls into *components*, packed independently: the region is as large as the largest of them.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/memory/pack.h"

namespace weft {

struct SectionItem {
  int first = 0;  // sections first, ..., last - 1
  int last = 0;
  int64_t size = 0;
};

struct PackComponent {
  std::vector<SectionItem> items;
  std::vector<size_t> members;  // of items: their indices in the caller's list
  int sections = 0;
  int64_t maxLive = 0;
};

// Items that take no room belong to no component.
std::vector<PackComponent> packComponents(const std::vector<PackItem>& items, int64_t alignment);

}  // namespace weft
