#include "tools/analysis/predicted_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/stage_table.h"
#include "planner/step/step_calls.h"
#include "runtime/base/status.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;

class TraceWriter {
 public:
  TraceWriter(const Decisions& decisions, const StepTimes& step) : decisions_(decisions), step_(step) {}

  void addRows(int64_t submeshes) {
    const StageMeshes meshes = decisions_.meshes();
    for (int64_t s = 0; s < submeshes; ++s) {
      const Mesh& mesh = meshes.withNumber(meshes.numberOfSubmesh(s));
      addRow(kRows * s, absl::StrCat("submesh ", s, ": ", mesh.ofRanks().print()));
      if (decisions_.overlap) {
        addRow(kRows * s + 1, absl::StrCat("submesh ", s, " communicates"));
      }
      if (submeshes > 1) {
        addRow(kRows * s + 2, absl::StrCat("submesh ", s, " sends"));
      }
    }
  }

  void addSpan(int64_t submesh, const std::string& name, const std::string& category, double begin, double seconds) {
    add(kRows * submesh, name, category, begin, seconds);
  }
  void addSend(int64_t submesh, const std::string& name, double begin, double seconds) {
    add(kRows * submesh + 2, name, "transfer", begin, seconds);
  }
  // What runs beside the functions of these kinds, called for a stage one after another.
  void addCollectives(int64_t submesh, const std::vector<plan::FunctionKind>& kinds, int64_t stage, double begin) {
    if (submesh >= static_cast<int64_t>(step_.functions.size())) {
      return;  // whatever a file says
    }
    for (const plan::FunctionKind kind : kinds) {
      for (const FunctionTime& function : step_.functions[submesh]) {
        if (function.kind != kind || (isPerMicroBatch(kind) && function.stage != stage)) {
          continue;
        }
        for (const CollectiveSpan& span : function.spans) {
          add(kRows * submesh + 1, span.label, "collective", begin + inSeconds(span.begin),
              inSeconds(span.end - span.begin));
        }
        begin += inSeconds(function.total);
      }
    }
  }

  std::string text() const {
    return Json({{"traceEvents", events_}, {"displayTimeUnit", "ms"}})
        .dump(1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  void addRow(int64_t row, const std::string& name) {
    events_.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"name", name}}}});
    events_.push_back(
        {{"name", "thread_sort_index"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"sort_index", row}}}});
  }

  void add(int64_t row, const std::string& name, const std::string& category, double begin, double seconds) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", begin * kMicroseconds},
                       {"dur", seconds * kMicroseconds},
                       {"pid", 0},
                       {"tid", row}});
  }

  static constexpr int64_t kRows = 3;  // of a submesh, if it has all

  const Decisions& decisions_;
  const StepTimes& step_;
  Json events_ = Json::array();
};

const char* categoryOf(schedule::ActionKind kind) {
  switch (kind) {
    case schedule::ActionKind::kForward:
      return "forward";
    case schedule::ActionKind::kInputGrad:
      return "input_grad";
    case schedule::ActionKind::kWeightGrad:
      return "weight_grad";
    case schedule::ActionKind::kBackward:
      return "backward";
  }
  return "";
}

// The stage that waits for what an action makes, on another submesh.
std::optional<int64_t> receiverOf(const schedule::Table& table, const schedule::Action& action) {
  const int32_t next = action.kind == schedule::ActionKind::kForward ? action.stage + 1
                       : makesInputGrad(action.kind)                 ? action.stage - 1
                                                                     : -1;
  const bool moves = next >= 0 && next < table.stages() && table.stageToRank[next] != table.stageToRank[action.stage];
  return moves ? std::optional<int64_t>(table.stageToRank[next]) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::string> traceOf(const Decisions& decisions, const StepTimes& step) {
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table,
                        stageTable(decisions.schedule, decisions.mesh.microBatches(), /*backward=*/true));
  WEFT_ASSIGN_OR_RETURN(const schedule::Simulation simulation, schedule::simulate(table, step.times));
  TraceWriter writer(decisions, step);
  writer.addRows(table.ranks());
  const double begin = step.before.empty() ? 0 : *std::max_element(step.before.begin(), step.before.end());
  for (int32_t s = 0; s < table.ranks(); ++s) {
    if (s < static_cast<int32_t>(step.before.size()) && step.before[s] > 0) {
      writer.addSpan(s, "prologue", "prologue", 0, step.before[s]);
      writer.addCollectives(s, {plan::PROLOGUE}, 0, 0);
    }
    for (size_t a = 0; a < table.orders[s].size(); ++a) {
      const schedule::Action& action = table.orders[s][a];
      const double end = begin + simulation.ends[s][a];
      writer.addSpan(s, schedule::printAction(action), categoryOf(action.kind), begin + simulation.starts[s][a],
                     simulation.ends[s][a] - simulation.starts[s][a]);
      writer.addCollectives(s, functionKindsOf(action.kind), action.stage, begin + simulation.starts[s][a]);
      if (const std::optional<int64_t> receiver = receiverOf(table, action)) {
        writer.addSend(s, absl::StrCat(schedule::printAction(action), " to submesh ", *receiver), end, step.times.comm);
      }
    }
    if (s < static_cast<int32_t>(step.after.size()) && step.after[s] > 0) {
      writer.addSpan(s, "update", "update", begin + simulation.makespan, step.after[s]);
      writer.addCollectives(s, {plan::UPDATE}, 0, begin + simulation.makespan);
    }
  }
  return writer.text();
}

}  // namespace weft::tools
