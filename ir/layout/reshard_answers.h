// Answers of the search for the cheapest path, each found once in a process.
//
// Reshards of tensors of many sizes, over axes of many names, are few problems: a size counts only by what it has in
// common with the number of ranks, and by the bytes of the whole. And most paths are the cheapest for tensors of
// whatever size. So a problem is solved for two sizes beside its own, powers of a constant, which many share. A path
// that is the cheapest for both of them, and whose price grows evenly between them, is the cheapest for all in between:
// the price of any other path is concave in the bytes (a sum of least prices of ways that are straight lines), so it is
// nowhere below the line between its prices at the ends.
#pragma once

#include <string>

#include "ir/layout/reshard_space.h"
#include "planner/machine/machine.h"

namespace weft::reshard {

// The figures of a machine that prices of collectives depend on, as text.
std::string pricesKey(const Machine& machine);

// The cheapest path from problem.from to problem.to. Depends on nothing but its arguments; any thread may ask.
// `machineKey`: pricesKey(machine).
Answer answerOf(Problem problem, const Machine& machine, const std::string& machineKey);

}  // namespace weft::reshard
