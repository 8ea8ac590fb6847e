// All passes. passes/passes.td says what each does; those made with C++ values have their headers in their folders.
#pragma once

#include <memory>
#include <string>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/decide/passes.h"
#include "passes/logical/passes.h"

namespace weft {

#define GEN_PASS_DECL
#include "passes/generated/passes.h.inc"

}  // namespace weft
