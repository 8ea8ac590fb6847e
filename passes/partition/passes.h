// Phase `partition`: from decisions to what one rank computes.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// logical -> annotated: gives every value its layout, makes every change of layout a dist.reshard, and masks the pads
// that an operator would reduce over.
std::unique_ptr<mlir::Pass> createInsertReshardsPass();

// annotated -> local: cuts @step into @prologue, @forward, @backward and @update, lowers reshards to the planner's
// collectives, and replaces global by local shapes and origins.
std::unique_ptr<mlir::Pass> createLocalizePass();

}  // namespace weft
