#include "runtime/comm/channel.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {

template <typename Ready>
absl::Status Channel::wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, const Ready& ready) {
  const auto awake = [&] { return aborted_ || ready(); };
  if (timeout.count() == 0) {
    wake_.wait(lock, awake);
  } else if (!wake_.wait_for(lock, timeout, awake)) {
    return absl::DeadlineExceededError(absl::StrCat("waited ", timeout.count(), " ms for the other stage; ", sent_,
                                                    " messages were sent and ", received_,
                                                    " received; if it is only slow, allow a longer timeout"));
  }
  return aborted_ ? absl::AbortedError("another rank failed") : absl::OkStatus();
}

absl::Status Channel::send(const void* message, std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  WEFT_RETURN_IF_ERROR(wait(lock, timeout, [&] { return sent_ - received_ < capacity_; }));
  // One sender: nobody else touches this slot until it counts as sent.
  lock.unlock();
  std::memcpy(slot(sent_), message, bytes_);
  lock.lock();
  ++sent_;
  wake_.notify_all();
  return absl::OkStatus();
}

absl::Status Channel::receive(void* message, std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  WEFT_RETURN_IF_ERROR(wait(lock, timeout, [&] { return received_ < sent_; }));
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
