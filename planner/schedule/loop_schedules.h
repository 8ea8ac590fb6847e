// Generators over the loop placement, stage s on rank s mod p. The request must be legal. See generate.h.
#pragma once

#include "planner/schedule/generate.h"

namespace weft::schedule {

// gpipe and breadth_first: stage after stage, all micro-batches forward, then all of them backward.
Table breadthFirst(const Request& request);

// 1f1b and seq1f1b.
Table oneForwardOneBackward(const Request& request);

Table interleaved(const Request& request);

// zb_h1, zb_h2, zb_interleaved.
Table zeroBubble(const Request& request);

}  // namespace weft::schedule
