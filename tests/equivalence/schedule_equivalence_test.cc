// Every schedule gives the bits of one rank that accumulates the same micro-batches: loss, every gradient, parameters
// and state after one update, on a GPT of four layers with dropout, its stages cut anywhere, also inside layers.
//
//   weft_schedule_equivalence_test         a sample
//   weft_schedule_equivalence_test --all   all kinds x 2, 3, 4 ranks x 1, 2, 3 stages each x 1 to 9 micro-batches

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/gpt/model.h"
#include "mlir/IR/Builders.h"
#include "passes/schedule/generate.h"
#include "runtime/base/status.h"
#include "tests/equivalence/training_step.h"
#include "tests/support/parse.h"
#include "tests/support/seeds.h"
#include "weft/weft.h"

namespace weft::testing {

bool testEverything = false;

namespace {

constexpr int64_t kBatch = 18;

// f64, so that plain kernels run: bits are compared, not sizes.
absl::StatusOr<std::string> gptModule(const CompileOptions& options) {
  Graph g;
  examples::GptConfig config;
  config.layers = 4;
  config.width = 8;
  config.heads = 2;
  config.context = 4;
  config.vocabulary = 11;
  config.batch = kBatch;
  config.dropout = 0.1;
  const examples::GptModel model = examples::buildGpt(g, config);
  WEFT_ASSIGN_OR_RETURN(const std::string text, logicalModule(g, model.loss, optim::AdamW{.lr = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
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
    HostTensor value(tensor.kind() == plan::TENSOR_INPUT ? DType::kI32 : DType::kF64, shape);
    for (int64_t i = 0; i < value.elements(); ++i) {
      if (tensor.kind() == plan::TENSOR_INPUT) {
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

absl::StatusOr<NamedTensors> oneRank(int64_t micro, NamedTensors* given) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, gptModule(optionsFor(micro)));
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

bool inSample(int64_t index) {
  return testEverything || index % 23 == 5;
}

TEST(ScheduleEquivalenceTest, EveryScheduleHasTheBitsOfOneRank) {
  int64_t index = 0;
  int64_t executed = 0;
  for (int64_t micro = 1; micro <= 9; ++micro) {
    NamedTensors given;
    const absl::StatusOr<NamedTensors> one = oneRank(micro, &given);
    ASSERT_TRUE(one.ok()) << one.status();
    for (const schedule::Kind kind : schedule::allKinds()) {
      for (int32_t ranks = 2; ranks <= 4; ++ranks) {
        for (int32_t stages = 1; stages <= 3; ++stages) {
          const bool legal = schedule::legal({kind, ranks, stages, static_cast<int32_t>(micro)}).ok();
          const bool runs = legal && kind != schedule::Kind::kSeq1F1B;
          if (!inSample(index++)) {
            continue;
          }
          const std::string name = absl::StrCat(schedule::kindName(kind), ", ", ranks, " ranks of ", stages,
                                                " stages, ", micro, " micro-batches");
          CompileOptions options = optionsFor(micro);
          options.schedule = schedule::kindName(kind);
          options.virtualStages = stages;
          const absl::StatusOr<std::string> text = gptModule(options);
          ASSERT_TRUE(text.ok()) << text.status();
          absl::StatusOr<plan::Plan> plan = compileText(cutEvenly(*text, ranks * stages));
          // What the library refuses the compiler refuses with the same reason.
          ASSERT_EQ(plan.ok(), runs) << name << ": " << plan.status();
          if (runs) {
            const absl::StatusOr<NamedTensors> many = runPlan(*std::move(plan), given);
            ASSERT_TRUE(many.ok()) << name << ": " << many.status();
            EXPECT_EQ(bitDifference(*one, *many), "") << name;
            ++executed;
          }
        }
      }
    }
  }
  EXPECT_GT(executed, 10);
  RecordProperty("executed", static_cast<int>(executed));
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::testing::testEverything = weft::testing::wantsAll(argc, argv);
  return RUN_ALL_TESTS();
}
