// A channel between two ranks of one process: messages of one size, in order, with room for a few under way.
//
// The sender copies its message into the receiver's mailbox, and waits only while that is full; the receiver waits for
// the next message and copies it out. Two copies, in exchange for a sender that goes on at once: pipeline stages do not
// wait for each other's order of work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"

namespace weft {

class Channel {
 public:
  // `mailbox`: memory for `capacity` messages of `bytes` each.
  Channel(char* mailbox, int64_t bytes, int64_t capacity) : mailbox_(mailbox), bytes_(bytes), capacity_(capacity) {}

  // Both wait at most `timeout` (0: for ever). Errors: DeadlineExceeded; Aborted after abort().
  absl::Status send(const void* message, std::chrono::milliseconds timeout);
  absl::Status receive(void* message, std::chrono::milliseconds timeout);
  void abort();

 private:
  template <typename Ready>
  absl::Status wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, const Ready& ready);
  char* slot(int64_t message) const { return mailbox_ + message % capacity_ * bytes_; }

  char* mailbox_;
  int64_t bytes_;
  int64_t capacity_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int64_t sent_ = 0;
  int64_t received_ = 0;
  bool aborted_ = false;
};

// All channels of a program, by number and place of the two ranks in their blocks.
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
  void abort() {
    for (auto& [key, channel] : channels_) {
      channel->abort();
    }
  }

 private:
  std::map<std::pair<uint32_t, int64_t>, std::unique_ptr<Channel>> channels_;
};

}  // namespace weft
