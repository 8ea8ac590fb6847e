#include "runtime/exec/rank_threads.h"

#include "kernels/cpu/threads.h"

namespace weft {

RankThreads::RankThreads(int64_t ranks, int threadsPerRank) : threadsPerRank_(threadsPerRank) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads_.emplace_back([this, rank] {
      cpu::setLibraryThreads(threadsPerRank_);
      serve(rank);
    });
  }
}

RankThreads::~RankThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_ = nullptr;
    ++turn_;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void RankThreads::serve(int64_t rank) {
  uint64_t seen = 0;
  for (;;) {
    const std::function<void(int64_t)>* mine = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return turn_ != seen; });
      seen = turn_;
      mine = work_;
    }
    if (mine == nullptr) {
      return;
    }
    (*mine)(rank);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) {
      finished_.notify_one();
    }
  }
}

void RankThreads::run(const std::function<void(int64_t)>& work) {
  const std::lock_guard<std::mutex> caller(callers_);
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  running_ = ranks();
  ++turn_;
  start_.notify_all();
  finished_.wait(lock, [&] { return running_ == 0; });
}

}  // namespace weft
