// A channel to one rank from one or several of the same process: messages of one size, in order, with room for a few
// under way.
//
// A sender copies its box of the message into the receiver's mailbox, and waits only while that is full; the receiver
// waits until all boxes of the next message are there and copies it out. Two copies, in exchange for senders that go on
// at once: pipeline stages do not wait for each other's order of work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/box_copy.h"
#include "runtime/comm/spinning_condition.h"

namespace weft {

class Channel {
 public:
  // `mailbox`: memory for `capacity` messages of `bytes` each.
  Channel(char* mailbox, int64_t bytes, int64_t capacity)
      : mailbox_(mailbox), bytes_(bytes), capacity_(capacity), changed_(kSpinsOnOwnCore) {}

  // One more sender, of this box of the message; its number. Before the first message.
  size_t addSender(BoxCopy box);

  // Both wait at most `timeout` (0: for ever). `data`: where the sender's array lies. Errors: DeadlineExceeded; Aborted
  // after abort().
  absl::Status send(size_t sender, const void* data, std::chrono::milliseconds timeout);
  absl::Status receive(void* message, std::chrono::milliseconds timeout);
  void abort();

 private:
  template <typename Ready>
  absl::Status wait(std::chrono::milliseconds timeout, const Ready& ready);
  char* slot(int64_t message) const { return mailbox_ + message % capacity_ * bytes_; }

  char* mailbox_;
  int64_t bytes_;
  int64_t capacity_;
  SpinningCondition changed_;
  struct Sender {
    BoxCopy box;
    int64_t sent = 0;
  };
  std::vector<Sender> senders_;
  // Written in updates of changed_.
  std::atomic<int64_t> complete_ = 0;  // messages of which all boxes are there
  std::atomic<int64_t> received_ = 0;
  std::atomic<bool> aborted_ = false;
};

// A sender's end of one channel.
struct Outlet {
  Channel* channel = nullptr;
  size_t sender = 0;
};

// All channels of a program, by number and place of the receiver in its submesh, and who sends on them.
class Channels {
 public:
  void add(uint32_t channel, int64_t place, std::unique_ptr<Channel> made) {
    channels_[{channel, place}] = std::move(made);
  }
  // Null if there is none.
  Channel* find(uint32_t channel, int64_t place) const {
    const auto it = channels_.find({channel, place});
    return it == channels_.end() ? nullptr : it->second.get();
  }
  // The rank at `source` of its submesh sends `box` to the one at `target`.
  void connect(uint32_t channel, int64_t source, int64_t target, BoxCopy box) {
    Channel* const to = find(channel, target);
    outlets_[{channel, source}].push_back({to, to->addSender(std::move(box))});
  }
  // Where a sender sends; nowhere where other ranks hold the same and send it.
  std::vector<Outlet> outlets(uint32_t channel, int64_t source) const {
    const auto it = outlets_.find({channel, source});
    return it == outlets_.end() ? std::vector<Outlet>() : it->second;
  }
  void abort() {
    for (auto& [key, channel] : channels_) {
      channel->abort();
    }
  }

 private:
  std::map<std::pair<uint32_t, int64_t>, std::unique_ptr<Channel>> channels_;
  std::map<std::pair<uint32_t, int64_t>, std::vector<Outlet>> outlets_;
};

}  // namespace weft
