#include "planner/search/choose_schedule.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/decisions.h"
#include "planner/search/gradient_gathers.h"
#include "planner/search/pipeline_shape.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

struct Candidate {
  ScheduleChoice choice;
  absl::Status refusal;  // why it does not serve; OK if it does
  ScheduledModel under;
  Attempt attempt;
  std::optional<RecomputeStarts> starts = std::nullopt;
  bool recomputes = false;
};

std::vector<Candidate> candidatesFor(const CompileOptions& request) {
  const int64_t virtualStages = std::max<int64_t>(request.virtualStages, 1);
  std::vector<Candidate> candidates;
  for (const schedule::Kind kind : kindsFor(request, virtualStages)) {
    candidates.push_back({{schedule::kindName(kind), virtualStages, ""}, {}, {}, {}});
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

absl::Status tryKind(const MemoryLimits& limits, const ModelFor& modelFor, Candidate& candidate) {
  absl::StatusOr<ScheduledModel> under = modelFor(candidate.choice);
  if (!under.ok()) {
    candidate.refusal = under.status();
    return absl::OkStatus();
  }
  candidate.under = *std::move(under);
  WEFT_ASSIGN_OR_RETURN(candidate.attempt, asItIs(limits, candidate.under.record, *candidate.under.model));
  return absl::OkStatus();
}

// The best with recomputation, `best` if none is better. Those come first that are expected to be shortest, and give
// way to the next where they turn out to take longer than that is expected to.
absl::StatusOr<Candidate*> tryRecomputation(const MemoryLimits& limits, recompute::KnownFronts& fronts,
                                            Picoseconds useless, std::vector<Candidate*> order, Candidate* best) {
  const auto mayWin = [&](const Candidate* candidate) {
    return !candidate->attempt.fits && (!best->attempt.fits || candidate->attempt.time < best->attempt.time);
  };
  for (Candidate* candidate : order) {
    if (mayWin(candidate)) {
      WEFT_ASSIGN_OR_RETURN(candidate->starts, RecomputeStarts::of(limits, std::move(candidate->attempt),
                                                                   *candidate->under.model, fronts));
      candidate->attempt = candidate->starts->first();
      best = isBetter(candidate->attempt, best->attempt) ? candidate : best;
    }
  }
  std::erase_if(order, [](const Candidate* candidate) { return candidate->attempt.fits; });
  std::map<const Candidate*, Picoseconds> expected;
  for (const Candidate* candidate : order) {
    expected[candidate] = mayWin(candidate) ? candidate->starts->expected() : kAnyTime;
  }
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return expected[a] < expected[b]; });
  const auto attempt = [&](Candidate* candidate, Picoseconds longest) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(Attempt made, candidate->starts->run(longest));
    candidate->recomputes = true;
    candidate->attempt = std::move(made);
    best = isBetter(candidate->attempt, best->attempt) ? candidate : best;
    return absl::OkStatus();
  };
  for (size_t i = 0; i < order.size(); ++i) {
    Picoseconds longest = best->attempt.fits ? std::min(useless, best->attempt.time) : useless;
    const Picoseconds mine = expected[order[i]];
    if (mine < longest && i + 1 < order.size()) {
      longest = std::max(std::min(longest, expected[order[i + 1]]), mine + 1);
    }
    const Attempt base = order[i]->attempt;
    if (mine < kAnyTime && base.time < longest) {  // it may take less than is expected of it
      WEFT_RETURN_IF_ERROR(attempt(order[i], longest));
      order[i]->attempt = order[i]->attempt.fits ? order[i]->attempt : base;
    }
  }
  // Where nothing fitted that was given up early, all that there is to try is tried.
  for (Candidate* candidate : order) {
    if (!best->attempt.fits && useless == kAnyTime) {
      WEFT_RETURN_IF_ERROR(attempt(candidate, kAnyTime));
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<Attempt> chooseSchedule(const CompileOptions& request, const MemoryLimits& limits,
                                       recompute::KnownFronts& fronts, bool recompute, const ModelFor& modelFor,
                                       Picoseconds useless) {
  std::vector<Candidate> candidates = candidatesFor(request);
  std::vector<Candidate*> order;
  for (Candidate& candidate : candidates) {
    WEFT_RETURN_IF_ERROR(tryKind(limits, modelFor, candidate));
    if (candidate.refusal.ok()) {
      order.push_back(&candidate);
    }
  }
  if (order.empty()) {
    return noneServes(candidates);
  }
  const auto rank = [](const Candidate* c) { return std::tie(c->attempt.time, c->attempt.peakBytes); };
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
  const Picoseconds fastest = order.front()->attempt.time;
  Candidate* best = nullptr;
  for (Candidate* candidate : order) {
    if (best == nullptr || isBetter(candidate->attempt, best->attempt)) {
      best = candidate;
    }
  }
  if (recompute) {
    WEFT_ASSIGN_OR_RETURN(best, tryRecomputation(limits, fronts, useless, order, best));
  }
  best->attempt.fastest = fastest;
  best->attempt.decisions.schedule.considered = consideredText(candidates);
  return best->attempt;
}

}  // namespace weft
