#include "passes/plan/buffers.h"

#include <algorithm>

#include "passes/plan/instruction_facts.h"
#include "planner/memory/pack.h"
#include "runtime/base/arithmetic.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {
constexpr int64_t kPlanEffort =
    40'000'000;  // of the packer: a tenth of a second each for activations and transients, at most
}  // namespace

BufferTable::BufferTable(const StorageAssignment& assignment, const std::vector<int64_t>& stages,
                         const std::vector<Call>& calls, plan::Plan& plan)
    : assignment_(assignment),
      plan_(plan),
      offsets_(assignment.storages.size(), 0),
      rings_(assignment.storages.size(), 0) {
  layInOrder();
  packActivations(stages, calls);
  packTransients();
}

void BufferTable::layInOrder() {
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const Storage& entry = assignment_.storages[i];
    if (entry.memory != plan::TRANSIENT && entry.memory != plan::ACTIVATION) {
      Extent& region = regions_[{entry.memory, 0}];
      offsets_[i] = region.bytes;
      region.bytes += alignUp(entry.bytes);
      region.maxLive = region.lowerBound = region.bytes;
    }
  }
}

void BufferTable::packActivations(const std::vector<int64_t>& stages, const std::vector<Call>& calls) {
  std::vector<size_t> storages;
  std::vector<RingItem> items;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const Storage& entry = assignment_.storages[i];
    if (entry.memory == plan::ACTIVATION) {
      storages.push_back(i);
      items.push_back({{entry.first, entry.last + 1, entry.bytes},
                       entry.users,
                       entry.users.empty() ? 0 : stages[entry.users.front()]});
    }
  }
  regions_[{plan::ACTIVATION, 0}] = {};  // also without activations
  const std::vector<Ring> rings = planRings(items, calls);
  for (size_t r = 0; r < rings.size(); ++r) {
    std::vector<size_t> members;
    for (const size_t item : rings[r].members) {
      members.push_back(storages[item]);
      rings_[members.back()] = static_cast<uint32_t>(r);
    }
    Extent& region = regions_[{plan::ACTIVATION, static_cast<uint32_t>(r)}];
    region = pack(members, kPlanEffort / static_cast<int64_t>(rings.size()));
    region.slots = rings[r].slots;
    region.stage = rings[r].stage;
  }
}

void BufferTable::packTransients() {
  std::vector<size_t> storages;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    if (assignment_.storages[i].memory == plan::TRANSIENT) {
      storages.push_back(i);
    }
  }
  regions_[{plan::TRANSIENT, 0}] = pack(storages, kPlanEffort);
}

BufferTable::Extent BufferTable::pack(const std::vector<size_t>& storages, int64_t effort) {
  std::vector<PackItem> items;
  for (const size_t i : storages) {
    // Steps are counted through all functions: transients of two functions are never alive together.
    const Storage& entry = assignment_.storages[i];
    items.push_back({entry.first, entry.last + 1, entry.bytes});
  }
  const Packing packing = weft::pack(items, {.effort = effort});
  for (size_t k = 0; k < storages.size(); ++k) {
    offsets_[storages[k]] = packing.offsets[k];
  }
  return {packing.bytes, packing.maxLive, packing.lowerBound};
}

uint32_t BufferTable::of(Value like, int storage) {
  const TensorSpec spec = tensorSpec(like);
  std::string key = std::to_string(storage) + dtypeName(spec.type);
  for (const int64_t size : spec.shape) {
    key += "," + std::to_string(size);
  }
  const auto [it, added] = buffers_.try_emplace(key, static_cast<uint32_t>(plan_.buffers_size()));
  if (added) {
    const Storage& entry = assignment_.storages[storage];
    plan::Buffer* buffer = plan_.add_buffers();
    buffer->set_memory(entry.memory);
    buffer->set_offset(offsets_[storage]);
    buffer->set_bytes(spec.bytes());
    buffer->set_type(elementTypeOf(spec.type));
    buffer->mutable_shape()->Assign(spec.shape.begin(), spec.shape.end());
    buffer->set_label(entry.label);
    buffer->set_storage(static_cast<uint32_t>(storage) + 1);
    buffer->set_ring(rings_[storage]);
  }
  return it->second;
}

uint32_t BufferTable::mailbox(Value like, int64_t capacity) {
  const TensorSpec spec = tensorSpec(like);
  Extent& region = regions_[{plan::MAILBOX, 0}];
  plan::Buffer* buffer = plan_.add_buffers();
  buffer->set_memory(plan::MAILBOX);
  buffer->set_offset(region.bytes);
  buffer->set_bytes(capacity * spec.bytes());
  buffer->set_type(elementTypeOf(spec.type));
  buffer->add_shape(capacity);
  buffer->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  buffer->set_label("mailbox");
  region.bytes += alignUp(buffer->bytes());
  region.maxLive = region.bytes;
  region.lowerBound = region.bytes;
  return static_cast<uint32_t>(plan_.buffers_size()) - 1;
}

void BufferTable::writeRegions(int64_t workspace) {
  regions_[{plan::WORKSPACE, 0}] = {alignUp(workspace), alignUp(workspace), alignUp(workspace)};
  int64_t peak = 0;
  for (const auto& [key, extent] : regions_) {
    plan::Region* region = plan_.mutable_memory()->add_regions();
    region->set_memory(key.first);
    region->set_ring(key.second);
    region->set_bytes(extent.bytes);
    region->set_max_live(extent.maxLive);
    region->set_lower_bound(extent.lowerBound);
    region->set_slots(extent.slots);
    region->set_stage(extent.stage);
    peak += extent.bytes * extent.slots;
  }
  plan_.mutable_memory()->set_peak_bytes(peak);
}

}  // namespace weft
