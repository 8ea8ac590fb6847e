// Channels between stages: order, room, waiting, ends.

#include "runtime/comm/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

namespace weft {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int64_t kCapacity = 3;

class ChannelTest : public testing::Test {
 protected:
  // A test that is wrong about its peer ends with an error, not never.
  static constexpr milliseconds kPatience = milliseconds(30000);

  absl::Status send(int64_t value, milliseconds timeout = kPatience) { return channel_.send(sender_, &value, timeout); }
  absl::Status receive(int64_t* value, milliseconds timeout = kPatience) { return channel_.receive(value, timeout); }

  // The other end, on a thread of its own. A check that fails leaves the test at once; whoever still waits in the
  // channel is woken then, so that the test is reported and does not end the program.
  class OtherEnd {
   public:
    OtherEnd(Channel& channel, std::function<void()> work) : channel_(channel), thread_(std::move(work)) {}
    ~OtherEnd() {
      if (thread_.joinable()) {
        channel_.abort();
        thread_.join();
      }
    }
    void join() { thread_.join(); }

   private:
    Channel& channel_;
    std::thread thread_;
  };

  std::vector<char> mailbox_ = std::vector<char>(kCapacity * sizeof(int64_t));
  Channel channel_{mailbox_.data(), sizeof(int64_t), kCapacity};
  size_t sender_ = channel_.addSender(BoxCopy(sizeof(int64_t)));
};

TEST_F(ChannelTest, MessagesArriveInOrder) {
  constexpr int64_t kMessages = 20000;
  OtherEnd sender(channel_, [&] {
    for (int64_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(send(i * i).ok());
    }
  });
  for (int64_t i = 0; i < kMessages; ++i) {
    int64_t value = -1;
    ASSERT_TRUE(receive(&value).ok());
    ASSERT_EQ(value, i * i);
  }
  sender.join();
}

// The sender goes on while there is room, and no further.
TEST_F(ChannelTest, SenderWaitsOnlyWhileTheMailboxIsFull) {
  std::atomic<int64_t> sent{0};
  OtherEnd sender(channel_, [&] {
    for (int64_t i = 0; i < 2 * kCapacity; ++i) {
      ASSERT_TRUE(send(i).ok());
      ++sent;
    }
  });
  while (sent < kCapacity && !HasFailure()) {
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(sent, kCapacity);
  int64_t value = -1;
  for (int64_t i = 0; i < 2 * kCapacity; ++i) {
    ASSERT_TRUE(receive(&value).ok());
    EXPECT_EQ(value, i);
  }
  sender.join();
}

TEST_F(ChannelTest, WaitsEndWithTheTimeout) {
  int64_t value = -1;
  const absl::Status none = receive(&value, milliseconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("0 messages were sent and 0 received"));
  for (int64_t i = 0; i < kCapacity; ++i) {
    ASSERT_TRUE(send(i).ok());
  }
  const absl::Status full = send(7, milliseconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("3 messages were sent and 0 received"));
}

TEST_F(ChannelTest, AbortWakesWhoWaits) {
  absl::Status status;
  OtherEnd receiver(channel_, [&] {
    int64_t value = -1;
    status = receive(&value);
  });
  std::this_thread::sleep_for(milliseconds(2));
  channel_.abort();
  receiver.join();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_TRUE(absl::IsAborted(send(1)));
}

// A 2x4 message of two halves: left from one sender, right, out of a wider array, from the other.
TEST(BoxChannelTest, AMessageIsThereWhenAllPartsAre) {
  std::vector<char> mailbox(2 * 8 * sizeof(int32_t));
  Channel channel(mailbox.data(), 8 * sizeof(int32_t), 2);
  const size_t left = channel.addSender(BoxCopy({{2, 2}, {2, 4}, {0, 0}, {0, 0}, {2, 2}}, sizeof(int32_t)));
  const size_t right = channel.addSender(BoxCopy({{3, 5}, {2, 4}, {1, 2}, {0, 2}, {2, 2}}, sizeof(int32_t)));
  const std::vector<int32_t> small = {1, 2, 3, 4};
  std::vector<int32_t> wide(15);
  std::iota(wide.begin(), wide.end(), 10);
  std::vector<int32_t> message(8);
  ASSERT_TRUE(channel.send(left, small.data(), milliseconds(0)).ok());
  ASSERT_TRUE(channel.send(left, small.data(), milliseconds(0)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(channel.receive(message.data(), milliseconds(5))));
  EXPECT_TRUE(absl::IsDeadlineExceeded(channel.send(left, small.data(), milliseconds(5))));  // full for this sender
  ASSERT_TRUE(channel.send(right, wide.data(), milliseconds(0)).ok());
  ASSERT_TRUE(channel.receive(message.data(), milliseconds(0)).ok());
  EXPECT_EQ(message, (std::vector<int32_t>{1, 2, 17, 18, 3, 4, 22, 23}));
}

}  // namespace
}  // namespace weft
