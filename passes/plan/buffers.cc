#include "passes/plan/buffers.h"

#include "ir/program/schedule_attributes.h"
#include "passes/plan/instruction_facts.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT

BufferTable::BufferTable(ModuleOp submesh, plan::Plan& plan)
    : storages_(storagesOf(submesh)), memory_(memoryOf(submesh)), plan_(plan) {}

uint32_t BufferTable::of(Value value) {
  const int64_t storage = storageOf(value);
  const TensorSpec spec = tensorSpec(value);
  std::string key = std::to_string(storage) + dtypeName(spec.type);
  for (const int64_t size : spec.shape) {
    key += "," + std::to_string(size);
  }
  const auto [it, added] = buffers_.try_emplace(key, static_cast<uint32_t>(plan_.buffers_size()));
  if (added) {
    const Storage& entry = storages_[storage];
    plan::Buffer* buffer = plan_.add_buffers();
    buffer->set_memory(entry.memory);
    buffer->set_offset(memory_.offsets[storage]);
    buffer->set_bytes(spec.bytes());
    buffer->set_type(elementTypeOf(spec.type));
    buffer->mutable_shape()->Assign(spec.shape.begin(), spec.shape.end());
    buffer->set_label(entry.label);
    buffer->set_storage(static_cast<uint32_t>(storage) + 1);
    buffer->set_ring(static_cast<uint32_t>(memory_.rings[storage]));
  }
  return it->second;
}

const std::string& BufferTable::labelOf(Value value) const {
  return storages_[storageOf(value)].label;
}

uint32_t BufferTable::mailbox(Value like, int64_t capacity, int64_t offset) {
  const TensorSpec spec = tensorSpec(like);
  plan::Buffer* buffer = plan_.add_buffers();
  buffer->set_memory(plan::MAILBOX);
  buffer->set_offset(offset);
  buffer->set_bytes(capacity * spec.bytes());
  buffer->set_type(elementTypeOf(spec.type));
  buffer->add_shape(capacity);
  buffer->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  buffer->set_label("mailbox");
  return static_cast<uint32_t>(plan_.buffers_size()) - 1;
}

void BufferTable::writeRegions() {
  for (const StepRegion& from : memory_.regions) {
    plan::Region* region = plan_.mutable_memory()->add_regions();
    region->set_memory(from.memory);
    region->set_ring(static_cast<uint32_t>(from.ring));
    region->set_bytes(from.bytes);
    region->set_max_live(from.maxLive);
    region->set_lower_bound(from.lowerBound);
    region->set_slots(from.slots);
    region->set_stage(from.stage);
  }
  plan_.mutable_memory()->set_peak_bytes(memory_.peakBytes);
}

}  // namespace weft
