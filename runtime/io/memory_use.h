// What the process really uses.
#pragma once

#include <cstdint>

namespace weft {

// Resident bytes of this process; 0 where the system does not say. The pages of programs and libraries are left out
// (RssAnon): how many of them were touched depends on the processor that a library has code for.
int64_t residentBytes();

}  // namespace weft
