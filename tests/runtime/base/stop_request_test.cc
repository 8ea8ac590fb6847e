// Signals ask once; the second one ends the program.
#include "runtime/base/stop_request.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace weft {
namespace {

// In a process of its own, where no signal is ignored, as it is in the background of a shell.
int inChild(const std::function<int()>& body) {
  return testing::inChild([&] {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    return body();
  });
}

TEST(StopRequest, TheFirstAskerCounts) {
  StopRequest stop;
  EXPECT_FALSE(stop.isRequested());
  EXPECT_EQ(stop.reason(), "as requested");
  stop.request(SIGTERM);
  stop.request(SIGINT);
  EXPECT_TRUE(stop.isRequested());
  EXPECT_EQ(stop.signal(), SIGTERM);
  EXPECT_EQ(stop.reason(), "by SIGTERM");
  StopRequest call;
  call.request();
  EXPECT_TRUE(call.isRequested());
  EXPECT_EQ(call.signal(), 0);
}

TEST(StopRequest, SignalsAskOnceThenEnd) {
  for (const auto& [first, second] : {std::pair{SIGINT, SIGINT}, std::pair{SIGTERM, SIGTERM},
                                      std::pair{SIGINT, SIGTERM}, std::pair{SIGTERM, SIGINT}}) {
    const int status = inChild([first = first, second = second] {
      StopRequest stop;
      const StopOnSignals signals(stop);
      raise(first);
      if (stop.signal() != first) {
        return 1;
      }
      raise(second);
      return 2;
    });
    EXPECT_EQ(status, 128 + second);
  }
}

TEST(StopRequest, HandlersAreThereForAWhile) {
  EXPECT_EQ(inChild([] {
              StopRequest stop;
              {
                const StopOnSignals signals(stop);
              }
              raise(SIGINT);
              return 0;
            }),
            exitStatusOf(SIGINT));
  EXPECT_EQ(inChild([] {
              std::signal(SIGINT, SIG_IGN);  // as nohup does with another signal, and shells with background jobs
              StopRequest stop;
              const StopOnSignals signals(stop);
              raise(SIGINT);
              return stop.isRequested() ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace weft
