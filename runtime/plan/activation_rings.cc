#include "runtime/plan/activation_rings.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Actions = google::protobuf::RepeatedPtrField<plan::Action>;

bool sameCalls(const Actions& a, const Actions& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const plan::Action& x, const plan::Action& y) {
    return x.function() == y.function() && x.piece() == y.piece();
  });
}

absl::Status checkRing(const plan::Plan& plan, const plan::Region& ring, const std::set<uint32_t>& functions,
                       const Actions& step) {
  std::vector<int> last(plan.pieces(), -1);
  for (int at = 0; at < step.size(); ++at) {
    if (functions.count(step[at].function()) > 0) {
      last[step[at].piece()] = at;
    }
  }
  std::vector<int64_t> holder(ring.slots(), -1);
  for (int at = 0; at < step.size(); ++at) {
    if (functions.count(step[at].function()) == 0) {
      continue;
    }
    const int64_t piece = step[at].piece();
    int64_t& held = holder[piece % ring.slots()];
    if (held >= 0 && held != piece && last[held] > at) {
      return absl::DataLossError(
          absl::StrCat("plan is inconsistent: pieces ", held, " and ", piece, " share slot ", piece % ring.slots(),
                       " of ", ring.slots(), " in activation ring ", ring.ring(), " of stage ", ring.stage(), ": @",
                       plan.functions(static_cast<int>(step[at].function())).name(), " of piece ", piece,
                       " comes before the last call for piece ", held, "; compile the plan again"));
    }
    held = piece;
  }
  return absl::OkStatus();
}

}  // namespace

std::map<uint32_t, std::set<uint32_t>> ringFunctions(const plan::Plan& plan) {
  std::map<uint32_t, std::set<uint32_t>> functions;
  for (int f = 0; f < plan.functions_size(); ++f) {
    for (const plan::Instruction& instruction : plan.functions(f).instructions()) {
      for (const auto* operands : {&instruction.inputs(), &instruction.outputs()}) {
        for (const plan::Operand& operand : *operands) {
          const plan::Buffer& buffer = plan.buffers(static_cast<int>(operand.buffer()));
          if (buffer.memory() == plan::ACTIVATION) {
            functions[buffer.ring()].insert(static_cast<uint32_t>(f));
          }
        }
      }
    }
  }
  return functions;
}

absl::Status checkRings(const plan::Plan& plan) {
  const std::map<uint32_t, std::set<uint32_t>> functions = ringFunctions(plan);
  for (int rank = 0; rank < plan.schedules_size(); ++rank) {
    const Actions& step = plan.schedules(rank).step();
    if (rank > 0 && sameCalls(step, plan.schedules(0).step())) {
      continue;
    }
    for (const plan::Region& region : plan.memory().regions()) {
      const auto found = functions.find(region.ring());
      if (region.memory() == plan::ACTIVATION && found != functions.end()) {
        WEFT_RETURN_IF_ERROR(checkRing(plan, region, found->second, step));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
