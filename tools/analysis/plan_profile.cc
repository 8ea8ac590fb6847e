#include "tools/analysis/plan_profile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/rank_groups.h"
#include "runtime/plan/routes.h"
#include "runtime/plan/statistics.h"

namespace weft::tools {
namespace {

// Steps at the beginning that are left out.
constexpr size_t kWarmUp = 1;

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// An instruction of one step: when, and what of it was no wait.
struct Executed {
  const plan::Instruction* instruction = nullptr;
  TraceSpan span;
  double work = 0;
  bool waited = false;  // for a message, or for room for one
};

// What one rank did in one step.
struct RankStep {
  size_t submesh = 0;
  int64_t place = 0;
  double start = 0;  // after the host's call
  double end = 0;
  std::vector<std::vector<Executed>> calls;  // [action][instruction]
};

// Tells work from waits in one step, given what all ranks did.
class WaitFinder {
 public:
  explicit WaitFinder(const plan::Plan& plan) : routes_(plan) {
    for (const plan::Plan* submesh : submeshesOf(plan)) {
      groups_.emplace_back(*submesh);
    }
  }

  void find(std::vector<RankStep>& ranks) {
    for (RankStep& rank : ranks) {
      for (std::vector<Executed>& call : rank.calls) {
        for (Executed& executed : call) {
          note(rank, executed);
        }
      }
    }
    for (auto& [end, mail] : mails_) {
      findWaits(end, mail);
    }
    for (auto& [key, call] : collectiveCalls_) {
      for (Executed* member : call.members) {
        member->work = std::max(member->span.end - call.last, 0.0);
      }
    }
  }

 private:
  // What a rank sends and receives in a channel, in order.
  struct Mail {
    size_t capacity = 0;
    std::vector<Executed*> sends;
    std::vector<Executed*> receives;
  };
  using End = std::pair<uint32_t, int64_t>;  // channel and place of a rank in its submesh
  // Members of a collective, one of the times they meet.
  struct CollectiveCall {
    double last = 0;
    std::vector<Executed*> members;
  };

  void note(const RankStep& rank, Executed& executed) {
    const plan::Instruction& instruction = *executed.instruction;
    executed.work = executed.span.end - executed.span.begin;
    if (instruction.has_transfer()) {
      Mail& mail = mails_[{instruction.transfer().channel(), rank.place}];
      mail.capacity = static_cast<size_t>(instruction.transfer().capacity());
      (instruction.transfer().send() ? mail.sends : mail.receives).push_back(&executed);
    } else if (instruction.has_collective()) {
      const int group = groups_[rank.submesh].of(instruction.collective(), rank.place);
      CollectiveCall& call = collectiveCalls_[{rank.submesh, group, met_[{&rank, group}]++}];
      call.last = std::max(call.last, executed.span.begin);
      call.members.push_back(&executed);
    }
  }

  // A send could go on when all its receivers had room, a receive when all parts of its message were there.
  void findWaits(const End& end, const Mail& mail) {
    const auto latest = [&](const std::vector<int64_t>& places, size_t k, auto list) {
      double ready = 0;
      for (const int64_t place : places) {
        const auto other = mails_.find({end.first, place});
        const bool known = other != mails_.end() && k < (other->second.*list).size();
        ready = known ? std::max(ready, (other->second.*list)[k]->span.end) : ready;
      }
      return ready;
    };
    for (size_t k = mail.capacity; k < mail.sends.size(); ++k) {
      findWait(*mail.sends[k], latest(routes_.targets(end.first, end.second), k - mail.capacity, &Mail::receives));
    }
    for (size_t k = 0; k < mail.receives.size(); ++k) {
      findWait(*mail.receives[k], latest(routes_.sources(end.first, end.second), k, &Mail::sends));
    }
  }

  // An end of a message that could go on at `ready`.
  static void findWait(Executed& end, double ready) {
    end.waited = end.span.begin < ready;
    if (end.waited) {
      end.work = std::max(end.span.end - ready, 0.0);
    }
  }

  Routes routes_;
  std::vector<RankGroups> groups_;  // of each submesh
  std::map<End, Mail> mails_;
  std::map<std::tuple<size_t, int, int64_t>, CollectiveCall> collectiveCalls_;  // submesh, group, which of their calls
  std::map<std::pair<const RankStep*, int>, int64_t> met_;                      // how often a rank met a group
};

class Averager {
 public:
  Averager(const plan::Plan& plan, const Trace& trace) : plan_(plan), submeshes_(submeshesOf(plan)), trace_(trace) {
    for (const plan::Plan* submesh : submeshes_) {
      auto& functions = work_.emplace_back();
      for (const plan::Function& function : submesh->functions()) {
        functions.emplace_back(function.instructions_size());
      }
    }
  }

  absl::StatusOr<PlanProfile> average() {
    PlanProfile profile;
    Mean seconds;
    Mean replayed;
    std::vector<double> between;
    for (size_t s = kWarmUp; s < trace_.steps.size(); ++s) {
      const TraceSpan& step = trace_.steps[s];
      WEFT_ASSIGN_OR_RETURN(std::vector<RankStep> ranks, ranksOf(step));
      if (ranks.empty()) {
        break;  // the trace ends before the step does
      }
      WaitFinder(plan_).find(ranks);
      add(ranks);
      WEFT_ASSIGN_OR_RETURN(const schedule::PlanSimulation again, schedule::simulatePlan(plan_, timesOf(step, ranks)));
      ++profile.steps;
      replayed.add(again.seconds);
      seconds.add(step.end - step.begin);
      between.push_back(step.begin - trace_.steps[s - 1].end);
    }
    if (profile.steps == 0) {
      return absl::InvalidArgumentError("the profile has less than two whole steps; run more of them");
    }
    std::sort(between.begin(), between.end());
    profile.hostSeconds = between[between.size() / 2];
    profile.stepSeconds = seconds.value();
    profile.replayedSeconds = replayed.value();
    profile.times = times();
    return profile;
  }

 private:
  // What all ranks did in a step; empty where the trace ends before.
  absl::StatusOr<std::vector<RankStep>> ranksOf(const TraceSpan& step) const {
    std::vector<RankStep> ranks;
    for (size_t submesh = 0; submesh < submeshes_.size(); ++submesh) {
      for (int64_t place = 0; place < submeshes_[submesh]->ranks(); ++place) {
        RankStep rank;
        rank.submesh = submesh;
        rank.place = place;
        WEFT_ASSIGN_OR_RETURN(const bool whole, readCalls(step, trace_.calls[ranks.size()], rank));
        if (!whole) {
          return std::vector<RankStep>();
        }
        ranks.push_back(std::move(rank));
      }
    }
    return ranks;
  }

  // The rank's calls of the step, which must be those of its schedule. False where some are missing.
  absl::StatusOr<bool> readCalls(const TraceSpan& step, const std::vector<TraceCall>& calls, RankStep& rank) const {
    const plan::Plan& plan = *submeshes_[rank.submesh];
    auto call = std::partition_point(calls.begin(), calls.end(),
                                     [&](const TraceCall& one) { return one.span.begin < step.begin; });
    rank.end = step.begin;
    for (const plan::Action& action : plan.schedules(static_cast<int>(rank.place)).step()) {
      const plan::Function& function = plan.functions(static_cast<int>(action.function()));
      const auto count = static_cast<size_t>(function.instructions_size());
      if (call == calls.end() || call->instructions.size() < count) {
        return false;
      }
      if (call->function != function.name() || call->instructions.size() != count) {
        return otherPlan(absl::StrCat("it has a call of ", call->function, " with ", call->instructions.size(),
                                      " instructions where the plan calls ", function.name(), " with ", count));
      }
      rank.start = rank.calls.empty() ? call->span.begin - step.begin : rank.start;
      rank.end = call->span.end;
      rank.calls.push_back(executedOf(function, *call));
      ++call;
    }
    return true;
  }

  // An instruction lasts until the next one begins: what the executor does between belongs to it.
  static std::vector<Executed> executedOf(const plan::Function& function, const TraceCall& call) {
    std::vector<Executed> list;
    for (int i = 0; i < function.instructions_size(); ++i) {
      const bool last = i + 1 == function.instructions_size();
      const TraceSpan span = {i == 0 ? call.span.begin : call.instructions[i].span.begin,
                              last ? call.span.end : call.instructions[i + 1].span.begin};
      list.push_back({&function.instructions(i), span});
    }
    return list;
  }

  void add(const std::vector<RankStep>& ranks) {
    for (const RankStep& rank : ranks) {
      start_.add(rank.start);
      const auto& step = submeshes_[rank.submesh]->schedules(static_cast<int>(rank.place)).step();
      for (size_t a = 0; a < rank.calls.size(); ++a) {
        for (size_t i = 0; i < rank.calls[a].size(); ++i) {
          const Executed& executed = rank.calls[a][i];
          Mean& mean = work_[rank.submesh][step[static_cast<int>(a)].function()][i];
          if (executed.waited) {
            woken_.push_back({executed.work, &mean});
          } else {
            mean.add(executed.work);
          }
        }
      }
    }
  }

  // The times of this step, for each call.
  schedule::PlanTimes timesOf(const TraceSpan& step, const std::vector<RankStep>& ranks) {
    schedule::PlanTimes times;
    double end = step.begin;
    for (const RankStep& rank : ranks) {
      end = std::max(end, rank.end);
      times.starts.push_back(rank.start);
      auto& calls = times.calls.emplace_back();
      for (const std::vector<Executed>& call : rank.calls) {
        std::vector<double>& seconds = calls.emplace_back();
        for (const Executed& executed : call) {
          seconds.push_back(executed.work);
        }
      }
    }
    times.finish = step.end - end;
    finish_.add(times.finish);
    return times;
  }

  // Means. Who waited for a message took the copy and the time to wake.
  schedule::PlanTimes times() const {
    Mean wake;
    for (const auto& [seconds, copy] : woken_) {
      wake.add(std::max(seconds - copy->value(), 0.0));
    }
    schedule::PlanTimes times;
    times.wake = wake.value();
    times.start = start_.value();
    times.finish = finish_.value();
    for (const auto& functions : work_) {
      auto& submesh = times.instructions.emplace_back();
      for (const std::vector<Mean>& instructions : functions) {
        std::vector<double>& seconds = submesh.emplace_back();
        for (const Mean& mean : instructions) {
          seconds.push_back(mean.value());
        }
      }
    }
    return times;
  }

  const plan::Plan& plan_;
  std::vector<const plan::Plan*> submeshes_;
  const Trace& trace_;
  std::vector<std::vector<std::vector<Mean>>> work_;   // [submesh][function][instruction], of those that did not wait
  std::vector<std::pair<double, const Mean*>> woken_;  // those that did, from when they could go on
  Mean start_;
  Mean finish_;
};

}  // namespace

absl::StatusOr<PlanProfile> profileOf(const plan::Plan& plan, const Trace& trace) {
  return Averager(plan, trace).average();
}

absl::StatusOr<PlanProfile> readProfile(const plan::Plan& plan, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Trace trace, readTrace(path, plan.ranks()));
  return profileOf(plan, trace);
}

}  // namespace weft::tools
