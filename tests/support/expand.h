// Expansions outside of the planner.
#pragma once

#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "passes/decide/apply_rewrites.h"

namespace weft::testing {

// Puts their expansions in the place of all operators of @step that must be expanded: what has no kernel of its own.
inline mlir::LogicalResult expandRequired(mlir::ModuleOp module, const ir::ExpansionContext& context = {}) {
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  mlir::func::FuncOp step = stepFunction(module);
  assignIds(module);
  std::vector<Rewrite> rewrites;
  for (mlir::Operation& op : step.getBody().front()) {
    if (ir::mustExpand(&op)) {
      rewrites.push_back({Rewrite::kExpand, idOf(&op), 0});
    }
  }
  return applyRewrites(step, rewrites, {registry, context});
}

}  // namespace weft::testing
