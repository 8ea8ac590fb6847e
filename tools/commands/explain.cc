#include "tools/commands/explain.h"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/cost/plan_time.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tools/analysis/explanation.h"
#include "tools/analysis/fold_layers.h"
#include "tools/analysis/predicted_trace.h"
#include "tools/commands/explain_diff.h"
#include "tools/commands/flags.h"
#include "tools/commands/plan_table.h"
#include "tools/commands/prices_table.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "explain";
constexpr char kUsage[] = "weft explain PLAN, or weft explain --diff A B of plans or decisions";

const std::vector<Flag>& explainFlags() {
  static const std::vector<Flag> flags{
      {"all", Flag::kSwitch, "print every layer, equal ones too"},
      {"json", Flag::kSwitch, "print JSON, with every layer"},
      {"trace", Flag::kOptional, "write the predicted step there instead, for chrome://tracing or Perfetto"},
      {"as-code", Flag::kSwitch, "print the decisions as lines of C++ for the program, which --module gives"},
      {"module", Flag::kOptional, "the module that the plan was compiled from, 00-input.mlir of a dump"}};
  return flags;
}

Json jsonOf(const CollectiveLine& line) {
  return {{"function", line.function}, {"collective", line.collective},
          {"operator", line.name},     {"tensors", line.tensors},
          {"groups", line.groups},     {"bytes_received_per_rank", line.bytes},
          {"seconds", line.seconds},   {"why", line.why},
          {"source", line.source}};
}

Json jsonOf(const RecomputedLine& line) {
  return {{"recomputed", line.name},   {"stage", line.stage},     {"reshard", line.reshard},
          {"bytes_saved", line.bytes}, {"seconds", line.seconds}, {"why", line.why}};
}

// Without decisions there is nothing to summarize.
Json jsonOf(const std::optional<PlanSummary>& summary, const Explanation& explanation) {
  Json lines = Json::array();
  for (const CollectiveLine& line : explanation.collectives) {
    lines.push_back(jsonOf(line));
  }
  for (const RecomputedLine& line : explanation.recomputed) {
    lines.push_back(jsonOf(line));
  }
  Json out = summary ? tools::jsonOf(*summary) : Json::object();
  out["lines"] = std::move(lines);
  return out;
}

// Lines that are printed as they are, for --all.
std::vector<FoldedLine> unfolded(const std::vector<FoldableLine>& lines) {
  std::vector<FoldedLine> each;
  for (size_t i = 0; i < lines.size(); ++i) {
    each.push_back({{i}, lines[i].name, lines[i].texts});
  }
  return each;
}

// Bytes are added as real numbers: a foreign file may hold any integer.
struct Price {
  double bytes = 0;
  double seconds = 0;
};

template <typename Line>
Price totalOf(const std::vector<Line>& lines) {
  Price total;
  for (const Line& line : lines) {
    total.bytes += static_cast<double>(line.bytes);
    total.seconds += line.seconds;
  }
  return total;
}

std::string priceText(const Price& price, const std::string& ofBytes, const std::string& ofSeconds = "") {
  return absl::StrCat(absl::StrFormat("%.0f", price.bytes), " bytes ", ofBytes, ", ", price.seconds, " s", ofSeconds);
}

// " each; all 12: 2359296 bytes, 0.000284 s": what `count` lines like this one come to.
template <typename Line>
std::string togetherText(const Line& line, size_t count) {
  const auto times = static_cast<double>(count);
  return count == 1 ? ""
                    : absl::StrCat(" each; all ", count, ": ",
                                   absl::StrFormat("%.0f", static_cast<double>(line.bytes) * times), " bytes, ",
                                   line.seconds * times, " s");
}

std::string timesText(size_t count) {
  return count == 1 ? "" : absl::StrCat(", ", count, " x");
}

// "model.cc:32", as weft print and dumps have it; JSON has the whole path.
std::string fileAndLine(const std::string& source) {
  return std::filesystem::path(source).filename().string();
}

// All that is printed of a line but for its names.
template <typename Line>
std::string restOf(Line line) {
  line.name.clear();
  line.why.clear();
  return jsonOf(line).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Line>
std::vector<FoldedLine> fold(const std::vector<Line>& lines, bool all) {
  std::vector<FoldableLine> foldable;
  for (const Line& line : lines) {
    foldable.push_back({line.name, {line.why}, restOf(line)});
  }
  return all ? unfolded(foldable) : foldLayers(foldable);
}

void printCollectives(const std::vector<CollectiveLine>& lines, bool all, int64_t microBatches) {
  for (const FoldedLine& folded : fold(lines, all)) {
    const CollectiveLine& line = lines[folded.members.front()];
    const size_t count = folded.members.size();
    std::cout << "@" << line.function << "  " << line.collective << " of " << folded.name << timesText(count)
              << ", groups " << line.groups << "\n    why    " << folded.texts.front() << "\n    price  " << line.bytes
              << " bytes received per rank, " << line.seconds << " s" << togetherText(line, count) << "\n    source "
              << fileAndLine(line.source) << "\n";
  }
  std::cout << lines.size() << " collectives and sends";
  if (!lines.empty()) {
    std::cout << ", in one call of each function: " << priceText(totalOf(lines), "received per rank");
  }
  if (microBatches > 1) {
    std::cout << "; a step calls the functions of a micro-batch " << microBatches << " times";
  }
  std::cout << "\n";
}

void printRecomputed(const std::vector<RecomputedLine>& lines, bool all) {
  for (const FoldedLine& folded : fold(lines, all)) {
    const RecomputedLine& line = lines[folded.members.front()];
    const size_t count = folded.members.size();
    std::cout << "stage " << line.stage << "  " << folded.name << (line.reshard.empty() ? "" : " as " + line.reshard)
              << timesText(count) << ", recomputed in the backward pass\n    why    " << folded.texts.front()
              << "\n    price  " << line.bytes << " bytes less kept of each micro-batch, " << line.seconds << " s more"
              << togetherText(line, count) << "\n";
  }
  if (!lines.empty()) {
    std::cout << lines.size()
              << " operators recomputed: " << priceText(totalOf(lines), "less", " more for each micro-batch") << "\n";
  }
}

absl::Status writeTrace(const plan::Plan& plan, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(plan));
  WEFT_ASSIGN_OR_RETURN(const StepTimes step, stepTimes(plan, machine));
  WEFT_ASSIGN_OR_RETURN(const std::string trace, traceOf(decisions, step));
  return writeFile(path, trace);
}

absl::StatusOr<std::string> codeFor(CodeOfPlan codeOf, const plan::Plan& plan, const Flags& flags) {
  if (!flags.has("module")) {
    return absl::InvalidArgumentError(
        "--as-code names operators of the program, which a plan does not hold; give the module that it was compiled "
        "from: --module DUMP/00-input.mlir");
  }
  return codeOf != nullptr ? codeOf(plan, flags.text("module"))
                           : absl::UnimplementedError(
                                 "--as-code reads a module, which this build without the compiler "
                                 "cannot; use the weft of a build with it");
}

absl::Status run(CodeOfPlan codeOf, const std::string& path, const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plan, readPlan(path));
  if (flags.has("trace")) {
    return writeTrace(plan, flags.text("trace"));
  }
  std::string code;
  if (flags.has("as-code")) {
    WEFT_ASSIGN_OR_RETURN(code, codeFor(codeOf, plan, flags));
  }
  const bool isJson = flags.has("json");
  if (!code.empty() && !isJson) {
    std::cout << code;
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const Explanation explanation, explain(plan));
  std::optional<PlanSummary> summary;
  std::string others;
  if (!plan.decisions().empty()) {
    WEFT_ASSIGN_OR_RETURN(summary, summaryOf(plan));
    WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
    others = decisions.prices;
  }
  if (isJson) {
    Json out = jsonOf(summary, explanation);
    out.update(others.empty() ? Json::object() : Json::parse(others));
    out.update(code.empty() ? Json::object() : Json{{"code", code}});
    // Names that are no UTF-8 are shown as well as can be.
    std::cout << out.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  const bool all = flags.has("all");
  if (summary) {
    printSummary(*summary);
    printOtherPlans(parseOtherPlans(others));
  }
  printCollectives(explanation.collectives, all, plan.micro_batches());
  printRecomputed(explanation.recomputed, all);
  return absl::OkStatus();
}

// Two files follow it, so it is no flag of one value.
bool takeDiff(int& argc, char**& argv) {
  const bool isDiff = argc > 1 && std::string(argv[1]) == "--diff";
  argc -= isDiff ? 1 : 0;
  argv += isDiff ? 1 : 0;
  return isDiff;
}

}  // namespace

int explainCommand(int argc, char** argv) {
  return explainWith(nullptr, argc, argv);
}

int explainWith(CodeOfPlan codeOf, int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, explainFlags());
    return 0;
  }
  const bool isDiff = takeDiff(argc, argv);
  const std::string path = takePath(argc, argv);
  const std::string other = isDiff ? takePath(argc, argv) : "";
  absl::StatusOr<Flags> flags = Flags::parse(explainFlags(), argc, argv);
  if (!flags.ok() || path.empty() || (isDiff && other.empty())) {
    return usageError(kName, !flags.ok() ? flags.status()
                             : isDiff    ? absl::InvalidArgumentError("--diff takes two files, of plans or decisions")
                                         : absl::InvalidArgumentError("a plan file is missing"));
  }
  const absl::Status status = isDiff ? printDiff(path, other, *flags) : run(codeOf, path, *flags);
  return status.ok() ? 0 : fail(kName, status);
}

}  // namespace weft::tools
