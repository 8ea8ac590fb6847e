// What the process really uses.
#pragma once

#include <cstdint>

namespace weft {

// Resident bytes of this process (VmRSS); 0 where the system does not say.
int64_t residentBytes();

}  // namespace weft
