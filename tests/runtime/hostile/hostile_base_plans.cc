// The plans that are right.
#include <algorithm>

#include "kernels/describe/describe.h"
#include "tests/runtime/hostile/hostile_plan.h"
#include "tests/runtime/plan_builder.h"

namespace weft::hostile {
namespace {

void addScalar(plan::Instruction* instruction, int64_t immediate, int64_t column = -1, int64_t factor = 0) {
  plan::Scalar* made = instruction->add_scalars();
  made->set_immediate(immediate);
  made->set_column(column);
  made->set_micro_batch_factor(factor);
}

void addIntegers(plan::Instruction* instruction, const std::string& name, const std::vector<int64_t>& values) {
  (*instruction->mutable_attributes())[name].mutable_integers()->mutable_values()->Assign(values.begin(), values.end());
}

plan::Attribute attributeOf(const Attribute& from) {
  plan::Attribute made;
  if (const auto* integer = std::get_if<int64_t>(&from)) {
    made.set_integer(*integer);
  } else if (const auto* real = std::get_if<double>(&from)) {
    made.set_real(*real);
  } else if (const auto* text = std::get_if<std::string>(&from)) {
    made.set_text(*text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&from)) {
    made.mutable_integers()->mutable_values()->Assign(integers->begin(), integers->end());
  } else if (const auto* floats = std::get_if<std::vector<double>>(&from)) {
    made.mutable_floats()->mutable_values()->Assign(floats->begin(), floats->end());
  }
  return made;
}

// One end of channel `number`.
plan::Transfer* addTransfer(PlanBuilder& b, int function, bool send, uint32_t number, int64_t other, uint32_t buffer) {
  plan::Instruction* made = send ? b.kernel(function, "", {buffer}, {}) : b.kernel(function, "", {}, {buffer});
  made->set_label(send ? "sender" : "receiver");
  plan::Transfer* transfer = made->mutable_transfer();
  transfer->set_send(send);
  transfer->set_channel(number);
  transfer->set_submesh(other);
  transfer->set_capacity(2);
  if (!send) {
    const plan::Buffer& output = b.raw().buffers(static_cast<int>(buffer));
    std::vector<int64_t> shape = {2};
    shape.insert(shape.end(), output.shape().begin(), output.shape().end());
    transfer->set_mailbox(b.buffer(plan::MAILBOX, dtypeOf(output.type()), shape));
  }
  return transfer;
}

int addFunction(PlanBuilder& b, const std::string& name, plan::FunctionKind kind) {
  plan::Function* made = b.raw().add_functions();
  made->set_name(name);
  made->set_kind(kind);
  return b.raw().functions_size() - 1;
}

// Appends a call of the function to the step of all ranks.
void call(PlanBuilder& b, int function, int64_t microBatch) {
  for (plan::RankSchedule& schedule : *b.raw().mutable_schedules()) {
    plan::Action* action = schedule.add_step();
    action->set_function(static_cast<uint32_t>(function));
    action->set_micro_batch(microBatch);
  }
}

// x doubled in the first submesh, sent, doubled in the second, and the gradient back.
plan::Plan joined(PlanBuilder& first, PlanBuilder& second) {
  plan::Plan plan;
  plan.set_format_version(kPlanFormatVersion);
  plan.set_name("staged");
  plan.set_micro_batches(first.raw().micro_batches());
  const std::vector<plan::Plan> submeshes = {first.build(), second.build()};
  for (const plan::Plan& submesh : submeshes) {
    for (const plan::NamedTensor& tensor : submesh.tensors()) {
      plan::NamedTensor* made = plan.add_tensors();
      *made = tensor;
      made->clear_slices();
      for (const plan::Plan& holder : submeshes) {
        for (int rank = 0; rank < holder.ranks(); ++rank) {
          plan::Slice* slice = made->add_slices();
          if (&holder == &submesh) {
            *slice = tensor.slices(rank);
          } else {
            slice->mutable_offset()->Resize(tensor.shape_size(), 0);
            slice->mutable_valid()->Resize(tensor.shape_size(), 0);
          }
        }
      }
    }
    plan.set_ranks(plan.ranks() + submesh.ranks());
    plan.mutable_memory()->set_peak_bytes(std::max(plan.memory().peak_bytes(), submesh.memory().peak_bytes()));
    *plan.add_submeshes() = submesh;
  }
  return plan;
}

plan::Plan twoSubmeshes(int64_t firstRanks, bool parts) {
  PlanBuilder first(firstRanks, 2, 2);
  const int64_t rows = 4 / firstRanks;
  const uint32_t x = first.buffer(plan::INPUT, DType::kF32, {rows, 2});
  const uint32_t sum = first.buffer(plan::ACTIVATION, DType::kF32, {rows, 2});
  const uint32_t gradient = first.buffer(plan::OUTPUT, DType::kF32, {rows, 2});
  first.named("x", plan::TENSOR_INPUT, x, {4, 2}, 0);
  first.named("gradient", plan::TENSOR_OUTPUT, gradient, {4, 2}, 0);
  first.kernel(1, "add", {x, x}, {sum});
  addTransfer(first, 1, true, 0, 1, sum);
  const int firstBackward = addFunction(first, "backward", plan::BACKWARD);
  plan::Transfer* back = addTransfer(first, firstBackward, false, 1, 1, gradient);
  call(first, firstBackward, 0);
  call(first, firstBackward, 1);

  PlanBuilder second(1, 2, 2);
  const uint32_t received = second.buffer(plan::ACTIVATION, DType::kF32, {4, 2});
  const uint32_t w = second.buffer(plan::PARAMETER, DType::kF32, {4, 2});
  const uint32_t loss = second.buffer(plan::OUTPUT, DType::kF32, {4, 2});
  second.named("w", plan::TENSOR_PARAMETER, w, {4, 2}, -1);
  second.named("loss", plan::TENSOR_OUTPUT, loss, {4, 2}, -1);
  plan::Transfer* forth = addTransfer(second, 1, false, 0, 0, received);
  second.kernel(1, "add", {received, w}, {loss});
  const int secondBackward = addFunction(second, "backward", plan::BACKWARD);
  addTransfer(second, secondBackward, true, 1, 0, received);
  call(second, secondBackward, 0);
  call(second, secondBackward, 1);
  for (int64_t rank = 0; parts && rank < firstRanks; ++rank) {
    plan::Transfer::Box* box = forth->add_boxes();
    box->set_source(rank);
    box->add_target_offset(rank * rows);
    box->add_target_offset(0);
    plan::Transfer::Box* reverse = back->add_boxes();
    reverse->set_target(rank);
    reverse->add_source_offset(rank * rows);
    reverse->add_source_offset(0);
    for (plan::Transfer::Box* one : {box, reverse}) {
      one->add_size(rows);
      one->add_size(2);
    }
    box->mutable_source_offset()->Resize(2, 0);
    reverse->mutable_target_offset()->Resize(2, 0);
  }
  return joined(first, second);
}

}  // namespace

plan::Plan wholePlan() {
  PlanBuilder b(2, 2, 2);
  const uint32_t x = b.buffer(plan::INPUT, DType::kF32, {4, 4});
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {2, 4});
  const uint32_t count = b.buffer(plan::STATE, DType::kF32, {});
  const uint32_t one = b.buffer(plan::CONSTANT, DType::kF32, {});
  b.raw().mutable_buffers(static_cast<int>(one))->set_data(std::string("\0\0\x80\x3f", 4));
  const uint32_t microBatch = b.buffer(plan::ACTIVATION, DType::kF32, {2, 4});
  const uint32_t whole = b.buffer(plan::TRANSIENT, DType::kF32, {4, 4});
  const uint32_t half = b.buffer(plan::TRANSIENT, DType::kF32, {2, 4});
  const uint32_t turned = b.buffer(plan::TRANSIENT, DType::kF32, {4, 2});
  const uint32_t sum = b.buffer(plan::ACCUMULATOR, DType::kF32, {2, 4});
  const uint32_t out = b.buffer(plan::OUTPUT, DType::kF32, {2, 4});
  b.named("x", plan::TENSOR_INPUT, x, {4, 8}, 1);
  b.named("w", plan::TENSOR_PARAMETER, w, {2, 7}, 1);
  b.named("count", plan::TENSOR_STATE, count, {}, -1);
  b.named("out", plan::TENSOR_OUTPUT, out, {4, 4}, 0);
  plan::RankTable* table = b.raw().mutable_rank_table();
  table->set_columns(2);
  for (const int64_t value : {1, 0, 0, 4}) {  // partner, origin
    table->add_values(value);
  }
  plan::Instruction* random = b.kernel(0, "random", {}, {w});
  (*random->mutable_attributes())["distribution"].set_text("uniform");
  (*random->mutable_attributes())["a"].set_real(0);
  (*random->mutable_attributes())["b"].set_real(1);
  (*random->mutable_attributes())["seed"].set_integer(INT64_MIN);
  (*random->mutable_attributes())["key"].set_integer(7);
  addIntegers(random, "global_shape", {2, 8});
  addScalar(random, 0);
  addScalar(random, 0, 1);
  plan::Instruction* cut = b.kernel(1, "dynamic_slice", {x}, {microBatch});
  addScalar(cut, 0, -1, 2);
  addScalar(cut, 0);
  const uint32_t group = b.allRanks();
  b.collective(1, plan::ALL_GATHER, {microBatch}, {whole})->set_group_set(group);
  b.collective(1, plan::REDUCE_SCATTER, {whole}, {half})->set_group_set(group);
  plan::Collective* exchange = b.collective(1, plan::ALL_TO_ALL, {half}, {turned});
  exchange->set_group_set(group);
  exchange->set_dim(0);
  exchange->set_split_dim(1);
  b.collective(1, plan::ALL_REDUCE, {half}, {half})->set_group_set(group);
  b.collective(1, plan::PERMUTE, {half}, {out})->set_source_column(0);
  plan::Instruction* mask = b.kernel(1, "mask_pad", {out}, {out});
  addIntegers(mask, "dims", {1});
  addIntegers(mask, "valid", {7});
  (*mask->mutable_attributes())["fill"].set_real(0);
  addScalar(mask, 0, 1);
  plan::Instruction* add = b.kernel(1, "accumulate", {sum, out}, {sum});
  addScalar(add, 0, -1, 1);
  const int update = addFunction(b, "update", plan::UPDATE);
  b.kernel(update, "add", {w, sum}, {w});
  b.kernel(update, "add", {count, one}, {count});
  call(b, update, 0);
  return b.build();
}

plan::Plan stagedPlan() {
  return twoSubmeshes(1, /*parts=*/false);
}

plan::Plan boxedPlan() {
  return twoSubmeshes(2, /*parts=*/true);
}

plan::Plan planOf(const KernelCall& call) {
  PlanBuilder b(1, 1);
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  for (const TensorSpec& spec : call.inputs) {
    const bool known = !call.data.empty() && inputs.size() + 1 == call.inputs.size();
    inputs.push_back(b.buffer(known ? plan::CONSTANT : plan::INPUT, spec.type, spec.shape));
    if (known) {
      b.raw().mutable_buffers(static_cast<int>(inputs.back()))->set_data(call.data.data(), 8 * call.data.size());
    }
  }
  for (const TensorSpec& spec : call.outputs) {
    outputs.push_back(b.buffer(plan::OUTPUT, spec.type, spec.shape));
  }
  plan::Instruction* made = b.kernel(1, call.kernel, inputs, outputs);
  for (const auto& [name, value] : call.attributes) {
    (*made->mutable_attributes())[name] = attributeOf(value);
  }
  for (const int64_t scalar : call.scalars) {
    addScalar(made, scalar);
  }
  const KernelSpec spec = {call.kernel, call.inputs, call.outputs, call.attributes, call.scalars.size()};
  return b.build(describe(spec, Target::kCpu).workspaceBytes);
}

}  // namespace weft::hostile
