#include "passes/plan/stage_schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// `ahead` forwards before the first backward, then one backward for each forward.
StageSchedule alternate(int64_t ahead, int64_t pieces) {
  StageSchedule schedule;
  schedule.inFlight = std::min(ahead + 1, pieces);
  for (int64_t piece = 0; piece < std::min(ahead, pieces); ++piece) {
    schedule.actions.push_back({false, piece});
  }
  for (int64_t piece = 0; piece < pieces; ++piece) {
    if (piece + ahead < pieces) {
      schedule.actions.push_back({false, piece + ahead});
    }
    schedule.actions.push_back({true, piece});
  }
  return schedule;
}

}  // namespace

absl::StatusOr<std::vector<StageSchedule>> scheduleStages(const std::string& kind, int64_t stages, int64_t pieces,
                                                          bool backward) {
  if (kind != "gpipe" && kind != "1f1b") {
    return absl::InvalidArgumentError(
        absl::StrCat("no schedule '", kind, "'; there are 1f1b and gpipe (CompileOptions::schedule)"));
  }
  std::vector<StageSchedule> schedules;
  for (int64_t stage = 0; stage < stages; ++stage) {
    StageSchedule schedule = alternate(kind == "gpipe" ? pieces - 1 : stages - 1 - stage, pieces);
    if (!backward) {
      std::erase_if(schedule.actions, [](const StageAction& action) { return action.backward; });
      schedule.inFlight = 1;
    }
    schedules.push_back(std::move(schedule));
  }
  return schedules;
}

}  // namespace weft
