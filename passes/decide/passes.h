// Phase `decide`: the decisions record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/registry.h"
#include "mlir/Pass/Pass.h"
#include "planner/decisions.h"
#include "planner/derive/derive.h"

namespace weft {

struct DecideOptions {
  std::optional<Decisions> record;  // to realize instead of deciding
  OpenChoices choices;              // what was searched before (passes/choose)
};

// Writes the decisions of @step into the module attribute dist.decisions: the given record, else from the user's words,
// propagation and defaults. Expands and hoists operators as decided.
std::unique_ptr<mlir::Pass> createDecidePass(const ir::OperatorRegistry& registry, DecideOptions options = {});

}  // namespace weft
