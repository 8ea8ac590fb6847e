#include "tools/commands/machine_flag.h"

#include "runtime/base/status.h"

namespace weft::tools {

absl::StatusOr<std::string> machineText(const Flags& flags, const std::string& otherwise) {
  return flags.has("machine") ? Machine::textOf(flags.text("machine")) : otherwise;
}

absl::StatusOr<Machine> machineFrom(const Flags& flags, const std::string& otherwise) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, machineText(flags, otherwise));
  return Machine::parse(text);
}

}  // namespace weft::tools
