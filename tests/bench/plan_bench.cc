// Many plans of one program for real: predicted against measured. Figures for people: nothing fails.
//
//   weft-plan-bench                                  GPT, MLP and ResNet on 2 and 4 ranks
//   weft-plan-bench --model gpt --ranks 2            one of them; --rounds 8, --seconds 30 for measuring the host
//
// The host is measured first (tools/measure), with as many ranks, and the model's kernels in the steps of four plans,
// as `weft machine --plans` does. Then each plan is compiled, and all of them run a few steps in turn, so that a busy
// machine spoils all alike; the median of its steps stands for a plan. The four are not counted. How far every second
// turn agrees with the others says how much of an order of plans is noise. Bytes: predicted without compiling, those of
// the plan, and those that the executor allocated for all ranks.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iostream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/kernel.h"
#include "planner/cost/plan_time.h"
#include "planner/search/search_memory.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/statistics.h"
#include "tests/equivalence/model_problem.h"
#include "tools/commands/flags.h"
#include "tools/measure/measure_machine.h"
#include "tools/measure/measure_plan.h"
#include "tools/measure/median.h"

namespace weft::bench {
namespace {

using testing::KnownModel;
using testing::ModelProblem;

constexpr char kName[] = "weft-plan-bench";
constexpr int64_t kStepsOfTurn = 8;

std::vector<KnownModel> models() {
  return {
      testing::gptModel("gpt", {.vocabulary = 512, .layers = 4, .width = 128, .heads = 4, .context = 64, .batch = 16}),
      testing::mlpModel("mlp", 256, {256, 512, 512, 512, 512, 512, 64}),
      testing::resnetModel("resnet", {.batch = 32, .rows = 16, .columns = 16})};
}

// One plan, predicted and compiled.
struct Entry {
  std::string words;
  Attempt predicted;
  double planSeconds = 0;  // of the compiled plan, by the same machine
  int64_t planBytes = 0;   // of all ranks
  std::unique_ptr<Executor> executor;
  std::vector<double> steps;  // of all turns

  double measured() const { return tools::median(steps); }

  // In every second turn, from the first or from the second one.
  double measuredInHalf(int64_t first) const {
    std::vector<double> half;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (static_cast<int64_t>(i) / kStepsOfTurn % 2 == first) {
        half.push_back(steps[i]);
      }
    }
    return tools::median(std::move(half));
  }
};

struct Written {
  int64_t stages = 1;
  CompileOptions options;
};

// Plans whose steps tell what kernels take.
std::vector<CompileOptions> learned(const KnownModel& model, int64_t ranks) {
  std::vector<CompileOptions> all;
  for (const auto& [tp, micro] : {std::pair<int64_t, int64_t>{1, 1}, {1, 4}, {2, 1}, {2, 4}}) {
    CompileOptions& options = all.emplace_back();
    options.mesh = absl::StrCat("dp=", ranks / tp, ",tp=", tp);
    options.micro = micro;
    options.zero = 0;
    options.recompute = "none";
    options.layouts = tp > 1 ? model.tensorParallel : options.layouts;
  }
  return all;
}

// Requests for so many ranks that leave nothing open.
std::vector<Written> handWritten(const KnownModel& model, int64_t layers, int64_t ranks) {
  std::vector<Written> all;
  const auto add = [&](int64_t stages, int64_t tp, int64_t micro, int zero, const std::string& schedule,
                       const std::string& recompute) {
    const int64_t dp = ranks / (stages * tp);
    if (dp * stages * tp != ranks || model.rows % (dp * micro) != 0 || stages > layers) {
      return;
    }
    all.push_back({stages, {}});
    CompileOptions& options = all.back().options;
    options.mesh = absl::StrCat("dp=", dp, ",tp=", tp);
    options.micro = micro;
    options.zero = zero;
    options.schedule = schedule;
    options.recompute = recompute;
    options.layouts = tp > 1 ? model.tensorParallel : options.layouts;
  };
  for (const int64_t micro : {1, 2, 4}) {
    for (const int zero : {0, 1, 2, 3}) {
      add(1, 1, micro, zero, "auto", "none");
    }
    for (const int64_t tp : {2, 4}) {
      add(1, tp, micro, 0, "auto", "none");
      add(1, tp, micro, 2, "auto", "none");
    }
    add(1, 1, micro, 0, "auto", "full");
  }
  for (const int64_t stages : {2, 4}) {
    for (const int64_t micro : {2, 4, 8}) {
      for (const char* schedule : {"gpipe", "1f1b", "zb_h1"}) {
        add(stages, 1, micro, 0, schedule, "none");
      }
    }
    add(stages, 2, 4, 0, "1f1b", "none");
  }
  return all;
}

// The machine with the kernels of the model as they are in plans of few and many micro-batches, with tensors whole and
// split.
absl::StatusOr<Machine> withKernels(Machine machine, const KnownModel& model, int64_t ranks) {
  constexpr int64_t kSteps = 24;
  std::vector<plan::Plan> plans;
  for (CompileOptions options : learned(model, ranks)) {
    options.machine = machine.print();
    Graph g;
    const Tensor loss = model.build(g, {});
    WEFT_ASSIGN_OR_RETURN(Program program, compile(g, loss, optim::AdamW{}, options));
    plans.push_back(std::move(program.plan));
  }
  tools::KernelMeasurement measurement;
  WEFT_RETURN_IF_ERROR(measurement.add(plans, kSteps));
  machine.kernels = measurement.profiles();
  return machine;
}

absl::StatusOr<Entry> entryOf(const KnownModel& model, const Written& written, const Machine& machine) {
  const CompileOptions& options = written.options;
  const testing::ModelWords words = {.stages = written.stages};
  Entry entry;
  Graph g;
  const Tensor loss = model.build(g, words);
  WEFT_ASSIGN_OR_RETURN(const Program program, compile(g, loss, optim::AdamW{}, options));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ModelProblem> problem, ModelProblem::create(model, words));
  if (options.mode == Mode::kAuto) {
    WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, closeRequest(problem->graphs(), options, {}));
    entry.predicted = std::move(closed.attempt);
  } else {
    WEFT_ASSIGN_OR_RETURN(entry.predicted, problem->predict(options));
  }
  entry.words = absl::StrCat(options.mode == Mode::kAuto ? "auto: " : "", testing::planText(entry.predicted));
  WEFT_ASSIGN_OR_RETURN(entry.planSeconds, stepSeconds(program.plan, machine));
  for (const plan::Plan* submesh : submeshesOf(program.plan)) {
    entry.planBytes += submesh->memory().peak_bytes() * submesh->ranks();
  }
  WEFT_ASSIGN_OR_RETURN(entry.executor, Executor::create(program.plan, cpuKernels(), {}));
  WEFT_RETURN_IF_ERROR(entry.executor->runInit());
  keepZeroInputs(*entry.executor);
  WEFT_RETURN_IF_ERROR(entry.executor->runStep());
  return entry;
}

// In turns of some steps of each plan. The first few do not count: caches are cold, and the system has yet to find the
// threads their cores.
absl::Status measure(std::vector<Entry>& entries, int64_t rounds) {
  constexpr int kUncounted = 4;
  for (int64_t round = 0; round < rounds; ++round) {
    for (Entry& entry : entries) {
      for (int step = 0; step < kUncounted; ++step) {
        WEFT_RETURN_IF_ERROR(entry.executor->runStep());
      }
      for (int64_t step = 0; step < kStepsOfTurn; ++step) {
        const auto start = std::chrono::steady_clock::now();
        WEFT_RETURN_IF_ERROR(entry.executor->runStep());
        entry.steps.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
    }
  }
  return absl::OkStatus();
}

// Of each value its number in their order, from 0; equal values share the mean of theirs.
std::vector<double> ranksOf(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> ranks;
  for (const double value : values) {
    const auto [first, end] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back(static_cast<double>((first - sorted.begin()) + (end - sorted.begin()) - 1) / 2);
  }
  return ranks;
}

// Spearman's, which is Pearson's of the ranks: 1 where both are in the same order.
double rankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranksOf(a), y = ranksOf(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

bool isOfAuto(const Entry& entry) {
  return entry.words.rfind("auto", 0) == 0;
}

void report(const std::string& title, std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.measured() < b.measured(); });
  std::cout << title
            << "\nmeasured ms | predicted | of the plan | predicted / measured | bytes predicted / plan | plan | "
            << "allocated | words\n";
  std::vector<double> predicted, measured, errors, bytes;
  std::array<std::vector<double>, 2> halves;
  for (const Entry& entry : entries) {
    predicted.push_back(inSeconds(entry.predicted.time));
    measured.push_back(entry.measured());
    errors.push_back(std::abs(predicted.back() / measured.back() - 1));
    for (size_t half = 0; half < halves.size(); ++half) {
      halves[half].push_back(entry.measuredInHalf(static_cast<int64_t>(half)));
    }
    const auto planPeak = static_cast<double>(entry.executor->plan().memory().peak_bytes());
    bytes.push_back(std::abs(static_cast<double>(entry.predicted.peakBytes) / planPeak - 1));
    std::cout << absl::StrFormat("%8.3f | %8.3f | %8.3f | %6.3f | %6.3f | %9d | %9d | %s\n", 1e3 * measured.back(),
                                 1e3 * predicted.back(), 1e3 * entry.planSeconds, predicted.back() / measured.back(),
                                 static_cast<double>(entry.predicted.peakBytes) / planPeak, entry.planBytes,
                                 entry.executor->allocatedBytes(), entry.words);
  }
  std::cout << absl::StrFormat(
      "%d plans: rank correlation %.3f (of every second turn with the others %.3f), median error of seconds %.1f %%, "
      "of peak bytes %.2f %% (worst %.2f %%)\n",
      entries.size(), rankCorrelation(predicted, measured), rankCorrelation(halves[0], halves[1]),
      100 * tools::median(errors), 100 * tools::median(bytes), 100 * *std::max_element(bytes.begin(), bytes.end()));
  const auto found = std::find_if(entries.begin(), entries.end(), isOfAuto);
  if (found != entries.end() && entries.size() > 1) {
    const auto againstFastest = [&](const std::vector<double>& chosenBy, const std::vector<double>& compared) {
      size_t fastest = entries.size();
      for (size_t i = 0; i < entries.size(); ++i) {
        const bool isFaster = fastest == entries.size() || chosenBy[i] < chosenBy[fastest];
        fastest = !isOfAuto(entries[i]) && isFaster ? i : fastest;
      }
      return compared[found - entries.begin()] / compared[fastest];
    };
    // The fastest of many is partly that by luck, which the other half of its turns does not share.
    std::cout << absl::StrFormat(
        "auto's plan against the fastest by hand: %.3f; against that of every second turn, in the others: %.3f, %.3f\n",
        againstFastest(measured, measured), againstFastest(halves[0], halves[1]), againstFastest(halves[1], halves[0]));
  }
  std::cout << std::endl;
}

absl::Status benchmark(const KnownModel& model, int64_t ranks, const Machine& host, int64_t rounds) {
  WEFT_ASSIGN_OR_RETURN(const Machine machine, withKernels(host, model, ranks));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ModelProblem> problem, ModelProblem::create(model));
  std::vector<Entry> entries;
  std::vector<Written> plans = handWritten(model, testing::layersOf(problem->parameters()), ranks);
  const std::vector<CompileOptions> known = learned(model, ranks);
  std::erase_if(plans, [&](const Written& plan) {
    return plan.stages == 1 && std::any_of(known.begin(), known.end(),
                                           [&](const CompileOptions& other) { return areSame(other, plan.options); });
  });
  plans.insert(plans.begin(), {1, {.mode = Mode::kAuto, .devices = ranks}});
  for (Written& written : plans) {
    CompileOptions& options = written.options;
    options.machine = machine.print();
    absl::StatusOr<Entry> entry = entryOf(model, written, machine);
    if (entry.ok()) {
      entries.push_back(*std::move(entry));
    } else {
      std::cout << "left out: " << options.mesh << ", micro " << options.microBatches() << ": " << entry.status()
                << "\n";
    }
  }
  WEFT_RETURN_IF_ERROR(measure(entries, rounds));
  report(absl::StrCat(model.name, " on ", ranks, " ranks"), entries);
  return absl::OkStatus();
}

absl::Status run(const tools::Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const int64_t rounds, flags.integer("rounds", 8, {2, 10000}));
  WEFT_ASSIGN_OR_RETURN(const int64_t seconds, flags.integer("seconds", 30, {1, 3600}));
  WEFT_ASSIGN_OR_RETURN(const int64_t only, flags.integer("ranks", 0, {1, 64}));
  for (const int64_t ranks : only > 0 ? std::vector<int64_t>{only} : std::vector<int64_t>{2, 4}) {
    WEFT_ASSIGN_OR_RETURN(const tools::Measurement measurement,
                          tools::measureHost({.ranks = ranks, .seconds = static_cast<double>(seconds)}));
    const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) / ranks;
    const Machine machine = tools::fitted(measurement, memory);
    std::cout << machine.print() << "\n";
    for (const KnownModel& model : models()) {
      if (!flags.has("model") || flags.text("model") == model.name) {
        WEFT_RETURN_IF_ERROR(benchmark(model, ranks, machine, rounds));
      }
    }
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const std::vector<tools::Flag> known = {
      {"model", tools::Flag::kOptional, "gpt, mlp or resnet; default: all"},
      {"ranks", tools::Flag::kOptional, "default: 2, then 4"},
      {"rounds", tools::Flag::kOptional, "turns of each plan, of eight steps; default: 8"},
      {"seconds", tools::Flag::kOptional, "for measuring the host; default: 30"}};
  if (tools::wantsHelp(argc, argv)) {
    std::cout << tools::flagHelp(std::string(kName) + " [flags]", known);
    return 0;
  }
  const absl::StatusOr<tools::Flags> flags = tools::Flags::parse(known, argc, argv);
  const absl::Status status = flags.ok() ? run(*flags) : flags.status();
  return status.ok() ? 0 : tools::fail(kName, status);
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  return weft::bench::main(argc, argv);
}
