// Lies about the structure of a plan without channels.
#include <algorithm>
#include <functional>
#include <limits>

#include "runtime/plan/limits.h"
#include "runtime/plan/plan_file.h"
#include "tests/runtime/hostile/hostile_plan.h"

namespace weft::hostile {
namespace {

using plan::Plan;

class Cases {
 public:
  void add(const std::string& name, const std::string& field, const std::string& says,
           const std::function<void(Plan&)>& lie, bool mayRun = false) {
    cases_.push_back({name, field, whole_, says, mayRun});
    lie(cases_.back().plan);
  }
  std::vector<Case> take() { return std::move(cases_); }

 private:
  const Plan whole_ = wholePlan();
  std::vector<Case> cases_;
};

plan::Region& region(Plan& p, plan::MemoryClass memory) {
  return *std::find_if(p.mutable_memory()->mutable_regions()->begin(), p.mutable_memory()->mutable_regions()->end(),
                       [&](const plan::Region& r) { return r.memory() == memory; });
}
plan::Instruction& instruction(Plan& p, int function, int at) {
  return *p.mutable_functions(function)->mutable_instructions(at);
}
plan::Collective& collective(Plan& p, int at) {
  return *instruction(p, 1, at).mutable_collective();
}
auto* step(Plan& p, int rank) {
  return p.mutable_schedules(rank)->mutable_step();
}
// One more region, with the peak that belongs to it.
plan::Region& addRegion(Plan& p, plan::MemoryClass memory, int64_t bytes, uint32_t ring) {
  plan::Region* made = p.mutable_memory()->add_regions();
  made->set_memory(memory);
  made->set_bytes(bytes);
  made->set_slots(1);
  made->set_ring(ring);
  p.mutable_memory()->set_peak_bytes(p.memory().peak_bytes() + bytes);
  return *made;
}
// A region of another size, with the peak that belongs to it.
void resize(Plan& p, plan::MemoryClass memory, int64_t bytes) {
  plan::Region& changed = region(p, memory);
  p.mutable_memory()->set_peak_bytes(p.memory().peak_bytes() + (bytes - changed.bytes()) * changed.slots());
  changed.set_bytes(bytes);
}

// One more buffer: `buffer` with `bytes` added to its offset. Its number.
uint32_t shifted(Plan& p, int buffer, int64_t bytes) {
  const plan::Buffer before = p.buffers(buffer);
  plan::Buffer* made = p.add_buffers();
  *made = before;
  made->set_offset(before.offset() + bytes);
  return static_cast<uint32_t>(p.buffers_size() - 1);
}

void addRegions(Cases& c) {
  const std::string huge = "memory on this machine";
  for (const auto memory : {plan::PARAMETER, plan::STATE, plan::ACCUMULATOR, plan::INPUT, plan::OUTPUT, plan::CONSTANT,
                            plan::TRANSIENT, plan::WORKSPACE, plan::MAILBOX}) {
    const std::string name = plan::MemoryClass_Name(memory);
    c.add("a tebibyte for " + name, "memory.regions.bytes", huge,
          [=](Plan& p) { resize(p, memory, int64_t{1} << 46); });
    c.add(
        "no room for " + name, "memory.regions.bytes", "region", [=](Plan& p) { resize(p, memory, 0); },
        memory == plan::WORKSPACE || memory == plan::MAILBOX);
    c.add("two regions " + name, "memory.regions.memory", "twice", [=](Plan& p) { addRegion(p, memory, 64, 0); });
    c.add("region " + name + " has a ring", "memory.regions.ring", "ring",
          [=](Plan& p) { region(p, memory).set_ring(1); });
    c.add("region " + name + " has slots", "memory.regions.slots", "slots",
          [=](Plan& p) { region(p, memory).set_slots(3); });
    c.add("region " + name + " claims more alive", "memory.regions.max_live", "alive",
          [=](Plan& p) { region(p, memory).set_max_live(region(p, memory).bytes() + 1); });
    c.add("region " + name + " claims a bound", "memory.regions.lower_bound", "cannot be below",
          [=](Plan& p) { region(p, memory).set_lower_bound(region(p, memory).bytes() + 1); });
  }
  c.add("slots of a terabyte", "memory.regions.slots", "peak_bytes", [](Plan& p) {
    region(p, plan::ACTIVATION).set_bytes(int64_t{1} << 40);
    region(p, plan::ACTIVATION).set_slots(1 << 14);
  });
  c.add("no slot", "memory.regions.slots", "slots", [](Plan& p) { region(p, plan::ACTIVATION).set_slots(0); });
  c.add("a ring far away", "memory.regions.ring", "ring", [](Plan& p) { addRegion(p, plan::ACTIVATION, 64, 1 << 13); });
  c.add("a ring of the largest number", "memory.regions.ring", "ring",
        [](Plan& p) { addRegion(p, plan::ACTIVATION, 64, UINT32_MAX); });
  c.add("one slot for two micro-batches in flight", "memory.regions.slots", "share slot", [](Plan& p) {
    p.mutable_memory()->set_peak_bytes(p.memory().peak_bytes() - region(p, plan::ACTIVATION).bytes());
    region(p, plan::ACTIVATION).set_slots(1);
    for (int rank = 0; rank < 2; ++rank) {
      *p.mutable_schedules(rank)->add_step() = p.schedules(rank).step(0);
    }
  });
  c.add("the peak is another", "memory.peak_bytes", "peak_bytes",
        [](Plan& p) { p.mutable_memory()->set_peak_bytes(1); });
  c.add("an unknown class", "memory.regions.memory", "unknown",
        [](Plan& p) { region(p, plan::STATE).set_memory(static_cast<plan::MemoryClass>(99)); });
}

void addBuffers(Cases& c) {
  c.add("a buffer in scratch memory", "buffers.memory", "scratch",
        [](Plan& p) { p.mutable_buffers(5)->set_memory(plan::WORKSPACE); });
  c.add("a mailbox as operand", "buffers.memory", "mailbox 6", [](Plan& p) {
    resize(p, plan::MAILBOX, 64);
    p.mutable_buffers(6)->set_memory(plan::MAILBOX);
    p.mutable_buffers(6)->set_offset(0);
  });
  c.add("a named mailbox", "tensors.buffer", "mailbox", [](Plan& p) {
    resize(p, plan::MAILBOX, 64);
    plan::Buffer* made = p.add_buffers();
    *made = p.buffers(0);
    made->set_memory(plan::MAILBOX);
    made->set_offset(0);
    p.mutable_tensors(0)->set_buffer(static_cast<uint32_t>(p.buffers_size() - 1));
  });
  c.add("an unknown element type", "buffers.type", "element type",
        [](Plan& p) { p.mutable_buffers(0)->set_type(static_cast<plan::ElementType>(42)); });
  c.add("a negative element type", "buffers.type", "element type",
        [](Plan& p) { p.mutable_buffers(0)->set_type(static_cast<plan::ElementType>(-1)); });
  c.add("33 dimensions", "buffers.shape", "dimensions", [](Plan& p) {
    for (int i = 0; i < 31; ++i) {
      p.mutable_buffers(0)->add_shape(1);
    }
  });
  c.add("a shape that overflows", "buffers.shape", "shape", [](Plan& p) {
    p.mutable_buffers(0)->mutable_shape()->Clear();
    p.mutable_buffers(0)->mutable_shape()->Resize(8, int64_t{1} << 40);
  });
  c.add("a shape that overflows to 0", "buffers.shape", "shape", [](Plan& p) {
    p.mutable_buffers(0)->mutable_shape()->Clear();
    p.mutable_buffers(0)->mutable_shape()->Resize(2, int64_t{1} << 32);
    p.mutable_buffers(0)->set_bytes(0);
  });
  c.add("an empty shape of endless rows", "buffers.shape", "rows", [](Plan& p) {
    p.mutable_buffers(0)->set_shape(0, int64_t{1} << 40);
    p.mutable_buffers(0)->set_shape(1, 0);
    p.mutable_buffers(0)->set_bytes(0);
  });
  c.add("a large element type", "buffers.type", "buffer", [](Plan& p) { p.mutable_buffers(0)->set_type(plan::F64); });
  c.add("a buffer at the region's end", "buffers.offset", "region",
        [](Plan& p) { p.mutable_buffers(0)->set_offset(region(p, plan::INPUT).bytes()); });
  c.add("a buffer a byte off", "buffers.offset", "aligned", [](Plan& p) { p.mutable_buffers(8)->set_offset(1); });
  c.add("data of another length", "buffers.data", "data", [](Plan& p) { p.mutable_buffers(3)->set_data("abc"); });
  c.add("data of a tebibyte", "buffers.bytes", "bytes",
        [](Plan& p) { p.mutable_buffers(3)->set_bytes(int64_t{1} << 40); });
  c.add("a buffer of an unknown ring", "buffers.ring", "ring", [](Plan& p) { p.mutable_buffers(4)->set_ring(5); });
  c.add(
      "a storage of the largest number", "buffers.storage", "",
      [](Plan& p) { p.mutable_buffers(4)->set_storage(UINT32_MAX); }, true);
}

void addTables(Cases& c) {
  c.add("a row too few", "rank_table.values", "rank table",
        [](Plan& p) { p.mutable_rank_table()->mutable_values()->Truncate(2); });
  c.add("columns without values", "rank_table.columns", "rank table",
        [](Plan& p) { p.mutable_rank_table()->set_columns(int64_t{1} << 33); });
  c.add("no columns", "rank_table.columns", "rank table", [](Plan& p) { p.mutable_rank_table()->set_columns(0); });
  c.add("a partner that is no rank", "rank_table.values", "receives from rank 2",
        [](Plan& p) { p.mutable_rank_table()->set_values(0, 2); });
  c.add("a partner below 0", "rank_table.values", "receives from rank -1",
        [](Plan& p) { p.mutable_rank_table()->set_values(2, -1); });
  c.add(
      "both receive from one", "rank_table.values", "", [](Plan& p) { p.mutable_rank_table()->set_values(0, 0); },
      true);
  c.add(
      "an origin far out", "rank_table.values", "",
      [](Plan& p) { p.mutable_rank_table()->set_values(1, kMaxPlanInteger); }, true);
  c.add(
      "an origin far before", "rank_table.values", "",
      [](Plan& p) { p.mutable_rank_table()->set_values(1, -kMaxPlanInteger); }, true);
  c.add("a scalar that sums up beyond", "scalars.immediate", "scalar", [](Plan& p) {
    p.mutable_rank_table()->set_values(1, kMaxPlanInteger);
    instruction(p, 0, 0).mutable_scalars(1)->set_immediate(1);
  });
  c.add("a scalar that grows beyond", "scalars.micro_batch_factor", "scalar", [](Plan& p) {
    instruction(p, 1, 0).mutable_scalars(0)->set_immediate(1);
    instruction(p, 1, 0).mutable_scalars(0)->set_micro_batch_factor(kMaxPlanInteger);
  });
  c.add("a group with a rank twice", "group_sets.groups.ranks", "names rank 0 twice",
        [](Plan& p) { p.mutable_group_sets(0)->mutable_groups(0)->set_ranks(1, 0); });
  c.add("a group with a rank that is not there", "group_sets.groups.ranks", "names rank 2",
        [](Plan& p) { p.mutable_group_sets(0)->mutable_groups(0)->set_ranks(1, 2); });
  c.add("a group without a rank", "group_sets.groups.ranks", "covers",
        [](Plan& p) { p.mutable_group_sets(0)->mutable_groups(0)->mutable_ranks()->RemoveLast(); });
  c.add("no group", "group_sets.groups", "covers", [](Plan& p) { p.mutable_group_sets(0)->clear_groups(); });
  c.add("an empty group", "group_sets.groups", "sizes", [](Plan& p) { p.mutable_group_sets(0)->add_groups(); });
  c.add("groups of one each", "group_sets.groups", "ALL_GATHER", [](Plan& p) {
    p.mutable_group_sets(0)->clear_groups();
    p.mutable_group_sets(0)->add_groups()->add_ranks(0);
    p.mutable_group_sets(0)->add_groups()->add_ranks(1);
  });
  c.add(
      "a group in another order", "group_sets.groups.ranks", "",
      [](Plan& p) { p.mutable_group_sets(0)->mutable_groups(0)->mutable_ranks()->SwapElements(0, 1); }, true);
}

void addCollectives(Cases& c) {
  c.add("an unknown collective", "collective.kind", "unknown kind",
        [](Plan& p) { collective(p, 1).set_kind(static_cast<plan::CollectiveKind>(9)); });
  c.add("an unknown reduction", "collective.reduction", "unknown kind",
        [](Plan& p) { collective(p, 2).set_reduction(static_cast<plan::Reduction>(-3)); });
  for (const int64_t dim : {int64_t{2}, int64_t{31}, int64_t{1} << 40}) {
    c.add("a gather along dimension " + std::to_string(dim), "collective.dim", "ALL_GATHER",
          [=](Plan& p) { collective(p, 1).set_dim(dim); });
    c.add("a scatter along dimension " + std::to_string(dim), "collective.dim", "REDUCE_SCATTER",
          [=](Plan& p) { collective(p, 2).set_dim(dim); });
    c.add("an exchange along dimension " + std::to_string(dim), "collective.dim", "ALL_TO_ALL",
          [=](Plan& p) { collective(p, 3).set_dim(dim); });
    c.add("an exchange cut along dimension " + std::to_string(dim), "collective.split_dim", "ALL_TO_ALL",
          [=](Plan& p) { collective(p, 3).set_split_dim(dim); });
  }
  c.add("a gather along the other dimension", "collective.dim", "ALL_GATHER",
        [](Plan& p) { collective(p, 1).set_dim(1); });
  c.add("a gather that is a scatter", "collective.kind", "REDUCE_SCATTER",
        [](Plan& p) { collective(p, 1).set_kind(plan::REDUCE_SCATTER); });
  c.add("a scatter that is a reduce", "collective.kind", "ALL_REDUCE",
        [](Plan& p) { collective(p, 2).set_kind(plan::ALL_REDUCE); });
  c.add("a permute without a column", "collective.source_column", "column -1",
        [](Plan& p) { collective(p, 5).set_source_column(-1); });
  c.add("a permute by origins", "collective.source_column", "receives from rank 4",
        [](Plan& p) { collective(p, 5).set_source_column(1); });
  c.add("a price that is not a number", "collective.cost", "cost",
        [](Plan& p) { collective(p, 1).set_cost(std::numeric_limits<double>::quiet_NaN()); });
  c.add("an infinite price", "collective.cost", "cost",
        [](Plan& p) { collective(p, 1).set_cost(std::numeric_limits<double>::infinity()); });
  c.add("a negative price", "collective.cost", "cost", [](Plan& p) { collective(p, 1).set_cost(-1); });
  c.add("two inputs, one output", "instructions.inputs", "inputs",
        [](Plan& p) { *instruction(p, 1, 1).add_inputs() = p.functions(1).instructions(1).inputs(0); });
  const auto twice = [](Plan& p) {
    *instruction(p, 1, 4).add_inputs() = p.functions(1).instructions(4).inputs(0);
    *instruction(p, 1, 4).add_outputs() = p.functions(1).instructions(4).outputs(0);
  };
  c.add("a bucket with one output twice", "instructions.outputs", "", twice, true);
  c.add("a bucket whose outputs overlap", "instructions.outputs", "overlap", [=](Plan& p) {
    twice(p);
    resize(p, plan::TRANSIENT, region(p, plan::TRANSIENT).bytes() + 64);
    plan::Operand* second = instruction(p, 1, 4).mutable_outputs(1);
    second->set_buffer(shifted(p, static_cast<int>(second->buffer()), 16));
  });
  c.add("a gather of another type", "buffers.type", "", [](Plan& p) { p.mutable_buffers(5)->set_type(plan::I32); });
  c.add("a reduce of bf16", "buffers.type", "bf16", [](Plan& p) {
    plan::Buffer* made = p.add_buffers();
    *made = p.buffers(6);
    made->set_type(plan::BF16);
    made->set_bytes(16);
    for (auto* operands : {instruction(p, 1, 4).mutable_inputs(), instruction(p, 1, 4).mutable_outputs()}) {
      operands->Mutable(0)->set_buffer(static_cast<uint32_t>(p.buffers_size() - 1));
    }
  });
}

void addTensors(Cases& c) {
  c.add("a tensor twice", "tensors.name", "twice", [](Plan& p) { *p.add_tensors() = p.tensors(0); });
  c.add("a tensor of another kind", "tensors.kind", "kind",
        [](Plan& p) { p.mutable_tensors(0)->set_kind(static_cast<plan::TensorKind>(12)); });
  c.add("a tensor of another type", "tensors.type", "type", [](Plan& p) { p.mutable_tensors(0)->set_type(plan::I32); });
  c.add("a tensor of no type", "tensors.type", "element type",
        [](Plan& p) { p.mutable_tensors(0)->set_type(static_cast<plan::ElementType>(-7)); });
  c.add("a tensor of a tebibyte", "tensors.shape", "of which the ranks hold", [](Plan& p) {
    p.mutable_tensors(0)->set_shape(0, int64_t{1} << 37);
    p.mutable_tensors(0)->set_file_shape(0, int64_t{1} << 37);
  });
  c.add("a tensor that is larger in files", "tensors.file_shape", "in files",
        [](Plan& p) { p.mutable_tensors(0)->set_file_shape(0, 5); });
  c.add("a file shape that overflows", "tensors.file_shape", "shape",
        [](Plan& p) { p.mutable_tensors(0)->mutable_file_shape()->Resize(8, int64_t{1} << 40); });
  c.add("a tensor without dimensions", "tensors.shape", "in files",
        [](Plan& p) { p.mutable_tensors(0)->clear_shape(); });
  c.add("a slice beyond the tensor", "tensors.slices.offset", "slice",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(1)->set_offset(1, 5); });
  c.add("a slice at the end of all numbers", "tensors.slices.offset", "slice",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(1)->set_offset(1, kMaxPlanInteger); });
  c.add("a slice larger than its buffer", "tensors.slices.valid", "slice",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(0)->set_valid(1, 5); });
  c.add("a slice of other dimensions", "tensors.slices.offset", "dimensions",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(0)->add_offset(0); });
  c.add("a slice without sizes", "tensors.slices.valid", "dimensions",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(0)->clear_valid(); });
  c.add("a slice for a rank that is not there", "tensors.slices", "slices",
        [](Plan& p) { p.mutable_tensors(0)->add_slices(); });
  c.add("a part that nobody holds", "tensors.slices.valid", "of which the ranks hold",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(1)->set_valid(1, 0); });
  c.add("both hold the same", "tensors.slices.offset", "of which the ranks hold",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(1)->set_offset(1, 0); });
}

void addCode(Cases& c) {
  c.add("an output over half of the input", "outputs.buffer", "over part of input", [](Plan& p) {
    plan::Operand* output = instruction(p, 1, 6).mutable_outputs(0);
    resize(p, plan::OUTPUT, 128);
    output->set_buffer(shifted(p, static_cast<int>(output->buffer()), 16));
  });
  c.add("a smaller view of the same memory", "outputs.buffer", "over part of input", [](Plan& p) {
    plan::Buffer* made = p.add_buffers();
    *made = p.buffers(5);
    made->set_shape(0, 2);
    made->set_bytes(32);
    made->set_memory(plan::INPUT);
    made->set_offset(0);
    instruction(p, 1, 0).mutable_outputs(0)->set_buffer(static_cast<uint32_t>(p.buffers_size() - 1));
  });
  c.add("a function of an unknown kind", "functions.kind", "unknown kind",
        [](Plan& p) { p.mutable_functions(1)->set_kind(static_cast<plan::FunctionKind>(70)); });
  c.add("an instruction of nothing", "instructions.kernel", "neither",
        [](Plan& p) { instruction(p, 1, 0).clear_what(); });
  c.add("a kernel that is not there", "instructions.kernel", "no kernel 'explode'",
        [](Plan& p) { instruction(p, 1, 0).set_kernel("explode"); });
  c.add("a kernel with a name of a megabyte", "instructions.kernel", "no kernel",
        [](Plan& p) { instruction(p, 1, 0).set_kernel(std::string(1 << 20, 'k')); });
  c.add(
      "a label of no letters", "instructions.label", "",
      [](Plan& p) { instruction(p, 1, 0).set_label(std::string("\0\n\x1b[2J", 6)); }, true);
  c.add("no locations", "locations", "", [](Plan& p) { p.clear_locations(); }, true);
  c.add("a location that is not there", "instructions.location", "location",
        [](Plan& p) { instruction(p, 1, 0).set_location(1); });
  c.add("a transfer in a plan without submeshes", "instructions.transfer", "0 submeshes", [](Plan& p) {
    plan::Instruction* made = p.mutable_functions(1)->add_instructions();
    made->mutable_transfer()->set_send(true);
    made->mutable_transfer()->set_capacity(1);
    made->add_inputs()->set_buffer(4);
  });
  c.add("a part outside of every tensor, without submeshes", "transfer.parts", "0 submeshes", [](Plan& p) {
    resize(p, plan::MAILBOX, 64);
    plan::Buffer mailbox = p.buffers(4);
    mailbox.set_memory(plan::MAILBOX);
    mailbox.set_ring(0);
    mailbox.set_offset(0);
    mailbox.mutable_shape()->Clear();
    for (const int64_t size : {1, 2, 4}) {
      mailbox.add_shape(size);
    }
    *p.add_buffers() = mailbox;
    for (const bool send : {true, false}) {
      plan::Instruction* made = p.mutable_functions(1)->add_instructions();
      plan::Transfer* transfer = made->mutable_transfer();
      transfer->set_send(send);
      transfer->set_capacity(1);
      (send ? made->add_inputs() : made->add_outputs())->set_buffer(4);
      if (!send) {
        transfer->set_mailbox(static_cast<uint32_t>(p.buffers_size() - 1));
        for (const int64_t rank : {0, 1}) {
          plan::Transfer::Box* box = transfer->add_boxes();
          box->set_source(rank);
          box->set_target(rank);
          box->mutable_source_offset()->Resize(2, 0);
          box->mutable_target_offset()->Resize(2, int64_t{1} << 40);
          box->mutable_size()->Resize(2, 2);
        }
      }
    }
  });
  c.add("a transfer to itself", "transfer.submesh", "0 submeshes", [](Plan& p) {
    for (const bool send : {true, false}) {
      plan::Instruction* made = p.mutable_functions(1)->add_instructions();
      made->mutable_transfer()->set_send(send);
      made->mutable_transfer()->set_capacity(1);
      (send ? made->add_inputs() : made->add_outputs())->set_buffer(4);
      made->mutable_transfer()->set_mailbox(99);
    }
  });
}

void addSchedules(Cases& c) {
  c.add("a schedule too few", "schedules", "schedules", [](Plan& p) { p.mutable_schedules()->RemoveLast(); });
  c.add("a schedule too many", "schedules", "schedules", [](Plan& p) { p.add_schedules(); });
  c.add("a function that is not there", "schedules.step.function", "function 3",
        [](Plan& p) { step(p, 0)->Mutable(0)->set_function(3); });
  c.add("a micro-batch that is not there", "schedules.step.micro-batch", "micro-batch 2",
        [](Plan& p) { step(p, 0)->Mutable(0)->set_micro_batch(2); });
  c.add("one rank stops early", "schedules.step", "rank 0 would wait for ever",
        [](Plan& p) { step(p, 1)->DeleteSubrange(1, 2); });
  c.add("one rank does nothing", "schedules.step", "is at the end of its step", [](Plan& p) { step(p, 1)->Clear(); });
  c.add("ranks in another order", "schedules.step", "", [](Plan& p) { step(p, 1)->SwapElements(0, 1); }, true);
  c.add("init waits for a rank", "schedules.init", "init",
        [](Plan& p) { *p.mutable_schedules(0)->add_init() = p.schedules(0).step(0); });
  c.add("ranks call different collectives", "schedules.step.function", "of its group calls", [](Plan& p) {
    plan::Function* other = p.add_functions();
    *other = p.functions(1);
    other->mutable_instructions()->SwapElements(1, 2);
    step(p, 1)->Mutable(0)->set_function(3);
  });
  c.add("more work than a step has", "schedules.step", "instructions", [](Plan& p) {
    for (int i = 0; i < 2000; ++i) {
      *p.mutable_functions(2)->add_instructions() = p.functions(2).instructions(0);
    }
    for (int i = 0; i < 8000; ++i) {
      *step(p, 0)->Add() = p.schedules(0).step(2);
    }
  });
  c.add("more operations than are counted", "instructions.flops", "floating-point",
        [](Plan& p) { instruction(p, 1, 0).set_flops(kMaxFlops); });
  c.add("more ranks than rows", "ranks", "3 ranks", [](Plan& p) { p.set_ranks(3); });
  c.add("submeshes within a submesh", "submeshes", "submeshes", [](Plan& p) {
    const Plan copy = p;
    *p.add_submeshes() = copy;
    *p.mutable_submeshes(0)->add_submeshes() = copy;
  });
  c.add(
      "a plan as its own submesh", "submeshes", "",
      [](Plan& p) {
        const Plan copy = p;
        *p.add_submeshes() = copy;
      },
      true);
  c.add("a submesh without ranks", "submeshes.ranks", "ranks", [](Plan& p) {
    const Plan copy = p;
    *p.add_submeshes() = copy;
    p.add_submeshes()->set_micro_batches(p.micro_batches());
  });
}

}  // namespace

std::vector<Case> structureCases() {
  Cases cases;
  addRegions(cases);
  addBuffers(cases);
  addTables(cases);
  addCollectives(cases);
  addTensors(cases);
  addCode(cases);
  addSchedules(cases);
  return cases.take();
}

}  // namespace weft::hostile
