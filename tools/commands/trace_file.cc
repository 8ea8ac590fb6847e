#include "tools/commands/trace_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using nlohmann::json;

constexpr double kMicrosecond = 1e-6;

// A number that others count with; the library would cut any other.
int64_t wholeNumber(const json& value, const std::string& name) {
  if (!value.is_number_integer()) {
    throw json::type_error::create(302, name + " is no whole number", nullptr);
  }
  return value.get<int64_t>();
}

// The values that a trace event must have; `json::exception` where they are missing.
absl::Status addEvent(const json& event, Trace& trace) {
  if (event.at("ph") != "X") {
    return absl::OkStatus();
  }
  const double begin = event.at("ts").get<double>() * kMicrosecond;
  const TraceSpan span = {begin, begin + event.at("dur").get<double>() * kMicrosecond};
  const std::string category = event.at("cat");
  if (category == "step") {
    if (event.at("name") == "step") {
      trace.steps.push_back(span);
    }
    return absl::OkStatus();
  }
  const auto rank = static_cast<size_t>(wholeNumber(event.at("tid"), "tid"));
  if (rank >= trace.calls.size()) {
    return otherPlan(absl::StrCat("it has a rank ", rank, ", the plan ", trace.calls.size(), " ranks"));
  }
  std::vector<TraceCall>& calls = trace.calls[rank];
  const json& args = event.at("args");
  if (category == "action") {
    const int64_t piece = args.contains("piece") ? wholeNumber(args.at("piece"), "piece") : 0;
    calls.push_back({args.at("function"), piece, span, {}});
  } else if (!calls.empty()) {
    calls.back().instructions.push_back({span, event.at("name"), args.value("kernel", "")});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status otherPlan(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("the profile is of another plan: ", why,
                                                 "; write one with weft-run --trace or an example's --trace"));
}

absl::StatusOr<Trace> readTrace(const std::string& path, int64_t ranks) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  Trace trace;
  trace.calls.resize(ranks);
  try {
    const json file = json::parse(text);
    for (const json& event : file.at("traceEvents")) {
      WEFT_RETURN_IF_ERROR(addEvent(event, trace));
    }
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no trace of a plan: ", error.what(), "; write one with weft-run --trace"));
  }
  return trace;
}

}  // namespace weft::tools
