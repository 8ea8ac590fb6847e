#include "planner/schedule/simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft::schedule {
namespace {

absl::Status checkTimes(const Table& table, const Times& times) {
  if (times.stages.size() != 1 && times.stages.size() != table.stageToRank.size()) {
    return absl::InvalidArgumentError(absl::StrCat("times of ", times.stages.size(), " stages for a table of ",
                                                   table.stages(), "; give one entry per stage, or one for all"));
  }
  auto check = [](double value, const std::string& name) {
    return std::isfinite(value) && value >= 0
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     absl::StrCat("time ", name, " is ", value, "; times are finite and not negative"));
  };
  for (const StageTimes& stage : times.stages) {
    WEFT_RETURN_IF_ERROR(check(stage.f, "f"));
    WEFT_RETURN_IF_ERROR(check(stage.i, "i"));
    WEFT_RETURN_IF_ERROR(check(stage.w, "w"));
    WEFT_RETURN_IF_ERROR(check(stage.b.value_or(0), "b"));
  }
  return check(times.comm, "comm");
}

// Peak of pairs between F and W or B; it depends on the rank's order only.
int32_t peakOf(const std::vector<Action>& order) {
  int32_t live = 0;
  int32_t peak = 0;
  for (const Action& action : order) {
    live += action.kind == ActionKind::kForward ? 1 : action.kind == ActionKind::kInputGrad ? 0 : -1;
    peak = std::max(peak, live);
  }
  return peak;
}

double lowerBound(const Table& table, const Times& times, const std::vector<double>& busy, int32_t micros) {
  const int32_t ranks = table.ranks();
  std::vector<double> head(ranks, std::numeric_limits<double>::infinity());
  std::vector<double> tail(ranks, std::numeric_limits<double>::infinity());
  std::vector<double> critical(ranks, 0);  // all F and I of a rank
  const StageTimes& first = times.of(0);
  double before = 0;
  // The weight gradient of the very first stage follows its input gradient; cut out of a B it takes what I leaves.
  double after = std::max(0.0, std::min(first.w, first.of(ActionKind::kBackward) - first.i));
  for (int32_t stage = 0; stage < table.stages(); ++stage) {
    const int32_t rank = table.stageToRank[stage];
    const double hop = stage > 0 && table.stageToRank[stage - 1] != rank ? times.comm : 0;
    const StageTimes& time = times.of(stage);
    const double inputGrad = std::min(time.i, time.of(ActionKind::kBackward));
    before += hop;
    after += hop;
    head[rank] = std::min(head[rank], before);
    tail[rank] = std::min(tail[rank], after);
    critical[rank] += micros * (time.f + inputGrad);
    before += time.f;
    after += inputGrad;
  }
  double bound = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    bound = std::max({bound, head[rank] + busy[rank], head[rank] + critical[rank] + tail[rank]});
  }
  return bound;
}

void addRatios(Simulation& out) {
  double idle = 0;
  double longest = 0;
  for (size_t rank = 0; rank < out.busy.size(); ++rank) {
    idle += out.makespan - out.busy[rank];
    const double span = out.ends[rank].back() - out.starts[rank].front();
    if (span > longest) {
      longest = span;
      out.spanBubble = (span - out.busy[rank]) / span;
    }
  }
  if (out.makespan > 0) {
    out.bubbleRatio = std::max(0.0, idle / (static_cast<double>(out.busy.size()) * out.makespan));
  }
}

}  // namespace

double StageTimes::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward:
      return f;
    case ActionKind::kInputGrad:
      return i;
    case ActionKind::kWeightGrad:
      return w;
    case ActionKind::kBackward:
      return b.value_or(i + w);
  }
  return 0;
}

Simulation simulateResolved(const Table& table, const Resolved& resolved, const Times& times) {
  Simulation out;
  out.busy.assign(table.ranks(), 0);
  std::vector<double> ends(resolved.actions.size());
  std::vector<double> free(table.ranks(), 0);
  for (const std::vector<Action>& order : table.orders) {
    out.starts.emplace_back(order.size());
    out.ends.emplace_back(order.size());
    out.peakInFlight.push_back(peakOf(order));
  }
  for (const int32_t node : resolved.order) {
    const int32_t rank = resolved.ranks[node];
    const Action& action = resolved.actions[node];
    double start = free[rank];
    if (const int32_t producer = resolved.producers[node]; producer >= 0) {
      start = std::max(start, ends[producer] + (resolved.ranks[producer] == rank ? 0 : times.comm));
    }
    const double duration = times.of(action.stage).of(action.kind);
    ends[node] = free[rank] = start + duration;
    out.busy[rank] += duration;
    out.starts[rank][node - resolved.offsets[rank]] = start;
    out.ends[rank][node - resolved.offsets[rank]] = ends[node];
    out.makespan = std::max(out.makespan, ends[node]);
  }
  out.lowerBound = lowerBound(table, times, out.busy, resolved.micros);
  // The two sums add the same figures in different orders; a rounding error must not put the bound above the result.
  constexpr double kRounding = 1e-9;
  if (out.lowerBound > out.makespan && out.lowerBound <= out.makespan * (1 + kRounding)) {
    out.lowerBound = out.makespan;
  }
  addRatios(out);
  return out;
}

absl::StatusOr<Simulation> simulate(const Table& table, const Times& times) {
  WEFT_RETURN_IF_ERROR(checkTimes(table, times));
  WEFT_ASSIGN_OR_RETURN(Resolved resolved, resolve(table));
  return simulateResolved(table, resolved, times);
}

}  // namespace weft::schedule
