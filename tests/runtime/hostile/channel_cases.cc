// Lies about channels, and ranks that wait for one another.
#include <functional>

#include "tests/runtime/hostile/hostile_plan.h"

namespace weft::hostile {
namespace {

using plan::Plan;

plan::Transfer& sender(Plan& p, int submesh) {
  const int function = submesh == 0 ? 1 : 2;
  auto* list = p.mutable_submeshes(submesh)->mutable_functions(function)->mutable_instructions();
  return *list->Mutable(list->size() - 1)->mutable_transfer();
}
plan::Transfer& receiver(Plan& p, int submesh) {
  const int function = submesh == 0 ? 2 : 1;
  return *p.mutable_submeshes(submesh)->mutable_functions(function)->mutable_instructions(0)->mutable_transfer();
}
plan::Transfer::Box& box(Plan& p, int number) {
  return *receiver(p, 1).mutable_boxes(number);
}
plan::Buffer& mailbox(Plan& p, int submesh) {
  return *p.mutable_submeshes(submesh)->mutable_buffers(static_cast<int>(receiver(p, submesh).mailbox()));
}
auto* step(Plan& p, int submesh, int rank = 0) {
  return p.mutable_submeshes(submesh)->mutable_schedules(rank)->mutable_step();
}

class Cases {
 public:
  explicit Cases(const std::string& base, const Plan& plan) : base_(base), plan_(plan) {}
  void add(const std::string& name, const std::string& field, const std::string& says,
           const std::function<void(Plan&)>& lie, bool mayRun = false) {
    cases_.push_back({base_ + ": " + name, field, plan_, says, mayRun});
    lie(cases_.back().plan);
  }
  std::vector<Case> take() { return std::move(cases_); }

 private:
  std::string base_;
  Plan plan_;
  std::vector<Case> cases_;
};

void addEnds(Cases& c) {
  c.add("two senders", "transfer.channel", "two senders", [](Plan& p) {
    auto* list = p.mutable_submeshes(0)->mutable_functions(1)->mutable_instructions();
    const plan::Instruction copy = list->Get(list->size() - 1);
    *list->Add() = copy;
  });
  c.add("two receivers", "transfer.channel", "two receivers", [](Plan& p) {
    auto* list = p.mutable_submeshes(1)->mutable_functions(1)->mutable_instructions();
    const plan::Instruction copy = list->Get(0);
    *list->Add() = copy;
  });
  c.add("a send without a receiver", "transfer.channel", "has a", [](Plan& p) { sender(p, 0).set_channel(9); });
  c.add("a receive without a sender", "transfer.channel", "has a receiver",
        [](Plan& p) { receiver(p, 1).set_channel(9); });
  c.add("a send to its own submesh", "transfer.submesh", "names submesh 0",
        [](Plan& p) { sender(p, 0).set_submesh(0); });
  c.add("a send to a submesh that is not there", "transfer.submesh", "names submesh 2",
        [](Plan& p) { sender(p, 0).set_submesh(2); });
  c.add("a receive from its own submesh", "transfer.submesh", "names submesh 1",
        [](Plan& p) { receiver(p, 1).set_submesh(1); });
  c.add("room for other numbers of messages", "transfer.capacity", "room for 1",
        [](Plan& p) { sender(p, 0).set_capacity(1); });
  c.add("no room", "transfer.capacity", "room for 0", [](Plan& p) {
    sender(p, 0).set_capacity(0);
    receiver(p, 1).set_capacity(0);
  });
  c.add("endless room", "transfer.capacity", "room for", [](Plan& p) {
    sender(p, 0).set_capacity(int64_t{1} << 40);
    receiver(p, 1).set_capacity(int64_t{1} << 40);
  });
  c.add("a mailbox that is too small", "transfer.mailbox", "mailbox", [](Plan& p) {
    sender(p, 0).set_capacity(16);
    receiver(p, 1).set_capacity(16);
  });
  c.add("a mailbox that is a parameter", "transfer.mailbox", "mailbox", [](Plan& p) { receiver(p, 1).set_mailbox(1); });
  c.add("a mailbox that is not there", "transfer.mailbox", "mailbox", [](Plan& p) { receiver(p, 1).set_mailbox(999); });
  c.add("a mailbox of another type", "buffers.type", "mailbox", [](Plan& p) { mailbox(p, 1).set_type(plan::I32); });
  c.add("a mailbox of another shape", "buffers.shape", "mailbox", [](Plan& p) {
    mailbox(p, 1).set_shape(0, 4);
    mailbox(p, 1).set_shape(1, mailbox(p, 1).shape(1) / 2);
  });
  c.add("a mailbox among activations", "buffers.memory", "mailbox", [](Plan& p) { receiver(p, 1).set_mailbox(0); });
  c.add("a send with an output", "instructions.outputs", "transfer of", [](Plan& p) {
    auto* list = p.mutable_submeshes(0)->mutable_functions(1)->mutable_instructions();
    list->Mutable(list->size() - 1)->add_outputs()->set_buffer(0);
  });
  c.add("a send of nothing", "instructions.inputs", "transfer of", [](Plan& p) {
    auto* list = p.mutable_submeshes(0)->mutable_functions(1)->mutable_instructions();
    list->Mutable(list->size() - 1)->clear_inputs();
  });
  c.add("a receive into nothing", "instructions.outputs", "transfer of",
        [](Plan& p) { p.mutable_submeshes(1)->mutable_functions(1)->mutable_instructions(0)->clear_outputs(); });
  c.add("a send that is a receive", "transfer.send", "transfer of", [](Plan& p) { sender(p, 0).set_send(false); });
  c.add("boxes at the sender", "transfer.boxes", "boxes at its sender",
        [](Plan& p) { sender(p, 0).add_boxes()->set_source(7); });
  c.add("another type", "buffers.type", "", [](Plan& p) {
    const auto sent = p.submeshes(0).functions(1).instructions(1).inputs(0).buffer();
    p.mutable_submeshes(0)->mutable_buffers(static_cast<int>(sent))->set_type(plan::I32);
  });
}

void addWaits(Cases& c) {
  c.add("both wait for a message first", "schedules.step", "would wait for ever",
        [](Plan& p) { step(p, 0)->SwapElements(0, 2); });
  c.add("a message that never comes", "schedules.step", "is at the end of its step",
        [](Plan& p) { step(p, 0)->Clear(); });
  c.add("a receiver that stops early", "schedules.step", "", [](Plan& p) { step(p, 1)->DeleteSubrange(1, 1); });
  c.add("a receiver that does nothing", "schedules.step", "", [](Plan& p) { step(p, 1)->Clear(); });
  c.add("a message that stays", "schedules.step", "sends 3 messages", [](Plan& p) {
    const plan::Action again = p.submeshes(0).schedules(0).step(1);
    for (int rank = 0; rank < p.submeshes(0).ranks(); ++rank) {
      *step(p, 0, rank)->Add() = again;
    }
  });
  c.add("more messages than there is room for", "transfer.capacity", "would wait for ever", [](Plan& p) {
    for (int i = 0; i < 4; ++i) {
      for (int rank = 0; rank < p.submeshes(0).ranks(); ++rank) {
        *step(p, 0, rank)->Add() = p.submeshes(0).schedules(0).step(0);
        step(p, 0, rank)->SwapElements(0, step(p, 0, rank)->size() - 1);
      }
    }
  });
  c.add("init sends", "schedules.init", "in init", [](Plan& p) {
    for (int rank = 0; rank < p.submeshes(0).ranks(); ++rank) {
      *p.mutable_submeshes(0)->mutable_schedules(rank)->add_init() = p.submeshes(0).schedules(0).step(0);
    }
  });
  c.add("init waits", "schedules.init", "would wait for ever", [](Plan& p) {
    *p.mutable_submeshes(1)->mutable_schedules(0)->add_init() = p.submeshes(1).schedules(0).step(0);
  });
  c.add("the backward pass comes first", "schedules.step", "", [](Plan& p) { step(p, 1)->SwapElements(0, 2); }, true);
}

void addJoined(Cases& c) {
  c.add("other micro-batches outside", "micro_batches", "micro-batches", [](Plan& p) { p.set_micro_batches(3); });
  c.add("other ranks outside", "ranks", "ranks", [](Plan& p) { p.set_ranks(7); });
  c.add("another peak outside", "memory.peak_bytes", "bytes", [](Plan& p) { p.mutable_memory()->set_peak_bytes(1); });
  c.add("a tensor outside alone", "tensors.name", "in no submesh", [](Plan& p) {
    *p.add_tensors() = p.tensors(0);
    p.mutable_tensors(p.tensors_size() - 1)->set_name("ghost");
  });
  c.add("a tensor inside alone", "tensors.name", "unknown outside",
        [](Plan& p) { p.mutable_tensors(0)->set_name("y"); });
  c.add("another type outside", "tensors.type", "unknown outside",
        [](Plan& p) { p.mutable_tensors(0)->set_type(plan::I32); });
  c.add("no type outside", "tensors.type", "element type",
        [](Plan& p) { p.mutable_tensors(0)->set_type(static_cast<plan::ElementType>(50)); });
  c.add("another kind outside", "tensors.kind", "unknown outside",
        [](Plan& p) { p.mutable_tensors(0)->set_kind(plan::TENSOR_PARAMETER); });
  c.add("a larger shape outside", "tensors.shape", "tensor", [](Plan& p) { p.mutable_tensors(0)->set_shape(0, 8); });
  c.add("an endless shape outside", "tensors.shape", "tensor",
        [](Plan& p) { p.mutable_tensors(0)->set_shape(0, int64_t{1} << 44); });
  c.add("a shape outside that overflows", "tensors.shape", "shape",
        [](Plan& p) { p.mutable_tensors(0)->mutable_shape()->Resize(9, int64_t{1} << 40); });
  c.add("another file shape outside", "tensors.file_shape", "tensor", [](Plan& p) {
    p.mutable_tensors(0)->set_file_shape(0, 2);
    p.mutable_tensors(0)->set_file_shape(1, 4);
  });
  c.add("a larger slice outside", "tensors.slices.valid", "another slice",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(0)->set_valid(1, 1); });
  c.add("a slice elsewhere outside", "tensors.slices.offset", "another slice",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(0)->set_offset(0, 1); });
  c.add("a slice where no rank holds it", "tensors.slices.valid", "does not hold it", [](Plan& p) {
    plan::Slice* slice = p.mutable_tensors(0)->mutable_slices(p.tensors(0).slices_size() - 1);
    slice->set_valid(0, 1);
  });
  c.add("a slice without dimensions", "tensors.slices", "dimensions",
        [](Plan& p) { p.mutable_tensors(0)->mutable_slices(p.tensors(0).slices_size() - 1)->Clear(); });
  c.add("a slice too many", "tensors.slices", "slices", [](Plan& p) { p.mutable_tensors(0)->add_slices(); });
  c.add("a tensor twice outside", "tensors.name", "twice", [](Plan& p) { *p.add_tensors() = p.tensors(0); });
}

void addBoxes(Cases& c) {
  c.add("a box beyond the target", "boxes.target_offset", "outside",
        [](Plan& p) { box(p, 1).set_target_offset(0, 3); });
  c.add("a box far beyond the target", "boxes.target_offset", "outside",
        [](Plan& p) { box(p, 1).set_target_offset(0, int64_t{1} << 47); });
  c.add("a box beyond the source", "boxes.source_offset", "outside",
        [](Plan& p) { box(p, 1).set_source_offset(0, 1); });
  c.add("a box that is too large", "boxes.size", "outside", [](Plan& p) { box(p, 0).set_size(0, 3); });
  c.add("a box of all bytes", "boxes.size", "outside", [](Plan& p) { box(p, 0).set_size(0, int64_t{1} << 48); });
  c.add("a box of nothing", "boxes.size", "outside", [](Plan& p) { box(p, 0).set_size(0, 0); });
  c.add("a box of other dimensions", "boxes.size", "outside", [](Plan& p) { box(p, 0).add_size(1); });
  c.add("a box without offsets", "boxes.source_offset", "outside", [](Plan& p) { box(p, 0).clear_source_offset(); });
  c.add("a box from a rank that is not there", "boxes.source", "outside", [](Plan& p) { box(p, 0).set_source(2); });
  c.add("a box to a rank that is not there", "boxes.target", "outside", [](Plan& p) { box(p, 0).set_target(1); });
  c.add("two boxes from one rank", "boxes.source", "two boxes", [](Plan& p) { box(p, 1).set_source(0); });
  c.add("boxes that overlap", "boxes.target_offset", "overlap", [](Plan& p) { box(p, 1).set_target_offset(0, 1); });
  c.add("a box that is missing", "boxes", "elements of rank",
        [](Plan& p) { receiver(p, 1).mutable_boxes()->RemoveLast(); });
  c.add("no boxes", "boxes", "no receiver that fits", [](Plan& p) { receiver(p, 1).clear_boxes(); });
}

// A small file in which ever so many ranks receive in ever so many channels that no action uses.
Case manyReceivers() {
  constexpr int kRanks = 8192;
  constexpr int kChannels = 513;
  Plan p;
  p.set_ranks(2 * kRanks);
  p.set_micro_batches(1);
  p.mutable_memory();
  for (const bool sends : {true, false}) {
    Plan& submesh = *p.add_submeshes();
    submesh.set_ranks(kRanks);
    submesh.set_micro_batches(1);
    for (int rank = 0; rank < kRanks; ++rank) {
      submesh.add_schedules();
    }
    submesh.add_buffers()->add_shape(0);
    plan::Buffer& mailbox = *submesh.add_buffers();
    mailbox.set_memory(plan::MAILBOX);
    mailbox.add_shape(1);
    mailbox.add_shape(0);
    plan::Function& function = *submesh.add_functions();
    for (int channel = 0; channel < kChannels; ++channel) {
      plan::Instruction& instruction = *function.add_instructions();
      (sends ? instruction.add_inputs() : instruction.add_outputs())->set_buffer(0);
      plan::Transfer& transfer = *instruction.mutable_transfer();
      transfer.set_channel(channel);
      transfer.set_submesh(sends ? 1 : 0);
      transfer.set_send(sends);
      transfer.set_capacity(1);
      transfer.set_mailbox(1);
    }
  }
  return {"many receivers", "transfer.channel", p, "ranks receive, summed over the channels"};
}

}  // namespace

std::vector<Case> channelCases() {
  std::vector<Case> cases = {manyReceivers()};
  for (const bool boxes : {false, true}) {
    Cases c(boxes ? "boxed" : "staged", boxes ? boxedPlan() : stagedPlan());
    addEnds(c);
    addWaits(c);
    addJoined(c);
    if (boxes) {
      addBoxes(c);
    }
    const std::vector<Case> made = c.take();
    cases.insert(cases.end(), made.begin(), made.end());
  }
  return cases;
}

}  // namespace weft::hostile
