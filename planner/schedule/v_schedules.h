// Generators over the V placement: rank r has stage r on the way down and stage 2p-1-r on the way up. The request must
// be legal. See generate.h.
#pragma once

#include "planner/schedule/generate.h"

namespace weft::schedule {

Table zeroBubbleV(const Request& request);

// v_half and v_min: a block of six slots per micro-batch, repeated, then squeezed without raising the peak of memory.
// zb_v: likewise, with the block of v_half and the peak of zb_v, two pairs for each rank.
Table buildingBlockV(const Request& request);

Table dualPipeV(const Request& request);

}  // namespace weft::schedule
