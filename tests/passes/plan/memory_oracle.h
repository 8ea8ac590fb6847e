// Does a plan's memory hold at every moment what the local program says?
//
// Both are run on *tokens* instead of numbers: a token stands for how a value was computed. The program side keeps one
// token per name; the plan side keeps for every byte of every region the token last written there and its place in that
// tensor, so that an overlap, a lost value or a read of half a tensor shows as another token. Kernels write while they
// read: an output that overlaps an input is accepted only where the kernel works in place. The oracle shares no code
// with passes/plan but the list of kernels that may run in place.
#pragma once

#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/plan.pb.h"

namespace weft::testing {

// Runs `steps` steps of rank 0. Empty if all named tensors agree after every step; else the first that does not.
// Every op needs a unique nn.name.
std::string compareMemory(mlir::ModuleOp module, const plan::Plan& plan, int steps);

// Names every op for that.
void uniqueNames(mlir::ModuleOp module);

}  // namespace weft::testing
