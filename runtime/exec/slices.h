// Copies between a whole tensor in host memory and a rank's slice of it.
#pragma once

#include "runtime/plan/plan.pb.h"

namespace weft {

// Bytes of the whole tensor without pads.
int64_t globalBytes(const plan::NamedTensor& tensor);

// Writes rank `rank`'s slice of `global` into `local`, pad included.
void scatterSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* global,
                  char* local);
// Writes the valid part of `local` to its place in `global`.
void gatherSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const char* local,
                 void* global);

}  // namespace weft
