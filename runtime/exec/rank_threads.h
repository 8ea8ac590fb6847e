// The threads of a program's ranks: one each, for as long as this object lives.
//
// Programs over one parameter store share them, since their steps run one at a time. Besides saving threads this
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

namespace weft {

class RankThreads {
 public:
  // Each thread's libraries use `threadsPerRank` threads. Error: the system gives no more threads. OpenMP, which makes
  // the libraries' threads when they are first needed, ends the process when it gets none; so it is tried here whether
  // there is room for them, too.
  static absl::StatusOr<std::shared_ptr<RankThreads>> create(int64_t ranks, int threadsPerRank);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Calls work(rank) on every rank's thread and returns when all have returned. Allocates nothing. Calls from several
  // threads follow one another.
  void run(const std::function<void(int64_t)>& work);

  int64_t ranks() const { return static_cast<int64_t>(threads_.size()); }
  int threadsPerRank() const { return threadsPerRank_; }

 private:
  explicit RankThreads(int threadsPerRank) : threadsPerRank_(threadsPerRank) {}
  void serve(int64_t rank);

  int threadsPerRank_;
  std::vector<std::thread> threads_;
  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable finished_;
  const std::function<void(int64_t)>* work_ = nullptr;  // null: stop
  uint64_t turn_ = 0;
  int64_t running_ = 0;
};

}  // namespace weft
