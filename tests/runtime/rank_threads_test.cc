#include "runtime/exec/rank_threads.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "runtime/comm/inproc.h"

namespace weft {
namespace {

// Ranks that outnumber cores meet in collectives, run after run, on no more threads than there are cores.
TEST(RankThreadsTest, ShareOneThreadPerCore) {
  const int64_t ranks = 2 * hostCores() + 1;
  const auto threads = RankThreads::create(ranks, 1);
  ASSERT_TRUE(threads.ok()) << threads.status();
  EXPECT_EQ((*threads)->ranks(), ranks);
  std::vector<int64_t> group(ranks);
  std::iota(group.begin(), group.end(), 0);
  InprocWorld world(ranks);
  std::vector<std::thread::id> ids(ranks);
  for (int64_t run = 0; run < 50; ++run) {
    std::vector<int64_t> sums(ranks);
    (*threads)->run([&](int64_t rank) {
      InprocCommunicator communicator(world, rank);
      ids[rank] = std::this_thread::get_id();
      int64_t value = run + rank;
      EXPECT_TRUE(communicator.allReduce(group, {{&value, &value, DType::kI64, {1}, 0, 0}}, Reduction::kSum).ok());
      sums[rank] = value;
    });
    EXPECT_EQ(sums, std::vector<int64_t>(ranks, run * ranks + ranks * (ranks - 1) / 2));
    EXPECT_LE(static_cast<int64_t>(std::set<std::thread::id>(ids.begin(), ids.end()).size()), hostCores());
  }
}

// Where there is a core for each they have threads of their own, which libraries may tell from one another.
TEST(RankThreadsTest, HaveThreadsOfTheirOwnWhereCoresAre) {
  const auto threads = RankThreads::create(hostCores(), 1);
  ASSERT_TRUE(threads.ok()) << threads.status();
  std::vector<std::thread::id> first(hostCores());
  std::vector<std::thread::id> second(hostCores());
  (*threads)->run([&](int64_t rank) { first[rank] = std::this_thread::get_id(); });
  (*threads)->run([&](int64_t rank) { second[rank] = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_EQ(static_cast<int64_t>(std::set<std::thread::id>(first.begin(), first.end()).size()), hostCores());
}

}  // namespace
}  // namespace weft
