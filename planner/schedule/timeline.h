// A simulated schedule as text for people: time to the right, one line per rank.
//
//   time    0       2       4       6
//   rank 0  0F0 0F1 ........0B0---- 0B1----
//   rank 1  ....1F0 1B0---- 1F1 1B1---- ........
//
// An action takes columns in proportion to its time; dots are idle time. Long schedules go on in further panels below.
#pragma once

#include <string>

#include "planner/schedule/simulate.h"

namespace weft::schedule {

// `width`: columns of a line, at least 40.
std::string printTimeline(const Table& table, const Simulation& simulation, int32_t width = 120);

}  // namespace weft::schedule
