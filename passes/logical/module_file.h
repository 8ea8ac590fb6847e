// How a module lies in files: the text for people, and the decisions record in a file of its own beside it.
//
//   dump/04-decide.mlir     module attributes {dist.decisions_file = "decisions.json",
//                                              dist.sources = {model.cc = "/home/me/gpt/model.cc"}, ...}
//                             %0 = nn.matmul %x, %w ... loc("model.cc:32")
//   dump/decisions.json     the record, as `weft compile --save-decisions` writes it
//
// In memory a module holds its record in `dist.decisions`, and locations hold whole paths; `dist.decisions_file` and
// `dist.sources` stand in the text alone. An operator without `dist.stage` is of stage 0, and the text leaves it out.
// All modules of one folder share the record, so a folder holds the dumps of one program.
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

// Turns a module that was parsed from the file `path` into what writeModuleFile was given: reads the record beside it,
// and puts the paths of `dist.sources` back into the locations. A module without the two attributes stays as it is.
// Errors name the record's path, or the entry of `dist.sources`, and the remedy.
absl::Status restoreModule(mlir::ModuleOp module, const std::string& path);

// restoreModule as a pass, for drivers that parse on their own; "-" is the standard input, which has no folder.
std::unique_ptr<mlir::Pass> createRestoreModulePass(const std::string& path);

}  // namespace weft
