#include "tools/commands/machine_flag.h"

#include "runtime/base/read_text.h"
#include "runtime/base/status.h"

namespace weft::tools {

absl::StatusOr<Machine> machineFrom(const Flags& flags, const std::string& otherwise) {
  if (!flags.has("machine")) {
    return Machine::parse(otherwise);
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(flags.text("machine")));
  return Machine::parse(text);
}

}  // namespace weft::tools
