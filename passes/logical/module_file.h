// How a module lies in files: the text for people, and the decisions record in a file of its own beside it.
//
//   dump/05-decide.mlir     module attributes {dist.decisions_file = "decisions.json", ...}
//   dump/decisions.json     the record, as `weft compile --save-decisions` writes it
//
// In memory a module holds its record in `dist.decisions`; the name of the file stands in the text alone. All modules
// of one folder share the record, so a folder holds the dumps of one program.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

// The file of the record beside the modules of a dump.
inline constexpr char kDecisionsFile[] = "decisions.json";

// Writes `module` with the user's source lines to `path`, and its record, if it has one, to kDecisionsFile in the same
// folder. The module is not changed. Errors name the file that cannot be written.
absl::Status writeModuleFile(mlir::ModuleOp module, const std::string& path);

// Turns a module that was parsed from the file `path` into what writeModuleFile was given: reads the record beside it.
// A module without `dist.decisions_file` stays as it is. The error names the record's path and the remedy.
absl::Status restoreModule(mlir::ModuleOp module, const std::string& path);

// restoreModule as a pass, for drivers that parse on their own; "-" is the standard input, which has no folder.
std::unique_ptr<mlir::Pass> createRestoreModulePass(const std::string& path);

}  // namespace weft
