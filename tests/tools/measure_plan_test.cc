#include "tools/measure/measure_plan.h"

#include <gtest/gtest.h>

namespace weft::tools {
namespace {

// Two instructions do the same work, one of them with operands that lie better; a third does other work.
TEST(KernelMeasurement, CallsOfOneWorkCountWithTheirMeanEachInstructionWithItsMedian) {
  const KernelProfile product = {
      .kernel = "contract", .type = DType::kF32, .flops = 2000, .bytes = 1200, .m = 10, .n = 10, .k = 10};
  KernelProfile other = product;
  other.bytes = 2400;
  KernelMeasurement measurement;
  measurement.addCalls(product, {1e-6, 9e-6, 1e-6});  // once it was held up
  measurement.addCalls(other, {7e-6});
  measurement.addCalls(product, {4e-6});
  const std::vector<KernelProfile> profiles = measurement.profiles();
  ASSERT_EQ(profiles.size(), 2U);
  EXPECT_EQ(profiles[0].bytes, 1200);
  EXPECT_DOUBLE_EQ(profiles[0].seconds, (3 * 1e-6 + 4e-6) / 4);
  EXPECT_EQ(profiles[1].bytes, 2400);
  EXPECT_DOUBLE_EQ(profiles[1].seconds, 7e-6);
}

// A clock may see nothing of a call; a price of 0 would be refused.
TEST(KernelMeasurement, NoCallTakesNoTime) {
  KernelMeasurement measurement;
  measurement.addCalls({.kernel = "fill"}, {0, 0});
  EXPECT_GT(measurement.profiles().at(0).seconds, 0);
}

}  // namespace
}  // namespace weft::tools
