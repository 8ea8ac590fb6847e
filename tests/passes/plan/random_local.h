// Random modules of the local state that try what storage assignment can get wrong: values under several names,
// arguments returned, parameters that trade places, views of views, chains in place, accumulators, buckets.
#pragma once

#include <cstdint>
#include <string>

namespace weft::testing {

// The text of a module on mesh dp=2 with `microBatches` micro-batches; the same seed gives the same text. Tensors of
// dist.tensors are called as their values.
std::string randomLocalModule(uint64_t seed, int microBatches);

}  // namespace weft::testing
