// What a user would want to know of a derived plan: axes of the mesh that split nothing, operators that several ranks
// compute alike because a split did not divide, and arguments that are padded so that it does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/derive/candidates.h"

namespace weft {

// One line each, in the order of the meshes' axes and of the program; alike ones are told once, with their number.
// `pads`: those of evenPads() that were tried; those that strategies ask for are noted, too.
std::vector<std::string> notesOf(const SettledGraph& graph, const Shardings& shardings,
                                 const std::vector<RefusedSplit>& refused, const std::map<unsigned, Shape>& pads);

}  // namespace weft
