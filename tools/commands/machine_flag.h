// The flag --machine FILE of commands that price or predict.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "tools/commands/flags.h"

namespace weft::tools {

// The machine of the flag, else that of the text `otherwise`: a plan's own, or "" for CPU ranks that share one host.
absl::StatusOr<Machine> machineFrom(const Flags& flags, const std::string& otherwise = "");

}  // namespace weft::tools
