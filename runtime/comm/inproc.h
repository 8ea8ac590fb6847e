// Communicator between ranks that are threads or fibers of one process.
//
// Every call is: publish the pointers of the inputs and outputs, wait for the group, compute this rank's share straight
// from the members' memory, wait again. An all_reduce is cut into as many slices as the group has members: each member
// folds one slice in group order into its own output, and after a second wait copies the other slices from the outputs
// of those who folded them. As nobody else reads a member's own slice of its input, output and input may be the same
// memory. The other collectives write their output while others still read the inputs; where the two overlap, the input
// is first copied to this rank's staging memory.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/spinning_condition.h"

namespace weft {

struct InprocOptions {
  // The longest that a rank waits for others in one call; 0: for ever. Then it fails with DeadlineExceeded, which names
  // the missing ranks, and aborts all others.
  std::chrono::milliseconds timeout{0};
};

// What the ranks share. Create one, then one InprocCommunicator per rank.
class InprocWorld {
 public:
  explicit InprocWorld(int64_t ranks, const InprocOptions& options = {});

  // Prepares the barrier of a group; not thread safe, before the ranks run.
  void prepare(const std::vector<int64_t>& group);
  void abort();

 private:
  friend class InprocCommunicator;

  // Where the members of one group meet. Lists are by place in the group.
  struct Barrier {
    explicit Barrier(const std::vector<int64_t>& group)
        : ranks(group), waits(group.size()), inputs(group.size()), outputs(group.size()) {}

    const std::vector<int64_t> ranks;
    SpinningCondition changed{kSpinsOnOwnCore};
    std::atomic<uint64_t> round{0};
    std::atomic<int64_t> arrived{0};
    // Rounds that a member has come to, the present one included.
    std::vector<std::atomic<uint64_t>> waits;
    // The members' tensors, one pointer for each.
    std::vector<const void* const*> inputs;
    std::vector<const void* const*> outputs;
  };

  Barrier* find(const std::vector<int64_t>& group);
  absl::Status wait(Barrier& barrier, int64_t place);
  absl::Status timedOut(const Barrier& barrier, uint64_t round) const;

  std::vector<int64_t> all_;  // every rank, for permute
  InprocOptions options_;
  std::map<std::vector<int64_t>, std::unique_ptr<Barrier>> barriers_;
  std::atomic<bool> aborted_{false};
};

class InprocCommunicator : public Communicator {
 public:
  InprocCommunicator(InprocWorld& world, int64_t rank) : world_(world), rank_(rank) {}

  // Room for calls of `tensors` tensors whose overlapping inputs have `stagingBytes` together, each rounded up to a
  // multiple of 64. Calls that need more grow it themselves, which allocates.
  void reserve(size_t tensors, int64_t stagingBytes);
  int64_t stagingBytes() const { return static_cast<int64_t>(staging_.size()); }

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
  // One call: the group's barrier, how many members it has and which of them this rank is.
  struct Call {
    InprocWorld::Barrier* barrier = nullptr;
    int64_t members = 0;
    int64_t place = 0;
    const char* input(int64_t member, size_t tensor) const {
      return static_cast<const char*>(barrier->inputs[member][tensor]);
    }
    const char* output(int64_t member, size_t tensor) const {
      return static_cast<const char*>(barrier->outputs[member][tensor]);
    }
  };
  // How outputs may lie to their inputs without a copy.
  struct Overlap {
    int64_t growth = 1;    // output elements per input element
    bool inPlace = false;  // an output that begins where its input does is no trouble
    int64_t shrink = 1;    // or how many times smaller
  };

  // Publishes the tensors and waits for the group.
  absl::StatusOr<Call> enter(const std::vector<int64_t>& group, const std::vector<CollectiveTensor>& tensors,
                             const Overlap& overlap);
  absl::Status leave(const Call& call) { return world_.wait(*call.barrier, call.place); }
  void stage(const std::vector<CollectiveTensor>& tensors, const Overlap& overlap);
  static void foldSlice(const Call& call, const CollectiveTensor& tensor, size_t index, Reduction reduction);
  static void copySlices(const Call& call, const CollectiveTensor& tensor, size_t index);

  InprocWorld& world_;
  int64_t rank_;
  std::vector<char> staging_;
  std::vector<const void*> inputs_;
  std::vector<const void*> outputs_;
};

}  // namespace weft
