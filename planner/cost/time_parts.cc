#include "planner/cost/time_parts.h"

#include <algorithm>
#include <map>

namespace weft {
namespace {

// In seconds.
struct Sums {
  double total = 0, computation = 0, hidden = 0, offload = 0, offloadHidden = 0;

  void add(const FunctionTime& function) {
    total += inSeconds(function.total);
    computation += inSeconds(function.computation);
    hidden += inSeconds(function.hidden());
    offload += inSeconds(function.offload);
    offloadHidden += inSeconds(function.offloadHidden);
  }
  double exposed() const { return total - computation - offload; }  // of collectives
};

// The longest of what belongs together.
template <typename Key>
Sums longest(const std::map<Key, Sums>& all) {
  Sums most;
  for (const auto& [key, sums] : all) {
    most = sums.total > most.total ? sums : most;
  }
  return most;
}

}  // namespace

TimeParts timeParts(const std::vector<std::vector<FunctionTime>>& submeshes, int64_t microBatches, double stepSeconds) {
  bool trains = false;
  for (const std::vector<FunctionTime>& functions : submeshes) {
    trains = trains || std::any_of(functions.begin(), functions.end(), [](const FunctionTime& function) {
               return isPerMicroBatch(function.kind) && function.kind != plan::FORWARD;
             });
  }
  std::map<int64_t, Sums> each, before, after;
  for (size_t s = 0; s < submeshes.size(); ++s) {
    const auto submesh = static_cast<int64_t>(s);
    for (const FunctionTime& function : submeshes[s]) {
      if (isPerMicroBatch(function.kind)) {
        each[trains ? submesh : function.stage].add(function);
      } else if (function.kind == plan::PROLOGUE) {
        before[submesh].add(function);
      } else if (function.kind == plan::UPDATE) {
        after[submesh].add(function);
      }
    }
  }
  const Sums busiest = longest(each);
  const auto times = static_cast<double>(microBatches);
  TimeParts parts;
  parts.computation = times * busiest.computation;
  parts.communication = times * busiest.exposed();
  parts.hidden = times * busiest.hidden;
  for (const Sums& once : {longest(before), longest(after)}) {
    parts.once += once.total;
    parts.onceCommunication += once.exposed();
    parts.hidden += once.hidden;
    parts.onceOffload += once.offload;
    parts.offloadHidden += once.offloadHidden;
  }
  const double bubble = stepSeconds - parts.once - times * busiest.total;
  parts.bubble = bubble < 0.5 / kPicosecondsPerSecond ? 0 : bubble;  // less is rounding
  return parts;
}

}  // namespace weft
