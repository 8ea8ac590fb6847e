// Buckets of reductions: by hand, carried out on random programs, and their number against all partitions.
#include "planner/step/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace weft {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kNoLimit = int64_t{1} << 40;

TEST(BucketsTest, JoinsJustBeforeTheFirstReader) {
  const std::vector<Bucket> buckets = bucketsOf({{0, 64, 2, {4}, {0}}, {0, 64, 3, {5}, {1}}}, {kNoLimit});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_THAT(buckets[0].members, ElementsAre(0u, 1u));
  EXPECT_EQ(buckets[0].before, 4);
}

TEST(BucketsTest, OnlyEqualKeysWhoseOperandsExistByThen) {
  EXPECT_TRUE(bucketsOf({{0, 64, 2, {4}, {0}}, {1, 64, 3, {5}, {1}}}, {kNoLimit}).empty());
  // The second one's operand is made behind the first one's reader.
  EXPECT_TRUE(bucketsOf({{0, 64, 1, {2}, {0}}, {0, 64, 4, {5}, {3}}}, {kNoLimit}).empty());
  // The second reads the first.
  EXPECT_TRUE(bucketsOf({{0, 64, 1, {2}, {0}}, {0, 64, 2, {3}, {1}}}, {kNoLimit}).empty());
  EXPECT_TRUE(bucketsOf({}, {kNoLimit}).empty());
}

TEST(BucketsTest, TakesWhatFitsSoonestNeededFirst) {
  const std::vector<Reduction> reductions = {{0, 60, 1, {9}, {0}}, {0, 60, 2, {7}, {0}}, {0, 30, 3, {8}, {0}}};
  std::vector<Bucket> buckets = bucketsOf(reductions, {100});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_THAT(buckets[0].members, ElementsAre(1u, 2u));
  EXPECT_EQ(buckets[0].before, 7);
  buckets = bucketsOf(reductions, {150});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_THAT(buckets[0].members, ElementsAre(0u, 1u, 2u));
  EXPECT_TRUE(bucketsOf(reductions, {80}).empty());
}

// What a member reads is needed where the bucket stands: c joins d before 4, so that a is needed sooner than b, and
// their bucket stands before that of c and d.
TEST(BucketsTest, PlacesAreLookedUpAnew) {
  const std::vector<Reduction> reductions = {
      {0, 8, 1, {6}, {0}},  // a, read by c
      {0, 8, 2, {5}, {0}},  // b
      {1, 8, 6, {8}, {1}},  // c reads a, joins d before 4
      {1, 8, 3, {4}, {0}},  // d
  };
  const std::vector<Bucket> buckets = bucketsOf(reductions, {kNoLimit});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_THAT(buckets[0].members, ElementsAre(3u, 2u));
  EXPECT_EQ(buckets[0].before, 4);
  EXPECT_THAT(buckets[1].members, ElementsAre(0u, 1u));
  EXPECT_EQ(buckets[1].before, 6);  // c, where it is now: before 4
}

struct Op {
  int key = -1;  // of a reduction
  std::vector<int> inputs;
};

// Each op reads one or two of those before it; the last reads nothing and ends the function.
std::vector<Op> randomFunction(std::mt19937& random) {
  std::vector<Op> ops(4 + random() % 20);
  for (size_t i = 1; i + 1 < ops.size(); ++i) {
    ops[i].key = random() % 3 == 0 ? -1 : static_cast<int>(random() % 2);
    for (uint32_t input = 0, count = 1 + random() % 2; input < count; ++input) {
      ops[i].inputs.push_back(static_cast<int>(random() % i));
    }
  }
  return ops;
}

std::vector<Reduction> reductionsIn(const std::vector<Op>& ops, int64_t bytes) {
  std::vector<Reduction> reductions;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].key >= 0) {
      Reduction& made = reductions.emplace_back(Reduction{ops[i].key, bytes, static_cast<int64_t>(i)});
      made.producers.assign(ops[i].inputs.begin(), ops[i].inputs.end());
      for (size_t reader = 0; reader < ops.size(); ++reader) {
        if (std::count(ops[reader].inputs.begin(), ops[reader].inputs.end(), static_cast<int>(i)) > 0) {
          made.readers.push_back(static_cast<int64_t>(reader));
        }
      }
      if (made.readers.empty()) {
        made.readers.push_back(static_cast<int64_t>(ops.size()) - 1);
      }
    }
  }
  return reductions;
}

TEST(BucketsTest, RandomFunctionsStayInOrder) {
  std::mt19937 random(3);
  int made = 0;
  int moved = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::vector<Op> ops = randomFunction(random);
    const std::vector<Reduction> reductions = reductionsIn(ops, 1);
    const int64_t most = 2 + static_cast<int64_t>(random() % 4);
    // The function as a list; members of a bucket stand next to each other.
    std::vector<int> line;
    for (size_t i = 0; i < ops.size(); ++i) {
      line.push_back(static_cast<int>(i));
    }
    std::map<int, int> bucketOf;
    for (const Bucket& bucket : bucketsOf(reductions, {most})) {
      ASSERT_GE(bucket.members.size(), 2u);
      ASSERT_LE(static_cast<int64_t>(bucket.members.size()), most);
      std::vector<int> members;
      for (const size_t index : bucket.members) {
        members.push_back(static_cast<int>(reductions[index].position));
        ASSERT_TRUE(bucketOf.try_emplace(members.back(), made).second) << "in two buckets, round " << round;
        ASSERT_EQ(ops[members.back()].key, ops[members[0]].key);
      }
      std::erase_if(line, [&](int op) { return std::count(members.begin(), members.end(), op) > 0; });
      auto before = std::find(line.begin(), line.end(), static_cast<int>(bucket.before));
      ASSERT_NE(before, line.end());
      const auto earlier = bucketOf.find(*before);
      moved += earlier != bucketOf.end() ? 1 : 0;
      while (earlier != bucketOf.end() && before != line.begin() && bucketOf.count(*(before - 1)) > 0 &&
             bucketOf.at(*(before - 1)) == earlier->second) {
        --before;
      }
      line.insert(before, members.begin(), members.end());
      ++made;
    }
    std::map<int, size_t> at;
    for (size_t i = 0; i < line.size(); ++i) {
      at[line[i]] = i;
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      for (const int input : ops[i].inputs) {
        const int reader = static_cast<int>(i);
        ASSERT_LT(at[input], at[reader]) << "round " << round << ": " << reader << " reads " << input;
        ASSERT_FALSE(bucketOf.count(input) > 0 && bucketOf.count(reader) > 0 && bucketOf[input] == bucketOf[reader])
            << "round " << round << ": a bucket reads itself";
      }
    }
  }
  EXPECT_GT(made, 2000);
  EXPECT_GT(moved, 20);  // buckets that stand before another one
}

// The least number of groups into which intervals (last producer, first reader) divide such that each group has a
// common point, over all partitions.
size_t fewestGroups(const std::vector<std::pair<int64_t, int64_t>>& intervals, size_t next,
                    std::vector<std::pair<int64_t, int64_t>>& groups) {
  if (next == intervals.size()) {
    return groups.size();
  }
  groups.push_back(intervals[next]);
  size_t fewest = fewestGroups(intervals, next + 1, groups);
  groups.pop_back();
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto before = groups[g];
    groups[g] = {std::max(before.first, intervals[next].first), std::min(before.second, intervals[next].second)};
    if (groups[g].first < groups[g].second) {
      fewest = std::min(fewest, fewestGroups(intervals, next + 1, groups));
    }
    groups[g] = before;
  }
  return fewest;
}

// For reductions of one key that do not feed each other.
TEST(BucketsTest, FewestBuckets) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    // Ops 3 i, 3 i + 1, ...: producers are multiples of 3, reductions stand behind them, readers are 3 i + 2.
    std::vector<Reduction> reductions;
    std::vector<std::pair<int64_t, int64_t>> intervals;
    for (int64_t i = 0, count = 1 + static_cast<int64_t>(random() % 6); i < count; ++i) {
      const int64_t reader = 3 * (i + static_cast<int64_t>(random() % 4)) + 2;
      reductions.push_back({0, 1, 3 * i + 1, {reader}, {3 * i}});
      intervals.emplace_back(3 * i, reader);
    }
    size_t collectives = reductions.size();
    for (const Bucket& bucket : bucketsOf(reductions, {kNoLimit})) {
      collectives -= bucket.members.size() - 1;
    }
    std::vector<std::pair<int64_t, int64_t>> groups;
    EXPECT_EQ(collectives, fewestGroups(intervals, 0, groups)) << "round " << round;
  }
}

// Eight gradients, made at 0, 2, ... and added up at 16, 17, ...: joined at the end all would be held until then.
TEST(BucketsTest, WhatSavesRoomIsReducedInQuartersAsSoonAsItExists) {
  std::vector<Reduction> reductions;
  for (int64_t i = 0; i < 8; ++i) {
    reductions.push_back({0, 64, 2 * i + 1, {16 + i}, {2 * i}, BucketLimit::kQuarter, true});
  }
  std::vector<Bucket> buckets = bucketsOf(reductions, {kNoLimit});
  ASSERT_EQ(buckets.size(), 4U);
  for (size_t b = 0; b < 4; ++b) {
    EXPECT_THAT(buckets[b].members, ElementsAre(2 * b, 2 * b + 1));
    EXPECT_EQ(buckets[b].before, static_cast<int64_t>(4 * b + 3));
  }
  for (Reduction& reduction : reductions) {
    reduction.limit = BucketLimit::kNone;
    reduction.savesRoom = false;
  }
  buckets = bucketsOf(reductions, {kNoLimit});
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].before, 16);
}

// Three gradients, made at 0, 2, 4, their reductions behind all of them: each is too large to join another, and would
// hold its room until then. The last stands where its own is made.
TEST(BucketsTest, WhatSavesRoomMovesAlone) {
  std::vector<Reduction> reductions;
  for (int64_t i = 0; i < 3; ++i) {
    reductions.push_back({0, 64, 5 + i, {8 + i}, {2 * i}, BucketLimit::kNone, true});
  }
  const std::vector<Bucket> buckets = bucketsOf(reductions, {100});
  ASSERT_EQ(buckets.size(), 2U);
  for (size_t b = 0; b < 2; ++b) {
    EXPECT_THAT(buckets[b].members, ElementsAre(b));
    EXPECT_EQ(buckets[b].before, static_cast<int64_t>(2 * b + 1));
  }
}

// Weights and biases of three layers, each gathered for its one reader: all biases go with the first weight that leaves
// them room, and no two weights are held for each other.
TEST(BucketsTest, WhatIsReadOnceIsGatheredInBucketsOfTheLargest) {
  std::vector<Reduction> reductions;
  for (int64_t layer = 0; layer < 3; ++layer) {
    const int64_t weight = layer == 1 ? 64 : 60;
    reductions.push_back({0, 1, 4 * layer, {4 * layer + 1}, {}, BucketLimit::kLargest, false, weight});
    reductions.push_back({0, 1, 4 * layer + 2, {4 * layer + 3}, {}, BucketLimit::kLargest, false, 1});
  }
  const std::vector<Bucket> buckets = bucketsOf(reductions, {kNoLimit});
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_THAT(buckets[0].members, ElementsAre(0, 1, 3, 5));
  EXPECT_EQ(buckets[0].before, 1);
  const std::vector<Bucket> limited = bucketsOf(reductions, {2});
  ASSERT_EQ(limited.size(), 2U);
  EXPECT_THAT(limited[0].members, ElementsAre(0, 1));
  EXPECT_THAT(limited[1].members, ElementsAre(3, 4));
}

// Many ranks have a little of each weight, two have half of an activation: that makes room for one weight, whole.
TEST(BucketsTest, ResultsAreHeldAgainstTheLargestResult) {
  std::vector<Reduction> reductions = {{0, 64, 0, {1}, {}, BucketLimit::kLargest, false, 128}};
  for (int64_t layer = 1; layer < 4; ++layer) {
    reductions.push_back({0, 1, 2 * layer, {2 * layer + 1}, {}, BucketLimit::kLargest, false, 100});
  }
  EXPECT_TRUE(bucketsOf(reductions, {kNoLimit}).empty());
}

// More than the largest, where that is given; less changes nothing.
TEST(BucketsTest, GatheredBytesMayBeMoreThanTheLargest) {
  std::vector<Reduction> reductions;
  for (int64_t layer = 0; layer < 5; ++layer) {
    reductions.push_back({0, 1, 2 * layer, {2 * layer + 1}, {}, BucketLimit::kLargest, false, 100});
  }
  EXPECT_TRUE(bucketsOf(reductions, {kNoLimit, 50}).empty());
  EXPECT_TRUE(bucketsOf(reductions, {kNoLimit, 199}).empty());
  const std::vector<Bucket> buckets = bucketsOf(reductions, {kNoLimit, 200});
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_THAT(buckets[0].members, ElementsAre(0, 1));
  EXPECT_THAT(buckets[1].members, ElementsAre(2, 3));
  EXPECT_TRUE(bucketsOf(reductions, {1, 200}).empty()) << "operands";
}

}  // namespace
}  // namespace weft
