// Which forward operators the user wants recomputed in the backward pass: scopes and patterns.
#pragma once

#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

// What patterns of the option "recompute" (planner/request.h) can name: kinds and names of forward operators.
std::vector<std::string> recomputableNames(mlir::func::FuncOp step);

// Does the backward pass compute the results of `op` again? A forward operator in a recompute scope is, unless
// something outside of the scope reads it in the forward pass (the border of the scope is kept); so is one whose name
// or mnemonic a pattern matches. Never: operators outside of the forward pass, and what another stage reads.
bool isRecomputed(mlir::Operation* op, const std::vector<std::string>& patterns);

}  // namespace weft
