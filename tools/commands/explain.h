// `weft explain`: each collective, each send between submeshes and each recomputed operator of a plan file: why, price.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace weft::tools {

// weft explain PLAN [--all] [--json]
//
// Entries that are equal but for the number of a layer are one (tools/analysis/fold_layers.h); --all prints each, and
// so does --json.
//
// --as-code needs the compiler, which reads the module (explain_code.h): without it the flag is refused.
int explainCommand(int argc, char** argv);

// The same with the lines of code of a plan and its module.
using CodeOfPlan = absl::StatusOr<std::string> (*)(const plan::Plan& plan, const std::string& module);
int explainWith(CodeOfPlan codeOf, int argc, char** argv);

}  // namespace weft::tools
