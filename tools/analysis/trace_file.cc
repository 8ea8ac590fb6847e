#include "tools/analysis/trace_file.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"

namespace weft::tools {
namespace {

constexpr double kMicrosecond = 1e-6;
// The largest time in a trace, in microseconds: a thousand years. What is computed from times stays finite.
constexpr double kLongest = 3e16;

class TraceReader {
 public:
  explicit TraceReader(Trace& trace) : trace_(trace) {}

  absl::Status read(const Json& file) {
    WEFT_ASSIGN_OR_RETURN(JsonObject whole, JsonObject::of(file, "the file"));
    WEFT_ASSIGN_OR_RETURN(const Json* events, whole.list("traceEvents"));
    for (size_t i = 0; i < events->size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(JsonObject event, JsonObject::of((*events)[i], absl::StrCat("traceEvents[", i, "]")));
      WEFT_RETURN_IF_ERROR(add(event));
    }
    return absl::OkStatus();
  }

  // One that the plan does not have.
  const std::optional<int64_t>& strangeRank() const { return strangeRank_; }

 private:
  // An event of another form is of no interest; one of this form has all that is asked for here.
  absl::Status add(JsonObject& event) {
    WEFT_ASSIGN_OR_RETURN(const std::string form, event.text("ph"));
    if (form != "X") {
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(const double begin, time(event, "ts", -kLongest));
    WEFT_ASSIGN_OR_RETURN(const double duration, time(event, "dur", 0));
    const TraceSpan span = {begin * kMicrosecond, (begin + duration) * kMicrosecond};
    WEFT_ASSIGN_OR_RETURN(const std::string category, event.text("cat"));
    WEFT_ASSIGN_OR_RETURN(const std::string name, event.text("name"));
    WEFT_ASSIGN_OR_RETURN(const int64_t rank, event.integer("tid"));
    if (category == "step") {
      if (name == "step") {
        trace_.steps.push_back(span);
      }
      return absl::OkStatus();
    }
    if (rank >= static_cast<int64_t>(trace_.calls.size())) {
      strangeRank_ = strangeRank_.value_or(rank);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(const Json* given, event.any("args"));
    WEFT_ASSIGN_OR_RETURN(JsonObject args, JsonObject::of(*given, event.where("args")));
    return category == "action" ? addCall(args, span, rank) : addInstruction(args, {span, name, ""}, rank);
  }

  absl::Status addCall(JsonObject& args, const TraceSpan& span, int64_t rank) {
    TraceCall call;
    call.span = span;
    WEFT_ASSIGN_OR_RETURN(call.function, args.text("function"));
    WEFT_ASSIGN_OR_RETURN(call.microBatch, args.integerOr("micro_batch", 0));
    std::vector<TraceCall>& calls = trace_.calls[rank];
    if (!calls.empty() && span.begin < calls.back().span.begin) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " calls ", call.function, " at ", span.begin,
                                                     " s, but stands behind a call at ", calls.back().span.begin,
                                                     " s; a rank's calls stand in their order"));
    }
    calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  // An instruction belongs to the call before it; what a trace begins with may be cut off from its call.
  absl::Status addInstruction(JsonObject& args, TraceInstruction instruction, int64_t rank) {
    WEFT_ASSIGN_OR_RETURN(instruction.kernel, args.textOr("kernel", ""));
    if (!trace_.calls[rank].empty()) {
      trace_.calls[rank].back().instructions.push_back(std::move(instruction));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<double> time(JsonObject& event, const std::string& name, double least) {
    WEFT_ASSIGN_OR_RETURN(const Json* value, event.any(name));
    WEFT_ASSIGN_OR_RETURN(const double microseconds, jsonReal(*value, event.where(name)));
    return microseconds >= least && microseconds <= kLongest
               ? absl::StatusOr<double>(microseconds)
               : absl::InvalidArgumentError(absl::StrCat(event.where(name), ": found ", microseconds,
                                                         ", expected microseconds from ", least, " to ", kLongest));
  }

  Trace& trace_;
  std::optional<int64_t> strangeRank_;
};

}  // namespace

absl::Status otherPlan(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("the profile is of another plan: ", why,
                                                 "; write one with weft-run --trace or an example's --trace"));
}

absl::StatusOr<Trace> readTrace(const std::string& path, int64_t ranks) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  Trace trace;
  trace.calls.resize(ranks);
  TraceReader reader(trace);
  const absl::StatusOr<Json> file = parseJson(text);
  const absl::Status status = file.ok() ? reader.read(*file) : file.status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no trace of a plan: ", std::string(status.message()),
                                                   "; write one with weft-run --trace"));
  }
  if (reader.strangeRank().has_value()) {
    return otherPlan(absl::StrCat("it has a rank ", *reader.strangeRank(), ", the plan ", ranks, " ranks"));
  }
  return trace;
}

}  // namespace weft::tools
