// The flags of commands that read a model and ask for other things than it says: --mesh, --micro, --zero, ...
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "planner/request.h"
#include "tools/commands/flags.h"

namespace weft::tools {

// Their entries, for the command's own list.
const std::vector<Flag>& requestFlags();

// Puts them into the module, where they count before what it says; `mode`: where no flag says any. Errors: values that
// make no sense together with it (planner/check_request.h).
absl::Status applyRequestFlags(mlir::ModuleOp module, const Flags& flags, std::optional<Mode> mode = {});

}  // namespace weft::tools
