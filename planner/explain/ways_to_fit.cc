#include "planner/explain/ways_to_fit.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/check_request.h"
#include "planner/explain/plan_summary.h"
#include "planner/open_mesh.h"
#include "planner/search/user_words.h"
#include "runtime/base/limits.h"

namespace weft {
namespace {

constexpr size_t kMostTried = 4;
constexpr int64_t kMostTimesDevices = 4;
constexpr size_t kManyOperators = 2000;  // a search takes seconds: other questions are left to the user

// Where the changed request has a plan that fits.
std::optional<WayToFit> tried(const std::string& what, const PlanQuestion& changed) {
  if (!checkRequest(Request{changed.request, std::nullopt}).ok()) {
    return std::nullopt;
  }
  const absl::StatusOr<ClosedRequest> closed = closeRequest(changed.graphs, changed.request, {});
  return closed.ok() && closed->attempt.fits
             ? std::optional(WayToFit{what, planText(closed->attempt.decisions), closed->attempt.peakBytes})
             : std::nullopt;
}

std::optional<WayToFit> offloaded(const PlanQuestion& question, const ClosedRequest& plan, bool isLong) {
  const std::string what = "with the optimizer's state in the host's memory (offload state)";
  if (plan.request.offload != Offload::kNone || question.request.offload != Offload::kNone ||
      !question.request.may(Freedom::kOffload)) {
    return std::nullopt;
  }
  if (!isLong) {
    PlanQuestion changed = question;
    changed.request.offload = Offload::kState;
    return tried(what, changed);
  }
  CompileOptions changed = plan.request;
  changed.offload = Offload::kState;
  if (!checkRequest(Request{changed, std::nullopt}).ok()) {
    return std::nullopt;
  }
  const absl::StatusOr<Attempt> attempt = predictProgram(*plan.graph, changed, {});
  return attempt.ok() && attempt->fits ? std::optional(WayToFit{what, planText(attempt->decisions), attempt->peakBytes})
                                       : std::nullopt;
}

}  // namespace

std::vector<WayToFit> waysToFit(const GraphFor& graphs, const CompileOptions& request, const ClosedRequest& plan) {
  std::vector<WayToFit> ways;
  const int64_t ranks = plan.attempt.decisions.meshes().ranks();
  const PlanQuestion open = openQuestion({graphs, request}, ranks);
  const absl::StatusOr<std::shared_ptr<const ProgramGraph>> graph = graphs(request.microBatches());
  const absl::StatusOr<int64_t> limit = memoryLimitOf(request);
  const bool isFar = limit.ok() && plan.attempt.peakBytes / kMostTimesDevices > *limit;
  if (!graph.ok() || isFar) {
    return ways;
  }
  const bool isLong = (*graph)->operators.size() > kManyOperators;
  if (std::optional<WayToFit> way = offloaded(open, plan, isLong)) {
    ways.push_back(*std::move(way));
  }
  if (isLong) {
    return ways;
  }
  const std::vector<UserWord> words = userWords(open.request, **graph, ranks);
  for (size_t i = 0; i < std::min(words.size(), kMostTried); ++i) {
    if (std::optional<WayToFit> way = tried(absl::StrCat("without ", words[i].text), without({words[i]}, open))) {
      ways.push_back(*std::move(way));
    }
  }
  const bool counts = request.stageMeshes.empty() && (request.mesh.empty() || isOpenMesh(request.mesh));
  for (int64_t times = 2; counts && times <= kMostTimesDevices && times * ranks <= kMaxRanks; times *= 2) {
    PlanQuestion more = open;
    more.request.devices = times * ranks;
    if (std::optional<WayToFit> way = tried(absl::StrCat("with ", times * ranks, " devices"), more)) {
      ways.push_back(*std::move(way));
      break;
    }
  }
  return ways;
}

std::string doesNotFitText(const MemoryLimits& limits, const Decisions& least, int64_t bytes,
                           const std::vector<WayToFit>& ways) {
  std::string text =
      absl::StrCat("no plan fits in ", limits.print(), " bytes per rank; the least that was found needs ", bytes, " (",
                   planText(least), "); allow as much");
  for (const WayToFit& way : ways) {
    absl::StrAppend(&text, ", or plan ", way.what, ": ", way.peakBytes, " (", way.plan, ")");
  }
  return absl::StrCat(text, ways.empty() ? ", or give more devices" : "");
}

}  // namespace weft
