// Faults that a damaged or hostile file may have, as changes of a parsed module.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace weft::testing {

struct Mutation {
  std::string name;             // where and what, for people: "matmul @step 3: nn.strategy.in = -1"
  std::string kind;             // mutations of one kind differ only in the operator they hit
  std::function<void()> apply;  // changes the module the mutation was made for, once
};

// Every attribute of modules, functions, arguments, results and operators, and every entry inside of one: left out, or
// replaced by others. Operators, arguments, results and functions: dropped, doubled, swapped, of another type.
std::vector<Mutation> mutationsOf(mlir::ModuleOp module);

}  // namespace weft::testing
