// Executor on plans written by hand.
#include "runtime/exec/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"

namespace weft {
namespace {

std::vector<float> floats(const Executor& executor, const std::string& name) {
  const absl::StatusOr<std::vector<char>> bytes = executor.readTensor(name);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

absl::Status write(Executor& executor, const std::string& name, const std::vector<float>& values) {
  return executor.writeTensor(name, values.data(), values.size() * sizeof(float));
}

// Fills every rank's memory of the tensor, which is zero when it is allocated, with -9.
void dirty(Executor& executor, const plan::NamedTensor& tensor) {
  const int64_t bytes = executor.plan().buffers(static_cast<int>(tensor.buffer())).bytes();
  for (int rank = 0; rank < 4; ++rank) {
    auto* const memory = static_cast<float*>(executor.rankBuffer(tensor, rank));
    std::fill_n(memory, bytes / static_cast<int64_t>(sizeof(float)), -9.0F);
  }
}

// w += (sum of x over all ranks and micro-batches); x [micro-batches, ranks * 2] split over ranks.
PlanBuilder accumulating(int64_t ranks, int64_t microBatches) {
  PlanBuilder b(ranks, microBatches, 2);
  const uint32_t x = b.buffer(plan::INPUT, DType::kF32, {microBatches, 2});
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {3});
  const uint32_t part = b.buffer(plan::ACTIVATION, DType::kF32, {1});
  const uint32_t sum = b.buffer(plan::TRANSIENT, DType::kF32, {1});
  b.named("x", plan::TENSOR_INPUT, x, {microBatches, ranks * 2}, 1);
  b.named("w", plan::TENSOR_PARAMETER, w, {3}, -1);
  plan::Scalar* row = b.kernel(1, "total", {x}, {part})->add_scalars();
  row->set_column(-1);
  row->set_micro_batch_factor(1);
  b.collective(1, plan::ALL_REDUCE, {part}, {sum})->set_group_set(b.allRanks());
  b.kernel(1, "add", {w, sum}, {w});
  return b;
}

TEST(Executor, RunsMicroBatchesSlotsAndCollectives) {
  for (const int64_t ranks : {1, 2, 3, 5}) {
    auto executor = Executor::create(accumulating(ranks, 4).build(), testKernels());
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->runInit().ok());
    ASSERT_TRUE(write(**executor, "w", {1, 2, 3}).ok());
    std::vector<float> x(4 * ranks * 2);
    float sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i);  // small integers: sums are exact in any order
      sum += x[i];
    }
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(write(**executor, "x", x).ok());
      ASSERT_TRUE((*executor)->runStep().ok());
    }
    EXPECT_EQ(floats(**executor, "w"), (std::vector<float>{1 + 2 * sum, 2 + 2 * sum, 3 + 2 * sum}));
    EXPECT_EQ(floats(**executor, "x"), x);
  }
}

TEST(Executor, FillsConstantsAndScalars) {
  PlanBuilder b(2, 3);
  const uint32_t constant = b.buffer(plan::CONSTANT, DType::kF32, {2});
  const float values[] = {5, 7};
  b.raw().mutable_buffers(static_cast<int>(constant))->set_data(values, sizeof(values));
  const uint32_t out = b.buffer(plan::OUTPUT, DType::kF32, {2});
  b.named("out", plan::TENSOR_OUTPUT, out, {4}, 0);
  const uint32_t made = b.buffer(plan::TRANSIENT, DType::kF32, {2});
  plan::RankTable* table = b.raw().mutable_rank_table();
  table->set_columns(2);
  for (const int64_t value : {0, 100, 0, 200}) {
    table->add_values(value);
  }
  plan::Instruction* scalars = b.kernel(1, "scalars", {}, {made});
  for (const int64_t column : {1, -1}) {
    plan::Scalar* scalar = scalars->add_scalars();
    scalar->set_immediate(1);
    scalar->set_column(column);
    scalar->set_micro_batch_factor(10);
  }
  b.kernel(1, "add", {made, constant}, {out});
  auto executor = Executor::create(b.build(), testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->runStep().ok());
  // The last micro-batch is 2: immediate 1 + table + 2 * 10 + constant.
  EXPECT_EQ(floats(**executor, "out"), (std::vector<float>{126, 28, 226, 28}));
}

TEST(Executor, PadsAndGathersUnevenSlices) {
  PlanBuilder b(4, 1);
  const uint32_t buffer = b.buffer(plan::PARAMETER, DType::kF32, {2, 3});
  b.named("p", plan::TENSOR_PARAMETER, buffer, {5, 3}, 0);
  auto executor = Executor::create(b.build(), testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  std::vector<float> values(15);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  const plan::NamedTensor* tensor = (*executor)->findTensor("p");
  dirty(**executor, *tensor);
  ASSERT_TRUE(write(**executor, "p", values).ok());
  EXPECT_EQ(floats(**executor, "p"), values);
  const float* third = static_cast<const float*>((*executor)->rankBuffer(*tensor, 2));
  EXPECT_EQ(std::vector<float>(third, third + 6), (std::vector<float>{12, 13, 14, 0, 0, 0}));
  const float* last = static_cast<const float*>((*executor)->rankBuffer(*tensor, 3));
  EXPECT_EQ(std::vector<float>(last, last + 6), std::vector<float>(6, 0));
}

TEST(Executor, NamesTheFailingInstructionAndStopsAllRanks) {
  PlanBuilder b = accumulating(3, 2);
  // Only rank 1 fails: it calls another function than the others, who wait for it in the all_reduce.
  plan::Function* broken = b.raw().add_functions();
  broken->set_name("broken");
  plan::Instruction* fail = broken->add_instructions();
  fail->set_kernel("fail");
  fail->set_label("h0.embed");
  plan::Plan plan = b.build();
  auto executor = Executor::create(plan, testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  keepZeroInputs(**executor);
  ASSERT_TRUE((*executor)->runStep().ok());

  plan::RankSchedule* schedule = plan.mutable_schedules(1);
  plan::Action* action = schedule->add_step();
  action->set_function(2);
  for (int i = schedule->step_size() - 1; i > 0; --i) {
    schedule->mutable_step()->SwapElements(i, i - 1);
  }
  executor = Executor::create(plan, testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  keepZeroInputs(**executor);
  const absl::Status status = (*executor)->runStep();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  const std::string message(status.message());
  for (const char* part : {"rank 1", "h0.embed", "fail", "model.cc:42", "index 9 of 5 rows"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " not in " << message;
  }
  EXPECT_FALSE((*executor)->runStep().ok());
}

TEST(Executor, RefusesUnknownKernelsAndSmallWorkspaces) {
  for (const auto& [kernel, part] : {std::pair{"nothing", "nothing"}, std::pair{"greedy", "1048576"}}) {
    PlanBuilder b(2, 1);
    b.kernel(1, kernel, {}, {b.buffer(plan::OUTPUT, DType::kF32, {1})});
    const auto executor = Executor::create(b.build(4096), testKernels());
    ASSERT_FALSE(executor.ok());
    const std::string message(executor.status().message());
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("model.cc:42"), std::string::npos) << message;
  }
  PlanBuilder b(2, 1);
  b.kernel(1, "greedy", {}, {b.buffer(plan::OUTPUT, DType::kF32, {1})});
  EXPECT_TRUE(Executor::create(b.build(1 << 20), testKernels()).ok());
}

TEST(Executor, RefusesMoreMemoryThanThereIs) {
  PlanBuilder b(1, 1);
  b.buffer(plan::PARAMETER, DType::kF32, {int64_t{1} << 45});
  const auto executor = Executor::create(b.build(), testKernels());
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kResourceExhausted) << executor.status();
}

TEST(Executor, ChecksNamesAndSizes) {
  auto executor = Executor::create(accumulating(2, 1).build(), testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  const absl::Status unknown = write(**executor, "v", {1});
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(unknown.message()).find("x, w"), std::string::npos) << unknown;
  const absl::Status size = write(**executor, "w", {1});
  EXPECT_EQ(size.message(), "tensor 'w' has 12 bytes, 4 were given");
  EXPECT_FALSE((*executor)->readTensor("v").ok());
  EXPECT_FALSE((*executor)->readScalar("w").ok());
}

TEST(Executor, SharesAParameterStore) {
  auto train = Executor::create(accumulating(2, 1).build(), testKernels());
  ASSERT_TRUE(train.ok());
  ASSERT_TRUE(write(**train, "w", {1, 2, 3}).ok());

  PlanBuilder b(2, 1);
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {3});
  const uint32_t count = b.buffer(plan::STATE, DType::kF32, {1});
  const uint32_t total = b.buffer(plan::OUTPUT, DType::kF32, {1});
  b.named("w", plan::TENSOR_PARAMETER, w, {3}, -1);
  b.named("calls", plan::TENSOR_STATE, count, {1}, -1);
  b.named("total", plan::TENSOR_OUTPUT, total, {1}, -1);
  b.kernel(1, "total", {w}, {total});
  b.kernel(1, "add", {count, total}, {count});
  ExecutorOptions options;
  options.store = (*train)->store();
  options.allowNew = true;
  auto evaluate = Executor::create(b.build(), testKernels(), options);
  ASSERT_TRUE(evaluate.ok()) << evaluate.status();
  ASSERT_TRUE((*evaluate)->runStep().ok());
  EXPECT_EQ((*evaluate)->readScalar("total").value(), 6.0);
  ASSERT_TRUE(write(**train, "w", {10, 20, 30}).ok());
  ASSERT_TRUE((*evaluate)->runStep().ok());
  EXPECT_EQ((*evaluate)->readScalar("total").value(), 60.0);
  EXPECT_EQ((*evaluate)->readScalar("calls").value(), 66.0);

  b.raw().mutable_tensors(0)->mutable_slices(1)->set_valid(0, 2);
  const auto other = Executor::create(b.build(), testKernels(), options);
  ASSERT_FALSE(other.ok());
  const std::string message(other.status().message());
  EXPECT_NE(message.find("valid [2]"), std::string::npos) << message;
  EXPECT_NE(message.find("valid [3]"), std::string::npos) << message;
}

// Programs over one store run on the same threads where they have as many ranks, else on their own.
TEST(Executor, SharesTheThreadsOfAStore) {
  const auto ids = std::make_shared<std::array<std::thread::id, 3>>();
  KernelRegistry kernels = testKernels();
  for (size_t program = 0; program < 3; ++program) {
    kernels.add("note" + std::to_string(program), [ids, program](const KernelSpec&) {
      return functionKernel([ids, program](const KernelArguments&) {
        (*ids)[program] = std::this_thread::get_id();
        return absl::OkStatus();
      });
    });
  }
  ExecutorOptions options;
  std::vector<std::unique_ptr<Executor>> executors;
  for (int program = 0; program < 3; ++program) {
    PlanBuilder b(1, 1);
    const uint32_t out = b.buffer(plan::OUTPUT, DType::kF32, {1});
    b.kernel(1, "note" + std::to_string(program), {}, {out});
    options.threadsPerRank = program < 2 ? 1 : 2;  // the third asks for other threads
    auto made = Executor::create(b.build(), kernels, options);
    ASSERT_TRUE(made.ok()) << made.status();
    executors.push_back(*std::move(made));
    options.store = executors[0]->store();
  }
  for (const auto& executor : executors) {
    ASSERT_TRUE(executor->runStep().ok());
  }
  EXPECT_EQ((*ids)[0], (*ids)[1]);
  EXPECT_NE((*ids)[0], (*ids)[2]);
  executors.erase(executors.begin());  // the others keep theirs
  EXPECT_TRUE(executors[0]->runStep().ok());
}

// What was recorded can be asked for, in order.
TEST(Executor, ExecutedActionsAreTheSchedules) {
  auto executor = Executor::create(accumulating(2, 3).build(), testKernels(), {.profile = true});
  ASSERT_TRUE(executor.ok()) << executor.status();
  keepZeroInputs(**executor);
  ASSERT_TRUE((*executor)->runStep().ok());
  const absl::StatusOr<std::vector<ExecutedAction>> executed = (*executor)->executedActions(1);
  ASSERT_TRUE(executed.ok()) << executed.status();
  ASSERT_EQ(executed->size(), 3u);
  for (int64_t microBatch = 0; microBatch < 3; ++microBatch) {
    EXPECT_EQ((*executed)[microBatch].kind, plan::FORWARD);
    EXPECT_EQ((*executed)[microBatch].microBatch, microBatch);
  }
  EXPECT_FALSE((*executor)->executedActions(2).ok());
  auto unrecorded = Executor::create(accumulating(2, 3).build(), testKernels());
  EXPECT_FALSE((*unrecorded)->executedActions(0).ok());
}

// w = 7 by runInit, in the plan of two ranks; `calls` counts on another name.
PlanBuilder countedFill(const std::string& state) {
  PlanBuilder b(2, 1);
  const uint32_t seven = b.buffer(plan::CONSTANT, DType::kF32, {1});
  const float value = 7;
  b.raw().mutable_buffers(static_cast<int>(seven))->set_data(&value, sizeof(value));
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {1});
  const uint32_t calls = b.buffer(plan::STATE, DType::kF32, {1});
  b.named("w", plan::TENSOR_PARAMETER, w, {1}, -1);
  b.named(state, plan::TENSOR_STATE, calls, {1}, -1);
  b.kernel(0, "total", {seven}, {w});
  b.kernel(0, "total", {seven}, {calls});
  b.kernel(1, "add", {calls, w}, {calls});
  for (auto& schedule : *b.raw().mutable_schedules()) {
    schedule.clear_init();
    schedule.add_init()->set_function(0);
  }
  return b;
}

// A later program starts what it brings and leaves alone what it found; the memory outlives the first program.
TEST(Executor, InitLeavesTheStoreAlone) {
  auto train = Executor::create(countedFill("calls").build(), testKernels());
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_TRUE((*train)->runInit().ok());
  EXPECT_EQ((*train)->readScalar("w").value(), 7.0);
  ASSERT_TRUE(write(**train, "w", {5}).ok());
  ExecutorOptions options;
  options.store = (*train)->store();
  options.allowNew = true;
  auto evaluate = Executor::create(countedFill("evaluations").build(), testKernels(), options);
  ASSERT_TRUE(evaluate.ok()) << evaluate.status();
  EXPECT_LT((*evaluate)->allocatedBytes(), (*train)->allocatedBytes());
  train->reset();
  ASSERT_TRUE((*evaluate)->runInit().ok());
  EXPECT_EQ((*evaluate)->readScalar("w").value(), 5.0);
  EXPECT_EQ((*evaluate)->readScalar("evaluations").value(), 7.0);
  ASSERT_TRUE((*evaluate)->runStep().ok());
  EXPECT_EQ((*evaluate)->readScalar("evaluations").value(), 12.0);
}

// A rank alone gets its part; what others hold stays, pads are filled.
TEST(Executor, WritesSlices) {
  PlanBuilder b(4, 1);
  const uint32_t buffer = b.buffer(plan::INPUT, DType::kF32, {2, 3});
  b.named("p", plan::TENSOR_INPUT, buffer, {5, 3}, 0);
  auto executor = Executor::create(b.build(), testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  const plan::NamedTensor* tensor = (*executor)->findTensor("p");
  dirty(**executor, *tensor);
  std::vector<float> whole(15);
  for (int rank = 0; rank < 4; ++rank) {
    const absl::StatusOr<plan::Slice> slice = (*executor)->slice("p", rank);
    ASSERT_TRUE(slice.ok()) << slice.status();
    std::vector<float> part;
    for (int64_t i = 0; i < slice->valid(0) * 3; ++i) {
      part.push_back(static_cast<float>(slice->offset(0) * 3 + i + 1));
      whole[slice->offset(0) * 3 + i] = part.back();
    }
    ASSERT_TRUE((*executor)->writeSlice("p", rank, part.data(), part.size() * sizeof(float)).ok());
  }
  EXPECT_EQ(floats(**executor, "p"), whole);
  const float* third = static_cast<const float*>((*executor)->rankBuffer(*tensor, 2));
  EXPECT_EQ(std::vector<float>(third, third + 6), (std::vector<float>{13, 14, 15, 0, 0, 0}));
  EXPECT_EQ((*executor)->writeSlice("p", 2, whole.data(), 24).message(),
            "rank 2 holds 12 bytes of tensor 'p', 24 were given");
  EXPECT_EQ((*executor)->slice("p", 4).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*executor)->writeSlice("q", 0, whole.data(), 24).code(), absl::StatusCode::kNotFound);
}

// Rank 2 sleeps longer than the others wait for it: the error says who is missing and where it is.
TEST(Executor, TimeoutSaysWhereTheMissingRankIs) {
  PlanBuilder b = accumulating(3, 1);
  plan::Function* slow = b.raw().add_functions();
  slow->set_name("slow");
  plan::Instruction* nap = slow->add_instructions();
  nap->set_kernel("nap");
  nap->set_label("h0.nap");
  plan::RankSchedule* schedule = b.raw().mutable_schedules(2);
  schedule->add_step()->set_function(2);
  schedule->mutable_step()->SwapElements(0, 1);
  KernelRegistry kernels = testKernels();
  kernels.add("nap", [](const KernelSpec&) {
    return functionKernel([](const KernelArguments&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      return absl::OkStatus();
    });
  });
  ExecutorOptions options;
  options.timeout = std::chrono::milliseconds(50);
  auto executor = Executor::create(b.build(), kernels, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  keepZeroInputs(**executor);
  const absl::Status status = (*executor)->runStep();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  const std::string message(status.message());
  for (const char* part : {"ALL_REDUCE", "not there: rank 2;", "rank 2 is at operator h0.nap"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " not in " << message;
  }
}

TEST(Executor, WritesATrace) {
  ExecutorOptions options;
  options.profile = true;
  auto executor = Executor::create(accumulating(2, 2).build(), testKernels(), options);
  ASSERT_TRUE(executor.ok());
  keepZeroInputs(**executor);
  ASSERT_TRUE((*executor)->runStep().ok());
  const std::string path = testing::TempDir() + "/weft_trace.json";
  ASSERT_TRUE((*executor)->writeTrace(path).ok());
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  EXPECT_NE(text.str().find("collective.label"), std::string::npos);
  EXPECT_FALSE((*executor)->writeTrace("/no/such/folder/trace.json").ok());
}

}  // namespace
}  // namespace weft
