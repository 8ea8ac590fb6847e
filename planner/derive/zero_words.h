// The levels of ZeRO of a record in as few words as can be: its own level, and patterns of the parameters that have
// another.
#pragma once

#include <string>

#include "planner/decisions.h"
#include "planner/zero_levels.h"

namespace weft {

// What the record's own level does not say, one pattern for all layers of which the same is said.
ZeroPatterns zeroWords(const Decisions& record);

// "1", or "1 (wte 0, h*.fc.weight 3)".
std::string zeroText(const Decisions& record);

}  // namespace weft
