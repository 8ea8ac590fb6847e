#include "planner/search/choose_schedule.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/decisions.h"
#include "planner/schedule/generate.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

struct Candidate {
  ScheduleChoice choice;
  absl::Status refusal;  // why it does not serve; OK if it does
  ScheduledModel under;
  Attempt attempt;
  bool recomputes = false;
};

// Kinds that put as many stages on each rank as the program asks for.
std::vector<Candidate> candidatesFor(int64_t virtualStages) {
  std::vector<Candidate> candidates;
  for (const schedule::Kind kind : schedule::allKinds()) {
    const bool loops = kind == schedule::Kind::kInterleaved || kind == schedule::Kind::kBreadthFirst ||
                       kind == schedule::Kind::kZbInterleaved;
    const bool serves = loops ? virtualStages > 1 : schedule::defaultVirtualStages(kind) == virtualStages;
    if (serves && kind != schedule::Kind::kSeq1F1B) {
      candidates.push_back({{schedule::kindName(kind), virtualStages, ""}, {}, {}, {}});
    }
  }
  return candidates;
}

// What was considered, for the record of the decisions.
std::string consideredText(const std::vector<Candidate>& candidates) {
  nlohmann::ordered_json considered = nlohmann::ordered_json::array();
  for (const Candidate& candidate : candidates) {
    nlohmann::ordered_json entry = {{"kind", candidate.choice.kind}, {"virtual", candidate.choice.virtualStages}};
    if (candidate.refusal.ok()) {
      entry["seconds"] = inSeconds(candidate.attempt.time);
      entry["peak_bytes"] = candidate.attempt.peakBytes;
      entry["fits"] = candidate.attempt.fits;
      if (candidate.recomputes) {
        entry["recomputes"] = true;
      }
    } else {
      entry["refused"] = std::string(candidate.refusal.message());
    }
    considered.push_back(entry);
  }
  return considered.dump();
}

// A mistake in the program is the same under every schedule; it is said once.
absl::Status noneServes(const std::vector<Candidate>& candidates) {
  const absl::Status& first = candidates.front().refusal;
  std::string refusals;
  bool alike = true;
  for (const Candidate& candidate : candidates) {
    absl::StrAppend(&refusals, "; ", candidate.choice.kind, ": ", candidate.refusal.message());
    alike = alike && candidate.refusal == first;
  }
  return alike ? first : absl::InvalidArgumentError(absl::StrCat("no schedule serves this program", refusals));
}

absl::Status tryKind(const CompileOptions& request, const ModelFor& modelFor, Candidate& candidate) {
  absl::StatusOr<ScheduledModel> under = modelFor(candidate.choice);
  if (!under.ok()) {
    candidate.refusal = under.status();
    return absl::OkStatus();
  }
  candidate.under = *std::move(under);
  WEFT_ASSIGN_OR_RETURN(candidate.attempt,
                        fitIn(request.memoryLimit, candidate.under.record, false, *candidate.under.model));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Attempt> chooseSchedule(const CompileOptions& request, bool recompute, const ModelFor& modelFor) {
  std::vector<Candidate> candidates = candidatesFor(std::max<int64_t>(request.virtualStages, 1));
  std::vector<Candidate*> order;
  for (Candidate& candidate : candidates) {
    WEFT_RETURN_IF_ERROR(tryKind(request, modelFor, candidate));
    if (candidate.refusal.ok()) {
      order.push_back(&candidate);
    }
  }
  if (order.empty()) {
    return noneServes(candidates);
  }
  const auto rank = [](const Candidate* c) { return std::tie(c->attempt.time, c->attempt.peakBytes); };
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
  Candidate* best = nullptr;
  for (Candidate* candidate : order) {
    const bool mayWin = best == nullptr || !best->attempt.fits || candidate->attempt.time < best->attempt.time;
    if (!candidate->attempt.fits && recompute && mayWin) {
      WEFT_ASSIGN_OR_RETURN(candidate->attempt,
                            fitIn(request.memoryLimit, candidate->under.record, true, *candidate->under.model));
      candidate->recomputes = true;
    }
    if (best == nullptr || isBetter(candidate->attempt, best->attempt)) {
      best = candidate;
    }
  }
  best->attempt.decisions.schedule.considered = consideredText(candidates);
  return best->attempt;
}

}  // namespace weft
