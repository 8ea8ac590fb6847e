// The threads of a program's ranks, for as long as this object lives: one each, or one for each core of the host where
// ranks are more. Then ranks are fibers, and one that waits leaves its thread to another. Threads that outnumber cores
// would not do: to put one in the place of another takes the system tens of microseconds, and it may leave three on one
// core and one on the other.
//
// Programs over one parameter store share the threads, since their steps run one at a time. Besides saving threads this
// matters for speed: OpenMP keeps helpers for every thread that ever called it, and once it counts more of them than
// there are cores, helpers go to sleep between two operators; waking them takes longer than most operators.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/fibers.h"

namespace weft {

// Of this host, at least 1.
int64_t hostCores();

class RankThreads {
 public:
  // Each thread's libraries use `threadsPerRank` threads. Error: the system gives no more threads, or no memory for the
  // ranks' stacks. OpenMP, which makes the libraries' threads when they are first needed, ends the process when it gets
  // none; so it is tried here whether there is room for them, too.
  static absl::StatusOr<std::shared_ptr<RankThreads>> create(int64_t ranks, int threadsPerRank);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Calls work(rank) for every rank and returns when all have returned. Allocates nothing. Ranks wait for one another
  // in SpinningCondition only. Calls from several threads follow one another.
  void run(const std::function<void(int64_t)>& work);

  int64_t ranks() const { return ranks_; }
  int threadsPerRank() const { return threadsPerRank_; }

 private:
  RankThreads(int64_t ranks, int threadsPerRank) : ranks_(ranks), threadsPerRank_(threadsPerRank) {}
  // Under the mutex: what all threads do next.
  void begin(const std::function<void(int64_t)>* work);
  void serve(int64_t thread);

  int64_t ranks_;
  int threadsPerRank_;
  std::unique_ptr<Fibers> fibers_;  // of the ranks where they are more than the threads
  std::vector<std::thread> threads_;
  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable finished_;
  const std::function<void(int64_t)>* work_ = nullptr;  // null: stop
  uint64_t turn_ = 0;
  int64_t running_ = 0;  // threads
};

}  // namespace weft
