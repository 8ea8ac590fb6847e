#include "runtime/plan/activation_rings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/limits.h"

namespace weft {
namespace {

using Actions = google::protobuf::RepeatedPtrField<plan::Action>;

bool sameCalls(const Actions& a, const Actions& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const plan::Action& x, const plan::Action& y) {
    return x.function() == y.function() && x.micro_batch() == y.micro_batch();
  });
}

// The rings in one rank's step. Only what the step touches is kept, however many rings and slots there are.
class RingCheck {
 public:
  RingCheck(const plan::Plan& plan, const std::vector<std::vector<const plan::Region*>>& ringsOfFunction,
            const Actions& step)
      : plan_(plan), rings_(ringsOfFunction), step_(step) {}

  absl::Status run() {
    for (int at = 0; at < step_.size(); ++at) {
      for (const plan::Region* ring : rings_[step_[at].function()]) {
        last_[{ring, step_[at].micro_batch()}] = at;
      }
    }
    for (int at = 0; at < step_.size(); ++at) {
      for (const plan::Region* ring : rings_[step_[at].function()]) {
        WEFT_RETURN_IF_ERROR(enter(*ring, at));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status enter(const plan::Region& ring, int at) {
    const int64_t microBatch = step_[at].micro_batch();
    const auto [held, isFree] = holders_.try_emplace({&ring, microBatch % ring.slots()}, microBatch);
    if (!isFree && held->second != microBatch && last_.at({&ring, held->second}) > at) {
      return inconsistentPlan("micro-batches ", held->second, " and ", microBatch, " share slot ",
                              microBatch % ring.slots(), " of ", ring.slots(), " in activation ring ", ring.ring(),
                              " of stage ", ring.stage(), ": @",
                              plan_.functions(static_cast<int>(step_[at].function())).name(), " of micro-batch ",
                              microBatch, " comes before the last call for micro-batch ", held->second);
    }
    held->second = microBatch;
    return absl::OkStatus();
  }

  using Key = std::pair<const plan::Region*, int64_t>;

  const plan::Plan& plan_;
  const std::vector<std::vector<const plan::Region*>>& rings_;
  const Actions& step_;
  std::map<Key, int> last_;         // ring and micro-batch to the last call that touches it
  std::map<Key, int64_t> holders_;  // ring and slot to the micro-batch that is in it
};

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
  std::vector<std::vector<const plan::Region*>> ringsOfFunction(plan.functions_size());
  for (const plan::Region& region : plan.memory().regions()) {
    const auto found = functions.find(region.ring());
    if (region.memory() == plan::ACTIVATION && found != functions.end()) {
      for (const uint32_t function : found->second) {
        ringsOfFunction[function].push_back(&region);
      }
    }
  }
  for (int rank = 0; rank < plan.schedules_size(); ++rank) {
    const Actions& step = plan.schedules(rank).step();
    if (rank == 0 || !sameCalls(step, plan.schedules(0).step())) {
      WEFT_RETURN_IF_ERROR(RingCheck(plan, ringsOfFunction, step).run());
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
