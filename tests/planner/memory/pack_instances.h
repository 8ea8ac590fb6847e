// Instances for the packer, and an answer that owes nothing to it.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "planner/memory/pack.h"

namespace weft {

std::vector<PackItem> randomItems(std::mt19937& random, int count, int steps, int greatest);

// A rectangle of `steps` x `bytes` cut into `count` items or a few more, shuffled: the optimum is `bytes`, every byte
// is used at every step. Cuts go across or, with `pinwheels`, also into five parts around a middle, which no sequence
// of straight cuts gives.
std::vector<PackItem> cutRectangle(std::mt19937& random, int count, int64_t steps, int64_t bytes, bool pinwheels);

// At every step the sizes of what is alive sum to `bytes`; whatever ends makes room for items of 1 to 3 bytes that need
// not fit where it was. Some of these have no packing at maxLive.
std::vector<PackItem> fullMemory(std::mt19937& random, int64_t steps, int64_t bytes);

// The least region, found by trying all sums of sizes as its end and as offsets, items in the order of their beginning:
// for few different sums.
int64_t optimumByEnumeration(std::vector<PackItem> items, int64_t alignment);

// Checked step by step, not pair by pair as the packer sees it.
void expectSound(const std::vector<PackItem>& items, const Packing& packing, int64_t alignment);

}  // namespace weft
