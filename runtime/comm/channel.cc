#include "runtime/comm/channel.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {

template <typename Ready>
absl::Status Channel::wait(std::chrono::milliseconds timeout, const Ready& ready) {
  if (!changed_.wait([&] { return aborted_ || ready(); }, timeout)) {
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
  Sender& mine = senders_[sender];
  WEFT_RETURN_IF_ERROR(wait(timeout, [&] { return mine.sent - received_ < capacity_; }));
  // Nobody else touches this box of the slot until it counts as sent.
  mine.box.copy(static_cast<const char*>(data), slot(mine.sent));
  changed_.update([&] {
    ++mine.sent;
    complete_ = std::min_element(senders_.begin(), senders_.end(), [](const Sender& a, const Sender& b) {
                  return a.sent < b.sent;
                })->sent;
  });
  return absl::OkStatus();
}

absl::Status Channel::receive(void* message, std::chrono::milliseconds timeout) {
  WEFT_RETURN_IF_ERROR(wait(timeout, [&] { return received_ < complete_; }));
  std::memcpy(message, slot(received_), bytes_);
  changed_.update([&] { ++received_; });
  return absl::OkStatus();
}

void Channel::abort() {
  changed_.update([&] { aborted_ = true; });
}

}  // namespace weft
