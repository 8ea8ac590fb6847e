// Plans written by hand: the shortest way to a plan with some buffers, kernels and collectives.
//
// Every buffer of a class is laid 64-byte aligned after the one before; one INIT and one FORWARD function; the step
// calls FORWARD once per micro-batch on every rank.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/base/arithmetic.h"
#include "runtime/plan/plan_file.h"

namespace weft {

class PlanBuilder {
 public:
  PlanBuilder(int64_t ranks, int64_t microBatches, int64_t slots = 1) : slots_(slots) {
    plan_.set_format_version(kPlanFormatVersion);
    plan_.set_name("handmade");
    plan_.set_mesh("dp=" + std::to_string(ranks));
    plan_.set_program("train");
    plan_.set_ranks(ranks);
    plan_.set_micro_batches(microBatches);
    plan_.mutable_rank_table();
    for (const auto& [name, kind] : {std::pair{"init", plan::INIT}, std::pair{"forward", plan::FORWARD}}) {
      plan::Function* function = plan_.add_functions();
      function->set_name(name);
      function->set_kind(kind);
    }
    plan::Location* location = plan_.add_locations();
    location->set_file("model.cc");
    location->set_line(42);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      plan::RankSchedule* schedule = plan_.add_schedules();
      schedule->add_init();
      for (int64_t microBatch = 0; microBatch < microBatches; ++microBatch) {
        plan::Action* action = schedule->add_step();
        action->set_function(1);
        action->set_micro_batch(microBatch);
      }
    }
  }

  uint32_t buffer(plan::MemoryClass memory, DType type, const std::vector<int64_t>& shape) {
    plan::Buffer* made = plan_.add_buffers();
    made->set_memory(memory);
    made->set_offset(bytes_[memory]);
    made->set_bytes(TensorSpec{type, shape}.bytes());
    made->set_type(elementTypeOf(type));
    made->mutable_shape()->Assign(shape.begin(), shape.end());
    bytes_[memory] += alignUp(made->bytes());
    return static_cast<uint32_t>(plan_.buffers_size() - 1);
  }

  // The same memory seen in another shape.
  uint32_t view(uint32_t of, const std::vector<int64_t>& shape) {
    plan::Buffer* made = plan_.add_buffers();
    *made = plan_.buffers(static_cast<int>(of));
    made->mutable_shape()->Assign(shape.begin(), shape.end());
    made->set_bytes(TensorSpec{dtypeOf(made->type()), shape}.bytes());
    return static_cast<uint32_t>(plan_.buffers_size() - 1);
  }

  // A named tensor cut along dimension `dim` into equal parts, the last ones padded; dim -1: replicated.
  plan::NamedTensor* named(const std::string& name, plan::TensorKind kind, uint32_t buffer,
                           const std::vector<int64_t>& shape, int dim) {
    plan::NamedTensor* made = plan_.add_tensors();
    made->set_name(name);
    made->set_kind(kind);
    made->set_buffer(buffer);
    made->set_type(plan_.buffers(static_cast<int>(buffer)).type());
    made->mutable_shape()->Assign(shape.begin(), shape.end());
    made->mutable_file_shape()->Assign(shape.begin(), shape.end());
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      plan::Slice* slice = made->add_slices();
      for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
        const int64_t local = plan_.buffers(static_cast<int>(buffer)).shape(d);
        const int64_t offset = d == dim ? rank * local : 0;
        slice->add_offset(offset);
        slice->add_valid(std::max<int64_t>(0, std::min(local, shape[d] - offset)));
      }
    }
    return made;
  }

  plan::Instruction* kernel(int function, const std::string& name, const std::vector<uint32_t>& inputs,
                            const std::vector<uint32_t>& outputs) {
    plan::Instruction* made = operands(function, inputs, outputs);
    made->set_kernel(name);
    made->set_label(name + ".label");
    return made;
  }

  plan::Collective* collective(int function, plan::CollectiveKind kind, const std::vector<uint32_t>& inputs,
                               const std::vector<uint32_t>& outputs) {
    plan::Instruction* made = operands(function, inputs, outputs);
    made->set_label("collective.label");
    made->mutable_collective()->set_kind(kind);
    return made->mutable_collective();
  }

  // One group of all ranks; returns its index.
  uint32_t allRanks() {
    auto* group = plan_.add_group_sets()->add_groups();
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      group->add_ranks(rank);
    }
    return static_cast<uint32_t>(plan_.group_sets_size() - 1);
  }

  plan::Plan& raw() { return plan_; }

  plan::Plan build(int64_t workspace = 0) {
    bytes_[plan::WORKSPACE] = workspace;
    int64_t peak = 0;
    plan_.mutable_memory()->clear_regions();
    for (int memory = 0; memory < plan::MemoryClass_ARRAYSIZE; ++memory) {
      plan::Region* region = plan_.mutable_memory()->add_regions();
      region->set_memory(static_cast<plan::MemoryClass>(memory));
      region->set_bytes(bytes_[memory]);
      region->set_slots(memory == plan::ACTIVATION ? slots_ : 1);
      peak += region->bytes() * region->slots();
    }
    plan_.mutable_memory()->set_peak_bytes(peak);
    return plan_;
  }

 private:
  plan::Instruction* operands(int function, const std::vector<uint32_t>& inputs, const std::vector<uint32_t>& outputs) {
    plan::Instruction* made = plan_.mutable_functions(function)->add_instructions();
    for (const uint32_t buffer : inputs) {
      made->add_inputs()->set_buffer(buffer);
    }
    for (const uint32_t buffer : outputs) {
      made->add_outputs()->set_buffer(buffer);
    }
    return made;
  }

  plan::Plan plan_;
  int64_t slots_;
  int64_t bytes_[plan::MemoryClass_ARRAYSIZE] = {};
};

}  // namespace weft
