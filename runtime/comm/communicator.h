// Collectives between ranks, as one rank sees them.
//
// A collective works on a *group*: an ordered list of ranks, all of which call it with the same arguments in the same
// order of calls. Reductions fold in group order, ((x0 op x1) op x2) op ..., so all members get the same bits, whatever
// the timing. A tensor's output may overlap its own input.
// Supported element types: all for moves; f32, f64, i32, i64 and bool (sum and max = or, min = and) for reductions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace weft {

enum class Reduction : uint8_t { kSum, kMax, kMin };

// One tensor taking part in a collective.
struct CollectiveTensor {
  const void* input = nullptr;
  void* output = nullptr;
  DType type = DType::kF32;
  std::vector<int64_t> shape;  // of the input
  int64_t dim = 0;             // gathered, scattered, or received along
  int64_t splitDim = 0;        // all_to_all: cut along
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t rank() const = 0;

  virtual absl::Status allReduce(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors,
                                 Reduction reduction) = 0;
  // Member i's input becomes part i of the output along `dim`.
  virtual absl::Status allGather(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors) = 0;
  // Member i keeps part i of the reduction along `dim`.
  virtual absl::Status reduceScatter(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors,
                                     Reduction reduction) = 0;
  // Part j of the input along `splitDim` goes to member j; what arrives is joined along `dim` in member order.
  virtual absl::Status allToAll(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors) = 0;
  // The output becomes the input of rank `source`; all ranks take part.
  virtual absl::Status permute(int64_t source, const std::vector<CollectiveTensor>& tensors) = 0;

  // Makes every waiting and later call of all ranks fail with an error.
  virtual void abort() = 0;
};

}  // namespace weft
