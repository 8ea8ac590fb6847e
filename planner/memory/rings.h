// Rings of slots for activations.
//
// What a forward function leaves for the backward pass is held once for each micro-batch in flight. A *ring* is
// as many slots of equal size; micro-batch m lies in slot m mod slots. A micro-batch is in flight in a ring from the
// first to the last call of a function that touches something in it, so the ring needs the least number of slots for
// which no two micro-batches in flight at once have equal remainders. That number follows from the order of calls
// alone, whatever schedule made it.
//
// Stages hold different numbers of micro-batches, and what only the gradient of the input reads is free before what the
// gradient of the weights reads. So activations are put together by stage and life; joined again are those of a stage
// that take less room in one ring, where one may lie where another is no longer needed.
//
// Two stages on a submesh, 1f1b order of calls for the later one:
//
//   calls    F0(0) F0(1) F1(0) B1(0) F1(1) B1(1) B0(0) B0(1)
//   stage 0  micro-batches 0 and 1 overlap: 2 slots        stage 1  one after the other: 1 slot
#pragma once

#include <cstdint>
#include <vector>

#include "planner/memory/pack.h"

namespace weft {

// A function and the micro-batch it is called for; a rank's step is a list of these.
struct FunctionCall {
  int function = 0;
  int64_t microBatch = 0;
};

struct RingItem {
  PackItem life;               // within one micro-batch, in any count of steps common to all items
  std::vector<int> functions;  // that touch it, the maker first
  int64_t stage = 0;           // of the maker
};

struct Ring {
  int64_t stage = 0;
  int64_t slots = 1;
  std::vector<size_t> members;  // indices of items, ascending
};

// The least number of slots for what `functions` touch; at least 1.
int64_t ringSlots(const std::vector<FunctionCall>& calls, const std::vector<int>& functions);

// Every item in one ring, rings in the order of their stages; none without items.
std::vector<Ring> planRings(const std::vector<RingItem>& items, const std::vector<FunctionCall>& calls);

// The greatest sum of aligned sizes alive at once.
int64_t maxLive(const std::vector<PackItem>& items);

}  // namespace weft
