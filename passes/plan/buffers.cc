#include "passes/plan/buffers.h"

#include <algorithm>

#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "passes/plan/pack.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {
constexpr int64_t kPlanEffort = 40'000'000;  // of the packer: a tenth of a second for each of the two regions, at most
}  // namespace

TensorSpec tensorSpec(Value value) {
  return {ir::dtypeOf(value.getType()).value_or(DType::kF32), ir::shapeOf(value)};
}

BufferTable::BufferTable(const StorageAssignment& assignment, plan::Plan& plan)
    : assignment_(assignment), plan_(plan), offsets_(assignment.storages.size(), 0) {
  layInOrder();
  pack(plan::ACTIVATION);
  pack(plan::TRANSIENT);
}

void BufferTable::layInOrder() {
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const Storage& entry = assignment_.storages[i];
    if (entry.memory != plan::TRANSIENT && entry.memory != plan::ACTIVATION) {
      Extent& region = regions_[entry.memory];
      offsets_[i] = region.bytes;
      region.bytes += alignUp(entry.bytes);
      region.maxLive = region.lowerBound = region.bytes;
    }
  }
}

void BufferTable::pack(plan::MemoryClass memory) {
  std::vector<size_t> members;
  std::vector<PackItem> items;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const Storage& entry = assignment_.storages[i];
    if (entry.memory == memory) {
      // Steps are counted through all functions: transients of two functions are never alive together.
      members.push_back(i);
      items.push_back({entry.first, entry.last + 1, entry.bytes});
    }
  }
  const Packing packing = weft::pack(items, {.effort = kPlanEffort});
  for (size_t k = 0; k < members.size(); ++k) {
    offsets_[members[k]] = packing.offsets[k];
  }
  regions_[memory] = {packing.bytes, packing.maxLive, packing.lowerBound};
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
  }
  return it->second;
}

uint32_t BufferTable::mailbox(Value like, int64_t capacity) {
  const TensorSpec spec = tensorSpec(like);
  Extent& region = regions_[plan::MAILBOX];
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

void BufferTable::writeRegions(int64_t workspace, int64_t slots) {
  regions_[plan::WORKSPACE] = {alignUp(workspace), alignUp(workspace), alignUp(workspace)};
  int64_t peak = 0;
  for (const auto& [memory, extent] : regions_) {
    plan::Region* region = plan_.mutable_memory()->add_regions();
    region->set_memory(memory);
    region->set_bytes(extent.bytes);
    region->set_max_live(extent.maxLive);
    region->set_lower_bound(extent.lowerBound);
    region->set_slots(memory == plan::ACTIVATION ? slots : 1);
    peak += extent.bytes * region->slots();
  }
  plan_.mutable_memory()->set_peak_bytes(peak);
}

}  // namespace weft
