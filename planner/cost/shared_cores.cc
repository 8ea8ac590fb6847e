#include "planner/cost/shared_cores.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/status.h"

namespace weft {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Of ranks of one submesh on one node, which wait for one another.
double turnsOf(int64_t ranks, int64_t cores) {
  return static_cast<double>((ranks + cores - 1) / cores);
}

// What a submesh does at a time.
struct Task {
  double time = 0;  // where each rank has a core of its own
  // What it reads: the end of another task, and after it.
  std::optional<std::pair<size_t, size_t>> producer = {};  // submesh and number
  double delay = 0;
};

// Tasks of each submesh in order, from one begin or end to the next: till then each that is under way has its speed.
class Turns {
 public:
  Turns(const std::vector<std::vector<Task>>& tasks, const std::vector<std::vector<RanksOnNode>>& onNodes,
        int64_t cores)
      : tasks_(tasks),
        onNodes_(onNodes),
        cores_(cores),
        nodes_(onNodes.back().back().node + 1),
        left_(tasks.size()),
        ends_(tasks.size()) {}

  // When the last one ends.
  double run() {
    double now = 0;
    for (;;) {
      const double next = begin(now);
      const std::vector<double> speed = speeds();
      double passes = next - now;
      for (size_t s = 0; s < left_.size(); ++s) {
        passes = left_[s] ? std::min(passes, *left_[s] / speed[s]) : passes;
      }
      if (passes == kNever) {
        break;
      }
      now += passes;
      for (size_t s = 0; s < left_.size(); ++s) {
        if (left_[s]) {
          advance(s, *left_[s] / speed[s] <= passes ? *left_[s] : passes * speed[s], now);
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
  // Begins what can, and answers when the next one can. The task of a submesh is the first that has no end.
  double begin(double now) {
    double next = kNever;
    for (size_t s = 0; s < left_.size(); ++s) {
      if (left_[s] || ends_[s].size() == tasks_[s].size()) {
        continue;
      }
      const Task& task = tasks_[s][ends_[s].size()];
      const double arrival = arrivalOf(task);
      if (arrival <= now) {
        left_[s] = task.time;
      } else {
        next = std::min(next, arrival);
      }
    }
    return next;
  }

  // Of each submesh with a task under way: the part of a core that each of its ranks has where that is least.
  std::vector<double> speeds() const {
    std::vector<double> wanted(nodes_, 0);  // cores of each node
    for (size_t s = 0; s < left_.size(); ++s) {
      for (size_t i = 0; left_[s] && i < onNodes_[s].size(); ++i) {
        wanted[onNodes_[s][i].node] += static_cast<double>(onNodes_[s][i].ranks);
      }
    }
    std::vector<double> speeds(left_.size(), 1);
    for (size_t s = 0; s < left_.size(); ++s) {
      for (size_t i = 0; left_[s] && i < onNodes_[s].size(); ++i) {
        const auto [node, ranks] = onNodes_[s][i];
        speeds[s] =
            std::min(speeds[s], 1 / std::max(turnsOf(ranks, cores_), wanted[node] / static_cast<double>(cores_)));
      }
    }
    return speeds;
  }

  double arrivalOf(const Task& task) const {
    if (!task.producer) {
      return 0;
    }
    const auto [submesh, number] = *task.producer;
    return number < ends_[submesh].size() ? ends_[submesh][number] + task.delay : kNever;
  }

  void advance(size_t submesh, double time, double now) {
    *left_[submesh] -= time;
    if (*left_[submesh] <= 0) {
      left_[submesh].reset();
      ends_[submesh].push_back(now);
    }
  }

  const std::vector<std::vector<Task>>& tasks_;
  const std::vector<std::vector<RanksOnNode>>& onNodes_;  // of each submesh
  int64_t cores_;                                         // of each node
  int64_t nodes_;
  std::vector<std::optional<double>> left_;  // of the task that is under way
  std::vector<std::vector<double>> ends_;    // of the tasks of each submesh that are over
};

}  // namespace

int64_t ranksAtWork(const Machine& machine, int64_t ranks) {
  const int64_t onNode = machine.devicesPerNode > 0 ? std::min(ranks, machine.devicesPerNode) : ranks;
  if (machine.cores == 0 || onNode <= machine.cores) {
    return ranks;
  }
  return ranks / onNode * machine.cores + std::min(ranks % onNode, machine.cores);
}

SharedCores::SharedCores(const Machine& machine, const std::vector<int64_t>& ranks) {
  const int64_t all = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  const int64_t onNode = machine.devicesPerNode > 0 ? std::min(all, machine.devicesPerNode) : all;
  if (machine.cores == 0 || onNode <= machine.cores) {
    return;
  }
  cores_ = machine.cores;
  turnsOfAll_ = static_cast<double>(all) / static_cast<double>(ranksAtWork(machine, all));
  int64_t rank = 0;
  for (const int64_t count : ranks) {
    std::vector<RanksOnNode>& mine = onNodes_.emplace_back();
    for (const int64_t end = rank + count; rank < end;) {
      const int64_t node = rank / onNode;
      const int64_t here = std::min(end, (node + 1) * onNode) - rank;
      mine.push_back({node, here});
      turnsOfOne_ = std::max(turnsOfOne_, turnsOf(here, cores_));
      rank += here;
    }
  }
}

double SharedCores::once(const std::vector<double>& times) const {
  if (!areShared()) {
    return *std::max_element(times.begin(), times.end());
  }
  std::vector<std::vector<Task>> tasks;
  tasks.reserve(times.size());
  for (const double time : times) {
    tasks.push_back({{time}});
  }
  return Turns(tasks, onNodes_, cores_).run();
}

absl::StatusOr<double> SharedCores::makespan(const schedule::Table& table, const schedule::Times& times) const {
  WEFT_ASSIGN_OR_RETURN(const schedule::Simulation alone, schedule::simulate(table, times));
  if (!areShared()) {
    return alone.makespan;
  }
  WEFT_ASSIGN_OR_RETURN(const schedule::Resolved resolved, schedule::resolve(table));
  return makespanOfResolved(table, resolved, times);
}

double SharedCores::makespanOfResolved(const schedule::Table& table, const schedule::Resolved& resolved,
                                       const schedule::Times& times) const {
  if (!areShared()) {
    return schedule::simulateResolved(table, resolved, times).makespan;
  }
  std::vector<std::vector<Task>> tasks(table.orders.size());
  for (size_t node = 0; node < resolved.actions.size(); ++node) {
    const schedule::Action& action = resolved.actions[node];
    const int32_t submesh = resolved.ranks[node];
    Task task = {times.of(action.stage).of(action.kind)};
    if (const int32_t producer = resolved.producers[node]; producer >= 0) {
      const int32_t other = resolved.ranks[producer];
      task.producer = {other, producer - resolved.offsets[other]};
      task.delay = other == submesh ? 0 : times.comm;
    }
    tasks[submesh].push_back(std::move(task));
  }
  return Turns(tasks, onNodes_, cores_).run();
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
  std::vector<std::vector<Task>> tasks(onNodes_.size());
  for (int64_t micro = 0; micro < microBatches; ++micro) {
    std::optional<std::pair<size_t, size_t>> before;
    for (size_t stage = 0; stage < submeshOfStage.size(); ++stage) {
      std::vector<Task>& mine = tasks[submeshOfStage[stage]];
      mine.push_back({times.stages[stage].f, before});
      before = {submeshOfStage[stage], mine.size() - 1};
    }
  }
  return Turns(tasks, onNodes_, cores_).run();
}

}  // namespace weft
