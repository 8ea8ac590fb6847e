// Files of tests: a directory of one's own, contents, and disks that are full.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace weft::testing {

// Empty; removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = ::testing::TempDir() + "/weft_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string contentsOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Names in a directory, hidden ones too.
inline std::vector<std::string> namesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// While it lives, files of this process end after so many bytes, as on a disk that fills up.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int) = SIG_DFL;
};

// One way of writing a file, and what the file holds before and after.
struct SavedFile {
  std::string path;
  std::string before;
  std::string after;
  std::function<absl::Status()> save;

  // What is there after a save that may have failed; nothing else is left in the directory.
  void check(const absl::Status& status, const std::string& when) const {
    EXPECT_EQ(contentsOf(path), status.ok() ? after : before) << when << ": " << status;
    EXPECT_EQ(namesIn(std::filesystem::path(path).parent_path().string()).size(), 1U) << when;
  }

  // At every byte the disk is full once; with enough room it is not.
  void checkAtEveryByte() const {
    std::ofstream(path, std::ios::binary) << before;
    for (size_t bytes = 0; bytes <= after.size(); ++bytes) {
      absl::Status status;
      {
        const FileSizeLimit limit(bytes);
        status = save();
      }
      EXPECT_EQ(status.ok(), bytes == after.size()) << status;
      check(status, "limit " + std::to_string(bytes));
    }
  }
};

// Runs `body` in a process of its own and returns its exit status; `body` reports failures by another status than 0.
inline int inChild(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A file system of `bytes` at `directory`, for this process alone (for a child: it stays until the process ends). False
// where the system does not allow that.
inline bool mountSmallDisk(const std::string& directory, size_t bytes) {
  const bool apart = geteuid() == 0 ? unshare(CLONE_NEWNS) == 0 : unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  const std::string size = "size=" + std::to_string(bytes);
  return apart && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", directory.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

}  // namespace weft::testing
