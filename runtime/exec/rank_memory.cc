#include "runtime/exec/rank_memory.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

bool isStored(plan::MemoryClass memory) {
  return memory == plan::PARAMETER || memory == plan::STATE;
}

bool isStored(const plan::Plan& plan, const plan::NamedTensor& tensor) {
  return (tensor.kind() == plan::TENSOR_PARAMETER || tensor.kind() == plan::TENSOR_STATE) &&
         isStored(plan.buffers(static_cast<int>(tensor.buffer())).memory());
}

std::string joined(const google::protobuf::RepeatedField<int64_t>& numbers) {
  return "[" + absl::StrJoin(numbers, ", ") + "]";
}

// How a rank holds a named tensor, for comparison and for people: "f32 [4, 8] stored as [2, 8] from [0, 0], valid [2,
// 8]".
std::string placeOf(const plan::Plan& plan, const plan::NamedTensor& tensor, int64_t rank) {
  const plan::Slice& slice = tensor.slices(static_cast<int>(rank));
  return absl::StrCat(dtypeName(dtypeOf(tensor.type())), " ", joined(tensor.shape()), " stored as ",
                      joined(plan.buffers(static_cast<int>(tensor.buffer())).shape()), " from ", joined(slice.offset()),
                      ", valid ", joined(slice.valid()));
}

std::string programOf(const plan::Plan& plan) {
  return absl::StrCat("'", plan.program(), "' (", plan.mesh(), ")");
}

}  // namespace

absl::Status RankMemory::allocate(Device& device, const ParameterStore& store, bool allowNew) {
  WEFT_RETURN_IF_ERROR(takeFrom(store, allowNew || store.empty()));
  for (int memory = 0; memory < plan::MemoryClass_ARRAYSIZE; ++memory) {
    WEFT_RETURN_IF_ERROR(allocateClass(static_cast<plan::MemoryClass>(memory), device));
  }
  placeBuffers();
  return absl::OkStatus();
}

absl::Status RankMemory::notInStore(const plan::NamedTensor& tensor, const ParameterStore& store) const {
  const std::vector<std::string> names = store.names();
  const bool elsewhere = std::find(names.begin(), names.end(), tensor.name()) != names.end();
  const std::string nearest = nearestName(tensor.name(), names);
  return absl::FailedPreconditionError(absl::StrCat(
      "program ", programOf(plan_), " has ", tensor.kind() == plan::TENSOR_PARAMETER ? "parameter '" : "state '",
      tensor.name(), "' on rank ", globalRank_, ", the store has ",
      elsewhere ? "it only on other ranks; give it the same layout and stage in both programs"
                : absl::StrCat("none of this name", nearest.empty() ? "" : absl::StrCat(" (nearest: '", nearest, "')"),
                               "; use the names of the program that trains it, or set allowNew to begin with its "
                               "initial value")));
}

absl::Status RankMemory::takeFrom(const ParameterStore& store, bool allowNew) {
  for (const plan::NamedTensor& tensor : plan_.tensors()) {
    const StoredTensor* found = isStored(plan_, tensor) ? store.find(tensor.name(), globalRank_) : nullptr;
    if (found == nullptr) {
      if (isStored(plan_, tensor) && !allowNew) {
        return notInStore(tensor, store);
      }
      continue;
    }
    const std::string place = placeOf(plan_, tensor, rank_);
    if (place != found->place) {
      return absl::FailedPreconditionError(absl::StrCat("'", tensor.name(), "' lies on rank ", globalRank_, " as ",
                                                        place, " in program ", programOf(plan_), " but as ",
                                                        found->place, " in the store, from program ", found->program,
                                                        "; give it the same layout in both (CompileOptions::layouts)"));
    }
    const plan::Buffer& buffer = plan_.buffers(static_cast<int>(tensor.buffer()));
    const Extent extent = {buffer.offset(), buffer.offset() + buffer.bytes(), found->memory, true};
    for (const Extent& other : extents_[buffer.memory()]) {
      const bool apart = other.end <= extent.begin || extent.end <= other.begin;
      const bool same = other.begin == extent.begin && other.end == extent.end && other.memory == extent.memory;
      if (!apart && !same) {
        return absl::FailedPreconditionError(absl::StrCat("'", tensor.name(), "' shares memory with another tensor in ",
                                                          "program ", programOf(plan_), " but not in program ",
                                                          found->program, "; tie the same parameters in both"));
      }
    }
    extents_[buffer.memory()].push_back(extent);
  }
  return absl::OkStatus();
}

absl::StatusOr<char*> RankMemory::region(plan::MemoryClass memory, int64_t bytes, Device& device) {
  absl::StatusOr<std::unique_ptr<Region>> made = device.allocate(bytes);
  if (!made.ok()) {
    return absl::Status(
        made.status().code(),
        absl::StrCat("rank ", globalRank_, ", region ", plan::MemoryClass_Name(memory), ": ",
                     std::string(made.status().message()), " (the plan needs ", plan_.memory().peak_bytes(),
                     " on each of ", plan_.ranks(), " ranks); compile for more devices or with a memory limit"));
  }
  allocatedBytes_ += bytes;
  std::vector<std::unique_ptr<Region>>& keeper = isStored(memory) ? stored_ : regions_;
  return keeper.emplace_back(*std::move(made))->data();
}

absl::Status RankMemory::allocateClass(plan::MemoryClass memory, Device& device) {
  if (!extents_[memory].empty()) {
    return allocateRest(memory, device);
  }
  if (memory == plan::ACTIVATION) {
    return allocateRings(device);
  }
  int64_t bytes = 0;
  for (const plan::Region& region : plan_.memory().regions()) {
    bytes = region.memory() == memory ? region.bytes() : bytes;
  }
  WEFT_ASSIGN_OR_RETURN(char* const start, region(memory, bytes, device));
  extents_[memory].push_back({0, bytes, start, false});
  if (memory == plan::WORKSPACE) {
    workspace_ = start;
    workspaceBytes_ = bytes;
  }
  return absl::OkStatus();
}

absl::Status RankMemory::allocateRings(Device& device) {
  for (const plan::Region& ring : plan_.memory().regions()) {
    if (ring.memory() != plan::ACTIVATION) {
      continue;
    }
    if (ring.ring() >= rings_.size()) {
      rings_.resize(ring.ring() + 1);
      extents_[plan::ACTIVATION].resize(ring.ring() + 1);
    }
    const int64_t bytes = ring.bytes() * ring.slots();
    WEFT_ASSIGN_OR_RETURN(char* const start, region(plan::ACTIVATION, bytes, device));
    rings_[ring.ring()] = {ring.slots(), ring.bytes()};
    extents_[plan::ACTIVATION][ring.ring()] = {0, bytes, start, false};
  }
  return absl::OkStatus();
}

RankMemory::Slots RankMemory::slotsOf(const plan::Buffer& buffer) const {
  return buffer.memory() == plan::ACTIVATION ? rings_[buffer.ring()] : Slots();
}

// What the store does not hold of a class: buffers that overlap stay together, the gaps between are left out.
absl::Status RankMemory::allocateRest(plan::MemoryClass memory, Device& device) {
  std::vector<Extent>& extents = extents_[memory];
  std::vector<Extent> own;
  for (const plan::Buffer& buffer : plan_.buffers()) {
    if (buffer.memory() != memory || extentOf(buffer) != nullptr) {
      continue;
    }
    const Extent extent = {buffer.offset(), buffer.offset() + buffer.bytes(), nullptr, false};
    for (const Extent& other : extents) {
      if (other.begin < extent.end && extent.begin < other.end) {
        return absl::FailedPreconditionError(absl::StrCat(
            "buffer '", buffer.label(), "' of program ", programOf(plan_), " spans bytes ", extent.begin, " to ",
            extent.end, " of region ", plan::MemoryClass_Name(memory), ", of which the store holds ", other.begin,
            " to ", other.end, " alone; compile the programs with the same parameters"));
      }
    }
    own.push_back(extent);
  }
  std::sort(own.begin(), own.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  std::vector<Extent> merged;
  int64_t bytes = 0;
  for (const Extent& extent : own) {
    if (merged.empty() || extent.begin >= merged.back().end) {
      merged.push_back(extent);
    } else {
      merged.back().end = std::max(merged.back().end, extent.end);
    }
  }
  for (const Extent& extent : merged) {
    bytes += alignUp(extent.end - extent.begin);
  }
  WEFT_ASSIGN_OR_RETURN(char* start, region(memory, bytes, device));
  for (Extent& extent : merged) {
    extent.memory = start;
    start += alignUp(extent.end - extent.begin);
    extents.push_back(extent);
  }
  return absl::OkStatus();
}

const RankMemory::Extent* RankMemory::extentOf(const plan::Buffer& buffer) const {
  if (buffer.memory() == plan::ACTIVATION) {
    return &extents_[plan::ACTIVATION][buffer.ring()];
  }
  for (const Extent& extent : extents_[buffer.memory()]) {
    if (extent.holds(buffer)) {
      return &extent;
    }
  }
  return nullptr;
}

void RankMemory::placeBuffers() {
  for (const plan::Buffer& buffer : plan_.buffers()) {
    const Extent& extent = *extentOf(buffer);
    buffers_.push_back(extent.memory + (buffer.offset() - extent.begin));
    shared_.push_back(extent.shared);
    if (!buffer.data().empty()) {
      std::memcpy(buffers_.back(), buffer.data().data(), buffer.data().size());
    }
  }
}

void RankMemory::share(ParameterStore& store) {
  for (const plan::NamedTensor& tensor : plan_.tensors()) {
    if (isStored(plan_, tensor) && !isShared(tensor.buffer())) {
      store.add(tensor.name(), globalRank_, {buffer(tensor.buffer()), placeOf(plan_, tensor, rank_), programOf(plan_)});
    }
  }
  for (std::unique_ptr<Region>& region : stored_) {
    store.keep(std::move(region));
  }
  stored_.clear();
}

}  // namespace weft
