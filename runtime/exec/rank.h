// One rank of an Executor: its memory, its prepared instructions, and how it runs a list of actions.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/comm/channel.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/rank_memory.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/rank_groups.h"

namespace weft {

struct ProfileEvent {
  const plan::Instruction* instruction = nullptr;
  int64_t microBatch = 0;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

struct ActionEvent {
  const plan::Function* function = nullptr;
  int64_t microBatch = 0;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

// What a rank recorded, in the order in which it happened.
struct Profile {
  std::vector<ActionEvent> actions;
  std::vector<ProfileEvent> instructions;
};

// What a rank shares with others.
struct RankContext {
  Communicator* communicator = nullptr;  // to the ranks of its submesh
  const Channels* channels = nullptr;    // to other submeshes; null without pipeline stages
  const RankGroups* groups = nullptr;    // of its submesh
  int64_t firstRank = 0;                 // of its submesh among all ranks
  std::chrono::milliseconds timeout{0};  // of channels
  bool checkFinite = false;              // look for nan and infinity in what every instruction writes
};

class Rank {
 public:
  // `rank`: within the plan, which is one submesh's where there are pipeline stages.
  Rank(const plan::Plan& plan, int64_t rank, const RankContext& context, bool profile);

  // To be filled before `prepare`.
  RankMemory& memory() { return memory_; }
  const RankMemory& memory() const { return memory_; }

  // Makes the kernels; on a thread of the ranks. Errors, also of kernels that throw, name the instruction.
  absl::Status prepare(const KernelRegistry& kernels);
  // Allocates nothing. Errors, also of kernels that throw, name rank, operator, source line and kernel. With `init`,
  // what only writes memory that another program brought is left out.
  absl::Status run(const google::protobuf::RepeatedPtrField<plan::Action>& actions, bool init);

  // Where this rank is now, for people; may be asked by any thread: "rank 2 is at operator fc1 (mlp.cc:7), kernel add".
  std::string standing() const;
  const Profile& profile() const { return profile_; }

 private:
  struct Address {
    char* base = nullptr;
    RankMemory::Slots slots;
    char* at(int64_t microBatch) const { return base + microBatch % slots.count * slots.stride; }
  };

  struct Prepared {
    const plan::Instruction* source = nullptr;
    std::unique_ptr<Kernel> kernel;
    std::vector<Address> inputs;
    std::vector<Address> outputs;
    std::vector<int64_t> scalarBases;
    std::vector<int64_t> microBatchFactors;
    bool writesSharedOnly = false;
    // Filled for each run.
    std::vector<const void*> inputPointers;
    std::vector<void*> outputPointers;
    std::vector<int64_t> scalars;
    std::vector<CollectiveTensor> tensors;
    std::vector<int64_t> group;
    int64_t permuteSource = -1;
    Channel* channel = nullptr;   // to receive from
    std::vector<Outlet> outlets;  // to send to
  };

  absl::Status prepareAll(const KernelRegistry& kernels);
  absl::Status runAll(const google::protobuf::RepeatedPtrField<plan::Action>& actions, bool init);
  // Runs what works on one instruction at a time; errors name that instruction.
  template <typename Body>
  absl::Status located(const Body& body);
  Address addressOf(const plan::Operand& operand) const;
  absl::Status prepareInstruction(const plan::Instruction& instruction, const KernelRegistry& kernels,
                                  Prepared& prepared);
  void prepareOperands(const plan::Instruction& instruction, Prepared& prepared) const;
  absl::Status prepareKernel(const plan::Instruction& instruction, const KernelRegistry& kernels, Prepared& prepared);
  void prepareCollective(const plan::Instruction& instruction, Prepared& prepared);
  // Does the profile hold what a run of these records at most?
  bool hasRoomFor(const google::protobuf::RepeatedPtrField<plan::Action>& actions) const;
  absl::Status runAction(const plan::Action& action, bool init);
  absl::Status runInstruction(Prepared& prepared, const plan::Action& action);
  absl::Status runPrepared(Prepared& prepared, const plan::Action& action);
  absl::Status runCollective(Prepared& prepared);
  absl::Status runTransfer(Prepared& prepared);
  int64_t globalRank() const { return context_.firstRank + rank_; }
  int64_t tableValue(int64_t column) const;

  const plan::Plan& plan_;
  int64_t rank_;
  RankContext context_;
  RankMemory memory_;
  std::vector<std::vector<Prepared>> functions_;
  std::atomic<const plan::Instruction*> current_{nullptr};
  bool profiling_;  // until the profile is full
  Profile profile_;
};

}  // namespace weft
