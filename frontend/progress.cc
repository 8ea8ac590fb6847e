#include "frontend/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

constexpr int64_t kLogLines = 10;
constexpr std::chrono::milliseconds kLogPause{1000};
constexpr std::chrono::milliseconds kTerminalPause{100};
constexpr int64_t kBar = 24;

std::string lossText(double loss) {
  if (!std::isfinite(loss)) {
    return absl::StrCat("loss is not finite (", std::isnan(loss) ? "nan" : loss < 0 ? "-inf" : "inf", ")");
  }
  return std::abs(loss) < 1e6 ? absl::StrFormat("loss %.4f", loss) : absl::StrFormat("loss %.4g", loss);
}

std::string durationText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return whole < 60     ? absl::StrCat(whole, " s")
         : whole < 3600 ? absl::StrCat(whole / 60, " min ", whole % 60, " s")
                        : absl::StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

// Columns of the terminal; 0 where it does not tell.
size_t columns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

Progress::Progress(const ProgressRange& range, bool shown)
    : range_(range),
      shown_(shown),
      terminal_(shown && isatty(STDOUT_FILENO) != 0),
      start_(Clock::now()),
      lastTime_(terminal_ ? start_ - kTerminalPause : start_),
      lastDone_(range.first) {}

Progress::~Progress() {
  if (width_ > 0) {
    std::printf("\n");
    std::fflush(stdout);
  }
}

bool Progress::isDue(int64_t done, Clock::time_point now) const {
  if (done == range_.last) {
    return true;
  }
  if (terminal_) {
    return now - lastTime_ >= kTerminalPause;
  }
  const int64_t pause = (range_.last - range_.first + kLogLines - 1) / kLogLines;
  return now - lastTime_ >= kLogPause && done - lastDone_ >= pause;
}

void Progress::report(int64_t done, double loss) {
  const Clock::time_point now = Clock::now();
  // The first loss that is not finite is seen at once.
  const bool fails = !std::isfinite(loss) && !failing_;
  if (!shown_ || (!fails && !isDue(done, now))) {
    return;
  }
  failing_ = failing_ || fails;
  lastTime_ = now;
  lastDone_ = done;
  std::string line = text(range_, done, loss, std::chrono::duration<double>(now - start_).count());
  if (!terminal_) {
    std::printf("%s\n", line.c_str());
  } else {
    // A line that the terminal breaks would not move; blanks cover what is left of the one before.
    const size_t most = columns();
    line.resize(most > 1 ? std::min(line.size(), most - 1) : line.size());
    const size_t length = line.size();
    line.append(width_ > length ? width_ - length : 0, ' ');
    std::printf("\r%s", line.c_str());
    width_ = length;
  }
  std::fflush(stdout);
}

std::string Progress::text(const ProgressRange& range, int64_t done, double loss, double seconds) {
  const int64_t filled = range.total > 0 ? kBar * std::clamp<int64_t>(done, 0, range.total) / range.total : kBar;
  std::string line = absl::StrCat("[", std::string(filled, '#'), std::string(kBar - filled, '.'), "] step ", done, "/",
                                  range.total, "  ", lossText(loss));
  const int64_t mine = done - range.first;
  if (mine <= 0 || seconds <= 0) {
    return line;
  }
  absl::StrAppend(&line, absl::StrFormat("  %.2f steps/s", static_cast<double>(mine) / seconds));
  const int64_t left = range.total - done;
  const double each = seconds / static_cast<double>(mine);
  return absl::StrCat(
      line, "  ",
      left > 0 ? absl::StrCat(durationText(static_cast<double>(left) * each), " left") : durationText(seconds));
}

}  // namespace weft
