#include "runtime/exec/rank_threads.h"

#include <algorithm>
#include <latch>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/threads.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Starts threads that wait until all have been tried, and returns how many could be made.
int64_t roomFor(int64_t threads) {
  std::latch done(1);
  std::vector<std::thread> made;
  try {
    while (static_cast<int64_t>(made.size()) < threads) {
      made.emplace_back([&] { done.wait(); });
    }
  } catch (const std::system_error&) {
  }
  done.count_down();
  for (std::thread& thread : made) {
    thread.join();
  }
  return static_cast<int64_t>(made.size());
}

absl::Status noThread(int64_t made, int64_t wanted, const std::string& what) {
  return absl::ResourceExhaustedError(absl::StrCat("the system gave ", made, " of ", wanted, " ", what,
                                                   "; allow more (ulimit -u), or use fewer ranks or threads per rank"));
}

}  // namespace

int64_t hostCores() {
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

absl::StatusOr<std::shared_ptr<RankThreads>> RankThreads::create(int64_t ranks, int threadsPerRank) {
  const std::shared_ptr<RankThreads> made(new RankThreads(ranks, threadsPerRank));
  const int64_t threads = std::min(ranks, hostCores());
  if (threads < ranks) {
    WEFT_ASSIGN_OR_RETURN(made->fibers_, Fibers::create(ranks));
  }
  for (int64_t thread = 0; thread < threads; ++thread) {
    try {
      made->threads_.emplace_back([self = made.get(), thread] {
        cpu::setLibraryThreads(self->threadsPerRank_);
        self->serve(thread);
      });
    } catch (const std::system_error&) {
      return noThread(thread, threads, "threads for the ranks");
    }
  }
  const int64_t helpers = threads * (threadsPerRank - 1);
  if (const int64_t room = roomFor(helpers); room < helpers) {
    return noThread(room, helpers, "threads for the ranks' libraries");
  }
  return made;
}

RankThreads::~RankThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    begin(nullptr);
  }
  start_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void RankThreads::begin(const std::function<void(int64_t)>* work) {
  work_ = work;
  if (fibers_ != nullptr) {
    fibers_->begin(work);
  }
  running_ = static_cast<int64_t>(threads_.size());
  ++turn_;
}

void RankThreads::serve(int64_t thread) {
  uint64_t seen = 0;
  for (;;) {
    const std::function<void(int64_t)>* mine = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return turn_ != seen; });
      seen = turn_;
      mine = work_;
    }
    if (fibers_ != nullptr) {
      fibers_->carry();
    } else if (mine != nullptr) {
      (*mine)(thread);
    }
    if (mine == nullptr) {
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) {
      finished_.notify_one();
    }
  }
}

void RankThreads::run(const std::function<void(int64_t)>& work) {
  const std::lock_guard<std::mutex> caller(callers_);
  std::unique_lock<std::mutex> lock(mutex_);
  begin(&work);
  start_.notify_all();
  finished_.wait(lock, [&] { return running_ == 0; });
}

}  // namespace weft
