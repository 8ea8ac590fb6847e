// The flag --machine NAME|FILE of commands that price or predict.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "tools/commands/flags.h"

namespace weft::tools {

// The text for CompileOptions::machine that the flag gives, or `otherwise`.
absl::StatusOr<std::string> machineText(const Flags& flags, const std::string& otherwise = "");

// The machine of the flag, else that of the text `otherwise`: a plan's own, or "" for CPU ranks that share one host.
absl::StatusOr<Machine> machineFrom(const Flags& flags, const std::string& otherwise = "");

}  // namespace weft::tools
