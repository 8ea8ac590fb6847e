// One rank of an Executor: its memory, its prepared instructions, and how it runs a list of actions.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/comm/communicator.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// One region of memory, page aligned, zeroed and resident.
class RegionMemory {
 public:
  // data() is null where the machine refuses the memory; zero bytes take one page.
  explicit RegionMemory(int64_t bytes);
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;
  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

struct ProfileEvent {
  const plan::Instruction* instruction = nullptr;
  int64_t piece = 0;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

class Rank {
 public:
  Rank(const plan::Plan& plan, int64_t rank, Communicator& communicator, bool profile);

  // Allocates the regions; named tensors listed in `shared` (buffer index to memory) live elsewhere. Error: the machine
  // has not that much memory.
  absl::Status allocate(const std::map<uint32_t, char*>& shared);
  // Makes the kernels; on the thread that will run them.
  absl::Status prepare(const KernelRegistry& kernels);
  // Allocates nothing.
  absl::Status run(const google::protobuf::RepeatedPtrField<plan::Action>& actions);

  char* buffer(uint32_t index) const { return buffers_[index]; }
  int64_t allocatedBytes() const;
  const std::vector<ProfileEvent>& profile() const { return profile_; }

 private:
  struct Place {
    char* base = nullptr;
    int64_t pieceStride = 0;
    int64_t slotStride = 0;
    char* at(const plan::Action& action) const {
      return base + action.piece() * pieceStride + action.slot() * slotStride;
    }
  };

  struct Prepared {
    const plan::Instruction* source = nullptr;
    std::unique_ptr<Kernel> kernel;
    std::vector<Place> inputs;
    std::vector<Place> outputs;
    std::vector<int64_t> scalarBases;
    std::vector<int64_t> pieceFactors;
    // Filled for each run.
    std::vector<const void*> inputPointers;
    std::vector<void*> outputPointers;
    std::vector<int64_t> scalars;
    std::vector<CollectiveTensor> tensors;
    std::vector<int64_t> group;
    int64_t permuteSource = -1;
  };

  absl::Status allocateRegions(bool ownsParameters);
  void placeBuffers(const std::map<uint32_t, char*>& shared);
  Place place(const plan::Operand& operand) const;
  absl::Status prepareInstruction(const plan::Instruction& instruction, const KernelRegistry& kernels,
                                  Prepared& prepared);
  void prepareCollective(const plan::Instruction& instruction, Prepared& prepared);
  absl::Status runInstruction(Prepared& prepared, const plan::Action& action);
  absl::Status runCollective(Prepared& prepared);
  absl::Status describe(const absl::Status& status, const plan::Instruction& instruction) const;
  int64_t tableValue(int64_t column) const;

  const plan::Plan& plan_;
  int64_t rank_;
  Communicator& communicator_;
  std::map<plan::MemoryClass, std::unique_ptr<RegionMemory>> regions_;
  char* workspace_ = nullptr;
  std::vector<char*> buffers_;
  std::vector<std::vector<Prepared>> functions_;
  bool profiling_;
  std::vector<ProfileEvent> profile_;
};

}  // namespace weft
