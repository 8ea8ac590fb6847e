// Every schedule gives the bits of one rank that accumulates the same micro-batches: loss, every gradient, parameters
// and state after one update, on a GPT of four layers with dropout and on a residual network with batch norm, their
// stages cut anywhere, also inside layers.
//
// And each pipeline rank performs its actions in the order of the schedule's table, which is the simulator's.
//
//   weft_schedule_equivalence_test         a sample
//   weft_schedule_equivalence_test --all   all kinds x 2, 3, 4 ranks x 1, 2, 3 stages each x 1 to 9 micro-batches

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "examples/gpt/model.h"
#include "examples/resnet/model.h"
#include "kernels/kernel.h"
#include "mlir/IR/Builders.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/simulate.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan_file.h"
#include "tests/equivalence/training_step.h"
#include "tests/support/parse.h"
#include "tests/support/seeds.h"
#include "weft/weft.h"

namespace weft::testing {

bool testEverything = false;

namespace {

// f64, so that plain kernels run: bits are compared, not sizes.
absl::StatusOr<std::string> inDoubles(Graph& g, const Tensor& loss, const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, logicalModule(g, loss, optim::AdamW{.lr = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

absl::StatusOr<std::string> gptModule(const CompileOptions& options, bool tied) {
  Graph g;
  examples::GptConfig config;
  config.layers = 4;
  config.width = 8;
  config.heads = 2;
  config.context = 4;
  config.vocabulary = 11;
  config.batch = 18;
  config.dropout = 0.1;
  config.tiedHead = tied;
  return inDoubles(g, examples::buildGpt(g, config).loss, options);
}

absl::StatusOr<std::string> resnetModule(const CompileOptions& options) {
  Graph g;
  examples::ResnetConfig config;
  config.batch = 3 * options.microBatches();
  config.rows = 6;
  config.columns = 6;
  config.classes = 11;
  config.stem = 3;
  config.widths = {4, 5};
  return inDoubles(g, examples::buildResnet(g, config).loss, options);
}

// The operators in as many stages of about equal length.
std::string cutEvenly(const std::string& text, int64_t stages) {
  Modules modules;
  mlir::OwningOpRef<mlir::ModuleOp> module = modules.parse(text);
  std::vector<mlir::Operation*> ops;
  module->walk([&](mlir::Operation* op) {
    if (op->getDialect() != nullptr && op->getDialect()->getNamespace() == "nn") {
      ops.push_back(op);
    }
  });
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto stage = static_cast<int64_t>(i) * stages / static_cast<int64_t>(ops.size());
    ops[i]->setAttr("nn.stage", mlir::Builder(module->getContext()).getI64IntegerAttr(stage));
  }
  std::string cut;
  llvm::raw_string_ostream stream(cut);
  module->print(stream);
  return cut;
}

NamedTensors arguments(const plan::Plan& plan) {
  std::mt19937_64 generator(11);
  NamedTensors made;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    const DType type = dtypeOf(tensor.type()) == DType::kI32 ? DType::kI32 : DType::kF64;
    HostTensor value(type, shape);
    for (int64_t i = 0; i < value.elements(); ++i) {
      if (type == DType::kI32) {
        value.data<int32_t>()[i] = static_cast<int32_t>(generator() % 11);
      } else {
        value.data<double>()[i] = static_cast<double>(generator() >> 11) * 0x1p-53 - 0.5;
      }
    }
    if (tensor.kind() == plan::TENSOR_INPUT || tensor.kind() == plan::TENSOR_PARAMETER) {
      made[tensor.name()] = std::move(value);
    }
  }
  return made;
}

CompileOptions optionsFor(int64_t micro) {
  CompileOptions options;
  options.micro = micro;
  options.gradientOutputs = true;
  return options;
}

using MakeModule = std::function<absl::StatusOr<std::string>(const CompileOptions&)>;
// What of the second answer is not as it should be; "" if all is.
using Compare = std::function<std::string(const NamedTensors&, const NamedTensors&)>;

absl::StatusOr<NamedTensors> oneRank(const MakeModule& make, int64_t micro, NamedTensors* given) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, make(optionsFor(micro)));
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan, compileText(text));
  *given = arguments(plan);
  return runPlan(std::move(plan), *given);
}

std::string bitDifference(const NamedTensors& expected, const NamedTensors& actual) {
  std::string names;
  for (const auto& [name, value] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end() || found->second.bytes != value.bytes) {
      absl::StrAppend(&names, name, " ");
    }
  }
  return names;
}

// All combinations, or each 23rd from `first` on.
class Combinations {
 public:
  explicit Combinations(int64_t first) : next_(first) {}
  bool take() {
    ++next_;
    return testEverything || next_ % 23 == 0;
  }

 private:
  int64_t next_;
};

struct Combination {
  schedule::Kind kind;
  int32_t ranks;
  int32_t stages;
  int64_t micro;

  bool runs() const {
    const bool legal = schedule::legal({kind, ranks, stages, static_cast<int32_t>(micro)}).ok();
    return legal && kind != schedule::Kind::kSeq1F1B;
  }
  std::string name() const {
    return absl::StrCat(schedule::kindName(kind), ", ", ranks, " ranks of ", stages, " stages, ", micro,
                        " micro-batches");
  }
};

void visitCombinations(int64_t micro, Combinations& combinations,
                       const std::function<void(const Combination&)>& visit) {
  for (const schedule::Kind kind : schedule::allKinds()) {
    for (int32_t ranks = 2; ranks <= 4; ++ranks) {
      for (int32_t stages = 1; stages <= 3; ++stages) {
        if (combinations.take()) {
          visit({kind, ranks, stages, micro});
        }
      }
    }
  }
}

void expectOneRankAnswers(const MakeModule& make, const Compare& compare, Combinations combinations) {
  int64_t executed = 0;
  for (int64_t micro = 1; micro <= 9; ++micro) {
    NamedTensors given;
    const absl::StatusOr<NamedTensors> one = oneRank(make, micro, &given);
    ASSERT_TRUE(one.ok()) << one.status();
    visitCombinations(micro, combinations, [&](const Combination& combination) {
      SCOPED_TRACE(combination.name());
      CompileOptions options = optionsFor(micro);
      options.schedule = schedule::kindName(combination.kind);
      options.virtualStages = combination.stages;
      const absl::StatusOr<std::string> text = make(options);
      ASSERT_TRUE(text.ok()) << text.status();
      absl::StatusOr<plan::Plan> plan = compileText(cutEvenly(*text, combination.ranks * combination.stages));
      // What the library refuses the compiler refuses with the same reason.
      ASSERT_EQ(plan.ok(), combination.runs()) << plan.status();
      if (plan.ok()) {
        const absl::StatusOr<NamedTensors> many = runPlan(*std::move(plan), given);
        ASSERT_TRUE(many.ok()) << many.status();
        EXPECT_EQ(compare(*one, *many), "");
        ++executed;
      }
    });
  }
  EXPECT_GT(executed, 10);
  ::testing::Test::RecordProperty("executed", static_cast<int>(executed));
}

TEST(ScheduleEquivalenceTest, GptHasTheBitsOfOneRank) {
  const auto make = [](const CompileOptions& options) { return gptModule(options, false); };
  expectOneRankAnswers(make, bitDifference, Combinations(0));
}

// Gradients of weights are added up by the products that make them.
TEST(ScheduleEquivalenceTest, FusedAccumulationHasTheBitsOfOneRank) {
  const auto make = [](CompileOptions options) {
    options.machine = "fused_accumulation = 1";
    return gptModule(options, false);
  };
  expectOneRankAnswers(make, bitDifference, Combinations(3));
}

// With batch norm: statistics of each micro-batch, running ones among the state.
TEST(ScheduleEquivalenceTest, ResnetHasTheBitsOfOneRank) {
  expectOneRankAnswers(resnetModule, bitDifference, Combinations(7));
}

// An operator on 4 x 4 matrices, and its stage.
struct StagedOp {
  std::string made;
  std::string kind;
  std::vector<std::string> operands;
  int stage = 0;
  std::string attributes;
};

// A program of these operators and the sum of the last one's elements, its loss; on one stage unless it is staged.
TrainingProgram programOf(const std::vector<StagedOp>& ops, bool isStaged) {
  const std::string type = typeText({4, 4});
  TrainingProgram made;
  made.parameters = {{"w", {4, 4}}, {"b", {4, 4}}, {"v", {4, 4}}};
  made.inputs = {{"x", {4, 4}}};
  const auto stageOf = [&](const StagedOp& op) {
    return isStaged ? absl::StrCat("nn.stage = ", op.stage, " : i64") : "";
  };
  for (const StagedOp& op : ops) {
    std::vector<std::string> attributes = {op.attributes, stageOf(op)};
    attributes.erase(std::remove(attributes.begin(), attributes.end(), ""), attributes.end());
    const std::string operands = absl::StrJoin(
        op.operands, ", ", [](std::string* out, const std::string& name) { absl::StrAppend(out, "%", name); });
    absl::StrAppend(&made.body, "    %", op.made, " = nn.", op.kind, " ", operands, " {",
                    absl::StrJoin(attributes, ", "), "} : (",
                    absl::StrJoin(std::vector<std::string>(op.operands.size(), type), ", "), ") -> ", type, "\n");
  }
  absl::StrAppend(&made.body, "    %loss = nn.sum %", ops.back().made, " {dims = array<i64: 0, 1>, ",
                  stageOf(ops.back()), isStaged ? ", " : "", "keep_dims = false} : (", type, ") -> tensor<f64>\n");
  return made;
}

// Each of these kinds gives the answer of one rank, where each of two submeshes has two of the program's four stages.
void expectTheAnswerOfOneRank(const std::vector<StagedOp>& ops, const std::vector<std::string>& kinds,
                              const std::string& meshes = "") {
  const TrainingProgram serial = programOf(ops, false);
  const NamedTensors given = randomArguments(serial, 1);
  const absl::StatusOr<NamedTensors> one = trainOnce(serial, {}, given);
  ASSERT_TRUE(one.ok()) << one.status();
  std::string module = moduleText(programOf(ops, true), {});
  if (!meshes.empty()) {
    module =
        absl::StrReplaceAll(module, {{"nn.options", absl::StrCat("dist.stage_meshes = \"", meshes, "\", nn.options")}});
  }
  for (const std::string& kind : kinds) {
    const std::string scheduled = absl::StrCat("zero = 0 : i64, virtual = 2 : i64, schedule = \"", kind, "\"");
    EXPECT_EQ(differenceFromOneRank(absl::StrReplaceAll(module, {{"zero = 0 : i64", scheduled}}), *one, given), "")
        << kind;
  }
}

// At the turn of a V two stages share a submesh, so that nothing is sent between them; and no submesh waits for a
// gradient of stage 0, which has no parameter. What stage 1 needs of stage 2 for its weights is then read by nothing
// else but, with one micro-batch, the update: the gradient of an addend.
TEST(ScheduleEquivalenceTest, GradientsThatOnlyWeightsOfTheStageBeforeNeed) {
  expectTheAnswerOfOneRank({{"t", "tanh", {"x"}, 0, ""},
                            {"h", "mul", {"t", "w"}, 1, ""},
                            {"u", "tanh", {"h"}, 1, ""},
                            {"m", "add", {"u", "b"}, 2, ""},
                            {"e", "exp", {"m"}, 2, ""},
                            {"p", "mul", {"e", "v"}, 3, ""}},
                           {"zb_v", "v_half", "v_min", "zb_interleaved"});
}

// Stage 3 reads what `generator` makes before stage 1 in the program, and after it in the step. In interleaved
// schedules both are on submesh 1, in a V stages 1 and 2 are.
std::vector<StagedOp> branchOfTheLastStageFirst(int generator) {
  return {{"c", "fill", {}, generator, "value = 0.5 : f64"},
          {"t", "mul", {"x", "w"}, 0, ""},
          {"g", "mul", {"x", "b"}, 3, ""},
          {"i", "mul", {"g", "c"}, 3, ""},
          {"s", "mul", {"x", "c"}, 2, ""},
          {"h", "mul", {"t", "v"}, 1, ""},
          {"j", "mul", {"h", "c"}, 1, ""},
          {"k", "mul", {"j", "s"}, 2, ""},
          {"l", "mul", {"k", "i"}, 3, ""}};
}

TEST(ScheduleEquivalenceTest, WhatIsGeneratedStandsWhereItIsReadFirst) {
  const std::vector<std::string> kinds = {"interleaved", "zb_interleaved", "zb_v", "v_half", "v_min"};
  for (const int generator : {0, 1}) {
    expectTheAnswerOfOneRank(branchOfTheLastStageFirst(generator), kinds);
    expectTheAnswerOfOneRank(branchOfTheLastStageFirst(generator), kinds, "dp=2;dp=1");
  }
}

// The gradient of a tied weight is a sum over two stages, added in another order than on one rank.
TEST(ScheduleEquivalenceTest, GptWithATiedHeadHasTheAnswerOfOneRank) {
  const auto make = [](const CompileOptions& options) { return gptModule(options, true); };
  const Compare compare = [](const NamedTensors& one, const NamedTensors& many) { return difference(one, many); };
  expectOneRankAnswers(make, compare, Combinations(15));
}

std::string callName(plan::FunctionKind kind, int64_t stage, int64_t microBatch) {
  return absl::StrCat(plan::FunctionKind_Name(kind), " of stage ", stage, " for ", microBatch);
}

// The calls that a row of the table asks of a submesh: a whole backward is both halves where its stage has halves, and
// a half without operators is no function.
std::vector<std::string> expectedCalls(const plan::Plan& submesh, const std::vector<schedule::Action>& order) {
  std::set<std::pair<plan::FunctionKind, int64_t>> functions;
  for (const plan::Function& function : submesh.functions()) {
    functions.insert({function.kind(), function.stage()});
  }
  const std::map<schedule::ActionKind, std::vector<plan::FunctionKind>> halves = {
      {schedule::ActionKind::kForward, {plan::FORWARD}},
      {schedule::ActionKind::kBackward, {plan::BACKWARD, plan::INPUT_GRAD, plan::WEIGHT_GRAD}},
      {schedule::ActionKind::kInputGrad, {plan::INPUT_GRAD}},
      {schedule::ActionKind::kWeightGrad, {plan::WEIGHT_GRAD}}};
  std::vector<std::string> calls;
  for (const schedule::Action& action : order) {
    for (const plan::FunctionKind kind : halves.at(action.kind)) {
      if (functions.count({kind, action.stage}) > 0) {
        calls.push_back(callName(kind, action.stage, action.micro));
      }
    }
  }
  return calls;
}

// What a rank called for the micro-batches of its steps, in its order.
std::vector<std::string> executedCalls(const Executor& executor, int64_t rank) {
  const absl::StatusOr<std::vector<ExecutedAction>> executed = executor.executedActions(rank);
  EXPECT_TRUE(executed.ok()) << executed.status();
  std::vector<std::string> calls;
  for (const ExecutedAction& action : *executed) {
    if (action.kind != plan::INIT && action.kind != plan::PROLOGUE && action.kind != plan::UPDATE) {
      calls.push_back(callName(action.kind, action.stage, action.microBatch));
    }
  }
  return calls;
}

// Executes a step and compares each rank's calls with its submesh's row. "" if they agree, else the first rank that
// does not with both lists.
std::string orderDifference(plan::Plan plan, const schedule::Table& table) {
  const KernelRegistry kernels = cpuKernels({.plainMatmul = true});
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::create(std::move(plan), kernels, {.threadsPerRank = 1, .profile = true});
  if (!executor.ok()) {
    return executor.status().ToString();
  }
  keepZeroInputs(**executor);
  for (const absl::Status& status : {(*executor)->runInit(), (*executor)->runStep()}) {
    if (!status.ok()) {
      return status.ToString();
    }
  }
  const plan::Plan& run = (*executor)->plan();
  for (int64_t rank = 0; rank < run.ranks(); ++rank) {
    const int64_t submesh = rank * run.submeshes_size() / run.ranks();
    const std::vector<std::string> expected =
        expectedCalls(run.submeshes(static_cast<int>(submesh)), table.orders[submesh]);
    const std::vector<std::string> executed = executedCalls(**executor, rank);
    if (expected != executed) {
      return absl::StrCat("rank ", rank, " executed ", absl::StrJoin(executed, ", "), "; its row says ",
                          absl::StrJoin(expected, ", "));
    }
  }
  return "";
}

// The order in which the simulated run starts the actions of each rank.
schedule::Table simulatedOrder(const schedule::Table& table) {
  const absl::StatusOr<schedule::Simulation> run = schedule::simulate(table, schedule::Times::uniform(1, 1, 1, 0.1));
  EXPECT_TRUE(run.ok()) << run.status();
  schedule::Table sorted = table;
  for (size_t rank = 0; rank < sorted.orders.size(); ++rank) {
    std::vector<size_t> places(sorted.orders[rank].size());
    std::iota(places.begin(), places.end(), 0);
    std::sort(places.begin(), places.end(),
              [&](size_t a, size_t b) { return run->starts[rank][a] < run->starts[rank][b]; });
    for (size_t i = 0; i < places.size(); ++i) {
      sorted.orders[rank][i] = table.orders[rank][places[i]];
    }
  }
  return sorted;
}

// A plan of the kind, or of the table where one is given, and what it should do.
struct Ordered {
  plan::Plan plan;
  schedule::Table table;
};

absl::StatusOr<Ordered> compileOrdered(const schedule::Request& request, const std::string& csv = "") {
  Ordered ordered;
  WEFT_ASSIGN_OR_RETURN(ordered.table, csv.empty() ? schedule::generate(request) : schedule::parseCsv(csv));
  CompileOptions options = optionsFor(ordered.table.micros());
  options.schedule = csv.empty() ? schedule::kindName(request.kind) : "table";
  options.scheduleTable = csv;
  options.virtualStages = csv.empty() ? request.virtualStages : 0;
  WEFT_ASSIGN_OR_RETURN(const std::string text, gptModule(options, false));
  WEFT_ASSIGN_OR_RETURN(ordered.plan, compileText(cutEvenly(text, ordered.table.stages())));
  return ordered;
}

// Not what a generator would make: the second micro-batch overtakes the first in the backward pass of stage 1, and
// stage 0 cuts one of its backwards.
constexpr char kOwnTable[] =
    "0F0,0F1,0F2,0B1,0I0,0B2,0W0\n"
    "1F0,1F1,1B1,1B0,1F2,1B2\n";

TEST(ScheduleOrderTest, ExecutedOrderIsSimulatedOrderIsTheTables) {
  using schedule::Kind;
  const std::vector<schedule::Request> requests = {
      {Kind::k1F1B, 3, 1, 6},  {Kind::kGpipe, 2, 1, 3},         {Kind::kInterleaved, 2, 2, 6},
      {Kind::kZbH1, 3, 1, 6},  {Kind::kZbInterleaved, 2, 2, 3}, {Kind::kZbV, 2, 2, 6},
      {Kind::kVHalf, 2, 2, 6}, {Kind::kDualPipeV, 2, 2, 6},
  };
  for (size_t i = 0; i <= requests.size(); ++i) {
    const bool own = i == requests.size();
    const std::string name = own ? "own table" : schedule::kindName(requests[i].kind);
    absl::StatusOr<Ordered> ordered = own ? compileOrdered({}, kOwnTable) : compileOrdered(requests[i]);
    ASSERT_TRUE(ordered.ok()) << name << ": " << ordered.status();
    EXPECT_EQ(simulatedOrder(ordered->table), ordered->table) << name;
    EXPECT_EQ(orderDifference(std::move(ordered->plan), ordered->table), "") << name;
  }
}

// The comparison can fail: two actions of one row are exchanged in the plan, as a faulty executor would.
TEST(ScheduleOrderTest, ExchangedActionsAreSeen) {
  absl::StatusOr<Ordered> ordered = compileOrdered({schedule::Kind::kGpipe, 2, 1, 3});
  ASSERT_TRUE(ordered.ok()) << ordered.status();
  auto* step = ordered->plan.mutable_submeshes(1)->mutable_schedules(0)->mutable_step();
  int first = 0;
  while (ordered->plan.submeshes(1).functions(static_cast<int>(step->Get(first).function())).kind() != plan::FORWARD) {
    ++first;
  }
  step->SwapElements(first, first + 1);
  EXPECT_THAT(orderDifference(std::move(ordered->plan), ordered->table),
              ::testing::HasSubstr("rank 1 executed FORWARD of stage 1 for 1, FORWARD of stage 1 for 0"));
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::testing::testEverything = weft::testing::wantsAll(argc, argv);
  return RUN_ALL_TESTS();
}
