// Mode auto against plans that people write by hand (hand_plans.h), predicted by the same model: none that fits in
// memory takes less time than what auto finds.
//
//   weft_never_worse_test                    two pairs of a model and a machine
//   weft_never_worse_test --all              twelve
//   weft_never_worse_test --pair=NAME        one; its worst hand-written plans on the standard output, too
//   weft_never_worse_test --freedoms         also what auto's plan takes longer without each of its freedoms
// Each prints, for every family of plans by hand, the best of it: seconds of a step, bytes, ratio to auto.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/explain/freedom_prices.h"
#include "runtime/base/status.h"
#include "tests/equivalence/hand_plans.h"
#include "tests/equivalence/model_problem.h"
#include "tests/support/seeds.h"

namespace weft::testing {

struct Pair {
  std::string name;
  KnownModel model;
  std::string machine;
  int64_t devices = 1;
  int64_t perNode = 8;
  int64_t percent = 0;  // of the memory of auto's plan without a limit (withinPercent); 0: the machine's
  bool sample = false;  // in the tests of every run
};

bool allPairs = false;
bool withFreedoms = false;
std::string onePair;

namespace {

LayerSizes sizesOf(int64_t batch, int64_t tokens, int64_t width, int64_t hidden, int64_t vocabulary) {
  const int64_t heads = width / 128;
  return {.batch = batch,
          .tokens = tokens,
          .width = width,
          .heads = heads,
          .headWidth = 128,
          .groups = heads,
          .hidden = hidden,
          .vocabulary = vocabulary};
}

KnownModel smallGpt(int64_t layers, int64_t width, int64_t batch) {
  return gptModel(
      "GPT",
      {.vocabulary = 51200, .layers = layers, .width = width, .heads = width / 128, .context = 1024, .batch = batch});
}

KnownModel gpt175b() {
  return gptModel("gpt175b",
                  {.vocabulary = 51200, .layers = 96, .width = 12288, .heads = 96, .context = 2048, .batch = 1536});
}

KnownModel smallLlama(int64_t layers) {
  LayerSizes size = sizesOf(64, 2048, 4096, 14336, 32000);
  size.groups = 8;
  return llamaModel("LLaMA", size, layers);
}

KnownModel smallExperts() {
  LayerSizes size = sizesOf(64, 512, 1024, 2048, 32000);
  size.experts = 8;
  return expertsModel("experts", size, 4);
}

std::vector<Pair> pairs() {
  const KnownModel t5 = t5Model("T5", sizesOf(64, 512, 1024, 4096, 32128), 3);
  const KnownModel unet = unetModel("U-Net", {.batch = 64, .image = 128, .channels = 64, .levels = 3, .classes = 16});
  const KnownModel wide =
      wideModel("wide", {.batch = 8192, .fields = 32, .rows = 2'000'000, .width = 64, .hidden = {1024, 512, 256, 2}});
  const KnownModel cpuGpt =
      gptModel("GPT", {.vocabulary = 512, .layers = 4, .width = 256, .heads = 4, .context = 64, .batch = 16});
  return {
      {"gpt-a100-8", smallGpt(4, 2048, 32), "a100-80g", 8},
      {"gpt-a100-16", smallGpt(8, 2048, 64), "a100-80g", 16},
      {"gpt-a100-64-tight", smallGpt(8, 4096, 128), "a100-80g", 64, 8, 60},
      {"gpt-cpu-4", cpuGpt, "cpu", 4, 4, 0, true},
      {"llama-a100-16", smallLlama(4), "a100-80g", 16},
      {"llama-h100-8", smallLlama(4), "h100-80g", 8},
      {"t5-a100-8", t5, "a100-80g", 8},
      {"t5-h100-16-tight", t5, "h100-80g", 16, 8, 60},
      {"experts-a100-16", smallExperts(), "a100-80g", 16},
      {"unet-a100-8", unet, "a100-80g", 8},
      {"wide-a100-8", wide, "a100-80g", 8, 8, 0, true},
      {"mlp-cpu-4-tight", mlpModel("MLP", 8192, {784, 2048, 2048, 2048, 10}), "cpu", 4, 4, 60},
  };
}

std::string figures(const Attempt& attempt, const Attempt& found) {
  return absl::StrFormat("%10.4g s  %8.3f GB  %6.3f", inSeconds(attempt.time),
                         static_cast<double>(attempt.peakBytes) / 1e9,
                         static_cast<double>(attempt.time) / static_cast<double>(found.time));
}

// One pair of a model and a machine.
class Contest {
 public:
  explicit Contest(const Pair& pair) : pair_(pair) {}

  absl::Status begin() {
    WEFT_ASSIGN_OR_RETURN(plain_, ModelProblem::create(pair_.model));
    if (pair_.model.hasSequence) {
      WEFT_ASSIGN_OR_RETURN(sequence_, ModelProblem::create(pair_.model, {.sequence = true}));
    }
    CompileOptions options = {.mode = Mode::kAuto, .devices = pair_.devices, .machine = pair_.machine};
    if (pair_.percent > 0) {
      WEFT_ASSIGN_OR_RETURN(const ClosedRequest open, closeRequest(plain_->graphs(), options, {}));
      options.memoryLimit = withinPercent(open.attempt, pair_.percent);
    }
    limit_ = options.memoryLimit;
    WEFT_ASSIGN_OR_RETURN(const ClosedRequest closed, closeRequest(plain_->graphs(), options, {}));
    found_ = closed.attempt;
    if (withFreedoms) {
      SearchMemory memory;
      freedoms_ = freedomPricesOf(plain_->graphs(), options, closed, memory);
    }
    return absl::OkStatus();
  }

  void run() {
    const HandCase mine = {pair_.model, plain_->parameters(), pair_.devices, pair_.perNode, pair_.machine, limit_};
    for (const HandPlan& plan : handPlans(mine)) {
      const absl::StatusOr<Attempt> attempt = (plan.sequence ? sequence_ : plain_)->predict(plan.options);
      if (!attempt.ok()) {
        ++refused_;
        refusal_ = refusal_.empty() ? absl::StrCat(plan.family, ": ", attempt.status().ToString()) : refusal_;
        continue;
      }
      ++predicted_;
      expectNotBelowItsOwnBound(plan, *attempt);
      const auto [it, isFirst] = best_.try_emplace(plan.family, *attempt);
      if (isFirst || isBetter(*attempt, it->second)) {
        it->second = *attempt;
        wordsOf_.insert_or_assign(plan.family, plan);
      }
      if (!onePair.empty()) {
        std::cout << figures(*attempt, found_) << "  " << plan.family << ": " << planText(*attempt)
                  << (attempt->fits ? "\n" : ", does not fit\n");
      }
    }
  }

  // What a plan takes does not depend on what was asked before it.
  void expectSameAlone() const {
    for (const auto& [family, attempt] : best_) {
      const HandPlan& plan = wordsOf_.at(family);
      const auto alone = ModelProblem::create(pair_.model, {.sequence = plan.sequence});
      ASSERT_TRUE(alone.ok()) << alone.status();
      const absl::StatusOr<Attempt> again = (*alone)->predict(plan.options);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->time, attempt.time) << pair_.name << ", " << family << ": " << planText(attempt);
      EXPECT_EQ(again->peakBytes, attempt.peakBytes) << pair_.name << ", " << family << ": " << planText(attempt);
    }
  }

  void report() const {
    std::cout << pair_.name << ": " << pair_.devices << " devices of " << pair_.machine << ", limit "
              << (limit_ > 0 ? absl::StrFormat("%.3f GB", static_cast<double>(limit_) / 1e9) : "the machine's") << "; "
              << predicted_ << " plans by hand, " << refused_ << " refused"
              << (refused_ > 0 ? absl::StrCat(" (", refusal_, ")") : "") << "\n"
              << absl::StrFormat(
                     "  time / bound: auto %.3f; time / bound of plans alike: by hand %.3f at the least\n",
                     static_cast<double>(found_.time) / static_cast<double>(found_.decisions.prediction->bound),
                     leastAgainstOwn_)
              << absl::StrFormat("  %-16s", "auto") << figures(found_, found_) << "  " << planText(found_)
              << (found_.fits ? "\n" : ", does not fit\n");
    for (const auto& [family, attempt] : best_) {
      std::cout << absl::StrFormat("  %-16s", family) << figures(attempt, found_) << "  " << planText(attempt)
                << (attempt.fits ? "\n" : ", does not fit\n");
    }
    for (const PricedPlan& price : freedoms_) {
      std::cout << absl::StrFormat("  without %-15s %10.4g s  %8.3f GB  %6.3f  ", price.what, price.seconds,
                                   static_cast<double>(price.peakBytes) / 1e9, price.seconds / inSeconds(found_.time))
                << price.other << (price.fits ? "\n" : ", does not fit\n");
    }
    std::cout.flush();
  }

  void expectNoneBetter() const {
    EXPECT_GT(predicted_, 0U);
    for (const auto& [family, attempt] : best_) {
      EXPECT_FALSE(attempt.fits && (!found_.fits || attempt.time < found_.time))
          << pair_.name << ", " << family << ": " << planText(attempt) << " takes " << inSeconds(attempt.time)
          << " s, auto's " << planText(found_) << " takes " << inSeconds(found_.time) << " s";
    }
    EXPECT_LE(found_.decisions.prediction->bound, found_.time);
  }

 private:
  void expectNotBelowItsOwnBound(const HandPlan& plan, const Attempt& attempt) {
    const auto program = (plan.sequence ? sequence_ : plain_)->graph(attempt.decisions.mesh.microBatches());
    ASSERT_TRUE(program.ok()) << program.status();
    const absl::StatusOr<Picoseconds> bound = boundOfPlansLike(**program, attempt, pair_.machine);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_GE(attempt.time, *bound) << pair_.name << ", " << plan.family << ": " << planText(attempt);
    leastAgainstOwn_ = std::min(leastAgainstOwn_, static_cast<double>(attempt.time) / static_cast<double>(*bound));
  }

  const Pair& pair_;
  std::unique_ptr<ModelProblem> plain_, sequence_;
  int64_t limit_ = 0;
  Attempt found_;
  std::map<std::string, Attempt> best_;      // of each family
  std::map<std::string, HandPlan> wordsOf_;  // likewise
  std::vector<PricedPlan> freedoms_;
  size_t predicted_ = 0, refused_ = 0;
  std::string refusal_;  // the first
  double leastAgainstOwn_ = 1e9;
};

// A table of many rows over all ranks of eight nodes, in one stage: nothing alike is known from smaller meshes as one
// stage, and of pipelines much is.
TEST(NeverWorseTest, ThanOneStage) {
  const KnownModel model =
      wideModel("wide", {.batch = 65536, .fields = 32, .rows = 100'000'000, .width = 128, .hidden = {4096, 2048, 2}});
  const absl::StatusOr<std::unique_ptr<ModelProblem>> problem = ModelProblem::create(model);
  ASSERT_TRUE(problem.ok()) << problem.status();
  CompileOptions open = {.mode = Mode::kAuto, .devices = 64, .machine = "a100-80g"};
  const absl::StatusOr<ClosedRequest> found = closeRequest((*problem)->graphs(), open, {});
  open.maxStages = 1;
  const absl::StatusOr<ClosedRequest> oneStage = closeRequest((*problem)->graphs(), open, {});
  ASSERT_TRUE(found.ok() && oneStage.ok()) << found.status() << oneStage.status();
  EXPECT_LE(found->attempt.time, oneStage->attempt.time);
}

// A long program, of which little is predicted, beside the same with its weights split as Megatron-LM splits them.
TEST(NeverWorseTest, ThanWordsOfALongProgram) {
  const KnownModel model = gpt175b();
  const absl::StatusOr<std::unique_ptr<ModelProblem>> problem = ModelProblem::create(model);
  ASSERT_TRUE(problem.ok()) << problem.status();
  CompileOptions open = {.mode = Mode::kAuto, .devices = 1024, .machine = "a100-80g"};
  const absl::StatusOr<ClosedRequest> found = closeRequest((*problem)->graphs(), open, {});
  open.layouts = model.tensorParallel;
  const absl::StatusOr<ClosedRequest> said = closeRequest((*problem)->graphs(), open, {});
  ASSERT_TRUE(found.ok() && said.ok()) << found.status() << said.status();
  EXPECT_LE(found->attempt.time, said->attempt.time) << planText(found->attempt) << "; " << planText(said->attempt);
}

// A plan for less memory is one for more. Of a long program, where the sketches say which few plans are predicted: with
// limits at which others are the best.
TEST(NeverWorseTest, ThanWithLessMemory) {
  const absl::StatusOr<std::unique_ptr<ModelProblem>> problem = ModelProblem::create(gpt175b());
  ASSERT_TRUE(problem.ok()) << problem.status();
  const std::vector<int64_t> some = {70, 75, 80, 90, 100};
  const std::vector<int64_t> all = {40, 45, 50, 55, 60, 65, 70, 75, 80, 90, 100, 120, 150, 200, 300};
  std::optional<Attempt> before;
  for (const int64_t gigabytes : allPairs ? all : some) {
    CompileOptions open = {.mode = Mode::kAuto, .devices = 1024, .machine = "a100-80g"};
    open.memoryLimit = gigabytes * 1'000'000'000;
    const absl::StatusOr<ClosedRequest> found = closeRequest((*problem)->graphs(), open, {});
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(found->attempt.fits) << gigabytes << " GB";
    if (before) {
      EXPECT_LE(found->attempt.time, before->time)
          << gigabytes << " GB: " << planText(found->attempt) << "; with less " << planText(*before);
    }
    before = found->attempt;
  }
}

// A plan with more of it given is one with less given.
TEST(NeverWorseTest, ThanWithMoreWords) {
  const absl::StatusOr<std::unique_ptr<ModelProblem>> problem = ModelProblem::create(gpt175b());
  ASSERT_TRUE(problem.ok()) << problem.status();
  const auto closed = [&](const std::string& mesh, std::optional<int64_t> micro) {
    CompileOptions open = {.mode = Mode::kAuto, .devices = 1024, .machine = "a100-80g"};
    open.mesh = mesh;
    open.micro = micro;
    return closeRequest((*problem)->graphs(), open, {});
  };
  for (const std::string mesh : {"dp=32,tp=8", "dp=8,tp=16"}) {
    const absl::StatusOr<ClosedRequest> found = closed(mesh, std::nullopt);
    for (const int64_t micro : {24, 48}) {
      const absl::StatusOr<ClosedRequest> said = closed(mesh, micro);
      ASSERT_TRUE(found.ok() && said.ok()) << found.status() << said.status();
      EXPECT_LE(found->attempt.time, said->attempt.time)
          << mesh << ": " << planText(found->attempt) << "; " << planText(said->attempt);
    }
  }
}

TEST(NeverWorseTest, ThanPlansByHand) {
  for (const Pair& pair : pairs()) {
    if (onePair.empty() ? !allPairs && !pair.sample : pair.name != onePair) {
      continue;
    }
    SCOPED_TRACE(pair.name);
    Contest contest(pair);
    const absl::Status status = contest.begin();
    ASSERT_TRUE(status.ok()) << status;
    contest.run();
    contest.report();
    contest.expectNoneBetter();
    contest.expectSameAlone();
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::testing::allPairs = weft::testing::wantsAll(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    weft::testing::withFreedoms = weft::testing::withFreedoms || argument == "--freedoms";
    if (argument.rfind("--pair=", 0) == 0) {
      weft::testing::onePair = argument.substr(7);
    }
  }
  return RUN_ALL_TESTS();
}
