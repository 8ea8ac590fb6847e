#include "tools/commands/view/view.h"

#include <filesystem>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tools/analysis/document.h"
#include "tools/analysis/trace_file.h"
#include "tools/commands/flags.h"
#include "tools/commands/machine_flag.h"
#include "tools/commands/view/page_files.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "view";

const std::vector<Flag>& knownFlags() {
  static const std::vector<Flag> flags{
      {"output", Flag::kOptional, "the page: one HTML file that needs nothing else (also -o)"},
      {"profile", Flag::kOptional, "a recorded run of this plan: what --trace of weft-run or of an example wrote"},
      {"step", Flag::kOptional, "which step of the run to draw, from 0 (default: the one of median length)"},
      {"machine", Flag::kOptional, "machine file for the predicted times (default: that of the plan)"},
      {"json", Flag::kSwitch, "print what the page shows as JSON"}};
  return flags;
}

absl::StatusOr<std::optional<ViewProfile>> profileFrom(const Flags& flags, const plan::Plan& plan) {
  if (!flags.has("profile")) {
    return std::nullopt;
  }
  std::optional<int64_t> step;
  if (flags.has("step")) {
    WEFT_ASSIGN_OR_RETURN(step, flags.integer("step", 0, {.least = 0}));
  }
  WEFT_ASSIGN_OR_RETURN(const Trace trace, readTrace(flags.text("profile"), plan.ranks()));
  ViewProfile profile;
  WEFT_ASSIGN_OR_RETURN(profile.step, executedStep(plan, trace, step));
  WEFT_ASSIGN_OR_RETURN(profile.means, profileOf(plan, trace));
  WEFT_ASSIGN_OR_RETURN(profile.simulated, schedule::simulatePlan(plan, profile.means.times));
  return profile;
}

// Names that are no UTF-8 are shown as well as can be.
std::string textOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void replaceOnce(std::string& text, const std::string& mark, const std::string& with) {
  if (const size_t at = text.find(mark); at != std::string::npos) {
    text.replace(at, mark.size(), with);
  }
}

// Inside a script element only `<` could end the data; as an escape it means the same to JSON.
std::string forScript(const std::string& json) {
  std::string text;
  for (const char c : json) {
    c == '<' ? text += "\\u003c" : text += c;
  }
  return text;
}

// page.html names its parts as comments: `/* page.css */`. The data goes in last: it may hold anything.
std::string pageOf(const Json& document) {
  std::string page = pageFiles().front().second;
  for (const auto& [name, content] : pageFiles()) {
    replaceOnce(page, absl::StrCat("/* ", name, " */"), content);
  }
  replaceOnce(page, "{\"weft\": \"document\"}", forScript(textOf(document)));
  return page;
}

absl::Status show(const std::string& path, const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plan, readPlan(path));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineFrom(flags, plan.machine()));
  WEFT_ASSIGN_OR_RETURN(const std::optional<ViewProfile> profile, profileFrom(flags, plan));
  WEFT_ASSIGN_OR_RETURN(const Json document, viewDocument({std::filesystem::path(path).stem().string(), &plan, machine,
                                                           profile ? &*profile : nullptr}));
  if (flags.has("json")) {
    std::cout << textOf(document) << "\n";
  }
  return flags.has("output") ? writeFile(flags.text("output"), pageOf(document)) : absl::OkStatus();
}

absl::Status checkFlags(const Flags& flags) {
  if (!flags.has("output") && !flags.has("json")) {
    return absl::InvalidArgumentError("say where the page goes: -o PAGE.html; or --json for what it shows");
  }
  return flags.has("step") && !flags.has("profile")
             ? absl::InvalidArgumentError("--step chooses a step of the run that --profile names")
             : absl::OkStatus();
}

}  // namespace

int viewCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp("weft view PLAN [flags]: a page that shows a plan: operators, timeline, memory, times",
                          knownFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  const absl::StatusOr<Flags> flags = Flags::parse(knownFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError(kName, flags.ok() ? absl::InvalidArgumentError("a plan file is missing") : flags.status());
  }
  if (absl::Status usage = checkFlags(*flags); !usage.ok()) {
    return usageError(kName, usage);
  }
  const absl::Status status = show(path, *flags);
  return status.ok() ? 0 : fail(kName, status);
}

}  // namespace weft::tools
