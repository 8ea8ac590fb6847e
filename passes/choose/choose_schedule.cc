#include "passes/choose/choose_schedule.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/simulate.h"
#include "planner/stage_table.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {

namespace {

struct Candidate {
  std::string kind;
  int64_t virtualStages = 1;
  double seconds = 0;
  int64_t peakBytes = 0;
  bool fits = false;
  bool recomputes = false;
  std::optional<Decisions> decisions;  // of one that recomputes
  std::string refusal;                 // why it does not serve; empty if it does
  std::unique_ptr<RecomputeSearch> search;
};

// Kinds that put as many stages on each rank as the program asks for.
std::vector<Candidate> candidatesFor(int64_t virtualStages) {
  std::vector<Candidate> candidates;
  for (const schedule::Kind kind : schedule::allKinds()) {
    const bool loops = kind == schedule::Kind::kInterleaved || kind == schedule::Kind::kBreadthFirst ||
                       kind == schedule::Kind::kZbInterleaved;
    const bool serves = loops ? virtualStages > 1 : schedule::defaultVirtualStages(kind) == virtualStages;
    if (serves && kind != schedule::Kind::kSeq1F1B) {
      candidates.emplace_back();
      candidates.back().kind = schedule::kindName(kind);
      candidates.back().virtualStages = virtualStages;
    }
  }
  return candidates;
}

// What was considered, for the record of the decisions.
std::string consideredText(const std::vector<Candidate>& candidates) {
  nlohmann::ordered_json considered = nlohmann::ordered_json::array();
  for (const Candidate& candidate : candidates) {
    nlohmann::ordered_json entry = {{"kind", candidate.kind}, {"virtual", candidate.virtualStages}};
    if (candidate.refusal.empty()) {
      entry["seconds"] = candidate.seconds;
      entry["peak_bytes"] = candidate.peakBytes;
      entry["fits"] = candidate.fits;
      if (candidate.recomputes) {
        entry["recomputes"] = true;
      }
    } else {
      entry["refused"] = candidate.refusal;
    }
    considered.push_back(entry);
  }
  return considered.dump();
}

absl::Status noneFits(const std::vector<Candidate>& candidates, int64_t memoryLimit, bool recompute) {
  const Candidate* least = nullptr;
  std::string refusals;
  for (const Candidate& candidate : candidates) {
    if (!candidate.refusal.empty()) {
      absl::StrAppend(&refusals, "; ", candidate.kind, ": ", candidate.refusal);
    } else if (least == nullptr || candidate.peakBytes < least->peakBytes) {
      least = &candidate;
    }
  }
  if (least == nullptr) {
    // A mistake in the program is the same under every schedule; it is said once.
    const std::string& first = candidates.front().refusal;
    const bool alike =
        std::all_of(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.refusal == first; });
    return absl::InvalidArgumentError(alike ? first : absl::StrCat("no schedule serves this program", refusals));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no schedule fits in ", memoryLimit, " bytes per rank; the least is ", least->peakBytes, " with ",
                   least->kind, recompute ? ", whatever is recomputed" : "", "; allow as much, ",
                   recompute ? "" : "recompute (CompileOptions::recompute = \"auto\"), ", "or use more ranks"));
}

// Compiles a candidate without recomputation.
void tryKind(mlir::ModuleOp module, int64_t memoryLimit, const HalvesFor& halvesFor, Candidate& candidate) {
  absl::StatusOr<std::unique_ptr<RecomputeSearch>> search =
      RecomputeSearch::create(module, halvesFor({candidate.kind, candidate.virtualStages, ""}));
  if (!search.ok()) {
    candidate.refusal = std::string(search.status().message());
    return;
  }
  candidate.search = *std::move(search);
  candidate.seconds = candidate.search->base().seconds;
  candidate.peakBytes = candidate.search->base().peakBytes;
  candidate.fits = memoryLimit == 0 || candidate.peakBytes <= memoryLimit;
}

absl::Status recomputeFor(Candidate& candidate, int64_t memoryLimit) {
  WEFT_ASSIGN_OR_RETURN(const Attempt attempt, candidate.search->under(memoryLimit));
  candidate.recomputes = true;
  candidate.fits = attempt.fits;
  candidate.seconds = attempt.seconds;
  candidate.peakBytes = attempt.peakBytes;
  candidate.decisions = attempt.decisions;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScheduleSearchResult> chooseSchedule(mlir::ModuleOp module, const CompileOptions& request,
                                                    bool recompute, const HalvesFor& halvesFor) {
  const int64_t memoryLimit = request.memoryLimit;
  std::vector<Candidate> candidates = candidatesFor(std::max<int64_t>(request.virtualStages, 1));
  std::vector<Candidate*> order;
  for (Candidate& candidate : candidates) {
    tryKind(module, memoryLimit, halvesFor, candidate);
    order.push_back(&candidate);
  }
  const auto rank = [](const Candidate* c) { return std::make_pair(c->seconds, c->peakBytes); };
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
  Candidate* best = nullptr;
  for (Candidate* candidate : order) {
    const bool mayWin = best == nullptr || candidate->seconds < best->seconds;
    if (candidate->refusal.empty() && !candidate->fits && recompute && mayWin) {
      WEFT_RETURN_IF_ERROR(recomputeFor(*candidate, memoryLimit));
    }
    if (candidate->refusal.empty() && candidate->fits && (best == nullptr || rank(candidate) < rank(best))) {
      best = candidate;
    }
  }
  if (best == nullptr) {
    return noneFits(candidates, memoryLimit, recompute);
  }
  ScheduleSearchResult result = {{best->kind, best->virtualStages, consideredText(candidates)},
                                 std::move(best->decisions)};
  if (result.decisions) {
    result.decisions->schedule.considered = result.schedule.considered;
  }
  return result;
}

}  // namespace weft
