// Phase `decide`: the decisions record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/registry.h"
#include "mlir/Pass/Pass.h"
#include "planner/decisions.h"
#include "planner/search/plan.h"

namespace weft {

struct DecideOptions {
  std::optional<Decisions> record;  // to realize instead of deciding
  Correction correction;            // of the planner's prediction
  std::string from = {};            // a record that mode auto begins from
};

// Writes the decisions of @step into the module attribute dist.decisions: the given record, else what the planner
// chooses (planner/search/plan.h). Expands and hoists operators as decided.
std::unique_ptr<mlir::Pass> createDecidePass(const ir::OperatorRegistry& registry, DecideOptions options = {});

}  // namespace weft
