// Phase `decide`: the decisions record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/registry.h"
#include "mlir/Pass/Pass.h"
#include "planner/decisions.h"

namespace weft {

// The schedule that passes/choose/choose_schedule.h took for schedule = "auto".
struct ScheduleChoice {
  std::string kind;
  int64_t virtualStages = 1;
  std::string considered;  // JSON: what it chose among; for people
};

// What was chosen outside of the phase. (The planner will take this over.)
struct DecideOptions {
  std::optional<Decisions> record;         // to realize instead of deciding
  std::optional<ScheduleChoice> schedule;  // instead of the request's
  int64_t gatherBytes = -1;                // that parameters gathered once per step may take; negative: no bound
};

// Writes the decisions of @step into the module attribute dist.decisions: the given record, else from the user's words,
// propagation and defaults. Expands and hoists operators as decided.
std::unique_ptr<mlir::Pass> createDecidePass(const ir::OperatorRegistry& registry, DecideOptions options = {});

}  // namespace weft
