#include "tools/analysis/plan_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/describe/describe.h"
#include "runtime/base/arithmetic.h"
#include "runtime/exec/instruction_spec.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_file.h"

namespace weft::tools {
namespace {

// Buffers that are views of one storage have one key.
using StorageKey = std::pair<bool, uint32_t>;

StorageKey storageKey(const plan::Plan& plan, uint32_t buffer) {
  const uint32_t storage = plan.buffers(static_cast<int>(buffer)).storage();
  return storage > 0 ? StorageKey{true, storage} : StorageKey{false, buffer};
}

void touch(const plan::Plan& plan, const plan::Function& function, int at, uint32_t buffer,
           std::map<StorageKey, LiveTensor>& tensors) {
  const plan::Buffer& seen = plan.buffers(static_cast<int>(buffer));
  if (seen.memory() != plan::TRANSIENT) {
    return;
  }
  const auto [it, added] = tensors.try_emplace(storageKey(plan, buffer));
  LiveTensor& tensor = it->second;
  if (added) {
    const plan::Instruction& maker = function.instructions(at);
    tensor.name = seen.label().empty() ? maker.label() : seen.label();
    tensor.source = sourceOf(plan, maker);
    tensor.shape = absl::StrCat(dtypeName(dtypeOf(seen.type())), "[", absl::StrJoin(seen.shape(), ","), "]");
    tensor.offset = seen.offset();
    tensor.first = at;
  }
  tensor.bytes = std::max(tensor.bytes, alignUp(seen.bytes()));
  tensor.last = at;
}

std::vector<LiveTensor> transientsOf(const plan::Plan& plan, const plan::Function& function) {
  std::map<StorageKey, LiveTensor> tensors;
  for (int at = 0; at < function.instructions_size(); ++at) {
    for (const plan::Operand& operand : function.instructions(at).inputs()) {
      touch(plan, function, at, operand.buffer(), tensors);
    }
    for (const plan::Operand& operand : function.instructions(at).outputs()) {
      touch(plan, function, at, operand.buffer(), tensors);
    }
  }
  std::vector<LiveTensor> list;
  for (auto& [key, tensor] : tensors) {
    list.push_back(std::move(tensor));
  }
  return list;
}

// Bytes alive at each instruction.
std::vector<int64_t> liveBytes(const std::vector<LiveTensor>& tensors, int instructions) {
  std::vector<int64_t> live(instructions + 1, 0);
  for (const LiveTensor& tensor : tensors) {
    live[tensor.first] += tensor.bytes;
    live[tensor.last + 1] -= tensor.bytes;
  }
  for (int at = 1; at <= instructions; ++at) {
    live[at] += live[at - 1];
  }
  return live;
}

// The first instruction at which most is alive, and how much.
std::pair<int, int64_t> peakOf(const std::vector<LiveTensor>& tensors, int instructions) {
  const std::vector<int64_t> live = liveBytes(tensors, instructions);
  const auto most = std::max_element(live.begin(), live.end());
  return {static_cast<int>(most - live.begin()), *most};
}

}  // namespace

TransientPeak transientPeak(const plan::Plan& plan) {
  TransientPeak peak;
  for (const plan::Function& function : plan.functions()) {
    std::vector<LiveTensor> tensors = transientsOf(plan, function);
    const auto [at, bytes] = peakOf(tensors, function.instructions_size());
    if (bytes <= peak.bytes) {
      continue;
    }
    const int when = at;  // structured bindings cannot be captured portably
    std::erase_if(tensors, [&](const LiveTensor& tensor) { return tensor.first > when || tensor.last < when; });
    std::sort(tensors.begin(), tensors.end(), [](const LiveTensor& a, const LiveTensor& b) {
      return std::tie(b.bytes, a.offset, a.first) < std::tie(a.bytes, b.offset, b.first);
    });
    const plan::Instruction& instruction = function.instructions(at);
    peak = {function.name(), at, instruction.label(), sourceOf(plan, instruction), bytes, std::move(tensors)};
  }
  return peak;
}

Demand transientDemand(const plan::Plan& plan) {
  const TransientPeak peak = transientPeak(plan);
  Demand demand{peak.function, peak.name, peak.source, peak.bytes, 0, 0};
  for (const LiveTensor& tensor : peak.tensors) {
    demand.own += tensor.first == peak.instruction || tensor.last == peak.instruction ? tensor.bytes : 0;
  }
  for (const plan::Function& function : plan.functions()) {
    const std::vector<int64_t> live = liveBytes(transientsOf(plan, function), function.instructions_size());
    for (int at = 0; at < function.instructions_size(); ++at) {
      const bool here = function.name() == peak.function && at == peak.instruction;
      demand.otherwise = here ? demand.otherwise : std::max(demand.otherwise, live[at]);
    }
  }
  return demand;
}

Demand workspaceDemand(const plan::Plan& plan) {
  Demand demand;
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      const int64_t bytes =
          instruction.kernel().empty() ? 0 : describe(specOf(plan, instruction), Target::kCpu).workspaceBytes;
      if (bytes > demand.bytes) {
        demand = {function.name(), instruction.label(), sourceOf(plan, instruction), bytes, bytes, demand.bytes};
      } else {
        demand.otherwise = std::max(demand.otherwise, bytes);
      }
    }
  }
  return demand;
}

}  // namespace weft::tools
