// Copies that happen "at once" at the end of a function, put in an order in which one after another they do the same.
#pragma once

#include <functional>
#include <vector>

#include "planner/step/storage.h"

namespace weft {

// Every storage is the target of at most one copy. A copy onto itself falls away. A copy runs before its target is
// needed as nobody's source any more; a cycle (two parameters that trade places) goes through one `temporary` storage.
std::vector<Copy> orderCopies(std::vector<Copy> copies, const std::function<int(const Copy&)>& temporary);

}  // namespace weft
