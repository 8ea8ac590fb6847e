// The comparison with one rank can fail: faults put into compiled plans are reported, each alone.
//
// The programs are made so that no fault is hidden: nothing in them is zero, symmetric, or equal on two ranks by
// chance, and every collective feeds a result that is compared.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/equivalence/training_step.h"

namespace weft::testing {
namespace {

TensorLine real(const std::string& name, std::vector<int64_t> shape) {
  return {name, std::move(shape)};
}

// A column-row pair with gelu between and behind: sums partial over tp before each non-linear operator.
TrainingProgram mlp() {
  TrainingProgram program;
  program.inputs = {real("x", {8, 6})};
  program.parameters = {real("a", {6, 8}), real("b", {8, 6}), real("w", {1, 6})};
  program.outputs = {real("y", {8, 6})};
  program.body = R"(
    %h = nn.matmul %x, %a {nn.strategy = {in = [["dp", ""], ["", "tp"]]}}
      : (tensor<8x6xf64>, tensor<6x8xf64>) -> tensor<8x8xf64>
    %g = nn.gelu %h {approximate = "tanh"} : (tensor<8x8xf64>) -> tensor<8x8xf64>
    %z = nn.matmul %g, %b {nn.strategy = {in = [["dp", "tp"], ["tp", ""]]}}
      : (tensor<8x8xf64>, tensor<8x6xf64>) -> tensor<8x6xf64>
    %y = nn.gelu %z {approximate = "tanh"} : (tensor<8x6xf64>) -> tensor<8x6xf64>
    %p = nn.mul %y, %w : (tensor<8x6xf64>, tensor<1x6xf64>) -> tensor<8x6xf64>
    %loss = nn.sum %p {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x6xf64>) -> tensor<f64>)";
  return program;
}

// A table split by rows: every rank knows where its rows begin.
TrainingProgram lookup() {
  TrainingProgram program;
  program.inputs = {{"ids", {8}, "i32", false, 12}};
  program.parameters = {real("table", {12, 6}), real("w", {1, 6})};
  program.outputs = {real("y", {8, 6})};
  program.body = R"(
    %y = nn.embedding %table, %ids {rows = 12 : i64, nn.strategy = {in = [["tp", ""], ["dp"]]}}
      : (tensor<12x6xf64>, tensor<8xi32>) -> tensor<8x6xf64>
    %t = nn.tanh %y : (tensor<8x6xf64>) -> tensor<8x6xf64>
    %p = nn.mul %t, %w : (tensor<8x6xf64>, tensor<1x6xf64>) -> tensor<8x6xf64>
    %loss = nn.sum %p {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x6xf64>) -> tensor<f64>)";
  return program;
}

// Columns are gathered, then rows are split again: gathers and slices.
TrainingProgram gathers() {
  TrainingProgram program;
  program.inputs = {real("x", {8, 6})};
  program.parameters = {real("a", {6, 8}), real("w", {1, 8})};
  program.outputs = {real("y", {8, 8})};
  program.body = R"(
    %h = nn.matmul %x, %a {nn.strategy = {in = [["dp", ""], ["", "tp"]]}}
      : (tensor<8x6xf64>, tensor<6x8xf64>) -> tensor<8x8xf64>
    %y = nn.softmax %h {nn.strategy = {in = [["dp,tp", ""]]}} : (tensor<8x8xf64>) -> tensor<8x8xf64>
    %p = nn.mul %y, %w : (tensor<8x8xf64>, tensor<1x8xf64>) -> tensor<8x8xf64>
    %loss = nn.sum %p {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x8xf64>) -> tensor<f64>)";
  return program;
}

// A program on its mesh, beside the one-rank answer.
struct Subject {
  std::string name;
  NamedTensors arguments;
  NamedTensors expected;
  plan::Plan plan;
};

class MutantsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    add("mlp", mlp(), {.mesh = "dp=2,tp=2"});
    add("lookup", lookup(), {.mesh = "dp=2,tp=2"});
    add("gathers", gathers(), {.mesh = "dp=2,tp=2"});
    add("mlp_zero3", mlp(), {.mesh = "dp=2,tp=2", .zero = 3});
    TrainingProgram microBatches = mlp();
    microBatches.outputs.clear();
    add("mlp_micro", microBatches, {.mesh = "dp=2,tp=2,micro=2"});
  }

  void add(const std::string& name, const TrainingProgram& program, const CompileRequest& request) {
    Subject subject{name, randomArguments(program, 5), {}, {}};
    const absl::StatusOr<NamedTensors> one = trainOnce(program, {.mesh = "dp=1,tp=1"}, subject.arguments);
    ASSERT_TRUE(one.ok()) << one.status();
    const absl::StatusOr<plan::Plan> plan = compileText(moduleText(program, request));
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status();
    subject.expected = *one;
    subject.plan = *plan;
    const absl::StatusOr<NamedTensors> many = runPlan(subject.plan, subject.arguments);
    ASSERT_TRUE(many.ok()) << name << ": " << many.status();
    ASSERT_EQ(difference(subject.expected, *many), "") << name << " without a fault";
    subjects_.push_back(std::move(subject));
  }

  // Puts `fault` into every instruction it applies to, one at a time. It returns false where it does not apply. A plan
  // that the runtime refuses counts as caught too.
  int64_t eachInstruction(const std::function<bool(plan::Plan&, plan::Instruction&)>& fault) {
    int64_t mutants = 0;
    for (const Subject& subject : subjects_) {
      for (int f = 0; f < subject.plan.functions_size(); ++f) {
        for (int i = 0; i < subject.plan.functions(f).instructions_size(); ++i) {
          plan::Plan mutant = subject.plan;
          plan::Instruction& instruction = *mutant.mutable_functions(f)->mutable_instructions(i);
          if (mutant.functions(f).kind() != plan::INIT && fault(mutant, instruction)) {
            ++mutants;
            expectCaught(subject, std::move(mutant),
                         absl::StrCat(subject.plan.functions(f).name(), " instruction ", i, " ", instruction.label()));
          }
        }
      }
    }
    return mutants;
  }

  static void expectCaught(const Subject& subject, plan::Plan mutant, const std::string& place) {
    mutant.clear_checksum();
    const absl::StatusOr<NamedTensors> actual = runPlan(std::move(mutant), subject.arguments);
    EXPECT_TRUE(!actual.ok() || !difference(subject.expected, *actual).empty())
        << subject.name << ": no difference, fault in " << place;
  }

  std::vector<Subject> subjects_;
};

bool isKind(const plan::Instruction& instruction, plan::CollectiveKind kind) {
  return instruction.what_case() == plan::Instruction::kCollective && instruction.collective().kind() == kind;
}

// Each rank keeps what it has; in a bucket only the first tensor is copied, so buckets are skipped.
TEST_F(MutantsTest, DroppedAllReduce) {
  const int64_t mutants = eachInstruction([](plan::Plan&, plan::Instruction& instruction) {
    if (!isKind(instruction, plan::ALL_REDUCE) || instruction.inputs_size() != 1) {
      return false;
    }
    instruction.set_kernel("reshape");
    return true;
  });
  EXPECT_GE(mutants, 4);
}

// One tensor of a bucket is not reduced.
TEST_F(MutantsTest, DroppedFromABucket) {
  const int64_t mutants = eachInstruction([](plan::Plan&, plan::Instruction& instruction) {
    if (!isKind(instruction, plan::ALL_REDUCE) || instruction.inputs_size() < 2) {
      return false;
    }
    instruction.mutable_inputs()->RemoveLast();
    instruction.mutable_outputs()->RemoveLast();
    return true;
  });
  EXPECT_GE(mutants, 1);
}

// The reduction before gelu reduces by maximum: what reaches the non-linear operator is no sum.
TEST_F(MutantsTest, OtherReduction) {
  const int64_t mutants = eachInstruction([](plan::Plan&, plan::Instruction& instruction) {
    if (!isKind(instruction, plan::ALL_REDUCE) && !isKind(instruction, plan::REDUCE_SCATTER)) {
      return false;
    }
    instruction.mutable_collective()->set_reduction(plan::MAX);
    return true;
  });
  EXPECT_GE(mutants, 5);
}

// dp for tp and tp for dp.
TEST_F(MutantsTest, SwappedGroups) {
  const int64_t mutants = eachInstruction([](plan::Plan& plan, plan::Instruction& instruction) {
    if (instruction.what_case() != plan::Instruction::kCollective || isKind(instruction, plan::PERMUTE)) {
      return false;
    }
    plan::GroupSet other;
    const plan::GroupSet& set = plan.group_sets(static_cast<int>(instruction.collective().group_set()));
    if (set.groups_size() != 2) {
      return false;
    }
    for (int member = 0; member < 2; ++member) {
      plan::GroupSet::Group* group = other.add_groups();
      group->add_ranks(set.groups(0).ranks(member));
      group->add_ranks(set.groups(1).ranks(member));
    }
    *plan.add_group_sets() = other;
    instruction.mutable_collective()->set_group_set(static_cast<uint32_t>(plan.group_sets_size() - 1));
    return true;
  });
  EXPECT_GE(mutants, 6);
}

// Members of a gather in the wrong order.
TEST_F(MutantsTest, TurnedGroups) {
  const int64_t mutants = eachInstruction([](plan::Plan& plan, plan::Instruction& instruction) {
    if (!isKind(instruction, plan::ALL_GATHER) && !isKind(instruction, plan::REDUCE_SCATTER) &&
        !isKind(instruction, plan::ALL_TO_ALL)) {
      return false;
    }
    plan::GroupSet other = plan.group_sets(static_cast<int>(instruction.collective().group_set()));
    for (plan::GroupSet::Group& group : *other.mutable_groups()) {
      std::reverse(group.mutable_ranks()->begin(), group.mutable_ranks()->end());
    }
    *plan.add_group_sets() = other;
    instruction.mutable_collective()->set_group_set(static_cast<uint32_t>(plan.group_sets_size() - 1));
    return true;
  });
  EXPECT_GE(mutants, 2);
}

// Every rank takes the origin of the first: rows of a table, slices.
TEST_F(MutantsTest, WrongOrigin) {
  const int64_t mutants = eachInstruction([](plan::Plan& plan, plan::Instruction& instruction) {
    for (plan::Scalar& scalar : *instruction.mutable_scalars()) {
      if (scalar.column() < 0) {
        continue;
      }
      scalar.set_immediate(scalar.immediate() + plan.rank_table().values(static_cast<int>(scalar.column())));
      scalar.set_column(-1);
      return true;
    }
    return false;
  });
  EXPECT_GE(mutants, 2);
}

// Every micro-batch reads the rows of the first.
TEST_F(MutantsTest, WrongMicroBatch) {
  const int64_t mutants = eachInstruction([](plan::Plan&, plan::Instruction& instruction) {
    bool changed = false;
    for (plan::Scalar& scalar : *instruction.mutable_scalars()) {
      changed |= scalar.micro_batch_factor() != 0;
      scalar.set_micro_batch_factor(0);
    }
    return changed;
  });
  EXPECT_GE(mutants, 2);
}

}  // namespace
}  // namespace weft::testing
