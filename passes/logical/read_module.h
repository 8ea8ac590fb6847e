// A module from the text of a file that may come from anywhere.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

// Parses and verifies `text`, read from `path`, and reads the decisions record that a dump keeps beside that file
// (passes/logical/module_file.h). Errors name file and line, one in each line of the message. MLIR's
// parser and printer go one call deeper for each bracket and each alias inside of another, so text that nests deeper
// than any program does is refused before they see it; so are affine maps, which have no place in our states, and uses
// of a value before its definition.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> readModule(const std::string& text, const std::string& path,
                                                             mlir::MLIRContext& context);

}  // namespace weft
