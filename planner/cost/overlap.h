// Where collectives start and where they are awaited, on a machine that communicates beside computing: decisions about
// a function of a step program, whose computation keeps its order.
//
//   0 kernel x -> g      0 kernel x -> g
//   1 kernel y -> h      1 all_reduce g -> s    started where g is made
//   2 all_reduce g -> s  2 kernel y -> h        meanwhile
//   3 kernel s, h        3 wait s
//                        4 kernel s, h
//
// A collective starts as soon as its operands are there: a bucket of gradients when the last of them is made. One that
// reads arguments only, as gathers under ZeRO-3 do, would start when the function does. It is awaited where its result
// is read, or where it is expected to have ended, if that is earlier: from then on its operands need no room.
//
// What is under way takes room: results that are there before they would be if nothing overlapped, and operands that
// are there longer. Of each there are at most kRoom times the bytes of the largest of the function: one that is read
// next and one behind it. A collective whose result would need more starts later, at the latest where it stood; where
// operands would, computation waits. So a step needs little more memory than without overlap, however slow the links
// are. What leaves less than it frees, as reductions do, comes before what leaves more, as gathers do; else those start
// in their order.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/machine/machine.h"
#include "planner/step/step_program.h"

namespace weft {

inline constexpr int64_t kRoom = 2;

// Reorders the instructions of a function and adds its waits. Each instruction's index before; -1: a wait.
std::vector<int64_t> overlapCollectives(StepProgram& program, size_t function, const Machine& machine);

}  // namespace weft
