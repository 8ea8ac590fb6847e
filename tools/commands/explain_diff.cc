#include "tools/commands/explain_diff.h"

#include <cctype>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/explain/plan_diff.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;
using Unit = DiffLine::Unit;

constexpr double kKibibyte = 1 << 10;
constexpr double kMebibyte = 1 << 20;

// What a file holds: a plan or decisions.
struct Opened {
  std::optional<plan::Plan> plan;
  Decisions decisions;
};

absl::StatusOr<Opened> open(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  Opened opened;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') {
    WEFT_ASSIGN_OR_RETURN(opened.plan, readPlan(path));
    if (opened.plan->decisions().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path,
                       ": the plan has no record of decisions, so nothing is known of what it chose; compile it "
                       "again with `weft compile`"));
    }
    return opened;
  }
  absl::StatusOr<Decisions> decisions = parseDecisions(text);
  if (!decisions.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::string(decisions.status().message())));
  }
  opened.decisions = *std::move(decisions);
  return opened;
}

// Decisions alone do not say which arguments are weights: those of the other file, or all.
absl::StatusOr<ComparedPlan> compared(const Opened& mine, const Opened& other) {
  ComparedPlan made;
  if (mine.plan) {
    WEFT_ASSIGN_OR_RETURN(made.summary, summaryOf(*mine.plan));
    made.statistics = statisticsOf(*mine.plan);
    made.compiled = true;
    return made;
  }
  std::set<std::string> parameters;
  if (other.plan) {
    parameters = parameterNames(*other.plan);
  } else {
    for (const ArgumentDecision& argument : mine.decisions.arguments) {
      parameters.insert(argument.name);
    }
  }
  made.summary = summaryOf(mine.decisions, parameters);
  made.summary.memory.peakBytes = mine.decisions.prediction ? mine.decisions.prediction->most() : 0;
  return made;
}

std::string textOf(const DiffLine::Side& side, Unit unit) {
  switch (unit) {
    case Unit::kText:
      return side.text;
    case Unit::kNumber:
      return absl::StrFormat("%.0f", side.number);
    case Unit::kBytes:
      return side.number < kMebibyte ? absl::StrFormat("%.2f KiB", side.number / kKibibyte)
                                     : absl::StrFormat("%.2f MiB", side.number / kMebibyte);
    case Unit::kSeconds:
      return absl::StrFormat("%.6g ms", 1e3 * side.number);
  }
  return "";
}

Json jsonOf(const DiffLine::Side& side, Unit unit) {
  switch (unit) {
    case Unit::kText:
      return side.text;
    case Unit::kSeconds:
      return side.number;
    default:
      return static_cast<int64_t>(side.number);
  }
}

void printJson(const std::vector<DiffLine>& lines) {
  Json out = {{"differs", Json::array()}, {"same", Json::array()}};
  for (const DiffLine& line : lines) {
    if (line.same()) {
      out["same"].push_back(line.what);
    } else {
      out["differs"].push_back(
          {{"what", line.what}, {"a", jsonOf(line.a, line.unit)}, {"b", jsonOf(line.b, line.unit)}});
    }
  }
  std::cout << out.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void printText(const std::vector<DiffLine>& lines) {
  std::vector<std::vector<std::string>> rows = {{"differs", "a", "b"}};
  std::vector<std::string> same;
  for (const DiffLine& line : lines) {
    if (line.same()) {
      same.push_back(line.what);
    } else {
      rows.push_back({line.what, textOf(line.a, line.unit), textOf(line.b, line.unit)});
    }
  }
  if (rows.size() > 1) {
    std::cout << table(rows);
  }
  std::cout << "the same: "
            << (same.size() == lines.size() ? "everything"
                : same.empty()              ? "nothing"
                                            : absl::StrJoin(same, ", "))
            << "\n";
}

}  // namespace

absl::Status printDiff(const std::string& pathOfA, const std::string& pathOfB, const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Opened a, open(pathOfA));
  WEFT_ASSIGN_OR_RETURN(const Opened b, open(pathOfB));
  WEFT_ASSIGN_OR_RETURN(const ComparedPlan ofA, compared(a, b));
  WEFT_ASSIGN_OR_RETURN(const ComparedPlan ofB, compared(b, a));
  const std::vector<DiffLine> lines = compare(ofA, ofB);
  flags.has("json") ? printJson(lines) : printText(lines);
  return absl::OkStatus();
}

}  // namespace weft::tools
