#include "runtime/comm/channel.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {

template <typename Ready>
absl::Status Channel::wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, const Ready& ready) {
  const auto awake = [&] { return aborted_ || ready(); };
  patience_.wait(awake);
  lock.lock();
  if (timeout.count() == 0) {
    wake_.wait(lock, awake);
  } else if (!wake_.wait_for(lock, timeout, awake)) {
    return absl::DeadlineExceededError(absl::StrCat("waited ", timeout.count(), " ms for the other stage; ",
                                                    complete_.load(), " messages were sent and ", received_.load(),
                                                    " received; if it is only slow, allow a longer timeout"));
  }
  return aborted_ ? absl::AbortedError("another rank failed") : absl::OkStatus();
}

size_t Channel::addSender(BoxCopy box) {
  senders_.push_back({std::move(box)});
  return senders_.size() - 1;
}

absl::Status Channel::send(size_t sender, const void* data, std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  Sender& mine = senders_[sender];
  WEFT_RETURN_IF_ERROR(wait(lock, timeout, [&] { return mine.sent - received_ < capacity_; }));
  // Nobody else touches this box of the slot until it counts as sent.
  lock.unlock();
  mine.box.copy(static_cast<const char*>(data), slot(mine.sent));
  lock.lock();
  ++mine.sent;
  complete_ = std::min_element(senders_.begin(), senders_.end(), [](const Sender& a, const Sender& b) {
                return a.sent < b.sent;
              })->sent;
  wake_.notify_all();
  return absl::OkStatus();
}

absl::Status Channel::receive(void* message, std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  WEFT_RETURN_IF_ERROR(wait(lock, timeout, [&] { return received_ < complete_; }));
  lock.unlock();
  std::memcpy(message, slot(received_), bytes_);
  lock.lock();
  ++received_;
  wake_.notify_all();
  return absl::OkStatus();
}

void Channel::abort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  aborted_ = true;
  wake_.notify_all();
}

}  // namespace weft
