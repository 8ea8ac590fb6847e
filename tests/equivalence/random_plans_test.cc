// Mode auto and its bound against random plans (random_plans.h) of small models and of random programs: none is
// predicted to take less than the bound says, nor than the bound of plans with its own submeshes, micro-batches and
// memory; and none that fits in the memory limit takes less than the plan that auto found within it. Limits are none,
// and 100, 60 and 40 % of the memory of auto's plan without one. Beside plans drawn anew there are as many that change
// one word of the best so far.
//
//   weft_random_plans_test                     60 plans of an MLP, 30 of each of 2 random programs
//   weft_random_plans_test --all               10000 of three MLPs, a GPT and a network of convolutions each, 5000
//                                              of each of 40 random programs
//   weft_random_plans_test --plans=N --program=gpt
//   weft_random_plans_test --plans=N --seed=17 [--cores=2]     with `cores` its ranks take turns on so many
#include "tests/equivalence/random_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "tests/equivalence/model_problem.h"
#include "tests/equivalence/random_graph.h"
#include "tests/support/seeds.h"

namespace weft::testing {

SeedRange seeds = {1, 2};
size_t plansOfEach = 60;
bool everyProgram = false;
std::string oneProgram;
int64_t coresOfRandom = 0;  // of the machine of random programs; 0: each rank has its own

namespace {

// Nodes of four devices. On these small programs splits and stages pay, and communication costs, as on large ones
// elsewhere.
constexpr char kNodes[] =
    "flops = 1e10\nmemory_bandwidth = 4e10\nlink_bandwidth = 2e9\nlink_latency = 1e-8\nlaunch_latency = 5e-9\n"
    "devices_per_node = 4\nnetwork_bandwidth = 2e9\nnetwork_latency = 1e-7\n";
// Of one device each: what is passed from stage to stage is far less than gradients.
constexpr char kSlowLinks[] =
    "flops = 1e10\nmemory_bandwidth = 4e10\nlink_bandwidth = 2e8\nlink_latency = 1e-7\nlaunch_latency = 5e-9\n";

// Four ranks of a node take turns on two cores.
constexpr char kFewCores[] =
    "flops = 1e10\nmemory_bandwidth = 4e10\nlink_bandwidth = 4e9\nlink_latency = 1e-8\nlaunch_latency = 5e-9\n"
    "cores = 2\n";

// Products are made in tiles, and of small parts of them many are empty.
constexpr char kTiles[] =
    "flops = 1e10\nmemory_bandwidth = 4e10\nlink_bandwidth = 4e9\nlink_latency = 1e-8\nlaunch_latency = 5e-9\n"
    "devices_per_node = 2\nnetwork_bandwidth = 2e9\nnetwork_latency = 1e-7\ntile = 8x16\nmultiprocessors = 6\n"
    "product_efficiency = 0.9\nmemory_efficiency = 0.8\nfused_efficiency = 0.7\n";

// As the machine of derived_cost_test.cc, for random programs, whose dimensions have 2 to 8 elements.
constexpr char kTiny[] =
    "flops = 8e8\nmemory_bandwidth = 2e10\nlink_bandwidth = 1e10\nlink_latency = 1.2e-10\nlaunch_latency = 6e-11\n";

constexpr int64_t kPercents[] = {0, 100, 60, 40};
constexpr uint64_t kSeed = 1;

struct Subject {
  std::string name;
  std::string machine;
  int64_t devices = 1;
  int64_t rows = 1;  // of the batch
  std::unique_ptr<ModelProblem> problem;
};

struct NamedModel {
  KnownModel model;
  int64_t devices = 1;
  std::string machine;
  bool sample = false;  // in the tests of every run
};

std::vector<NamedModel> models() {
  return {
      {mlpModel("mlp", 384, {16, 48, 32, 64, 8}), 4, kNodes},
      {mlpModel("columns", 4, {64, 256, 64, 256, 16}), 4, kNodes, true},
      {mlpModel("tall", 2048, {16, 32, 32, 32, 8}), 4, kNodes, true},
      {mlpModel("turns", 64, {16, 48, 16, 8}), 4, kFewCores, true},
      {mlpModel("tiles", 48, {48, 80, 48, 80, 16}), 8, kTiles},
      {gptModel("tiled gpt", {.vocabulary = 48, .layers = 2, .width = 48, .heads = 4, .context = 16, .batch = 12}), 8,
       kTiles},
      {mlpModel("deep", 128, {32, 64, 64, 64, 64, 64, 64, 16}), 4, kSlowLinks},
      {gptModel("gpt", {.vocabulary = 64, .layers = 2, .width = 32, .heads = 4, .context = 16, .batch = 8}), 8, kNodes},
      {unetModel("convolutions", {.batch = 8, .image = 8, .channels = 8, .levels = 1, .classes = 4}), 4, kNodes},
  };
}

absl::StatusOr<Subject> subjectOf(const NamedModel& of) {
  Subject subject = {of.model.name, of.machine, of.devices, of.model.rows, nullptr};
  WEFT_ASSIGN_OR_RETURN(subject.problem, ModelProblem::create(of.model));
  return subject;
}

// A random program whose operators treat the rows of the batch alone, as in models.
// `cores`: that its ranks take turns on; 0: each has its own.
absl::StatusOr<Subject> subjectOf(uint64_t seed, int64_t cores) {
  std::mt19937_64 generator(seed);
  const int64_t ranks = std::vector<int64_t>{2, 4, 6, 8}[generator() % 4];
  RandomProgram random;
  do {
    random = randomProgram(generator, ranks, DrawnOperators::kFew);  // plans are pinned by seeds
  } while (!random.rowWise);
  std::string machine = kTiny;
  if (cores > 0) {
    absl::StrAppend(&machine, "cores = ", cores, "\n");
  }
  Subject subject = {absl::StrCat("seed ", seed), machine, ranks, random.batch, nullptr};
  const std::string text = moduleText(random.program, {.mesh = absl::StrCat(ranks)});
  WEFT_ASSIGN_OR_RETURN(subject.problem, ModelProblem::parse(text, subject.name));
  return subject;
}

// The model of that name, or the random program of that seed.
absl::StatusOr<Subject> subjectNamed(const std::string& name, int64_t cores = 0) {
  const std::vector<NamedModel> all = models();
  const auto model = std::ranges::find_if(all, [&](const NamedModel& each) { return each.model.name == name; });
  return model != all.end() ? subjectOf(*model) : subjectOf(std::stoull(name), cores);
}

// What auto found within a limit, and the best random plan so far.
struct Limit {
  int64_t percent = 0;
  int64_t bytes = 0;
  Attempt found;
  std::optional<RandomPlan> best;
  Picoseconds bestTime = 0;
  size_t fitting = 0;
};

class RandomContest {
 public:
  explicit RandomContest(const Subject& subject) : subject_(subject) {}

  absl::Status begin() {
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, subject_.problem->graph());
    plans_.emplace(*graph, PlanDomain{subject_.devices, subject_.rows}, kSeed);
    CompileOptions options = {.mode = Mode::kAuto, .devices = subject_.devices, .machine = subject_.machine};
    for (const int64_t percent : kPercents) {
      options.memoryLimit = percent == 0 ? 0 : withinPercent(limits_.front().found, percent);
      WEFT_ASSIGN_OR_RETURN(const ClosedRequest closed, closeRequest(subject_.problem->graphs(), options, {}));
      limits_.push_back({percent, options.memoryLimit, closed.attempt, {}, 0, 0});
    }
    return absl::OkStatus();
  }

  void drawn(size_t number) { attempt(plans_->draw(), limitOf(number)); }

  void changed(size_t number) {
    Limit& limit = limitOf(number);
    if (limit.best) {
      attempt(plans_->near(*limit.best), limit);
    }
  }

  void report() const {
    std::cout << subject_.name << " on " << subject_.devices << ": " << tried_ << " plans, " << refused_ << " refused";
    std::cout << absl::StrFormat("; least time / bound: %.3f, / bound of plans alike: %.4f\n", leastAgainstBound_,
                                 leastAgainstOwn_);
    for (const Limit& limit : limits_) {
      std::cout << absl::StrFormat(
          "  limit %3d %%: auto %9.4g us, bound %9.4g us, %s%s; %d plans fit, best / auto %.4f\n", limit.percent,
          1e6 * inSeconds(limit.found.time), 1e6 * inSeconds(limit.found.decisions.prediction->bound),
          planText(limit.found), limit.found.fits ? "" : ", does not fit", limit.fitting,
          static_cast<double>(limit.bestTime) / static_cast<double>(limit.found.time));
    }
    std::cout.flush();
  }

  void expectNoneBetter() {
    EXPECT_GT(tried_, refused_);
    for (size_t i = 1; i < limits_.size(); ++i) {
      EXPECT_TRUE(!limits_[i].found.fits || limits_[i - 1].found.time <= limits_[i].found.time)
          << subject_.name << ": what fits in " << limits_[i].percent << " % of the memory, "
          << planText(limits_[i].found) << ", fits in more, too; there " << planText(limits_[i - 1].found)
          << " was found";
    }
    for (const Limit& limit : limits_) {
      EXPECT_FALSE(limit.best && (!limit.found.fits || limit.bestTime < limit.found.time))
          << subject_.name << " within " << limit.bytes << " bytes: auto found " << planText(limit.found) << " with "
          << inSeconds(limit.found.time) << " s, better with " << inSeconds(limit.bestTime) << " s is "
          << plans_->textOf(*limit.best);
    }
  }

 private:
  // Half of the plans have all memory: more of them fit.
  Limit& limitOf(size_t number) {
    return number % 2 == 0 ? limits_.front() : limits_[1 + number / 2 % (limits_.size() - 1)];
  }

  void attempt(const RandomPlan& plan, Limit& limit) {
    ++tried_;
    CompileOptions base;
    base.machine = subject_.machine;
    base.memoryLimit = limit.bytes;
    const absl::StatusOr<std::shared_ptr<const ProgramGraph>> program = subject_.problem->graph(plan.micro);
    const absl::StatusOr<Attempt> attempt =
        program.ok() ? predictProgram(plans_->graphOf(plan, **program), plans_->optionsOf(plan, base), {})
                     : absl::StatusOr<Attempt>(program.status());
    if (!attempt.ok()) {
      ++refused_;
      EXPECT_NE(attempt.status().code(), absl::StatusCode::kInternal) << attempt.status() << "\n"
                                                                      << plans_->textOf(plan);
      return;
    }
    const Picoseconds bound = limits_.front().found.decisions.prediction->bound;
    EXPECT_GE(attempt->time, bound) << plans_->textOf(plan);
    leastAgainstBound_ = std::min(leastAgainstBound_, static_cast<double>(attempt->time) / static_cast<double>(bound));
    expectNotBelowItsOwn(plan, **program, *attempt);
    if (!attempt->fits) {
      return;
    }
    EXPECT_GE(attempt->time, limit.found.decisions.prediction->bound) << plans_->textOf(plan);
    ++limit.fitting;
    if (!limit.best || attempt->time < limit.bestTime) {
      limit.best = plan;
      limit.bestTime = attempt->time;
    }
  }

  void expectNotBelowItsOwn(const RandomPlan& plan, const ProgramGraph& program, const Attempt& attempt) {
    const absl::StatusOr<Picoseconds> bound = boundOfPlansLike(program, attempt, subject_.machine);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_GE(attempt.time, *bound) << plans_->textOf(plan);
    leastAgainstOwn_ = std::min(leastAgainstOwn_, static_cast<double>(attempt.time) / static_cast<double>(*bound));
  }

  const Subject& subject_;
  std::optional<RandomPlans> plans_;
  std::vector<Limit> limits_;
  size_t tried_ = 0, refused_ = 0;
  double leastAgainstBound_ = 1e9;
  double leastAgainstOwn_ = 1e9;
};

void contest(const absl::StatusOr<Subject>& subject, size_t plans) {
  ASSERT_TRUE(subject.ok()) << subject.status();
  SCOPED_TRACE(subject->name);
  RandomContest contest(*subject);
  const absl::Status status = contest.begin();
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < plans; ++i) {
    contest.drawn(i);
  }
  for (size_t i = 0; i < plans; ++i) {
    contest.changed(i);
  }
  contest.report();
  contest.expectNoneBetter();
}

TEST(RandomPlansTest, OfModels) {
  for (const NamedModel& model : models()) {
    if (oneProgram.empty() ? everyProgram || model.sample : model.model.name == oneProgram) {
      contest(subjectOf(model), plansOfEach);
    }
  }
}

// Where memory keeps some kinds of schedule out, splits that need less let them in: `auto` looks for those, too.
TEST(ScheduleAuto, IsNoLongerThanAnyKind) {
  const absl::StatusOr<Subject> subject = subjectNamed("gpt");
  ASSERT_TRUE(subject.ok()) << subject.status();
  CompileOptions options = {.mode = Mode::kAuto, .devices = subject->devices, .machine = subject->machine};
  const absl::StatusOr<ClosedRequest> open = closeRequest(subject->problem->graphs(), options, {});
  ASSERT_TRUE(open.ok()) << open.status();
  for (const int64_t percent : {80, 60, 50}) {
    options.memoryLimit = withinPercent(open->attempt, percent);
    const absl::StatusOr<ClosedRequest> closed = closeRequest(subject->problem->graphs(), options, {});
    ASSERT_TRUE(closed.ok()) << closed.status();
    EXPECT_GT(closed->attempt.decisions.schedule.submeshes.size(), 1U);
    for (const char* kind : {"1f1b", "zb_h1", "zb_h2"}) {
      CompileOptions pinned = closed->request;
      pinned.schedule = kind;
      const absl::StatusOr<Attempt> attempt = predictProgram(*closed->graph, pinned, {});
      ASSERT_TRUE(attempt.ok()) << attempt.status();
      EXPECT_FALSE(attempt->fits && attempt->time < closed->attempt.time)
          << percent << " %, " << planText(closed->attempt) << ": " << closed->attempt.time << ", with "
          << pinned.schedule << " " << attempt->time;
    }
  }
}

// A plan that was once better than what auto found.
struct OnceBetter {
  const char* cause;
  std::string program;
  int64_t percent = 0;  // of the memory of auto's plan without a limit; 0: no limit
  RandomPlan plan;
  std::map<int64_t, std::string> splits;
  int64_t cores = 0;  // as of subjectOf
};

std::vector<OnceBetter> onceBetter() {
  RandomPlan ofBatch = {.dp = 8, .tp = 1, .zero = 3, .byPrice = true};
  RandomPlan wide = {.dp = 2, .tp = 3, .zero = 3, .byPrice = true};
  RandomPlan sliced = {.dp = 2, .tp = 2, .zero = 3, .byPrice = true};
  RandomPlan other = {.dp = 2, .tp = 4, .micro = 11, .zero = 1, .byPrice = true};
  RandomPlan early = {.submeshes = 2, .dp = 2, .tp = 2, .micro = 11, .first = {1}, .zero = 3, .byPrice = true};
  RandomPlan notLeast = {.submeshes = 3, .dp = 1, .tp = 2, .micro = 11, .first = {1, 3}, .byPrice = true};
  RandomPlan inOrder = {.submeshes = 3, .dp = 1, .tp = 2, .micro = 11, .first = {1, 4}, .byPrice = true};
  RandomPlan tooLarge = {.dp = 2, .tp = 3, .zero = 3, .byPrice = true};
  RandomPlan shared = {.dp = 2, .tp = 1, .micro = 11, .zero = 3, .byPrice = true};
  RandomPlan freed = {.dp = 2, .tp = 4, .zero = 1, .byPrice = true};
  RandomPlan lessOften = {.dp = 2, .tp = 2, .micro = 4, .zero = 1, .byPrice = true};
  RandomPlan within = {.submeshes = 2, .tp = 2, .micro = 32, .first = {3}, .byPrice = true};
  RandomPlan kept = {.tp = 8, .micro = 4, .recompute = "gelu", .byPrice = true};
  RandomPlan oneSplit = {.dp = 2, .tp = 2, .micro = 16, .zero = 1, .byPrice = true};
  RandomPlan cutAgain = {.submeshes = 3, .dp = 2, .tp = 1, .micro = 22, .first = {1, 4}, .zero = 2, .byPrice = true};
  RandomPlan unmoved = {.submeshes = 3, .dp = 2, .tp = 1, .micro = 11, .first = {1, 4}, .zero = 1, .byPrice = true};
  RandomPlan far = {.dp = 4, .tp = 2, .zero = 2, .byPrice = true};
  return {
      {"the batch's axes split operators on weights alone", "11", 0, ofBatch, {{29, "(dp,tp) ()"}}},
      {"the batch's axes split another dimension than the batch", "21", 0, wide, {{72, "(dp|tp)"}}},
      {"slices are copied", "8", 0, sliced, {{12, "(dp||tp|) ()"}, {30, "(|dp)"}}},
      {"another mesh, which was guessed to be longer", "3", 60, other, {}},
      {"what works on inputs alone in the first stage", "23", 60, early, {}},
      {"finer stages of a plan that did not fit, nor need the least", "5", 60, notLeast, {}},
      {"what works on inputs alone where it stands in the program", "10", 60, inOrder, {}},
      {"it fits with the batch's axes free alone", "21", 100, tooLarge, {}},
      {"the batch's axes free at a level of ZeRO that the best mesh has not", "2", 60, shared, {}},
      {"a mesh that was not asked about with the batch's axes free", "tiles", 0, freed, {}},
      {"another number of micro-batches, which fits with the batch's axes free alone", "8", 40, lessOften, {}},
      {"what fits with a budget that no plan was aimed at", "3", 40, other, {}},
      {"a border within a repeated segment", "deep", 60, within, {}},
      {"what fits without the recomputation of a single operator, too", "4", 40, kept, {}},
      {"what fits with the splits of one operator alone", "mlp", 40, oneSplit, {{6, "(|) (|dp,tp)"}}},
      {"stages that are cut for a neighbor of the best plan", "10", 60, cutAgain, {}},
      {"a pipeline that is longer until what works on inputs alone is moved", "5", 100, unmoved, {}, 2},
      {"the split of an operator that many others come before", "9", 0, far, {{10, "(dp|tp|)"}}},
  };
}

TEST(RandomPlansTest, NoneThatWasOnceBetterIs) {
  for (const OnceBetter& once : onceBetter()) {
    SCOPED_TRACE(once.cause);
    const absl::StatusOr<Subject> subject = subjectNamed(once.program, once.cores);
    ASSERT_TRUE(subject.ok()) << subject.status();
    CompileOptions options = {.mode = Mode::kAuto, .devices = subject->devices, .machine = subject->machine};
    absl::StatusOr<ClosedRequest> found = closeRequest(subject->problem->graphs(), options, {});
    ASSERT_TRUE(found.ok()) << found.status();
    if (once.percent > 0) {
      options.memoryLimit = withinPercent(found->attempt, once.percent);
      found = closeRequest(subject->problem->graphs(), options, {});
      ASSERT_TRUE(found.ok()) << found.status();
    }
    const absl::StatusOr<std::shared_ptr<const ProgramGraph>> program = subject->problem->graph(once.plan.micro);
    ASSERT_TRUE(program.ok()) << program.status();
    RandomPlans plans(**program, {subject->devices, subject->rows}, kSeed);
    RandomPlan plan = once.plan;
    for (const auto& [id, strategy] : once.splits) {
      ASSERT_TRUE(plans.split(plan, id, strategy)) << id << " " << strategy;
    }
    CompileOptions base;
    base.machine = subject->machine;
    base.memoryLimit = options.memoryLimit;
    const absl::StatusOr<Attempt> attempt =
        predictProgram(plans.graphOf(plan, **program), plans.optionsOf(plan, base), {});
    ASSERT_TRUE(attempt.ok()) << attempt.status();
    EXPECT_TRUE(!attempt->fits || found->attempt.time <= attempt->time)
        << planText(found->attempt) << ": " << found->attempt.time << ", better with " << attempt->time << " is "
        << plans.textOf(plan);
  }
}

TEST(RandomPlansTest, OfRandomPrograms) {
  for (uint64_t seed = seeds.first; seed <= seeds.last && oneProgram.empty(); ++seed) {
    contest(subjectOf(seed, coresOfRandom), plansOfEach / 2);
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  using namespace weft::testing;  // NOLINT
  everyProgram = wantsAll(argc, argv);
  plansOfEach = everyProgram ? 10'000 : plansOfEach;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--plans=", 0) == 0) {
      plansOfEach = std::stoull(argument.substr(8));
    } else if (argument.rfind("--program=", 0) == 0) {
      oneProgram = argument.substr(10);
    } else if (argument.rfind("--cores=", 0) == 0) {
      coresOfRandom = std::stoll(argument.substr(8));
    }
  }
  return runSeeded(argc, argv, seeds, 40);
}
