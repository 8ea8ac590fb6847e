#include "tools/commands/plan_schedule.h"

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/cost/plan_time.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tools/analysis/plan_profile.h"
#include "tools/analysis/simulate_plan.h"

namespace weft::tools {
namespace {

using schedule::StageTimes;
using Json = nlohmann::ordered_json;

struct Report {
  plan::Plan plan;
  std::optional<PlanProfile> profile;
  schedule::PlanTimes times;
  schedule::PlanSimulation run;
};

absl::StatusOr<Report> makeReport(const Flags& flags) {
  Report report;
  WEFT_ASSIGN_OR_RETURN(report.plan, readPlan(flags.text("plan")));
  if (flags.has("profile")) {
    WEFT_ASSIGN_OR_RETURN(report.profile, readProfile(report.plan, flags.text("profile")));
  }
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(report.plan));
  report.times = report.profile.has_value() ? report.profile->times : schedule::predictedTimes(report.plan, machine);
  WEFT_ASSIGN_OR_RETURN(report.run, schedule::simulatePlan(report.plan, report.times));
  return report;
}

std::string milliseconds(double seconds) {
  return absl::StrFormat("%.3f", 1e3 * seconds);
}

// "2.5% shorter" than the executed step.
std::string difference(double seconds, const PlanProfile& profile) {
  const double off = seconds / profile.stepSeconds - 1;
  return absl::StrFormat("%.1f%% %s", 100 * std::abs(off), off < 0 ? "shorter" : "longer");
}

// The stages' times as --times takes them, in milliseconds.
std::string timesFlag(const std::vector<StageTimes>& stages, double comm) {
  std::string f, i, w, b;
  bool split = false;
  for (const StageTimes& stage : stages) {
    const char* const slash = f.empty() ? "" : "/";
    absl::StrAppend(&f, slash, milliseconds(stage.f));
    absl::StrAppend(&i, slash, milliseconds(stage.i));
    absl::StrAppend(&w, slash, milliseconds(stage.w));
    absl::StrAppend(&b, slash, milliseconds(stage.of(schedule::ActionKind::kBackward)));
    split = split || !stage.b.has_value();
  }
  return absl::StrCat("f=", f, split ? absl::StrCat(",i=", i, ",w=", w) : absl::StrCat(",b=", b),
                      ",comm=", milliseconds(comm));
}

void printJson(const Report& report) {
  Json out = {{"seconds", report.run.seconds}, {"bubble_ratio", report.run.bubbleRatio}};
  out["busy"] = Json::array();
  for (const schedule::RankRun& rank : report.run.ranks) {
    out["busy"].push_back(rank.busy);
  }
  out["stages"] = Json::array();
  for (const StageTimes& stage : schedule::stageTimes(report.plan, report.times)) {
    Json times = {{"f", stage.f}, {"i", stage.i}, {"w", stage.w}};
    times["b"] = stage.of(schedule::ActionKind::kBackward);
    out["stages"].push_back(times);
  }
  out["wake"] = report.times.wake;
  if (report.profile.has_value()) {
    out["executed"] = {{"steps", report.profile->steps},
                       {"seconds", report.profile->stepSeconds},
                       {"replayed_seconds", report.profile->replayedSeconds},
                       {"host_seconds", report.profile->hostSeconds},
                       {"difference", report.run.seconds / report.profile->stepSeconds - 1}};
  }
  std::cout << out.dump() << "\n";
}

void printText(const Report& report) {
  std::vector<std::vector<std::string>> stages{{"stage", "F ms", "I ms", "W ms", "B ms"}};
  const std::vector<StageTimes> times = schedule::stageTimes(report.plan, report.times);
  for (size_t s = 0; s < times.size(); ++s) {
    const bool whole = times[s].b.has_value();
    stages.push_back({absl::StrCat(s), milliseconds(times[s].f), whole ? "" : milliseconds(times[s].i),
                      whole ? "" : milliseconds(times[s].w),
                      milliseconds(times[s].of(schedule::ActionKind::kBackward))});
  }
  std::vector<std::vector<std::string>> ranks{{"rank", "busy ms", "idle ms"}};
  for (size_t r = 0; r < report.run.ranks.size(); ++r) {
    const double busy = report.run.ranks[r].busy;
    ranks.push_back({absl::StrCat(r), milliseconds(busy), milliseconds(report.run.seconds - busy)});
  }
  std::cout << (report.profile.has_value() ? "measured" : "predicted") << " times of one micro-batch\n"
            << table(stages) << "\n"
            << table(ranks) << "simulated step " << milliseconds(report.run.seconds) << " ms, idle "
            << absl::StrFormat("%.2f%%", 100 * report.run.bubbleRatio) << "\n";
  if (report.profile.has_value()) {
    const PlanProfile& profile = *report.profile;
    std::cout << "executed step " << milliseconds(profile.stepSeconds) << " ms, mean of " << profile.steps
              << "\nthe simulated one is " << difference(report.run.seconds, profile)
              << "; with the time that each call took, instead of means, "
              << difference(profile.replayedSeconds, profile) << "\nthe host takes "
              << milliseconds(profile.hostSeconds) << " ms between steps\n";
  }
  if (times.size() > 1) {
    std::cout << "for other schedules: weft schedule --kind ... --times " << timesFlag(times, report.times.wake)
              << "\n";
  }
}

}  // namespace

absl::Status planSchedule(const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Report report, makeReport(flags));
  flags.has("json") ? printJson(report) : printText(report);
  return absl::OkStatus();
}

}  // namespace weft::tools
