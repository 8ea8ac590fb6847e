// How long mode auto searches, what it finds and how far that is from the bound, for models of the size of published
// ones; and how the time grows with the program and the machine. Figures for people: nothing fails.
//
//   weft-search-bench                                       every row
//   weft-search-bench --model gpt175b --devices 1024        one; --machine NAME|FILE, --memory-limit 40g
//   weft-search-bench --model gpt175b --devices 1024 --again    with what the search before found, and one pin changed
//   weft-search-bench --model gpt175b --devices 1024 --again --from     with its record alone
//   weft-search-bench --save DIR                                also writes the decisions of each search there
//   weft-search-bench --scaling [--most-layers 48] [--most-devices 1024] [--layers 192] [--devices 1024]
//
// Seconds are those of the CPU: a search runs on one core, and others may keep the machine busy.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/check_request.h"
#include "planner/explain/plan_summary.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"
#include "tests/equivalence/model_problem.h"
#include "tools/commands/flags.h"

namespace weft::bench {
namespace {

using testing::KnownModel;
using testing::LayerSizes;
using testing::ModelProblem;

constexpr char kName[] = "weft-search-bench";

struct Row {
  std::string model;
  int64_t devices = 1;
  std::string machine = "a100-80g";
  std::string limit = "";
};

// Brown et al., "Language models are few-shot learners", 2020.
KnownModel gpt175b() {
  return testing::gptModel(
      "gpt175b", {.vocabulary = 51200, .layers = 96, .width = 12288, .heads = 96, .context = 2048, .batch = 1536});
}

// Touvron et al., "Llama 2", 2023.
KnownModel llama70b() {
  const LayerSizes size = {.batch = 1024,
                           .tokens = 4096,
                           .width = 8192,
                           .heads = 64,
                           .headWidth = 128,
                           .groups = 8,
                           .hidden = 28672,
                           .vocabulary = 32000};
  return testing::llamaModel("llama70b", size, 80);
}

// Raffel et al., "Exploring the limits of transfer learning", 2019.
KnownModel t5() {
  const LayerSizes size = {.batch = 2048,
                           .tokens = 512,
                           .width = 1024,
                           .heads = 128,
                           .headWidth = 128,
                           .groups = 128,
                           .hidden = 65536,
                           .vocabulary = 32128};
  return testing::t5Model("t5-11b", size, 24);
}

KnownModel experts() {
  const LayerSizes size = {.batch = 512,
                           .tokens = 1024,
                           .width = 4096,
                           .heads = 32,
                           .headWidth = 128,
                           .groups = 32,
                           .hidden = 14336,
                           .vocabulary = 32000,
                           .experts = 8};
  return testing::expertsModel("moe", size, 32);
}

KnownModel unet() {
  return testing::unetModel("unet", {.batch = 512, .image = 256, .channels = 128, .levels = 4, .classes = 32});
}

KnownModel wide() {
  return testing::wideModel(
      "wide", {.batch = 65536, .fields = 32, .rows = 100'000'000, .width = 128, .hidden = {4096, 2048, 1024, 2}});
}

std::vector<KnownModel> models() {
  return {gpt175b(), llama70b(), t5(), experts(), unet(), wide()};
}

std::vector<Row> allRows() {
  return {{"wide", 64},      {"unet", 64},      {"moe", 256},
          {"t5-11b", 256},   {"llama70b", 512}, {"llama70b", 512, "h100-80g"},
          {"gpt175b", 64},   {"gpt175b", 1024}, {"gpt175b", 1024, "a100-80g", "40g"},
          {"gpt175b", 16384}};
}

double secondsSince(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

struct Searched {
  double seconds = 0;
  absl::StatusOr<ClosedRequest> closed;
};

absl::StatusOr<CompileOptions> optionsOf(const Row& row) {
  CompileOptions options;
  options.mode = Mode::kAuto;
  options.devices = row.devices;
  WEFT_ASSIGN_OR_RETURN(options.machine, Machine::textOf(row.machine));
  if (!row.limit.empty()) {
    WEFT_ASSIGN_OR_RETURN(options.memoryLimit, parseBytes(row.limit));
  }
  return options;
}

Searched searched(const ModelProblem& problem, const CompileOptions& options, SearchMemory* memory) {
  const std::clock_t start = std::clock();
  Searched made = {0, closeRequest(problem.graphs(), options, {}, memory)};
  made.seconds = secondsSince(start);
  return made;
}

absl::StatusOr<Searched> searched(const ModelProblem& problem, const Row& row) {
  WEFT_ASSIGN_OR_RETURN(const CompileOptions options, optionsOf(row));
  return searched(problem, options, nullptr);
}

void print(const std::string& line) {
  std::cout << line << std::endl;  // at once: a row may take long
}

std::string limitText(const Row& row) {
  return row.limit.empty() ? "machine's" : row.limit;
}

std::string found(const Searched& made) {
  if (!made.closed.ok()) {
    return absl::StrFormat("%7.2f | %s", made.seconds, std::string(made.closed.status().message()));
  }
  const Attempt& attempt = made.closed->attempt;
  const double step = inSeconds(attempt.time);
  const double bound = inSeconds(attempt.decisions.prediction->bound);
  return absl::StrFormat("%7.2f | %6d | %9.4g | %9.4g | %6.1f %% | %5.1f GB%s | %s", made.seconds, made.closed->ticks,
                         step, bound, 100 * (step / bound - 1), static_cast<double>(attempt.peakBytes) / 1e9,
                         attempt.fits ? "" : " (does not fit)", testing::planText(attempt));
}

// So that two builds can be compared: what they decide must be the same to the byte.
absl::Status save(const Searched& made, const std::string& folder, const std::vector<std::string>& name) {
  if (folder.empty() || !made.closed.ok()) {
    return absl::OkStatus();
  }
  std::string file = absl::StrJoin(name, "_");
  std::replace(file.begin(), file.end(), ' ', '_');
  return writeFile(absl::StrCat(folder, "/", file, ".json"), printDecisions(made.closed->attempt.decisions));
}

absl::Status reportRows(const std::vector<Row>& rows, const std::string& folder) {
  print(
      "model    | operators | devices | machine  | limit     | graph s | search s | ticks | step s | bound s | gap | "
      "peak | plan");
  const std::vector<KnownModel> known = models();
  std::string last;
  absl::StatusOr<std::unique_ptr<ModelProblem>> problem = absl::UnknownError("none yet");
  for (const Row& row : rows) {
    const auto model =
        std::find_if(known.begin(), known.end(), [&](const KnownModel& each) { return each.name == row.model; });
    if (row.model != last) {
      problem = model == known.end() ? absl::InvalidArgumentError(absl::StrCat("no model '", row.model, "'"))
                                     : ModelProblem::create(*model);
      last = row.model;
    }
    if (!problem.ok()) {
      print(absl::StrCat(row.model, ": ", problem.status().ToString()));
      continue;
    }
    const absl::StatusOr<Searched> made = searched(**problem, row);
    const absl::StatusOr<std::shared_ptr<const ProgramGraph>> graph = (*problem)->graph();
    print(absl::StrFormat("%-8s | %9d | %7d | %-8s | %-9s | %7.2f | %s", row.model, (*graph)->operators.size(),
                          row.devices, row.machine, limitText(row), (*problem)->seconds(),
                          made.ok() ? found(*made) : made.status().ToString()));
    WEFT_RETURN_IF_ERROR(made.ok()
                             ? save(*made, folder, {row.model, absl::StrCat(row.devices), row.machine, limitText(row)})
                             : absl::OkStatus());
  }
  return absl::OkStatus();
}

// Of one row: what searches take that remember the one before, and with one pin changed.
struct Again {
  std::string folder;         // to save in
  bool isFromRecord = false;  // of what the first search found, only its record is known
};

absl::Status reportAgain(const Row& row, const Again& how) {
  const std::vector<KnownModel> known = models();
  const auto model =
      std::find_if(known.begin(), known.end(), [&](const KnownModel& each) { return each.name == row.model; });
  if (model == known.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no model '", row.model, "'"));
  }
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ModelProblem> problem, ModelProblem::create(*model));
  WEFT_ASSIGN_OR_RETURN(const CompileOptions open, optionsOf(row));
  SearchMemory memory;
  const Searched first = searched(*problem, open, &memory);
  WEFT_RETURN_IF_ERROR(first.closed.status());
  const CompileOptions& closed = first.closed->request;
  std::vector<std::pair<std::string, CompileOptions>> asked = {{"again", open}};
  asked.emplace_back("zero pinned", open).second.zero = closed.zeroLevel();
  asked.emplace_back("zero another", open).second.zero = closed.zeroLevel() == 2 ? 1 : 2;
  asked.emplace_back("micro pinned", open).second.micro = closed.micro;
  asked.emplace_back("micro doubled", open).second.micro = 2 * closed.microBatches();
  CompileOptions& shaped = asked.emplace_back("mesh pinned", open).second;
  shaped.mesh = closed.mesh;
  print("what         | search s | ticks | step s | bound s | gap | peak | plan");
  print(absl::StrFormat("%-12s | %s", "cold", found(first)));
  WEFT_RETURN_IF_ERROR(save(first, how.folder, {row.model, "cold"}));
  for (auto& [what, options] : asked) {
    options.from = how.isFromRecord ? printDecisions(first.closed->attempt.decisions) : "";
    const Searched made = searched(*problem, options, how.isFromRecord ? nullptr : &memory);
    print(absl::StrFormat("%-12s | %s", what, found(made)));
    WEFT_RETURN_IF_ERROR(save(made, how.folder, {row.model, what}));
  }
  return absl::OkStatus();
}

struct Timed {
  double layers = 0, devices = 0, seconds = 0;
};

// Least squares of log seconds = a + layers' exponent log layers + devices' exponent log devices.
std::pair<double, double> exponents(const std::vector<Timed>& times) {
  double x = 0, y = 0, t = 0;
  for (const Timed& each : times) {
    x += std::log(each.layers);
    y += std::log(each.devices);
    t += std::log(each.seconds);
  }
  const auto count = static_cast<double>(times.size());
  double xx = 0, xy = 0, yy = 0, xt = 0, yt = 0;
  for (const Timed& each : times) {
    const double dx = std::log(each.layers) - x / count;
    const double dy = std::log(each.devices) - y / count;
    const double dt = std::log(each.seconds) - t / count;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
    xt += dx * dt;
    yt += dy * dt;
  }
  const double determinant = xx * yy - xy * xy;
  return {(xt * yy - yt * xy) / determinant, (yt * xx - xt * xy) / determinant};
}

// Which rows: no more than so many layers and devices; 0: any, else just so many.
struct Scaling {
  int64_t mostLayers, mostDevices;
  int64_t layers = 0, devices = 0;
};

// One program of so many layers for all numbers of devices.
void reportScaling(const Scaling& rows) {
  const std::vector<int64_t> devices = {8, 64, 512, 1024, 16384};
  std::vector<Timed> times;
  print("layers | operators | graph s | devices | search s | ticks | step s | bound s | gap | peak | plan");
  for (const int64_t layers : {12, 24, 48, 96, 192}) {
    if (layers > rows.mostLayers || (rows.layers > 0 && layers != rows.layers)) {
      continue;
    }
    const absl::StatusOr<std::unique_ptr<ModelProblem>> problem = ModelProblem::create(testing::gptModel(
        "gpt", {.vocabulary = 51200, .layers = layers, .width = 2048, .heads = 32, .context = 1024, .batch = 4096}));
    for (const int64_t count : devices) {
      if (count > rows.mostDevices || (rows.devices > 0 && count != rows.devices) || !problem.ok()) {
        continue;
      }
      const absl::StatusOr<Searched> made = searched(**problem, {"gpt", count});
      if (made.ok()) {
        times.push_back({static_cast<double>(layers), static_cast<double>(count), made->seconds});
        print(absl::StrFormat("%6d | %9d | %7.2f | %7d | %s", layers, (*(*problem)->graph())->operators.size(),
                              (*problem)->seconds(), count, found(*made)));
      }
    }
  }
  const auto [ofLayers, ofDevices] = exponents(times);
  if (std::isfinite(ofLayers) && std::isfinite(ofDevices)) {  // else there were too few sizes of one of them
    print(absl::StrFormat("seconds grow as layers ^ %.2f x devices ^ %.2f", ofLayers, ofDevices));
  }
}

absl::Status run(const tools::Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const int64_t devices, flags.integer("devices", 0, {1, 1 << 20}));
  if (flags.has("scaling")) {
    WEFT_ASSIGN_OR_RETURN(const int64_t mostLayers, flags.integer("most-layers", 192, {1, 192}));
    WEFT_ASSIGN_OR_RETURN(const int64_t mostDevices, flags.integer("most-devices", 16384, {1, 16384}));
    WEFT_ASSIGN_OR_RETURN(const int64_t layers, flags.integer("layers", 0, {1, 192}));
    reportScaling({mostLayers, mostDevices, layers, devices});
    return absl::OkStatus();
  }
  std::vector<Row> rows = allRows();
  if (flags.has("again")) {
    return reportAgain({flags.text("model", "gpt175b"), devices == 0 ? 1024 : devices,
                        flags.text("machine", "a100-80g"), flags.text("memory-limit")},
                       {flags.text("save"), flags.has("from")});
  }
  if (flags.has("model") && devices > 0) {
    rows = {{flags.text("model"), devices, flags.text("machine", "a100-80g"), flags.text("memory-limit")}};
  } else if (flags.has("model")) {
    std::erase_if(rows, [&](const Row& row) { return row.model != flags.text("model"); });
  }
  return reportRows(rows, flags.text("save"));
}

int main(int argc, char** argv) {
  const std::vector<tools::Flag> known = {
      {"model", tools::Flag::kOptional, "gpt175b, llama70b, t5-11b, moe, unet, wide; default: every row"},
      {"devices", tools::Flag::kOptional, "with --model or --scaling: so many; default: those of the rows"},
      {"machine", tools::Flag::kOptional, "with --devices: name or file; default: a100-80g"},
      {"memory-limit", tools::Flag::kOptional, "with --devices: bytes of a rank, 40g; default: the machine's"},
      {"again", tools::Flag::kSwitch, "one row: cold, the same again, and with one pin changed"},
      {"from", tools::Flag::kSwitch, "with --again: from the record of the first search alone"},
      {"save", tools::Flag::kOptional, "a folder: write the decisions of each search there"},
      {"scaling", tools::Flag::kSwitch, "GPT of 12 to 192 layers on 8 to 16384 devices"},
      {"most-layers", tools::Flag::kOptional, "with --scaling: no more than so many"},
      {"most-devices", tools::Flag::kOptional, "with --scaling: no more than so many"},
      {"layers", tools::Flag::kOptional, "with --scaling: so many; default: those of the rows"}};
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
