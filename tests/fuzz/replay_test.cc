// The short run: every file of the committed corpora, and a fixed number of mutations of them, through every target.
//
// A finding ends the program; the input is then in the file that the last line names.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/fuzz/target.h"

#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#define WEFT_TELLS_DEATH 1
#endif

namespace weft::fuzz {
namespace {

// What is running now, for the report of a crash: plain memory, since a signal handler may not do much.
const std::string* running = nullptr;
std::string crashPath;

void writeCrash() {
  if (running == nullptr) {
    return;
  }
  const int file = open(crashPath.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  const char text[] = "\nthe input of this crash is in ";
  const bool written = file >= 0 && write(file, running->data(), running->size()) >= 0 &&
                       write(STDERR_FILENO, text, sizeof text - 1) >= 0 &&
                       write(STDERR_FILENO, crashPath.data(), crashPath.size()) >= 0 &&
                       write(STDERR_FILENO, "\n", 1) >= 0;
  running = written ? nullptr : running;
}

void onSignal(int signal) {
  writeCrash();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Outcome runNoted(const Target& target, const std::string& bytes) {
  running = &bytes;
  try {
    const Outcome outcome = target.run(bytes);
    running = nullptr;
    return outcome;
  } catch (...) {
    writeCrash();
    throw;
  }
}

class Replay : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
#if WEFT_TELLS_DEATH
    __sanitizer_set_death_callback(writeCrash);
#else
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      std::signal(signal, onSignal);
    }
#endif
  }

  void SetUp() override {
    ASSERT_NE(findTarget(GetParam()), nullptr);
    crashPath = testing::TempDir() + "/weft_fuzz_crash_" + GetParam();
    const std::filesystem::path folder = std::filesystem::path(WEFT_FUZZ_CORPUS) / GetParam();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream stream(entry.path(), std::ios::binary);
      // By name, so that the order is that of every machine.
      files_[entry.path().filename()] = {std::istreambuf_iterator<char>(stream), {}};
    }
    ASSERT_FALSE(files_.empty()) << folder;
  }

  std::map<std::string, std::string> files_;
};

// Files named valid_... are still accepted: what is refused at its first byte tests nothing behind it.
TEST_P(Replay, Corpus) {
  size_t valid = 0;
  for (const auto& [name, bytes] : files_) {
    const bool accepted = runNoted(*findTarget(GetParam()), bytes) == Outcome::kAccepted;
    const bool named = name.rfind("valid_", 0) == 0;
    EXPECT_TRUE(accepted || !named) << name << " is refused; make it again with weft-fuzz-seeds";
    valid += named ? 1 : 0;
  }
  EXPECT_GT(valid, 0u);
}

TEST_P(Replay, Mutations) {
  const Target& target = *findTarget(GetParam());
  Mutator mutator(1);
  size_t accepted = 0;
  for (int i = 0; i < target.replayed; ++i) {
    const std::string& bytes = std::next(files_.begin(), static_cast<int64_t>(mutator.below(files_.size())))->second;
    accepted += runNoted(target, mutated(target, bytes, mutator)) == Outcome::kAccepted ? 1 : 0;
  }
  // Neither do all changes miss the reader, nor does it take all of them.
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, static_cast<size_t>(target.replayed));
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Target& target : targets()) {
    names.push_back(target.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Replay, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::fuzz
