// Communicator between ranks that are threads of one process.
//
// Every call is: publish the pointers of the inputs, wait for the group, compute this rank's share straight from the
// members' memory, wait again. An all_reduce is cut into as many slices as the group has members: each member folds one
// slice in group order into the group's scratch, and after a second wait all members copy all slices. The other
// collectives write their output while others still read the inputs; where the two overlap, the input is first copied
// to this rank's staging memory. Ranks may outnumber cores: a wait spins briefly, then sleeps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/comm/communicator.h"

namespace weft {

// What the ranks share. Create one, then one InprocCommunicator per rank.
class InprocWorld {
 public:
  explicit InprocWorld(int64_t ranks);

  // Prepares the meeting place of a group and room for its reductions; not thread safe, before the ranks run.
  void prepare(const std::vector<int64_t>& group, int64_t scratchBytes);
  void abort();

 private:
  friend class InprocCommunicator;

  // Where the members of one group meet.
  struct Meeting {
    std::mutex mutex;
    std::condition_variable wake;
    std::atomic<uint64_t> round{0};
    std::atomic<int64_t> arrived{0};
    std::vector<char> scratch;
    // The members' inputs, one pointer per tensor, by place in the group.
    std::vector<const void* const*> inputs;
  };

  Meeting* find(const std::vector<int64_t>& group);
  absl::Status wait(Meeting& meeting, int64_t members);

  std::vector<int64_t> all_;  // every rank, for permute
  std::map<std::vector<int64_t>, std::unique_ptr<Meeting>> meetings_;
  std::atomic<bool> aborted_{false};
};

class InprocCommunicator : public Communicator {
 public:
  InprocCommunicator(InprocWorld& world, int64_t rank) : world_(world), rank_(rank) {}

  // Room for calls of `tensors` tensors whose overlapping inputs have `stagingBytes` together. Calls that need more
  // grow it themselves, which allocates.
  void reserve(size_t tensors, int64_t stagingBytes);

  int64_t rank() const override { return rank_; }
  absl::Status allReduce(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors,
                         Reduction reduction) override;
  absl::Status allGather(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors) override;
  absl::Status reduceScatter(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors,
                             Reduction reduction) override;
  absl::Status allToAll(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors) override;
  absl::Status permute(int64_t source, const std::vector<CollectiveTensor>& tensors) override;
  void abort() override { world_.abort(); }

 private:
  // One call: the group's meeting place, how many members it has and which of them this rank is.
  struct Call {
    InprocWorld::Meeting* meeting = nullptr;
    int64_t members = 0;
    int64_t place = 0;
    const void* input(int64_t member, size_t tensor) const { return meeting->inputs[member][tensor]; }
  };

  // Publishes the inputs and waits for the group; `growth` is output elements per input element.
  absl::StatusOr<Call> enter(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors,
                             int64_t growth);
  absl::Status leave(const Call& call) { return world_.wait(*call.meeting, call.members); }
  void stage(const std::vector<CollectiveTensor>& tensors, int64_t growth);

  InprocWorld& world_;
  int64_t rank_;
  std::vector<char> staging_;
  std::vector<const void*> inputs_;
};

}  // namespace weft
