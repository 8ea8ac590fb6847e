#include "tools/commands/schedule.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/timeline.h"
#include "planner/schedule/transfers.h"
#include "runtime/base/numbers.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"
#include "tools/commands/plan_schedule.h"

namespace weft::tools {
namespace {

using schedule::Queues;
using schedule::Simulation;
using schedule::StageTimes;
using schedule::Table;
using schedule::Times;

const std::vector<Flag>& knownFlags() {
  static const std::vector<Flag> flags{
      {"kind", Flag::kOptional,
       "gpipe, 1f1b, interleaved, breadth_first, zb_h1, zb_h2, zb_interleaved, zb_v, v_half, v_min, dualpipe_v, "
       "seq1f1b"},
      {"stages", Flag::kOptional, "pipeline ranks; each holds --virtual stages"},
      {"micro", Flag::kOptional, "micro-batches"},
      {"virtual", Flag::kOptional, "stages per rank; default 1, for zb_v, v_half, v_min and dualpipe_v 2"},
      {"group", Flag::kOptional, "interleaved kinds: least micro-batches per round; default the number of ranks"},
      {"sequence-slices", Flag::kOptional,
       "seq1f1b: slices of a micro-batch along its sequence; default 1, which is 1f1b"},
      {"file", Flag::kOptional, "a table instead of --kind: one row per rank, such as 0F0,0F1,0B0,0B1"},
      {"plan", Flag::kOptional, "a compiled plan: simulates its own step, prologue and update included"},
      {"profile", Flag::kOptional, "with --plan: take times from this trace of it, written by --trace, and compare"},
      {"times", Flag::kOptional,
       "time of one action of a stage, default f=1,i=1,w=1,comm=0; b is i+w unless given; f=1/1/2 gives one per stage"},
      {"csv", Flag::kSwitch, "print the table, one row per rank"},
      {"timeline", Flag::kSwitch, "draw the simulated run"},
      {"transfers", Flag::kSwitch, "print each rank's actions, sends and receives in their order"},
      {"json", Flag::kSwitch, "print JSON"},
      {"help", Flag::kSwitch, "print this help"}};
  return flags;
}

absl::StatusOr<int32_t> count(const Flags& flags, const std::string& name, int32_t otherwise) {
  const absl::StatusOr<int64_t> value = flags.integer(name, otherwise, {1, schedule::kMaxIndex});
  if (!value.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--", name, " '", flags.text(name), "' is not a number >= 1 and <= ",
                                                   schedule::kMaxIndex, "; write for instance --", name, " 4"));
  }
  return static_cast<int32_t>(*value);
}

// "1" or "1/1.5/2", one per stage.
absl::StatusOr<std::vector<double>> numbers(const std::string& name, const std::string& text) {
  std::vector<double> values;
  std::vector<std::string> parts = absl::StrSplit(text, '/');
  for (const std::string& part : parts) {
    const absl::StatusOr<double> value = parseReal(part);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--times: '", part, "' of ", name, " is not a number; write for instance ", name, "=1.5"));
    }
    values.push_back(*value);
  }
  return values;
}

absl::Status setTime(Times& times, const std::string& name, const std::vector<double>& values) {
  if (name == "comm") {
    times.comm = values[0];
    return values.size() == 1 ? absl::OkStatus() : absl::InvalidArgumentError("--times: comm is a single number");
  }
  if (name != "f" && name != "i" && name != "w" && name != "b") {
    return absl::InvalidArgumentError(absl::StrCat("--times: unknown time '", name, "'; known: f, i, w, b, comm"));
  }
  if (values.size() > 1 && times.stages.size() == 1) {
    times.stages.resize(values.size(), times.stages[0]);
  }
  if (values.size() > 1 && values.size() != times.stages.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--times: ", name, " has ", values.size(),
                                                   " numbers, another time has ", times.stages.size(),
                                                   "; give one per stage, or a single one for all"));
  }
  for (size_t stage = 0; stage < times.stages.size(); ++stage) {
    StageTimes& time = times.stages[stage];
    const double value = values[values.size() == 1 ? 0 : stage];
    if (name == "b") {
      time.b = value;
    } else {
      (name == "f" ? time.f : name == "i" ? time.i : time.w) = value;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Times> readTimes(const std::string& text) {
  Times times = Times::uniform(1, 1, 1);
  std::vector<std::string> parts = absl::StrSplit(text, ',', absl::SkipEmpty());
  for (const std::string& part : parts) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--times: '", part, "' has no '='; write for instance f=1,i=1,w=1,comm=0"));
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<double> values, numbers(part.substr(0, equals), part.substr(equals + 1)));
    WEFT_RETURN_IF_ERROR(setTime(times, part.substr(0, equals), values));
  }
  return times;
}

// With --plan go only --profile and --json.
absl::Status checkPlanFlags(const Flags& flags) {
  for (const Flag& flag : knownFlags()) {
    const bool serves = flag.name == "plan" || flag.name == "profile" || flag.name == "json";
    if (flags.has(flag.name) && !serves) {
      return absl::InvalidArgumentError(
          absl::StrCat("--plan and --", flag.name, " exclude each other: the plan has its own schedule and times"));
    }
  }
  return absl::OkStatus();
}

// How the command was called is wrong, as opposed to the schedule.
absl::Status checkFlags(const Flags& flags) {
  if (flags.has("plan")) {
    return checkPlanFlags(flags);
  }
  if (flags.has("profile")) {
    return absl::InvalidArgumentError("--profile is of a plan; give --plan");
  }
  const std::vector<std::string> generated{"kind", "stages", "micro", "virtual", "group"};
  for (const std::string& name : generated) {
    if (flags.has("file") && flags.has(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--file and --", name, " exclude each other: the file is the table"));
    }
  }
  for (size_t k = 0; k < 3; ++k) {
    if (!flags.has("file") && !flags.has(generated[k])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag '--", generated[k], "' is missing; give --kind, --stages and --micro, or --file, or --plan"));
    }
  }
  int printed = 0;
  for (const char* name : {"csv", "json", "timeline", "transfers"}) {
    printed += flags.has(name) ? 1 : 0;
  }
  return printed <= 1 ? absl::OkStatus()
                      : absl::InvalidArgumentError("--csv, --json, --timeline and --transfers exclude each other");
}

absl::StatusOr<Table> tableFromFile(const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(std::string text, readText(flags.text("file")));
  absl::StatusOr<Table> table = schedule::parseCsv(text);
  if (!table.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(flags.text("file"), ": ", std::string(table.status().message())));
  }
  WEFT_ASSIGN_OR_RETURN(table->sequenceSlices, count(flags, "sequence-slices", 1));
  return table;
}

absl::StatusOr<Table> readTable(const Flags& flags) {
  if (flags.has("file")) {
    return tableFromFile(flags);
  }
  schedule::Request request;
  WEFT_ASSIGN_OR_RETURN(request.kind, schedule::parseKind(flags.text("kind")));
  WEFT_ASSIGN_OR_RETURN(request.ranks, count(flags, "stages", 1));
  WEFT_ASSIGN_OR_RETURN(request.micros, count(flags, "micro", 1));
  WEFT_ASSIGN_OR_RETURN(request.virtualStages, count(flags, "virtual", schedule::defaultVirtualStages(request.kind)));
  WEFT_ASSIGN_OR_RETURN(request.group, count(flags, "group", 0));
  WEFT_ASSIGN_OR_RETURN(request.sequenceSlices, count(flags, "sequence-slices", 1));
  return schedule::generate(request);
}

// The table with everything that is proved and measured about it.
struct Report {
  Table table;
  Simulation simulation;
  Queues queues;
};

absl::StatusOr<Report> makeReport(const Flags& flags) {
  Report report;
  WEFT_ASSIGN_OR_RETURN(Times times, readTimes(flags.text("times")));
  WEFT_ASSIGN_OR_RETURN(report.table, readTable(flags));
  WEFT_ASSIGN_OR_RETURN(report.simulation, schedule::simulate(report.table, times));
  WEFT_ASSIGN_OR_RETURN(report.queues, schedule::placeTransfers(report.table, times));
  WEFT_RETURN_IF_ERROR(schedule::prove(report.table, report.queues));
  return report;
}

void printJson(const Report& report) {
  nlohmann::ordered_json orders = nlohmann::ordered_json::array();
  for (const std::vector<schedule::Action>& order : report.table.orders) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (const schedule::Action& action : order) {
      row.push_back(schedule::printAction(action));
    }
    orders.push_back(std::move(row));
  }
  nlohmann::ordered_json out;
  out["orders"] = std::move(orders);
  out["stage_to_rank"] = report.table.stageToRank;
  out["makespan"] = report.simulation.makespan;
  out["lower_bound"] = report.simulation.lowerBound;
  out["busy"] = report.simulation.busy;
  out["bubble_ratio"] = report.simulation.bubbleRatio;
  out["peak_in_flight"] = report.simulation.peakInFlight;
  out["deadlock_free"] = true;  // makeReport() refuses all others
  std::cout << out.dump() << "\n";
}

void printTransfers(const Report& report) {
  for (size_t rank = 0; rank < report.queues.size(); ++rank) {
    std::cout << "rank " << rank << "\n";
    for (const schedule::Step& step : report.queues[rank]) {
      std::cout << "  " << schedule::printStep(step) << "\n";
    }
  }
}

std::string number(double value) {
  return absl::StrFormat("%.6g", value);
}

void printSummary(const Report& report) {
  const Simulation& run = report.simulation;
  std::vector<std::vector<std::string>> rows{{"rank", "stages", "actions", "busy", "idle", "peak in flight"}};
  for (int32_t rank = 0; rank < report.table.ranks(); ++rank) {
    std::vector<int32_t> stages;
    for (int32_t stage = 0; stage < report.table.stages(); ++stage) {
      if (report.table.stageToRank[stage] == rank) {
        stages.push_back(stage);
      }
    }
    rows.push_back({absl::StrCat(rank), absl::StrJoin(stages, ","), absl::StrCat(report.table.orders[rank].size()),
                    number(run.busy[rank]), number(run.makespan - run.busy[rank]),
                    absl::StrCat(run.peakInFlight[rank])});
  }
  std::cout << table(rows) << "makespan " << number(run.makespan) << ", lower bound " << number(run.lowerBound)
            << "\nidle " << absl::StrFormat("%.2f%%", 100 * run.bubbleRatio) << " up to the common end, "
            << absl::StrFormat("%.2f%%", 100 * run.spanBubble)
            << " inside the longest span of a rank\nno deadlock: sends and receives have one order on all ranks\n";
}

void print(const Report& report, const Flags& flags) {
  if (flags.has("json")) {
    printJson(report);
  } else if (flags.has("csv")) {
    std::cout << schedule::printCsv(report.table);
  } else if (flags.has("transfers")) {
    printTransfers(report);
  } else if (flags.has("timeline")) {
    std::cout << schedule::printTimeline(report.table, report.simulation) << "\n";
    printSummary(report);
  } else {
    printSummary(report);
  }
}

}  // namespace

int scheduleCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp("weft schedule: a pipeline schedule, generated or from a file, checked and simulated",
                          knownFlags());
    return 0;
  }
  absl::StatusOr<Flags> flags = Flags::parse(knownFlags(), argc, argv);
  if (!flags.ok()) {
    return usageError("schedule", flags.status());
  }
  if (absl::Status usage = checkFlags(*flags); !usage.ok()) {
    return usageError("schedule", usage);
  }
  if (flags->has("plan")) {
    const absl::Status status = planSchedule(*flags);
    return status.ok() ? 0 : fail("schedule", status);
  }
  absl::StatusOr<Report> report = makeReport(*flags);
  if (!report.ok()) {
    return fail("schedule", report.status());
  }
  print(*report, *flags);
  return 0;
}

}  // namespace weft::tools
