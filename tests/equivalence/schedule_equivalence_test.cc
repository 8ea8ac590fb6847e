// Every schedule gives the bits of one rank that accumulates the same micro-batches: loss, every gradient, parameters
// and state after one update, on a GPT of four layers with dropout and on a residual network with batch norm, their
// stages cut anywhere, also inside layers.
//
//   weft_schedule_equivalence_test         a sample
//   weft_schedule_equivalence_test --all   all kinds x 2, 3, 4 ranks x 1, 2, 3 stages each x 1 to 9 micro-batches

#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/gpt/model.h"
#include "examples/pipeline_resnet/model.h"
#include "mlir/IR/Builders.h"
#include "passes/schedule/generate.h"
#include "runtime/base/status.h"
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
  config.batch = 3 * options.micro;
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

// With batch norm: statistics of each micro-batch, running ones among the state.
TEST(ScheduleEquivalenceTest, ResnetHasTheBitsOfOneRank) {
  expectOneRankAnswers(resnetModule, bitDifference, Combinations(7));
}

// The gradient of a tied weight is a sum over two stages, added in another order than on one rank.
TEST(ScheduleEquivalenceTest, GptWithATiedHeadHasTheAnswerOfOneRank) {
  const auto make = [](const CompileOptions& options) { return gptModule(options, true); };
  const Compare compare = [](const NamedTensors& one, const NamedTensors& many) { return difference(one, many); };
  expectOneRankAnswers(make, compare, Combinations(15));
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::testing::testEverything = weft::testing::wantsAll(argc, argv);
  return RUN_ALL_TESTS();
}
