// Files are written whole or not at all, whatever the target is and whatever goes wrong.
#include "runtime/base/file_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <thread>

#include "tests/support/files.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::contentsOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::inChild;
using testing::namesIn;
using testing::TemporaryDirectory;

mode_t modeOf(const std::string& path) {
  struct stat entry = {};
  EXPECT_EQ(stat(path.c_str(), &entry), 0) << path;
  return entry.st_mode & 07777;
}

std::string messageOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(FileWriter, WritesInPartsAndReplaces) {
  const TemporaryDirectory dir;
  const std::string large(200000, 'x');
  FileWriter file(dir / "a");
  file.write("begin ");
  file.write(large);
  file.write(" end");
  EXPECT_FALSE(fs::exists(dir / "a"));
  ASSERT_TRUE(file.finish().ok());
  EXPECT_EQ(contentsOf(dir / "a"), "begin " + large + " end");
  ASSERT_TRUE(writeFile(dir / "a", "second").ok());
  EXPECT_EQ(contentsOf(dir / "a"), "second");
  {
    FileWriter(dir / "a").write("never finished");
  }
  EXPECT_EQ(contentsOf(dir / "a"), "second");
  EXPECT_THAT(namesIn(dir.path()), ElementsAre("a"));
}

TEST(FileWriter, PermissionsAreThoseOfPlainFiles) {
  const TemporaryDirectory dir;
  const mode_t before = umask(027);
  ASSERT_TRUE(writeFile(dir / "new", "1").ok());
  umask(before);
  EXPECT_EQ(modeOf(dir / "new"), 0640U);
  ASSERT_EQ(chmod((dir / "new").c_str(), 0604), 0);
  ASSERT_TRUE(writeFile(dir / "new", "2").ok());
  EXPECT_EQ(modeOf(dir / "new"), 0604U);
}

TEST(FileWriter, SymbolicLinksAreWrittenThrough) {
  const TemporaryDirectory dir;
  fs::create_directory(dir / "data");
  fs::create_symlink("data/file", dir / "relative");
  fs::create_symlink(dir / "relative", dir / "absolute");
  ASSERT_TRUE(writeFile(dir / "relative", "dangling before").ok());
  EXPECT_EQ(contentsOf(dir / "data/file"), "dangling before");
  ASSERT_TRUE(writeFile(dir / "absolute", "two links").ok());
  EXPECT_EQ(contentsOf(dir / "data/file"), "two links");
  EXPECT_TRUE(fs::is_symlink(dir / "relative") && fs::is_symlink(dir / "absolute"));
  EXPECT_THAT(namesIn(dir / "data"), ElementsAre("file"));
  fs::create_symlink("loop", dir / "loop");
  EXPECT_THAT(messageOf(writeFile(dir / "loop", "x")), HasSubstr("symbolic links"));
}

TEST(FileWriter, DevicesAndPipesAreWrittenThrough) {
  const TemporaryDirectory dir;
  EXPECT_TRUE(writeFile("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(messageOf(writeFile("/dev/full", "x")), HasSubstr("No space left on device"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = contentsOf(dir / "pipe"); });
  EXPECT_TRUE(writeFile(dir / "pipe", "through").ok());
  reader.join();
  EXPECT_EQ(received, "through");
  EXPECT_TRUE(fs::is_fifo(dir / "pipe"));
}

// As `> out` with /dev/stdout: the text continues what was printed before.
TEST(FileWriter, DescriptorsAreWrittenThrough) {
  const TemporaryDirectory dir;
  const int file = open((dir / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(write(file, "first ", 6), 6);
  ASSERT_TRUE(writeFile("/dev/fd/" + std::to_string(file), "second ").ok());
  ASSERT_TRUE(writeFile("/proc/self/fd/" + std::to_string(file), "third").ok());
  close(file);
  EXPECT_EQ(contentsOf(dir / "out"), "first second third");
  EXPECT_THAT(messageOf(writeFile("/dev/fd/" + std::to_string(file), "")), HasSubstr("Bad file descriptor"));
}

TEST(FileWriter, RefusesBeforeAnythingIsWritten) {
  const TemporaryDirectory dir;
  std::ofstream(dir / "file") << "plain";
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  (dir / "socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {dir.path(), "it is a directory; add a file name"},
      {dir.path() + "/", "it is a directory"},
      {dir / "no/file", "No such file or directory: '" + dir.path() + "/no'; make it first"},
      {dir / "new/", "it names no file"},
      {dir / "file/under", "Not a directory"},
      {dir / "socket", "it is a socket"},
      {"", "it names no file"},
  };
  for (const auto& [path, reason] : cases) {
    const absl::Status refused = canWrite(path);
    EXPECT_THAT(messageOf(refused), HasSubstr(reason));
    EXPECT_THAT(messageOf(refused), HasSubstr("'" + path + "'"));
    EXPECT_EQ(writeFile(path, "x"), refused);
  }
  close(listener);
  for (const std::string& path : {dir / "new", dir / "file", std::string("/dev/null"), std::string("/dev/stdout")}) {
    EXPECT_TRUE(canWrite(path).ok()) << canWrite(path);
  }
  EXPECT_TRUE(canWriteInto(dir / "deep/er").ok());
  EXPECT_THAT(messageOf(canWriteInto(dir / "file/deep")), HasSubstr("Not a directory"));
  EXPECT_THAT(messageOf(canWriteInto(dir / "file")), HasSubstr("is no directory"));
  EXPECT_THAT(namesIn(dir.path()), ElementsAre("file", "socket"));
}

// Root may write everywhere, so another user asks.
TEST(FileWriter, RefusesWhatIsWriteProtected) {
  const TemporaryDirectory dir;
  fs::create_directory(dir / "closed");
  std::ofstream(dir / "read_only") << "keep";
  chmod(dir.path().c_str(), 0777);
  chmod((dir / "closed").c_str(), 0555);
  chmod((dir / "read_only").c_str(), 0444);
  const int status = inChild([&] {
    if (geteuid() == 0 && setuid(65534) != 0) {
      return 2;
    }
    const bool refused = !canWrite(dir / "closed/new").ok() && !canWrite(dir / "read_only").ok() &&
                         !writeFile(dir / "read_only", "x").ok() && !canWriteInto(dir / "closed/new").ok();
    return refused && canWrite(dir / "new").ok() ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contentsOf(dir / "read_only"), "keep");
  chmod((dir / "closed").c_str(), 0755);
}

TEST(FileWriter, FullAtEveryByte) {
  const TemporaryDirectory dir;
  const testing::SavedFile file = {dir / "a", "what was there before", "the new text, which is longer than the old",
                                   [&] { return writeFile(dir / "a", "the new text, which is longer than the old"); }};
  file.checkAtEveryByte();
}

TEST(FileWriter, AFailedRenameLeavesNothing) {
  const TemporaryDirectory dir;
  FileWriter file(dir / "a");
  file.write("x");
  fs::create_directories(dir / "a/b");
  EXPECT_FALSE(file.finish().ok());
  EXPECT_THAT(namesIn(dir.path()), ElementsAre("a"));
}

// A writer that is killed leaves its temporary file; the next one of the same target removes it, but no other's.
TEST(FileWriter, RemovesWhatKilledWritersLeft) {
  const TemporaryDirectory dir;
  std::ofstream(dir / ".b.weft-user") << "of another target";
  const int killed = inChild([&] {
    FileWriter file(dir / "a");
    file.write(std::string(100000, 'x'));
    return raise(SIGKILL);
  });
  EXPECT_EQ(killed, 128 + SIGKILL);
  ASSERT_EQ(namesIn(dir.path()).size(), 2U);
  FileWriter living(dir / "a");
  living.write("slow");
  EXPECT_EQ(namesIn(dir.path()).size(), 2U);
  ASSERT_TRUE(writeFile(dir / "a", "quick").ok());
  ASSERT_TRUE(living.finish().ok());
  EXPECT_EQ(contentsOf(dir / "a"), "slow");
  EXPECT_THAT(namesIn(dir.path()), ElementsAre(".b.weft-user", "a"));
}

// Every name on the disk is a whole file of one writer, at all times.
TEST(FileWriter, FourWritersOfOneFile) {
  constexpr int kWriters = 4;
  constexpr size_t kBytes = 300000;
  const TemporaryDirectory dir;
  ASSERT_TRUE(writeFile(dir / "a", std::string(kBytes, '0')).ok());
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.push_back(fork());
    if (writers.back() == 0) {
      bool written = true;
      for (int i = 0; i < 50; ++i) {
        written = written && writeFile(dir / "a", std::string(kBytes, static_cast<char>('1' + writer))).ok();
      }
      _exit(written ? 0 : 1);
    }
  }
  std::set<char> seen;
  int running = kWriters;
  while (running > 0) {
    const std::string text = contentsOf(dir / "a");
    ASSERT_EQ(text.size(), kBytes);
    ASSERT_EQ(text.find_first_not_of(text[0]), std::string::npos) << "parts of two writers";
    seen.insert(text[0]);
    int status = 0;
    while (running > 0 && waitpid(-1, &status, WNOHANG) > 0) {
      EXPECT_EQ(status, 0);
      --running;
    }
  }
  EXPECT_GT(seen.size(), 1U);
  EXPECT_THAT(namesIn(dir.path()), ElementsAre("a"));
}

// With standard output closed the next file would be descriptor 1, and printed lines land in it.
TEST(FileWriter, PrintedLinesStayOutOfFiles) {
  const TemporaryDirectory dir;
  const int status = inChild([&] {
    close(STDOUT_FILENO);
    FileWriter file(dir / "a");
    file.write("mine");
    std::printf("printed\n");
    const bool lost = !flushStandardOutput().ok();
    return file.finish().ok() && lost ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contentsOf(dir / "a"), "mine");
}

}  // namespace
}  // namespace weft
