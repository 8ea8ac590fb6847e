// What stands between the phases: the note of how far a module is, and dumps.
#pragma once

#include <memory>
#include <string>

#include "mlir/Pass/Pass.h"

namespace weft {

// Notes in `dist.phase` that `phase` has run, so that the module can be resumed from there.
std::unique_ptr<mlir::Pass> createEndPhasePass(const std::string& phase);

// Writes the module with the user's source lines to DIRECTORY/NUMBER-NAME.mlir ("03-decide.mlir"), and its decisions
// record beside it (passes/logical/module_file.h). A file that cannot be written is an error.
std::unique_ptr<mlir::Pass> createDumpPass(const std::string& directory, int number, const std::string& name);

}  // namespace weft
