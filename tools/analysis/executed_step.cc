#include "tools/analysis/executed_step.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/statistics.h"

namespace weft::tools {
namespace {

// What the runtime writes as an instruction's kernel.
std::string kernelOf(const plan::Instruction& instruction) {
  return instruction.has_collective() ? plan::CollectiveKind_Name(instruction.collective().kind())
         : instruction.has_transfer() ? instruction.transfer().send() ? "send" : "receive"
                                      : instruction.kernel();
}

std::string operatorText(const std::string& label, const std::string& kernel) {
  return absl::StrCat("'", label, "' (", kernel, ")");
}

// A rank among those of all submeshes.
struct Place {
  int64_t rank = 0;
  const plan::Plan* submesh = nullptr;
  const plan::RankSchedule* schedule = nullptr;
};

class Reader {
 public:
  Reader(const plan::Plan& plan, const Trace& trace) : trace_(trace) {
    for (const plan::Plan* submesh : submeshesOf(plan)) {
      for (const plan::RankSchedule& schedule : submesh->schedules()) {
        places_.push_back({static_cast<int64_t>(places_.size()), submesh, &schedule});
      }
    }
  }

  absl::StatusOr<ExecutedStep> run(std::optional<int64_t> step) {
    for (const TraceSpan& span : trace_.steps) {
      bool whole = true;
      for (const Place& place : places_) {
        WEFT_ASSIGN_OR_RETURN(const bool complete, check(place, span));
        whole = whole && complete;
      }
      if (!whole) {
        break;  // the trace ends before the step does
      }
      out_.stepSeconds.push_back(span.end - span.begin);
    }
    WEFT_RETURN_IF_ERROR(choose(step));
    for (const Place& place : places_) {
      fill(place, trace_.steps[out_.shown]);
    }
    return std::move(out_);
  }

 private:
  const plan::Function& functionOf(const Place& place, const plan::Action& action) const {
    return place.submesh->functions(static_cast<int>(action.function()));
  }

  // The rank's first call in the step.
  const TraceCall* firstCall(const Place& place, const TraceSpan& step) const {
    const std::vector<TraceCall>& calls = trace_.calls[place.rank];
    const auto first = std::partition_point(calls.begin(), calls.end(),
                                            [&](const TraceCall& call) { return call.span.begin < step.begin; });
    return calls.data() + (first - calls.begin());
  }

  // False where calls of the step are missing at the end of the trace.
  absl::StatusOr<bool> check(const Place& place, const TraceSpan& step) const {
    const TraceCall* call = firstCall(place, step);
    const TraceCall* end = trace_.calls[place.rank].data() + trace_.calls[place.rank].size();
    for (const plan::Action& action : place.schedule->step()) {
      const plan::Function& function = functionOf(place, action);
      if (call == end ||
          (call + 1 == end && call->instructions.size() < static_cast<size_t>(function.instructions_size()))) {
        return false;
      }
      if (call->function != function.name() || call->microBatch != action.micro_batch()) {
        return otherPlan(absl::StrCat("rank ", place.rank, " calls ", call->function, " of micro-batch ",
                                      call->microBatch, " where the plan has ", function.name(), " of micro-batch ",
                                      action.micro_batch()));
      }
      WEFT_RETURN_IF_ERROR(checkOperators(place, function, *call));
      ++call;
    }
    return true;
  }

  static absl::Status checkOperators(const Place& place, const plan::Function& function, const TraceCall& call) {
    const auto count = static_cast<size_t>(function.instructions_size());
    for (size_t i = 0; i < std::min(count, call.instructions.size()); ++i) {
      const plan::Instruction& instruction = function.instructions(static_cast<int>(i));
      const TraceInstruction& event = call.instructions[i];
      if (event.label != instruction.label() || event.kernel != kernelOf(instruction)) {
        const std::string source = sourceOf(*place.submesh, instruction);
        return otherPlan(absl::StrCat("rank ", place.rank, " runs ", operatorText(event.label, event.kernel),
                                      " as operator ", i, " of ", function.name(), ", the plan has ",
                                      operatorText(instruction.label(), kernelOf(instruction)),
                                      source.empty() ? "" : " of ", source));
      }
    }
    return call.instructions.size() == count
               ? absl::OkStatus()
               : otherPlan(absl::StrCat("rank ", place.rank, " runs ", call.instructions.size(), " operators in ",
                                        function.name(), ", the plan has ", count));
  }

  absl::Status choose(std::optional<int64_t> step) {
    const auto count = static_cast<int64_t>(out_.stepSeconds.size());
    if (count == 0) {
      return absl::InvalidArgumentError("the profile has no whole step; run at least two");
    }
    if (step.has_value() && *step >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("the profile has no whole step ", *step, ", only 0 to ", count - 1));
    }
    std::vector<int64_t> order;
    for (int64_t i = count > 1 ? 1 : 0; i < count; ++i) {
      order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return out_.stepSeconds[a] < out_.stepSeconds[b]; });
    out_.shown = step.value_or(order[(order.size() - 1) / 2]);
    return absl::OkStatus();
  }

  void fill(const Place& place, const TraceSpan& step) {
    std::vector<ExecutedCall>& calls = out_.ranks.emplace_back();
    const TraceCall* call = firstCall(place, step);
    for (const plan::Action& action : place.schedule->step()) {
      calls.push_back(executed(functionOf(place, action), action, *call++, step.begin));
    }
  }

  static ExecutedCall executed(const plan::Function& function, const plan::Action& action, const TraceCall& call,
                               double zero) {
    ExecutedCall out = {action.function(), action.micro_batch(), call.span.begin - zero, call.span.end - zero};
    bool leading = true;  // nothing but receives so far
    for (size_t i = 0; i < call.instructions.size(); ++i) {
      const plan::Instruction& instruction = function.instructions(static_cast<int>(i));
      const TraceSpan& span = call.instructions[i].span;
      const bool receive = instruction.has_transfer() && !instruction.transfer().send();
      leading = leading && receive;
      out.lead = leading ? span.end - call.span.begin : out.lead;
      out.waiting += receive ? span.end - span.begin : 0;
      out.moving += instruction.has_collective() ? span.end - span.begin : 0;
    }
    return out;
  }

  const Trace& trace_;
  std::vector<Place> places_;
  ExecutedStep out_;
};

}  // namespace

absl::StatusOr<ExecutedStep> executedStep(const plan::Plan& plan, const Trace& trace, std::optional<int64_t> step) {
  return Reader(plan, trace).run(step);
}

}  // namespace weft::tools
