#include "runtime/plan/describe.h"

#include "absl/strings/str_cat.h"

namespace weft {

std::string sourceOf(const plan::Plan& plan, const plan::Instruction& instruction) {
  if (instruction.location() >= static_cast<uint32_t>(plan.locations_size())) {
    return "";
  }
  const plan::Location& place = plan.locations(static_cast<int>(instruction.location()));
  return place.file().empty() ? "" : absl::StrCat(place.file(), ":", place.line());
}

std::string actOf(const plan::Instruction& instruction) {
  if (instruction.has_collective()) {
    return plan::CollectiveKind_Name(instruction.collective().kind());
  }
  return instruction.has_transfer() ? absl::StrCat(instruction.transfer().send() ? "send to" : "receive from",
                                                   " submesh ", instruction.transfer().submesh())
                                    : instruction.kernel();
}

std::string describe(const plan::Plan& plan, const plan::Instruction& instruction) {
  const std::string source = sourceOf(plan, instruction);
  return absl::StrCat(instruction.label(), source.empty() ? "" : " (" + source + ")", ", kernel ", actOf(instruction));
}

}  // namespace weft
