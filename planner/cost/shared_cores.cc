#include "planner/cost/shared_cores.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "planner/schedule/validate.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A stage without collectives.
constexpr schedule::StageTimes kAll = {1, 1, 1, 1};

// What a submesh does at a time.
struct Task {
  double computing = 0;  // on a core of its own
  double rest = 0;       // needs none
  // What it reads: the end of another task, and after it.
  std::optional<std::pair<size_t, size_t>> producer = {};  // submesh and number
  double delay = 0;
};

// Tasks of each submesh in order, from one begin or end of what needs a core to the next: all of that advances alike.
class Turns {
 public:
  // `wanted`: cores of each submesh that computes; `cores` is what there are.
  Turns(const std::vector<std::vector<Task>>& tasks, const std::vector<int64_t>& wanted, double cores)
      : tasks_(tasks), wanted_(wanted), cores_(cores), at_(tasks.size()), ends_(tasks.size()) {}

  // When the last one ends.
  double run() {
    double now = 0;
    for (;;) {
      const double next = begin(now);
      double busy = 0;  // cores that are wanted
      double shortest = kNever;
      for (size_t s = 0; s < at_.size(); ++s) {
        if (at_[s].computing) {
          busy += static_cast<double>(wanted_[s]);
          shortest = std::min(shortest, *at_[s].computing);
        }
      }
      const double speed = std::min(1.0, cores_ / busy);
      const double passes = std::min(shortest / speed, next - now);
      if (passes == kNever) {
        break;
      }
      now += passes;
      for (size_t s = 0; s < at_.size(); ++s) {
        if (at_[s].computing) {
          compute(s, shortest / speed <= passes ? shortest : passes * speed, now);
        }
      }
    }
    double last = 0;
    for (const std::vector<double>& ends : ends_) {
      last = ends.empty() ? last : std::max(last, ends.back());
    }
    return last;
  }

 private:
  // Where a submesh is; its task is the first that has no end.
  struct Place {
    std::optional<double> computing;  // what is left of that; nothing: it does not compute
    double free = 0;                  // when it is done with what needs no core
  };

  // Lets all compute that can, and answers when the next one can.
  double begin(double now) {
    double next = kNever;
    for (size_t s = 0; s < at_.size(); ++s) {
      if (at_[s].computing || ends_[s].size() == tasks_[s].size()) {
        continue;
      }
      const Task& task = tasks_[s][ends_[s].size()];
      const double arrival = std::max(at_[s].free, arrivalOf(task));
      if (arrival <= now) {
        at_[s].computing = task.computing;
      } else {
        next = std::min(next, arrival);
      }
    }
    return next;
  }

  double arrivalOf(const Task& task) const {
    if (!task.producer) {
      return 0;
    }
    const auto [submesh, number] = *task.producer;
    return number < ends_[submesh].size() ? ends_[submesh][number] + task.delay : kNever;
  }

  void compute(size_t submesh, double time, double now) {
    Place& place = at_[submesh];
    *place.computing -= time;
    if (*place.computing <= 0) {
      place.computing.reset();
      place.free = now + tasks_[submesh][ends_[submesh].size()].rest;
      ends_[submesh].push_back(place.free);
    }
  }

  const std::vector<std::vector<Task>>& tasks_;
  const std::vector<int64_t>& wanted_;
  double cores_;
  std::vector<Place> at_;
  std::vector<std::vector<double>> ends_;  // of the tasks of each submesh that are over, or what needs a core of them
};

double partOf(const FunctionTime& function) {
  return function.total > 0
             ? std::min(1.0, static_cast<double>(function.computation) / static_cast<double>(function.total))
             : 1;
}

Task taskOf(double time, double part) {
  return {time * part, time * (1 - part)};
}

}  // namespace

SharedCores::SharedCores(const Machine& machine, std::vector<int64_t> ranks,
                         const std::vector<absl::Span<const FunctionTime>>& functions)
    : ranks_(std::move(ranks)), before_(functions.size(), 1), after_(functions.size(), 1) {
  const int64_t all = std::accumulate(ranks_.begin(), ranks_.end(), int64_t{0});
  const int64_t onNode = machine.devicesPerNode > 0 ? std::min(all, machine.devicesPerNode) : all;
  allRanks_ = static_cast<double>(all);
  if (machine.cores > 0 && onNode > machine.cores) {
    ranksPerCore_ = static_cast<double>(onNode) / static_cast<double>(machine.cores);
  }
  for (size_t s = 0; s < functions.size(); ++s) {
    for (const FunctionTime& function : functions[s]) {
      if (!isPerMicroBatch(function.kind)) {
        (function.kind == plan::PROLOGUE ? before_ : after_)[s] = partOf(function);
        continue;
      }
      of_.resize(std::max(of_.size(), static_cast<size_t>(function.stage) + 1), kAll);
      schedule::StageTimes& stage = of_[function.stage];
      (function.kind == plan::FORWARD      ? stage.f
       : function.kind == plan::INPUT_GRAD ? stage.i
       : function.kind == plan::BACKWARD   ? *stage.b
                                           : stage.w) = partOf(function);
    }
  }
}

schedule::StageTimes SharedCores::partsOf(int64_t stage) const {
  return stage < static_cast<int64_t>(of_.size()) ? of_[stage] : kAll;
}

double SharedCores::once(plan::FunctionKind kind, const std::vector<double>& times) const {
  if (!areShared()) {
    return *std::max_element(times.begin(), times.end());
  }
  std::vector<std::vector<Task>> tasks;
  for (size_t s = 0; s < times.size(); ++s) {
    tasks.push_back({taskOf(times[s], (kind == plan::PROLOGUE ? before_ : after_)[s])});
  }
  return Turns(tasks, ranks_, cores()).run();
}

absl::StatusOr<double> SharedCores::makespan(const schedule::Table& table, const schedule::Times& times) const {
  WEFT_ASSIGN_OR_RETURN(const schedule::Simulation alone, schedule::simulate(table, times));
  if (!areShared()) {
    return alone.makespan;
  }
  WEFT_ASSIGN_OR_RETURN(const schedule::Resolved resolved, schedule::resolve(table));
  std::vector<std::vector<Task>> tasks(table.orders.size());
  for (size_t node = 0; node < resolved.actions.size(); ++node) {
    const schedule::Action& action = resolved.actions[node];
    const int32_t submesh = resolved.ranks[node];
    Task task = taskOf(times.of(action.stage).of(action.kind), partsOf(action.stage).of(action.kind));
    if (const int32_t producer = resolved.producers[node]; producer >= 0) {
      const int32_t other = resolved.ranks[producer];
      task.producer = {other, producer - resolved.offsets[other]};
      task.delay = other == submesh ? 0 : times.comm;
    }
    tasks[submesh].push_back(std::move(task));
  }
  return Turns(tasks, ranks_, cores()).run();
}

double SharedCores::forward(const std::vector<int64_t>& submeshOfStage, const schedule::Times& times,
                            int64_t microBatches) const {
  if (!areShared()) {
    // The first micro-batch goes through all stages, the others follow as the longest stage lets them.
    double all = 0;
    double longest = 0;
    for (const schedule::StageTimes& stage : times.stages) {
      all += stage.f;
      longest = std::max(longest, stage.f);
    }
    return all + longest * static_cast<double>(microBatches - 1);
  }
  std::vector<std::vector<Task>> tasks(ranks_.size());
  for (int64_t micro = 0; micro < microBatches; ++micro) {
    std::optional<std::pair<size_t, size_t>> before;
    for (size_t stage = 0; stage < submeshOfStage.size(); ++stage) {
      std::vector<Task>& mine = tasks[submeshOfStage[stage]];
      mine.push_back(taskOf(times.stages[stage].f, partsOf(static_cast<int64_t>(stage)).f));
      mine.back().producer = before;
      before = {submeshOfStage[stage], mine.size() - 1};
    }
  }
  return Turns(tasks, ranks_, cores()).run();
}

}  // namespace weft
