// Programs that are stopped, killed, or cannot write: what they say, how they end, and what is on the disk then. A few
// repetitions; `--all` for 50 of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/io/safetensors.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/seeds.h"

namespace weft {
namespace {

using ::testing::AllOf;
using testing::contentsOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::namesIn;
using ::testing::Not;
using testing::Process;
using testing::TemporaryDirectory;

int repetitions = 2;

// Is the file of parameters whole?
bool isWhole(const std::string& path) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  bool whole = file.ok() && !file->entries().empty();
  for (const auto& [name, entry] : whole ? file->entries() : std::map<std::string, SafetensorsEntry>()) {
    whole = whole && file->read(name).ok();
  }
  return whole;
}

class Interrupted : public ::testing::Test {
 protected:
  // A net that trains until somebody ends it.
  Process start(std::vector<std::string> more, rlim_t fileSize = RLIM_INFINITY) {
    more.insert(more.end(), {"--save", saved()});
    return Process(SHARDED_NET, more, {.output = logs_ / "log", .fileSize = fileSize});
  }
  Process startForEver() { return start({"--steps", "1000000000"}); }
  std::string saved() const { return dir_ / "a.safetensors"; }

  void pause(int mostMilliseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % (mostMilliseconds * 1000)));
  }

  TemporaryDirectory dir_;
  TemporaryDirectory logs_;
  std::mt19937 random_{17};
};

TEST_F(Interrupted, AStopSavesAndSaysSo) {
  for (int i = 0; i < repetitions; ++i) {
    for (const auto& [signal, name] : {std::pair{SIGINT, "SIGINT"}, std::pair{SIGTERM, "SIGTERM"}}) {
      std::ofstream(saved()) << "before";
      Process process = startForEver();
      ASSERT_TRUE(process.waitFor("memory per rank")) << process.output();
      pause(30);
      process.signal(signal);
      EXPECT_EQ(process.wait(), 128 + signal);
      EXPECT_TRUE(process.exited()) << "of itself, after the step";
      const std::string output = process.output();
      EXPECT_THAT(output.substr(output.find("stopped")),
                  MatchesRegex(std::string("stopped by ") + name +
                               " after step [0-9]+ of 1000000000; parameters saved to " + saved() + "\n"));
      EXPECT_TRUE(isWhole(saved()));
      EXPECT_THAT(namesIn(dir_.path()), ElementsAre("a.safetensors"));
    }
  }
}

TEST_F(Interrupted, AKillLeavesTheFileBefore) {
  ASSERT_EQ(start({"--steps", "3"}).wait(), 0);
  const std::string before = contentsOf(saved());
  for (int i = 0; i < repetitions; ++i) {
    Process process = startForEver();
    ASSERT_TRUE(process.waitFor("memory per rank")) << process.output();
    pause(30);
    process.signal(SIGKILL);
    EXPECT_EQ(process.wait(), 128 + SIGKILL);
    EXPECT_EQ(contentsOf(saved()), before);
  }
}

// From its first instruction to its last, so in compilation, training and saving.
TEST_F(Interrupted, AtAnyMomentTheFileIsWhole) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(start({"--steps", "20"}).wait(), 0);
  const auto length = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  const std::string other = contentsOf(saved());
  for (int i = 0; i < repetitions; ++i) {
    for (const int signal : {SIGKILL, SIGTERM}) {
      Process process = start({"--steps", "20"});
      pause(static_cast<int>(length.count()) + 1);
      process.signal(signal);
      const int status = process.wait();
      EXPECT_TRUE(status == 0 || status == 128 + signal) << status << process.output();
      EXPECT_TRUE(isWhole(saved()));
    }
  }
  // The next run cleans up what killed ones have left.
  ASSERT_EQ(start({"--steps", "20"}).wait(), 0);
  EXPECT_EQ(contentsOf(saved()), other);
  EXPECT_THAT(namesIn(dir_.path()), ElementsAre("a.safetensors"));
}

// A process that does nothing but save, killed in the midst of it.
TEST_F(Interrupted, KilledWhileSaving) {
  const auto tensors = [](char fill) {
    return std::vector<SafetensorsTensor>{{"w", DType::kF32, {250000}, std::vector<char>(1000000, fill)}};
  };
  for (int i = 0; i < 5 * repetitions; ++i) {
    ASSERT_TRUE(writeSafetensors(saved(), tensors('a')).ok());
    std::fflush(nullptr);
    const pid_t saver = fork();
    if (saver == 0) {
      for (char fill = 'a';; fill = fill == 'z' ? 'a' : static_cast<char>(fill + 1)) {
        writeSafetensors(saved(), tensors(fill)).IgnoreError();
      }
    }
    pause(20);
    kill(saver, i % 2 == 0 ? SIGKILL : SIGTERM);
    waitpid(saver, nullptr, 0);
    ASSERT_TRUE(isWhole(saved()));
    const std::vector<char> w = *SafetensorsFile::open(saved())->read("w");
    EXPECT_EQ(w, std::vector<char>(w.size(), w[0])) << "parts of two saves";
    EXPECT_LE(namesIn(dir_.path()).size(), 2U) << "one left by the last saver at most";
  }
}

TEST_F(Interrupted, AFullDiskIsAFailure) {
  ASSERT_EQ(start({"--steps", "3"}).wait(), 0);
  const std::string before = contentsOf(saved());
  Process full = start({"--steps", "4"}, before.size() - 1);
  EXPECT_EQ(full.wait(), 1);
  EXPECT_EQ(contentsOf(saved()), before);
  // Of a message nothing is left where the log is full, too.
  Process dumps = start({"--steps", "4", "--dump-dir", dir_ / "dump"}, 3000);
  EXPECT_EQ(dumps.wait(), 1);
  EXPECT_THAT(dumps.output(), AllOf(HasSubstr("cannot write '" + (dir_ / "dump")), HasSubstr("File too large"),
                                    Not(HasSubstr("LLVM ERROR"))));
  EXPECT_EQ(contentsOf(saved()), before);
}

TEST(Paths, AreRefusedBeforeAnythingIsCompiled) {
  const TemporaryDirectory dir;
  std::ofstream(dir / "file") << "plain";
  for (const std::string flag : {"--save", "--trace", "--plan-only", "--dump-dir", "--losses"}) {
    const std::string path = dir / "file/x";
    Process process(GPT, {flag, path}, {.output = dir / "log"});
    EXPECT_EQ(process.wait(), 1) << flag;
    EXPECT_THAT(process.output(), AllOf(HasSubstr(path), HasSubstr("Not a directory"), Not(HasSubstr("mesh")))) << flag;
  }
  for (const std::string flag : {"-o", "--save-decisions", "--dump-dir"}) {
    std::vector<std::string> words = {"compile", dir / "no_model.mlir", flag, dir / "file/x"};
    if (flag != "-o") {
      words.insert(words.end(), {"-o", dir / "a.plan"});
    }
    Process process(WEFT, words, {.output = dir / "log"});
    EXPECT_EQ(process.wait(), 1) << flag;
    EXPECT_THAT(process.output(), AllOf(HasSubstr(dir / "file/x"), HasSubstr("Not a directory"))) << flag;
  }
  EXPECT_THAT(namesIn(dir.path()), ElementsAre("file", "log"));
}

std::vector<std::string> tinyGpt(std::vector<std::string> more) {
  more.insert(more.end(), {"--layers", "1", "--width", "8", "--heads", "2", "--context", "8", "--batch", "2",
                           "--sample", "0", "--steps", "6"});
  return more;
}

TEST(Divergence, EndsTheRunAndKeepsTheFileBefore) {
  const TemporaryDirectory dir;
  std::ofstream(dir / "text") << std::string(2000, 'a') + std::string(50, 'b');
  std::ofstream(dir / "a") << "before";
  const std::vector<std::string> diverging =
      tinyGpt({"--lr", "1e38", "--text", dir / "text", "--save", dir / "a", "--losses", dir / "losses"});
  Process process(GPT, diverging, {.output = dir / "log"});
  EXPECT_EQ(process.wait(), 1);
  EXPECT_THAT(process.output(), AllOf(HasSubstr("the loss of step "), HasSubstr("lower the learning rate")));
  EXPECT_EQ(process.output().find("-nan"), std::string::npos) << process.output();
  EXPECT_EQ(contentsOf(dir / "a"), "before");
  EXPECT_THAT(contentsOf(dir / "losses"), HasSubstr("nan"));
  std::vector<std::string> checked = diverging;
  checked.push_back("--check-finite");
  Process named(GPT, checked, {.output = dir / "log"});
  EXPECT_EQ(named.wait(), 1);
  EXPECT_THAT(named.output(), AllOf(HasSubstr("rank 0, operator "), HasSubstr("kernel ")));
}

TEST(StandardOutput, MustTakeWhatIsPrinted) {
  const TemporaryDirectory dir;
  Process closed("/bin/sh", {"-c", std::string(SHARDED_NET) + " --steps 2 >/dev/full"}, {.output = dir / "log"});
  EXPECT_EQ(closed.wait(), 1);
  EXPECT_THAT(closed.output(), HasSubstr("cannot write 'standard output'"));
  Process tool("/bin/sh", {"-c", std::string(WEFT) + " schedule --kind 1f1b --stages 2 --micro 2 >&-"},
               {.output = dir / "log"});
  EXPECT_EQ(tool.wait(), 1);
  EXPECT_THAT(tool.output(), HasSubstr("cannot write 'standard output': Bad file descriptor"));
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::repetitions = weft::testing::wantsAll(argc, argv) ? 50 : weft::repetitions;
  return RUN_ALL_TESTS();
}
