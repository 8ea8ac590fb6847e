// Copies between a whole tensor in host memory and a rank's slice of it.
#pragma once

#include "runtime/plan/plan.pb.h"

namespace weft {

// Bytes of the whole tensor without pads.
int64_t globalBytes(const plan::NamedTensor& tensor);
// Bytes of the valid part of a rank's slice.
int64_t sliceBytes(const plan::NamedTensor& tensor, int64_t rank);

// Writes rank `rank`'s slice of `global` into `local`, pad included.
void scatterSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* global,
                  char* local);
// The same from the valid part of the slice alone, row-major.
void writeLocal(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* part,
                char* local);
// Writes the valid part of `local` to its place in `global`.
void gatherSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const char* local,
                 void* global);

}  // namespace weft
