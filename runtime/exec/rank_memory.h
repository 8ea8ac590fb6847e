// The memory of one rank: a region for each memory class of the plan, and where each buffer lies in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/device/device.h"
#include "runtime/exec/parameter_store.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

class RankMemory {
 public:
  // `rank`: of the plan; `globalRank`: of the whole program, where the plan is one submesh's. The plan must be valid
  // and outlive this object.
  RankMemory(const plan::Plan& plan, int64_t rank, int64_t globalRank)
      : plan_(plan), rank_(rank), globalRank_(globalRank) {}

  // Gets the regions and fills the constants. Parameters and state that the store holds by name are taken from there;
  // of those classes only the rest is allocated then. Errors: the device has not that much memory; the store's tensor
  // has another type, shape or slice (both named); buffers overlap here that do not in the store; the store has
  // tensors, but not this one, and `allowNew` is not set.
  absl::Status allocate(Device& device, const ParameterStore& store, bool allowNew);
  // Makes this rank's parameters and state known to the store, which takes over their memory.
  void share(ParameterStore& store);

  char* buffer(uint32_t index) const { return buffers_[index]; }
  // Does the buffer lie in memory that another program brought?
  bool isShared(uint32_t index) const { return shared_[index]; }

  char* workspace() const { return workspace_; }
  int64_t workspaceBytes() const { return workspaceBytes_; }
  // Slots of the region a buffer lies in, and the bytes from one to the next; one slot where it is no activation.
  struct Slots {
    int64_t count = 1;
    int64_t stride = 0;
  };
  Slots slotsOf(const plan::Buffer& buffer) const;
  int64_t allocatedBytes() const { return allocatedBytes_; }

 private:
  // Bytes begin .. end of a class's region and where they are.
  struct Extent {
    int64_t begin = 0;
    int64_t end = 0;
    char* memory = nullptr;
    bool shared = false;
    bool holds(const plan::Buffer& buffer) const {
      return begin <= buffer.offset() && buffer.offset() + buffer.bytes() <= end;
    }
  };

  absl::Status allocateClass(plan::MemoryClass memory, Device& device);
  absl::Status allocateRings(Device& device);
  absl::Status takeFrom(const ParameterStore& store, bool allowNew);
  absl::Status notInStore(const plan::NamedTensor& tensor, const ParameterStore& store) const;
  absl::Status allocateRest(plan::MemoryClass memory, Device& device);
  absl::StatusOr<char*> region(plan::MemoryClass memory, int64_t bytes, Device& device);
  void placeBuffers();
  const Extent* extentOf(const plan::Buffer& buffer) const;

  const plan::Plan& plan_;
  int64_t rank_;
  int64_t globalRank_;
  std::vector<Extent> extents_[plan::MemoryClass_ARRAYSIZE];  // of activations: one for each ring, by its number
  std::vector<Slots> rings_;
  std::vector<char*> buffers_;
  std::vector<bool> shared_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<std::unique_ptr<Region>> stored_;  // of parameters and state, until the store takes them
  char* workspace_ = nullptr;
  int64_t workspaceBytes_ = 0;
  int64_t allocatedBytes_ = 0;
};

}  // namespace weft
