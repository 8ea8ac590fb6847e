#include "tools/commands/plan_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/plan/pack.h"
#include "runtime/plan/plan_file.h"

namespace weft::tools {
namespace {

std::string sourceOf(const plan::Plan& plan, const plan::Instruction& instruction) {
  const auto index = static_cast<int>(instruction.location());
  if (index >= plan.locations_size() || plan.locations(index).file().empty()) {
    return "";
  }
  return absl::StrCat(plan.locations(index).file(), ":", plan.locations(index).line());
}

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

// The first instruction at which most is alive, and how much.
std::pair<int, int64_t> fullest(const std::vector<LiveTensor>& tensors, int instructions) {
  std::vector<int64_t> change(instructions + 1, 0);
  for (const LiveTensor& tensor : tensors) {
    change[tensor.first] += tensor.bytes;
    change[tensor.last + 1] -= tensor.bytes;
  }
  std::pair<int, int64_t> best{0, 0};
  int64_t live = 0;
  for (int at = 0; at < instructions; ++at) {
    live += change[at];
    best = live > best.second ? std::pair{at, live} : best;
  }
  return best;
}

}  // namespace

TransientPeak transientPeak(const plan::Plan& plan) {
  TransientPeak peak;
  for (const plan::Function& function : plan.functions()) {
    std::vector<LiveTensor> tensors = transientsOf(plan, function);
    const auto [at, bytes] = fullest(tensors, function.instructions_size());
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

}  // namespace weft::tools
