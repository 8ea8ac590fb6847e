// What a user would want to know of a derived plan: axes of the mesh that split nothing, and operators that several
// ranks compute alike because a split did not divide.
#pragma once

#include <string>
#include <vector>

#include "planner/derive/candidates.h"

namespace weft {

// One line each, in the order of the meshes' axes and of the program; alike ones are told once, with their number.
std::vector<std::string> notesOf(const SettledGraph& graph, const Shardings& shardings,
                                 const std::vector<RefusedSplit>& refused);

}  // namespace weft
