// Plan files: round trip, determinism, and a corpus of damaged and inconsistent plans.
#include "runtime/plan/plan_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <random>

#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/exec/executor.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"

namespace weft {
namespace {

// Something of everything: named tensors, constants, a table, scalars, attributes, groups, a permute.
PlanBuilder sample() {
  PlanBuilder b(2, 2, 2);
  const uint32_t x = b.buffer(plan::INPUT, DType::kF32, {2, 4});
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {4});
  const uint32_t constant = b.buffer(plan::CONSTANT, DType::kF32, {1});
  b.raw().mutable_buffers(static_cast<int>(constant))->set_data(std::string(4, '\0'));
  const uint32_t part = b.buffer(plan::ACTIVATION, DType::kF32, {4});
  const uint32_t whole = b.buffer(plan::TRANSIENT, DType::kF32, {8});
  const uint32_t half = b.buffer(plan::TRANSIENT, DType::kF32, {4});
  b.named("x", plan::TENSOR_INPUT, x, {2, 8}, 1);
  b.named("w", plan::TENSOR_PARAMETER, w, {7}, 0);
  plan::RankTable* table = b.raw().mutable_rank_table();
  table->set_columns(1);
  table->add_values(1);
  table->add_values(0);
  plan::Instruction* add = b.kernel(1, "add", {b.view(x, {4}), constant}, {part});
  (*add->mutable_attributes())["rate"].set_real(0.5);
  (*add->mutable_attributes())["axes"].mutable_integers()->add_values(1);
  add->add_scalars()->set_column(0);
  const uint32_t group = b.allRanks();
  plan::Collective* gather = b.collective(1, plan::ALL_GATHER, {part}, {whole});
  gather->set_group_set(group);
  plan::Collective* scatter = b.collective(1, plan::REDUCE_SCATTER, {whole}, {half});
  scatter->set_group_set(group);
  b.collective(1, plan::PERMUTE, {half}, {part})->set_source_column(0);
  b.kernel(1, "add", {w, part}, {w});
  return b;
}

TEST(PlanFile, RoundTripsAndIsDeterministic) {
  const plan::Plan plan = sample().build();
  const std::string path = testing::TempDir() + "/weft_test.plan";
  ASSERT_TRUE(writePlan(plan, path).ok());
  const auto read = readPlan(path);
  ASSERT_TRUE(read.ok()) << read.status();
  plan::Plan copy = *read;
  EXPECT_NE(copy.checksum(), 0u);
  copy.set_checksum(0);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(copy, plan));
  EXPECT_EQ(serializePlan(plan).value(), serializePlan(*read).value());
  EXPECT_TRUE(Executor::create(*read, testKernels()).ok());
  EXPECT_FALSE(writePlan(plan, "/no/such/folder/a.plan").ok());
  EXPECT_EQ(readPlan("/no/such/folder/a.plan").status().code(), absl::StatusCode::kNotFound);
}

TEST(PlanFile, RefusesEveryTruncation) {
  const std::string bytes = serializePlan(sample().build()).value();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parsePlan(bytes.substr(0, length), "cut").ok()) << length << " of " << bytes.size();
  }
}

TEST(PlanFile, RefusesEveryFlippedBit) {
  const std::string bytes = serializePlan(sample().build()).value();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(parsePlan(damaged, "flipped").ok()) << "bit " << bit;
  }
}

// The checksum made right again, so that only validatePlan stands in the way: whatever it lets pass must run.
TEST(PlanFile, DamageBehindARightChecksumNeverCrashes) {
  const std::string bytes = serializePlan(sample().build()).value();
  const google::protobuf::LogSilencer silent;  // names that are no UTF-8 any more
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + i % 3; ++k) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    plan::Plan plan;
    if (!plan.ParseFromString(damaged) || !validatePlan(plan).ok()) {
      continue;
    }
    // Large regions are legal; they are not worth the time here.
    int64_t total = 0;
    for (const plan::Region& region : plan.memory().regions()) {
      total += region.bytes() * region.slots();
    }
    if (total < (1 << 20) && ++accepted % 16 == 0) {
      const auto executor = Executor::create(plan, testKernels());
      if (executor.ok()) {
        keepZeroInputs(**executor);
        (*executor)->runInit().IgnoreError();
        (*executor)->runStep().IgnoreError();
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

struct Mistake {
  const char* what;
  std::function<void(plan::Plan&)> make;
};

TEST(PlanFile, RefusesInconsistentPlans) {
  ASSERT_TRUE(validatePlan(sample().build()).ok()) << validatePlan(sample().build());
  const int64_t huge = INT64_MAX;
  const std::vector<Mistake> mistakes = {
      {"no ranks", [](plan::Plan& p) { p.set_ranks(0); }},
      {"many ranks", [&](plan::Plan& p) { p.set_ranks(huge); }},
      {"many micro-batches", [&](plan::Plan& p) { p.set_micro_batches(huge); }},
      {"region twice", [](plan::Plan& p) { *p.mutable_memory()->add_regions() = p.memory().regions(0); }},
      {"huge region", [&](plan::Plan& p) { p.mutable_memory()->mutable_regions(0)->set_bytes(huge); }},
      {"slots", [&](plan::Plan& p) { p.mutable_memory()->mutable_regions(0)->set_slots(2); }},
      {"ring of another class", [](plan::Plan& p) { p.mutable_memory()->mutable_regions(0)->set_ring(1); }},
      {"no ring",
       [](plan::Plan& p) {
         for (plan::Region& region : *p.mutable_memory()->mutable_regions()) {
           region.set_ring(region.memory() == plan::ACTIVATION ? 7 : 0);
         }
       }},
      {"huge ring",
       [](plan::Plan& p) {
         for (plan::Region& region : *p.mutable_memory()->mutable_regions()) {
           region.set_ring(region.memory() == plan::ACTIVATION ? UINT32_MAX : 0);
         }
         for (plan::Buffer& buffer : *p.mutable_buffers()) {
           buffer.set_ring(buffer.memory() == plan::ACTIVATION ? UINT32_MAX : 0);
         }
       }},
      {"negative offset", [](plan::Plan& p) { p.mutable_buffers(0)->set_offset(-64); }},
      {"huge offset", [&](plan::Plan& p) { p.mutable_buffers(0)->set_offset(huge - 3); }},
      {"odd offset", [](plan::Plan& p) { p.mutable_buffers(1)->set_offset(2); }},
      {"bytes", [](plan::Plan& p) { p.mutable_buffers(0)->set_bytes(8); }},
      {"shape", [&](plan::Plan& p) { p.mutable_buffers(0)->set_shape(0, huge); }},
      {"empty and huge shape",
       [&](plan::Plan& p) {
         p.mutable_buffers(0)->mutable_shape()->Clear();
         for (const int64_t size : {huge, huge, int64_t{0}}) {
           p.mutable_buffers(0)->add_shape(size);
         }
         p.mutable_buffers(0)->set_bytes(0);
       }},
      {"constant", [](plan::Plan& p) { p.mutable_buffers(2)->set_data("abc"); }},
      {"memory class", [](plan::Plan& p) { p.mutable_buffers(0)->set_memory(static_cast<plan::MemoryClass>(77)); }},
      {"table", [](plan::Plan& p) { p.mutable_rank_table()->add_values(3); }},
      {"columns", [&](plan::Plan& p) { p.mutable_rank_table()->set_columns(huge); }},
      {"group rank", [](plan::Plan& p) { p.mutable_group_sets(0)->mutable_groups(0)->set_ranks(1, 2); }},
      {"group twice", [](plan::Plan& p) { p.mutable_group_sets(0)->mutable_groups(0)->set_ranks(1, 0); }},
      {"group missing",
       [](plan::Plan& p) { p.mutable_group_sets(0)->mutable_groups(0)->mutable_ranks()->Truncate(1); }},
      {"tensor buffer", [](plan::Plan& p) { p.mutable_tensors(0)->set_buffer(99); }},
      {"tensor name", [](plan::Plan& p) { p.mutable_tensors(0)->set_name("w"); }},
      {"tensor type", [](plan::Plan& p) { p.mutable_tensors(0)->set_type(plan::I32); }},
      {"file shape", [](plan::Plan& p) { p.mutable_tensors(0)->set_file_shape(0, 3); }},
      {"slices", [](plan::Plan& p) { p.mutable_tensors(0)->add_slices(); }},
      {"slice offset", [](plan::Plan& p) { p.mutable_tensors(0)->mutable_slices(1)->set_offset(1, 5); }},
      {"slice valid", [&](plan::Plan& p) { p.mutable_tensors(0)->mutable_slices(1)->set_valid(1, huge); }},
      {"operand",
       [](plan::Plan& p) { p.mutable_functions(1)->mutable_instructions(0)->mutable_inputs(0)->set_buffer(9999); }},
      {"column",
       [](plan::Plan& p) { p.mutable_functions(1)->mutable_instructions(0)->mutable_scalars(0)->set_column(1); }},
      {"location", [](plan::Plan& p) { p.mutable_functions(1)->mutable_instructions(0)->set_location(5); }},
      {"nothing to do", [](plan::Plan& p) { p.mutable_functions(1)->mutable_instructions(0)->clear_what(); }},
      {"group set",
       [](plan::Plan& p) { p.mutable_functions(1)->mutable_instructions(1)->mutable_collective()->set_group_set(1); }},
      {"gather dim",
       [](plan::Plan& p) { p.mutable_functions(1)->mutable_instructions(1)->mutable_collective()->set_dim(1); }},
      {"collective outputs", [](plan::Plan& p) { p.mutable_functions(1)->mutable_instructions(1)->clear_outputs(); }},
      {"permute source", [](plan::Plan& p) { p.mutable_rank_table()->set_values(0, 2); }},
      {"schedules", [](plan::Plan& p) { p.add_schedules(); }},
      {"action function", [](plan::Plan& p) { p.mutable_schedules(0)->mutable_step(0)->set_function(2); }},
      {"action micro-batch", [](plan::Plan& p) { p.mutable_schedules(0)->mutable_step(0)->set_micro_batch(2); }},
      {"a rank waits for ever", [](plan::Plan& p) { p.mutable_schedules(1)->mutable_step()->RemoveLast(); }},
      {"ranks call different collectives",
       [](plan::Plan& p) {
         plan::Function* other = p.add_functions();
         *other = p.functions(1);
         other->mutable_instructions()->SwapElements(1, 2);
         p.mutable_schedules(1)->mutable_step(0)->set_function(2);
       }},
  };
  for (const Mistake& mistake : mistakes) {
    plan::Plan plan = sample().build();
    mistake.make(plan);
    const absl::Status status = validatePlan(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << mistake.what;
    EXPECT_FALSE(Executor::create(plan, testKernels()).ok()) << mistake.what;
  }
}

// Forward and backward functions over an activation, called in the given order: {function, micro-batch}, 1 is forward.
plan::Plan calls(const std::vector<std::pair<int, int64_t>>& order, int64_t slots) {
  PlanBuilder b(1, 4, slots);
  const uint32_t kept = b.buffer(plan::ACTIVATION, DType::kF32, {4});
  const uint32_t out = b.buffer(plan::OUTPUT, DType::kF32, {4});
  plan::Function* backward = b.raw().add_functions();
  backward->set_name("backward");
  backward->set_kind(plan::BACKWARD);
  b.kernel(1, "make", {}, {kept});
  b.kernel(2, "read", {kept}, {out});
  b.raw().mutable_schedules(0)->clear_step();
  for (const auto& [function, microBatch] : order) {
    plan::Action* action = b.raw().mutable_schedules(0)->add_step();
    action->set_function(static_cast<uint32_t>(function));
    action->set_micro_batch(microBatch);
  }
  return b.build();
}

TEST(PlanFile, RefusesMicroBatchesThatShareASlot) {
  const std::vector<std::pair<int, int64_t>> inOrder = {{1, 0}, {1, 1}, {2, 0}, {1, 2}, {2, 1}, {1, 3}, {2, 2}, {2, 3}};
  EXPECT_TRUE(validatePlan(calls(inOrder, 2)).ok());
  const absl::Status one = validatePlan(calls(inOrder, 1));
  EXPECT_EQ(one.message(),
            "plan is inconsistent: micro-batches 0 and 1 share slot 0 of 1 in activation ring 0 of stage 0: @forward "
            "of micro-batch "
            "1 comes before the last call for micro-batch 0; compile the plan again");
  // Two in flight at once, but 0 and 2 among them: two slots do not serve, three do.
  const std::vector<std::pair<int, int64_t>> apart = {{1, 0}, {1, 1}, {2, 1}, {1, 2}, {2, 0}, {1, 3}, {2, 2}, {2, 3}};
  EXPECT_EQ(validatePlan(calls(apart, 2)).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(validatePlan(calls(apart, 3)).ok());
}

TEST(PlanFile, NamesBothFormatVersions) {
  plan::Plan plan = sample().build();
  plan.set_format_version(99);
  const absl::Status status = parsePlan(serializePlan(plan).value(), "new.plan").status();
  EXPECT_EQ(status.message(), "new.plan: plan format 99, this program reads format 4; compile the model again");
}

}  // namespace
}  // namespace weft
