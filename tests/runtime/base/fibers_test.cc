// Fibers on one and on several threads: who has a thread when, what a fiber keeps while it waits, ends of waits.
#include "runtime/base/fibers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/carried_fibers.h"
#include "tests/support/files.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr milliseconds kNever{0};

// Fills `bytes` of the stack, waits, and counts those that have changed.
int changesDuring(int64_t bytes, const std::function<void()>& wait) {
  std::array<volatile char, 4096> page;
  for (size_t i = 0; i < page.size(); ++i) {
    page[i] = static_cast<char>(bytes + static_cast<int64_t>(i));
  }
  int changes = 0;
  if (bytes > static_cast<int64_t>(page.size())) {
    changes = changesDuring(bytes - static_cast<int64_t>(page.size()), wait);
  } else {
    wait();
  }
  for (size_t i = 0; i < page.size(); ++i) {
    changes += page[i] == static_cast<char>(bytes + static_cast<int64_t>(i)) ? 0 : 1;
  }
  return changes;
}

// On one thread each runs until it waits, then the next one that is ready.
TEST(FibersTest, OneThreadGoesFromFiberToFiber) {
  testing::CarriedFibers fibers(3);
  std::vector<std::string> events;
  std::array<bool, 3> open = {false, false, false};
  fibers.run(1, [&](int64_t fiber) {
    events.push_back("begin " + std::to_string(fiber));
    open[2 - fiber] = true;
    EXPECT_TRUE(Fibers::wait([&] { return open[fiber]; }, kNever));
    events.push_back("end " + std::to_string(fiber));
  });
  EXPECT_THAT(events, ElementsAre("begin 0", "begin 1", "end 1", "begin 2", "end 2", "end 0"));
}

// Seven fibers meet again and again, carried by more threads or fewer; all are done when the threads return.
TEST(FibersTest, FibersMeetOnAnyNumberOfThreads) {
  constexpr int64_t kFibers = 7;
  constexpr int64_t kRounds = 300;
  testing::CarriedFibers fibers(kFibers);
  for (const int threads : {1, 2, 3, 8}) {
    std::atomic<int64_t> arrived = 0;
    std::array<int64_t, kFibers> counts = {};
    fibers.run(threads, [&](int64_t fiber) {
      for (int64_t round = 1; round <= kRounds; ++round) {
        ++counts[fiber];
        arrived.fetch_add(1, std::memory_order_acq_rel);
        EXPECT_TRUE(Fibers::wait(
            [&] { return arrived.load(std::memory_order_acquire) >= 2 * round * kFibers - kFibers; }, kNever));
        EXPECT_EQ(counts[(fiber + 1) % kFibers], round) << "nobody begins the next round before all have read";
        arrived.fetch_add(1, std::memory_order_acq_rel);
        EXPECT_TRUE(
            Fibers::wait([&] { return arrived.load(std::memory_order_acquire) >= 2 * round * kFibers; }, kNever));
      }
    });
    EXPECT_EQ(arrived, 2 * kRounds * kFibers);
  }
}

// Half of its stack is full when a fiber waits, and still is when it goes on.
TEST(FibersTest, KeepTheirStacks) {
  testing::CarriedFibers fibers(3);
  std::atomic<int> waiting = 0;
  std::array<int, 3> changes = {-1, -1, -1};
  fibers.run(2, [&](int64_t fiber) {
    changes[fiber] = changesDuring((int64_t{1} << 22) + fiber, [&] {
      ++waiting;
      Fibers::wait([&] { return waiting == 3; }, kNever);
    });
  });
  EXPECT_THAT(changes, ElementsAre(0, 0, 0));
}

TEST(FibersTest, WaitsEndInTime) {
  testing::CarriedFibers fibers(2);
  bool isOver = false;
  std::array<bool, 2> met = {true, true};
  const auto start = std::chrono::steady_clock::now();
  fibers.run(1, [&](int64_t fiber) {
    if (fiber == 0) {
      met[0] = Fibers::wait([] { return false; }, milliseconds(20));
      isOver = true;
    } else {
      met[1] = Fibers::wait([&] { return isOver; }, milliseconds(30000));
    }
  });
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(20));
  EXPECT_THAT(met, ElementsAre(false, true));
}

TEST(FibersTest, KnowThatTheyAreFibers) {
  testing::CarriedFibers fibers(1);
  EXPECT_FALSE(Fibers::isCurrent());
  bool inside = false;
  fibers.run(1, [&](int64_t) { inside = Fibers::isCurrent(); });
  EXPECT_TRUE(inside);
  EXPECT_FALSE(Fibers::isCurrent());
}

// In a process that may have no more than half of a stack beside what it has.
TEST(FibersTest, NoMemoryForTheirStacksIsAnError) {
  EXPECT_EQ(testing::inChild([] {
              rlim_t pages = 0;
              std::ifstream("/proc/self/statm") >> pages;
              const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{4} << 20);
              const rlimit most = {bytes, bytes};
              setrlimit(RLIMIT_AS, &most);
              const absl::Status status = Fibers::create(3).status();
              const bool said = status.message().find("gave 0 of 3 stacks of 8 MiB") != std::string::npos;
              return absl::IsResourceExhausted(status) && said ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace weft
