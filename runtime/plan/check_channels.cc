#include "runtime/plan/check_channels.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"
#include "runtime/plan/limits.h"
#include "runtime/plan/statistics.h"

namespace weft {
namespace {

using Sizes = google::protobuf::RepeatedField<int64_t>;

bool same(const Sizes& a, const Sizes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// One end of a channel.
struct End {
  int64_t submesh = -1;
  int64_t ranks = 0;
  const plan::Plan* plan = nullptr;
  const plan::Instruction* instruction = nullptr;

  const plan::Transfer& transfer() const { return instruction->transfer(); }
  // What is sent or received.
  const plan::Buffer& buffer() const {
    const plan::Operand& operand = transfer().send() ? instruction->inputs(0) : instruction->outputs(0);
    return plan->buffers(static_cast<int>(operand.buffer()));
  }
};

// The box at `offset` of `size` lies within `shape`.
bool inside(const Sizes& offset, const Sizes& size, const Sizes& shape) {
  bool fits = offset.size() == shape.size() && size.size() == shape.size();
  for (int d = 0; fits && d < shape.size(); ++d) {
    fits = size[d] >= 1 && size[d] <= shape[d] && offset[d] >= 0 && offset[d] <= shape[d] - size[d];
  }
  return fits;
}

bool meet(const plan::Transfer::Box& a, const plan::Transfer::Box& b) {
  bool common = true;
  for (int d = 0; common && d < a.size_size(); ++d) {
    common = a.target_offset(d) < b.target_offset(d) + b.size(d) && b.target_offset(d) < a.target_offset(d) + a.size(d);
  }
  return common;
}

// Two ends of one channel.
class Channel {
 public:
  Channel(const End& sender, const End& receiver) : sender_(sender), receiver_(receiver) {}

  absl::Status check() const {
    const bool paired =
        receiver_.submesh == sender_.transfer().submesh() && receiver_.transfer().submesh() == sender_.submesh;
    if (!paired || sender_.transfer().capacity() != receiver_.transfer().capacity()) {
      return wrong("names submesh ", sender_.transfer().submesh(), " and room for ", sender_.transfer().capacity(),
                   " messages at its sender, submesh ", receiver_.transfer().submesh(), " and room for ",
                   receiver_.transfer().capacity(), " at its receiver");
    }
    if (sender_.transfer().boxes_size() > 0) {
      return wrong("has boxes at its sender; only the receiver lists them");
    }
    if (sender_.buffer().type() != receiver_.buffer().type()) {
      return wrong("changes the element type");
    }
    return receiver_.transfer().boxes_size() > 0 ? checkBoxes() : checkWhole();
  }

 private:
  template <typename... Parts>
  absl::Status wrong(const Parts&... what) const {
    return inconsistentPlan("channel ", receiver_.transfer().channel(), " from submesh ", sender_.submesh, " to ",
                            receiver_.submesh, " ", what...);
  }

  absl::Status checkWhole() const {
    if (sender_.ranks != receiver_.ranks || !same(sender_.buffer().shape(), receiver_.buffer().shape())) {
      return wrong("has no receiver that fits: without boxes ", sender_.ranks, " ranks send ", sender_.buffer().bytes(),
                   " bytes each and ", receiver_.ranks, " receive ", receiver_.buffer().bytes(),
                   ", or the shapes differ");
    }
    return absl::OkStatus();
  }

  // The boxes of every target are disjoint and make up its tensor.
  absl::Status checkBoxes() const {
    std::map<int64_t, std::vector<const plan::Transfer::Box*>> targets;
    std::set<std::pair<int64_t, int64_t>> pairs;
    for (const plan::Transfer::Box& box : receiver_.transfer().boxes()) {
      if (box.source() >= sender_.ranks || box.target() >= receiver_.ranks ||
          !inside(box.source_offset(), box.size(), sender_.buffer().shape()) ||
          !inside(box.target_offset(), box.size(), receiver_.buffer().shape())) {
        return wrong("has a box from rank ", box.source(), " to rank ", box.target(),
                     " outside of the ranks or of what they hold");
      }
      std::vector<const plan::Transfer::Box*>& others = targets[box.target()];
      if (!pairs.emplace(box.source(), box.target()).second || others.size() == kMaxBoxesOfTarget) {
        return wrong("has two boxes from rank ", box.source(), " to rank ", box.target(), ", or more than ",
                     kMaxBoxesOfTarget, " to that rank");
      }
      for (const plan::Transfer::Box* other : others) {
        if (meet(box, *other)) {
          return wrong("has boxes from ranks ", other->source(), " and ", box.source(), " to rank ", box.target(),
                       " that overlap");
        }
      }
      others.push_back(&box);
    }
    for (int64_t rank = 0; rank < receiver_.ranks; ++rank) {
      int64_t sent = 0;
      for (const plan::Transfer::Box* box : targets[rank]) {
        sent += boundedElements(box->size());
      }
      if (const int64_t elements = boundedElements(receiver_.buffer().shape()); sent != elements) {
        return wrong("sends ", sent, " of the ", elements, " elements of rank ", rank);
      }
    }
    return absl::OkStatus();
  }

  const End& sender_;
  const End& receiver_;
};

// A receiver's own side: its mailbox holds `capacity` messages.
absl::Status checkMailbox(const End& end) {
  const plan::Transfer& transfer = end.transfer();
  if (transfer.mailbox() >= static_cast<uint32_t>(end.plan->buffers_size())) {
    return inconsistentPlan("channel ", transfer.channel(), " names mailbox ", transfer.mailbox(), " of ",
                            end.plan->buffers_size(), " buffers");
  }
  const plan::Buffer& mailbox = end.plan->buffers(static_cast<int>(transfer.mailbox()));
  Sizes shape;
  shape.Add(transfer.capacity());
  shape.MergeFrom(end.buffer().shape());
  if (mailbox.memory() != plan::MAILBOX || mailbox.type() != end.buffer().type() || !same(mailbox.shape(), shape)) {
    return inconsistentPlan("mailbox ", transfer.mailbox(), " of channel ", transfer.channel(), " is of class ",
                            plan::MemoryClass_Name(mailbox.memory()), " and has ", mailbox.bytes(),
                            " bytes; it must be a MAILBOX of the type and shape of ", transfer.capacity(),
                            " messages of ", end.buffer().bytes(), " bytes");
  }
  return absl::OkStatus();
}

// Mailboxes of different channels share no memory.
absl::Status checkApart(std::vector<const End*> receivers) {
  const auto mailbox = [](const End* end) -> const plan::Buffer& {
    return end->plan->buffers(static_cast<int>(end->transfer().mailbox()));
  };
  std::erase_if(receivers, [&](const End* end) { return mailbox(end).bytes() == 0; });
  std::sort(receivers.begin(), receivers.end(), [&](const End* a, const End* b) {
    return std::pair(a->submesh, mailbox(a).offset()) < std::pair(b->submesh, mailbox(b).offset());
  });
  for (size_t i = 1; i < receivers.size(); ++i) {
    const End* before = receivers[i - 1];
    if (before->submesh == receivers[i]->submesh &&
        mailbox(before).offset() + mailbox(before).bytes() > mailbox(receivers[i]).offset()) {
      return inconsistentPlan("the mailboxes of channels ", before->transfer().channel(), " and ",
                              receivers[i]->transfer().channel(), " overlap");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status checkChannels(const plan::Plan& plan) {
  std::map<uint32_t, End> ends[2];
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  for (size_t b = 0; b < submeshes.size(); ++b) {
    for (const plan::Function& function : submeshes[b]->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (!instruction.has_transfer()) {
          continue;
        }
        const plan::Transfer& transfer = instruction.transfer();
        const auto submesh = static_cast<int64_t>(b);
        if (plan.submeshes_size() == 0 || transfer.submesh() == submesh ||
            transfer.submesh() >= plan.submeshes_size()) {
          return inconsistentPlan("transfer '", instruction.label(), "' of submesh ", submesh, " names submesh ",
                                  transfer.submesh(), " of a plan with ", plan.submeshes_size(), " submeshes");
        }
        const End end = {submesh, submeshes[b]->ranks(), submeshes[b], &instruction};
        if (!ends[transfer.send() ? 1 : 0].emplace(transfer.channel(), end).second) {
          return inconsistentPlan("channel ", transfer.channel(), " has two ",
                                  transfer.send() ? "senders" : "receivers");
        }
      }
    }
  }
  std::vector<const End*> receivers;
  int64_t receiving = 0;
  for (const auto& [channel, receiver] : ends[0]) {
    receiving += receiver.ranks;
    if (receiving > kMaxReceivers) {
      return inconsistentPlan("up to channel ", channel, " ", receiving,
                              " ranks receive, summed over the channels; at ", "most ", kMaxReceivers, " are allowed");
    }
    const auto sender = ends[1].find(channel);
    if (sender == ends[1].end()) {
      return inconsistentPlan("channel ", channel, " has a receiver, '", receiver.instruction->label(),
                              "', but no sender");
    }
    WEFT_RETURN_IF_ERROR(checkMailbox(receiver));
    WEFT_RETURN_IF_ERROR(Channel(sender->second, receiver).check());
    receivers.push_back(&receiver);
  }
  for (const auto& [channel, sender] : ends[1]) {
    if (ends[0].count(channel) == 0) {
      return inconsistentPlan("channel ", channel, " has a sender, '", sender.instruction->label(),
                              "', but no receiver");
    }
  }
  return checkApart(std::move(receivers));
}

}  // namespace weft
