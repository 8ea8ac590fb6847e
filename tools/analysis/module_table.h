// A module of any state as a table: what each argument and operator is, how its results lie, who decided that, and the
// source line it came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft::tools {

struct ModuleRow {
  std::string name;    // the user's, else the operator's
  std::string op;      // "nn.matmul"; of an argument its kind: "parameter"
  std::string shape;   // of each result: "f32[32,8]"; in the local state that of one rank
  std::string layout;  // of each result; "" where the state has none
  std::string origin;  // who decided: the record's word, for a reshard or collective the reader that asked for it
  std::string file;    // of the user's line; "" unknown
  int64_t line = 0;
};

// Of an operator before the phase decide gives it a stage.
inline constexpr int64_t kOpenStage = -1;

// What one function does for one stage. In the states before `local` the functions are those the operators will be in.
struct ModuleGroup {
  std::string function;         // "forward", with several submeshes "submesh0.forward.2"; "" for @step's arguments
  int64_t stage = 0;            // or kOpenStage
  std::vector<ModuleRow> rows;  // in the module's order
};

struct ModuleTable {
  std::string state;  // "logical", "annotated", "local", "scheduled"
  std::string phase;  // the last that ran; "" none
  std::vector<ModuleGroup> groups;
};

// Groups stand in the order of a step: arguments, init, prologue, forward by stage, backward, update. The error is that
// of a decisions record that cannot be read. A module without a record has no origins but the user's.
absl::StatusOr<ModuleTable> tableOf(mlir::ModuleOp module);

}  // namespace weft::tools
