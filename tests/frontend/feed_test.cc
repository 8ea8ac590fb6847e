// Inputs written row by row end where whole tensors end.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"
#include "weft/trainer.h"

namespace weft {
namespace {

constexpr int64_t kRanks = 4;

// Inputs of 7 rows: "rows" split over the ranks with pad, "same" on all ranks, "columns" split along dimension 1.
std::unique_ptr<Executor> program() {
  PlanBuilder b(kRanks, 1);
  b.named("rows", plan::TENSOR_INPUT, b.buffer(plan::INPUT, DType::kI32, {2, 3}), {7, 3}, 0);
  b.named("same", plan::TENSOR_INPUT, b.buffer(plan::INPUT, DType::kI32, {7, 3}), {7, 3}, -1);
  b.named("columns", plan::TENSOR_INPUT, b.buffer(plan::INPUT, DType::kI32, {7, 2}), {7, 8}, 1);
  absl::StatusOr<std::unique_ptr<Executor>> executor = Executor::create(b.build(), testKernels());
  EXPECT_TRUE(executor.ok()) << executor.status();
  return *std::move(executor);
}

std::vector<int32_t> counted(int64_t first, int64_t count) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<int32_t>(first + i + 1));
  }
  return values;
}

// Every rank's memory of a tensor, pads included.
std::vector<std::string> memoryOf(const Executor& executor, const std::string& name) {
  const plan::NamedTensor* tensor = executor.findTensor(name);
  std::vector<std::string> memory;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    const int64_t bytes = executor.plan().buffers(static_cast<int>(tensor->buffer())).bytes();
    memory.emplace_back(static_cast<const char*>(executor.rankBuffer(*tensor, rank)), bytes);
  }
  return memory;
}

struct Case {
  std::string name;
  int64_t width;
  std::vector<std::pair<int64_t, int64_t>> asked;  // first row and rows of each call
};

TEST(Feed, RowsAreAskedForWhereTheyLie) {
  const std::vector<Case> cases = {
      {"rows", 3, {{0, 2}, {2, 2}, {4, 2}, {6, 1}}}, {"same", 3, {{0, 7}}}, {"columns", 8, {{0, 7}}}};
  for (const Case& c : cases) {
    const auto whole = program();
    const auto parts = program();
    Feed feed(*whole);
    feed.write(c.name, counted(0, 7 * c.width));
    ASSERT_TRUE(feed.status().ok()) << feed.status();
    Feed rows(*parts);
    std::vector<std::pair<int64_t, int64_t>> asked;
    rows.writeRows<int32_t>(c.name, [&](int64_t first, int64_t count, int32_t* out) {
      asked.emplace_back(first, count);
      const std::vector<int32_t> values = counted(first * c.width, count * c.width);
      std::memcpy(out, values.data(), values.size() * sizeof(int32_t));
    });
    ASSERT_TRUE(rows.status().ok()) << rows.status();
    EXPECT_EQ(asked, c.asked) << c.name;
    EXPECT_EQ(memoryOf(*parts, c.name), memoryOf(*whole, c.name)) << c.name;
  }
}

TEST(Feed, RowsHaveANameAndAType) {
  const auto executor = program();
  const auto never = [](int64_t, int64_t, auto*) { FAIL() << "no rows are wanted"; };
  Feed unknown(*executor);
  unknown.writeRows<int32_t>("rose", never);
  EXPECT_EQ(unknown.status().message(), "no tensor 'rose' in this program; it has rows, same, columns");
  Feed wide(*executor);
  wide.writeRows<int64_t>("rows", never);
  EXPECT_EQ(wide.status().message(), "tensor 'rows' is i32, elements of 8 bytes were given");
}

}  // namespace
}  // namespace weft
