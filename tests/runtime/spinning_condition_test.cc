#include "runtime/comm/spinning_condition.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/runtime/carried_fibers.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNever{0};

TEST(SpinningConditionTest, SpinsAsOftenAsItSaysUnlessItIsMet) {
  SpinningCondition condition(5);
  for (const int met : {1, 3, 5}) {
    int checks = 0;
    EXPECT_TRUE(condition.wait([&] { return ++checks >= met; }, kNever));
    EXPECT_EQ(checks, met);
  }
  int checks = 0;
  EXPECT_FALSE(condition.wait(
      [&] {
        ++checks;
        return false;
      },
      milliseconds(5)));
  EXPECT_GT(checks, 5) << "once more before it sleeps";
}

// Without spins the waiter sleeps at once. Not woken it would sleep until its time is up, and find the condition met.
TEST(SpinningConditionTest, UpdatesWakeSleepers) {
  SpinningCondition condition(0);
  std::atomic<bool> isSet = false;
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(5));
    condition.update([&] { isSet = true; });
  });
  constexpr milliseconds kLong{30000};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(condition.wait([&] { return isSet.load(); }, kLong));
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLong);
  other.join();
}

// On one thread, where a waiter that kept it would wait for ever.
TEST(SpinningConditionTest, FibersLeaveTheirThread) {
  SpinningCondition condition(1000);
  std::atomic<int> turn = 0;
  testing::CarriedFibers(2).run(1, [&](int64_t fiber) {
    for (int mine = static_cast<int>(fiber); mine < 100; mine += 2) {
      EXPECT_TRUE(condition.wait([&] { return turn == mine; }, kNever));
      condition.update([&] { ++turn; });
    }
  });
  EXPECT_EQ(turn, 100);
}

}  // namespace
}  // namespace weft
