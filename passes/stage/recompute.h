// Which forward operators the backward pass runs again.
#pragma once

#include <string>
#include <vector>

#include "mlir/IR/Operation.h"

namespace weft {

// The words of the option "recompute": names and patterns with commas ("gelu,softmax,h*.layer_norm"); "full" stands for
// all operators in scopes of Graph::recompute or, where there are none, for every operator.
std::vector<std::string> recomputePatterns(const std::string& option);

// Does the backward pass compute the results of `op` again? A forward operator in a recompute scope is, unless
// something outside of the scope reads it in the forward pass (the border of the scope is kept); so is one whose name
// or mnemonic a pattern matches. Never: operators outside of the forward pass, and what another stage reads.
bool isRecomputed(mlir::Operation* op, const std::vector<std::string>& patterns);

}  // namespace weft
