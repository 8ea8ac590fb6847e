// Nothing is allocated while a step runs: every form of operator new of this program counts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/exec/executor.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"

static std::atomic<int64_t> allocations{0};

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) {
    return memory;
  }
  std::abort();
}
void* operator new(size_t bytes, std::align_val_t align) {
  ++allocations;
  const size_t unit = static_cast<size_t>(align);
  if (void* memory = std::aligned_alloc(unit, (bytes + unit) / unit * unit)) {
    return memory;
  }
  std::abort();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace weft {
namespace {

// All five collectives, the gather and the rest once with overlapping memory.
plan::Plan everyCollective() {
  PlanBuilder b(4, 2);
  plan::RankTable* table = b.raw().mutable_rank_table();
  table->set_columns(1);
  for (const int64_t source : {3, 0, 1, 2}) {
    table->add_values(source);
  }
  const uint32_t x = b.buffer(plan::TRANSIENT, DType::kF32, {4, 8});
  const uint32_t y = b.buffer(plan::TRANSIENT, DType::kF32, {4, 8});
  const uint32_t whole = b.buffer(plan::TRANSIENT, DType::kF32, {16, 8});
  const uint32_t part = b.view(x, {1, 8});
  const uint32_t turned = b.view(x, {1, 32});
  const uint32_t group = b.allRanks();
  b.kernel(1, "add", {x, x}, {x});
  b.collective(1, plan::ALL_REDUCE, {x, y}, {x, y})->set_group_set(group);
  b.collective(1, plan::ALL_GATHER, {x}, {whole})->set_group_set(group);
  b.collective(1, plan::PERMUTE, {x}, {x})->set_source_column(0);
  plan::Collective* exchange = b.collective(1, plan::ALL_TO_ALL, {x}, {turned});
  exchange->set_group_set(group);
  exchange->set_dim(1);
  b.collective(1, plan::REDUCE_SCATTER, {x}, {part})->set_group_set(group);
  return b.build();
}

TEST(Allocations, NoneDuringAStep) {
  auto executor = Executor::create(everyCollective(), testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->runInit().ok());
  const int64_t before = allocations;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE((*executor)->runStep().ok());
  }
  EXPECT_EQ(allocations - before, 0);
  // A plain call: a compiler may leave out a pair of new and delete expressions.
  ::operator delete(::operator new(1));
  EXPECT_GT(allocations - before, 0) << "the hook does not count";
}

}  // namespace
}  // namespace weft
