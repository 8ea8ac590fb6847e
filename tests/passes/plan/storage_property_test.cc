// Memory assignment on random programs, against an oracle that follows every byte.
#include <gtest/gtest.h>

#include "runtime/plan/plan_file.h"
#include "tests/passes/plan/memory_oracle.h"
#include "tests/passes/plan/planned.h"
#include "tests/passes/plan/random_local.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

constexpr int kSeeds = 2000;

TEST(StorageProperty, MemoryHoldsWhatTheProgramSays) {
  Modules modules;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const std::string text = randomLocalModule(seed, 1 + seed % 3);
    auto module = modules.parse(text);
    ASSERT_TRUE(module) << text;
    absl::StatusOr<plan::Plan> plan = planned(*module);
    ASSERT_TRUE(plan.ok()) << plan.status() << text;
    ASSERT_EQ(compareMemory(*module, *plan, 2), "") << "seed " << seed << "\n" << text << plan->DebugString();
  }
}

TEST(StorageProperty, SameModuleSameBytes) {
  for (int seed = 0; seed < 20; ++seed) {
    std::string bytes[2];
    for (std::string& one : bytes) {
      Modules modules;  // other addresses
      auto module = modules.parse(randomLocalModule(seed, 2));
      one = *serializePlan(*planned(*module));
    }
    ASSERT_EQ(bytes[0], bytes[1]) << "seed " << seed;
  }
}

// The oracle sees a plan that is wrong: moving any transient, activation or accumulator buffer onto another one, where
// programs are large enough that most buffers matter.
TEST(StorageProperty, OracleCatchesOverlaps) {
  Modules modules;
  int caught = 0;
  int tried = 0;
  for (int seed = 0; seed < 60; ++seed) {
    auto module = modules.parse(randomLocalModule(seed, 2));
    plan::Plan plan = *planned(*module);
    for (plan::Buffer& buffer : *plan.mutable_buffers()) {
      const int64_t offset = buffer.offset();
      if (buffer.memory() == plan::PARAMETER && offset > 0) {
        buffer.set_offset(0);
        ++tried;
        caught += compareMemory(*module, plan, 2).empty() ? 0 : 1;
        buffer.set_offset(offset);
      }
    }
  }
  // Two parameters may by chance hold the same value all the time.
  EXPECT_GT(tried, 50);
  EXPECT_GT(caught, tried * 8 / 10);
}

}  // namespace
}  // namespace weft::testing
