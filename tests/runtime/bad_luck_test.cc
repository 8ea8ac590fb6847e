// What an executor says when something goes wrong that is not the plan's fault: kernels that throw, numbers that are
// not finite, inputs that nobody wrote, parameters that are not there, threads that cannot be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/io/parameters.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"
#include "tests/support/files.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string messageOf(const absl::Status& status) {
  return std::string(status.message());
}

absl::Status write(Executor& executor, const std::string& name, const std::vector<float>& values) {
  return executor.writeTensor(name, values.data(), values.size() * sizeof(float));
}

std::unique_ptr<Executor> created(plan::Plan plan, const KernelRegistry& kernels, const ExecutorOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Executor>> executor = Executor::create(std::move(plan), kernels, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  return executor.ok() ? *std::move(executor) : nullptr;
}

enum class Thrown { kNothing, kBadAlloc, kError, kInteger };

void raise(Thrown what) {
  switch (what) {
    case Thrown::kNothing:
      return;
    case Thrown::kBadAlloc:
      throw std::bad_alloc();
    case Thrown::kError:
      throw std::runtime_error("could not execute a primitive");
    case Thrown::kInteger:
      throw 7;
  }
}

// Every rank runs "trap", which throws on rank 1, then meets the others in an all_reduce.
PlanBuilder trapped() {
  PlanBuilder b(3, 1);
  plan::RankTable* table = b.raw().mutable_rank_table();
  table->set_columns(1);
  for (const int64_t rank : {0, 1, 2}) {
    table->add_values(rank);
  }
  const uint32_t x = b.buffer(plan::TRANSIENT, DType::kF32, {4});
  b.kernel(1, "trap", {}, {x})->add_scalars();
  b.collective(1, plan::ALL_REDUCE, {x}, {x})->set_group_set(b.allRanks());
  return b;
}

KernelRegistry trapKernels(Thrown atRun, Thrown atCreation = Thrown::kNothing) {
  KernelRegistry kernels = testKernels();
  kernels.add("trap", [=](const KernelSpec&) {
    raise(atCreation);
    return functionKernel([=](const KernelArguments& args) {
      raise(args.scalars[0] == 1 ? atRun : Thrown::kNothing);
      return absl::OkStatus();
    });
  });
  return kernels;
}

TEST(BadLuck, KernelsThatThrowStopAllRanks) {
  for (const auto& [thrown, text] :
       {std::pair{Thrown::kBadAlloc, "out of memory"}, std::pair{Thrown::kError, "could not execute a primitive"},
        std::pair{Thrown::kInteger, "an exception of an unknown type"}}) {
    const auto executor = created(trapped().build(), trapKernels(thrown));
    const absl::Status status = executor->runStep();
    EXPECT_THAT(messageOf(status),
                AllOf(HasSubstr("rank 1, operator trap.label (model.cc:42), kernel trap"), HasSubstr(text)));
    EXPECT_EQ(executor->runStep(), status);

    const auto prepared = Executor::create(trapped().build(), trapKernels(Thrown::kNothing, thrown));
    EXPECT_THAT(messageOf(prepared.status()), AllOf(HasSubstr("operator trap.label (model.cc:42)"), HasSubstr(text)));
  }
}

// y = x + c in the step, with a sum over the ranks.
PlanBuilder sums() {
  PlanBuilder b(2, 1);
  const uint32_t x = b.buffer(plan::INPUT, DType::kF32, {2, 3});
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {2, 3});
  const uint32_t y = b.buffer(plan::TRANSIENT, DType::kF32, {2, 3});
  const uint32_t z = b.buffer(plan::OUTPUT, DType::kF32, {2, 3});
  b.raw().mutable_buffers(static_cast<int>(y))->set_label("h0.sum");
  b.named("x", plan::TENSOR_INPUT, x, {4, 3}, 0);
  b.named("w", plan::TENSOR_PARAMETER, w, {4, 3}, 0);
  b.named("z", plan::TENSOR_OUTPUT, z, {4, 3}, 0);
  b.kernel(1, "add", {x, w}, {y});
  b.collective(1, plan::ALL_REDUCE, {y}, {z})->set_group_set(b.allRanks());
  return b;
}

// Rank 1 has the two numbers at [0, 1]; rank 0 another x there.
absl::Status stepOn(const ExecutorOptions& options, float x, float w, float elsewhere = 1) {
  const auto executor = created(sums().build(), testKernels(), options);
  std::vector<float> input(12, 1);
  input[1] = elsewhere;
  input[7] = x;
  std::vector<float> parameter(12, 1);
  parameter[7] = w;
  WEFT_RETURN_IF_ERROR(write(*executor, "x", input));
  WEFT_RETURN_IF_ERROR(write(*executor, "w", parameter));
  return executor->runStep();
}

TEST(BadLuck, FiniteCheckNamesWhereItBegan) {
  const float most = std::numeric_limits<float>::max();
  ExecutorOptions checks;
  checks.checkFinite = true;
  EXPECT_TRUE(stepOn(checks, 1, 1).ok());
  EXPECT_TRUE(stepOn({}, kNan, 1).ok()) << "off by default";
  EXPECT_EQ(
      messageOf(stepOn(checks, most, most)),
      "rank 1, operator add.label (model.cc:42), kernel add: output 0, 'h0.sum' [2, 3], has inf at [0, 1] (1 of 6 "
      "values are not finite)");
  EXPECT_THAT(messageOf(stepOn(checks, 1, kNan)),
              AllOf(HasSubstr("has nan at [0, 1]"), HasSubstr("input 1, '' [2, 3], had a nan before")));
  // An infinity that somebody put there is passed along; two that cancel are not.
  EXPECT_TRUE(stepOn(checks, -kInfinity, 1, -kInfinity).ok());
  EXPECT_THAT(messageOf(stepOn(checks, -kInfinity, kInfinity)), HasSubstr("has nan at [0, 1]"));
  // The sum over the ranks overflows, not the operator before.
  const absl::Status reduced = [&] {
    const auto executor = created(sums().build(), testKernels(), checks);
    EXPECT_TRUE(write(*executor, "x", std::vector<float>(12, most)).ok());
    EXPECT_TRUE(write(*executor, "w", std::vector<float>(12, 0)).ok());
    return executor->runStep();
  }();
  EXPECT_THAT(messageOf(reduced), AllOf(HasSubstr("kernel ALL_REDUCE"), HasSubstr("has inf at [0, 0]")));
}

TEST(BadLuck, ParametersThatAreNotFiniteAreNotSaved) {
  const testing::TemporaryDirectory dir;
  const auto executor = created(sums().build(), testKernels());
  ASSERT_TRUE(saveParameters(*executor, dir / "a").ok());
  const std::string before = testing::contentsOf(dir / "a");
  std::vector<float> w(12, 1);
  w[5] = kInfinity;
  w[7] = kNan;
  ASSERT_TRUE(write(*executor, "w", w).ok());
  const std::string message = messageOf(saveParameters(*executor, dir / "a"));
  EXPECT_THAT(message, AllOf(HasSubstr("'w': 2 of 12 values, the first is inf at [1, 2]"), HasSubstr(dir / "a"),
                             HasSubstr("--save-nonfinite")));
  EXPECT_EQ(testing::contentsOf(dir / "a"), before);
  EXPECT_TRUE(saveParameters(*executor, dir / "a", Saved::kParameters, NonFiniteValues::kSave).ok());
  EXPECT_NE(testing::contentsOf(dir / "a"), before);
}

TEST(BadLuck, InputsAreUsedUpByAStep) {
  const auto executor = created(sums().build(), testKernels());
  const std::string missing =
      "input 'x' was not written since the last step; write it before every step, or once with keepInput if it stays";
  EXPECT_EQ(messageOf(executor->runStep()), missing);
  ASSERT_TRUE(write(*executor, "x", std::vector<float>(12, 1)).ok());
  EXPECT_TRUE(executor->runStep().ok()) << "a step that was refused can be tried again";
  EXPECT_EQ(messageOf(executor->runStep()), missing);
  // A rank alone is not all; a rank twice neither.
  const std::vector<float> part(6, 2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(executor->writeSlice("x", 0, part.data(), 24).ok());
    EXPECT_THAT(messageOf(executor->runStep()), HasSubstr("'x' was not written since the last step on rank 1"));
  }
  ASSERT_TRUE(executor->writeSlice("x", 1, part.data(), 24).ok());
  EXPECT_TRUE(executor->runStep().ok());
}

TEST(BadLuck, RanksThatHoldNothingNeedNoInput) {
  PlanBuilder b(4, 1);
  b.named("x", plan::TENSOR_INPUT, b.buffer(plan::INPUT, DType::kF32, {2}), {3}, 0);  // ranks 2 and 3: pad alone
  const auto executor = created(b.build(), testKernels());
  const std::vector<float> part(2);
  ASSERT_TRUE(executor->writeSlice("x", 0, part.data(), 8).ok());
  EXPECT_FALSE(executor->runStep().ok());
  ASSERT_TRUE(executor->writeSlice("x", 1, part.data(), 4).ok());
  EXPECT_TRUE(executor->runStep().ok());
}

float firstOf(const Executor& executor, const std::string& name) {
  const absl::StatusOr<std::vector<char>> bytes = executor.readTensor(name);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  float value = 0;
  std::memcpy(&value, bytes->data(), sizeof(value));
  return value;
}

// One declaration serves every program over the store, whenever it is made and however its ranks hold the tensor.
TEST(BadLuck, KeptInputsStayInAllPrograms) {
  const auto train = created(sums().build(), testKernels());
  ExecutorOptions options;
  options.store = train->store();
  const auto early = created(sums().build(), testKernels(), options);
  const auto keep = [&](float value) {
    const std::vector<float> x(12, value);
    options.store->keepInput("x", x.data(), x.size() * sizeof(float));
  };
  keep(3);
  const auto late = created(sums().build(), testKernels(), options);
  const auto stepsShow = [&](float expected) {
    for (Executor* executor : {train.get(), early.get(), late.get(), train.get()}) {
      ASSERT_TRUE(executor->runStep().ok());
      EXPECT_EQ(firstOf(*executor, "z"), expected);
    }
  };
  ASSERT_TRUE(write(*train, "w", std::vector<float>(12, 0)).ok());
  stepsShow(6);  // over two ranks
  keep(5);
  stepsShow(10);
  ASSERT_TRUE(write(*early, "x", std::vector<float>(12, 1)).ok());
  ASSERT_TRUE(early->runStep().ok());
  EXPECT_EQ(firstOf(*early, "z"), 2) << "what is written holds for one step";
  stepsShow(10);
  options.store->keepInput("x", "short", 5);
  EXPECT_EQ(messageOf(train->runStep()), "tensor 'x' has 48 bytes, 5 were given");
}

TEST(BadLuck, AMistypedKeptInputIsNamed) {
  const auto executor = created(sums().build(), testKernels());
  executor->store()->keepInput("xx", "", 0);
  EXPECT_THAT(messageOf(executor->runStep()), HasSubstr("(kept: 'xx')"));
}

TEST(BadLuck, ProgramsFindAllTheyNeedInTheStore) {
  const auto train = created(sums().build(), testKernels());
  PlanBuilder other = sums();
  other.raw().set_program("evaluate");
  other.raw().mutable_tensors(1)->set_name("h0.w");
  ExecutorOptions options;
  options.store = train->store();
  const auto refused = Executor::create(other.build(), testKernels(), options);
  EXPECT_EQ(messageOf(refused.status()),
            "program 'evaluate' (dp=2) has parameter 'h0.w' on rank 0, the store has none of this name (nearest: 'w'); "
            "use the names of the program that trains it, or set allowNew to begin with its initial value");
  other.raw().mutable_tensors(1)->set_name("w");
  other.named("mean", plan::TENSOR_STATE, other.buffer(plan::STATE, DType::kF32, {1}), {1}, -1);
  EXPECT_THAT(messageOf(Executor::create(other.build(), testKernels(), options).status()),
              HasSubstr("has state 'mean' on rank 0"));
  options.allowNew = true;
  EXPECT_TRUE(Executor::create(other.build(), testKernels(), options).ok());
}

// In a process of another user, which may have so many threads and no more; root may always have more.
int exitWithThreads(rlim_t limit, int64_t ranks, int threadsPerRank) {
  return testing::inChild([=] {
    if (geteuid() == 0 && setuid(65534) != 0) {
      return 3;
    }
    const rlimit most = {limit, limit};
    setrlimit(RLIMIT_NPROC, &most);
    ExecutorOptions options;
    options.threadsPerRank = threadsPerRank;
    const auto executor = Executor::create(PlanBuilder(ranks, 1).build(), testKernels(), options);
    if (executor.ok()) {
      return (*executor)->runStep().ok() ? 0 : 2;
    }
    const bool said = messageOf(executor.status()).find("(ulimit -u)") != std::string::npos;
    return absl::IsResourceExhausted(executor.status()) && said ? 1 : 2;
  });
}

TEST(BadLuck, NoThreadsAreAnError) {
  EXPECT_EQ(exitWithThreads(1000000, 4, 2), 0);
  EXPECT_EQ(exitWithThreads(1, 4, 1), 1);
  // A thread for the rank, but too few for its libraries; OpenMP would end the process when it finds out.
  EXPECT_EQ(exitWithThreads(8, 1, 64), 1);
}

}  // namespace
}  // namespace weft
