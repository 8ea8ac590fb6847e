#include "runtime/base/file_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr size_t kBufferBytes = 1 << 16;
constexpr int kMaxLinks = 40;  // as the kernel follows
constexpr int kMaxNames = 100;
// Bytes of a target's name that its temporary file's name takes over, so that it fits in NAME_MAX with the rest.
constexpr size_t kMaxStem = 200;

absl::Status cannotWrite(const std::string& path, const std::string& reason) {
  return absl::UnavailableError(absl::StrCat("cannot write '", path, "': ", reason));
}

std::string reasonOf(int error) {
  const char* const remedy = error == ENOSPC || error == EDQUOT ? "; free some space or name another place" : "";
  return absl::StrCat(std::strerror(error), remedy);
}

std::string directoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string nameOf(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// The number in "/proc/self/fd/1" or "/dev/fd/1"; -1 for other paths.
int ownDescriptor(const std::string& path) {
  const std::string name = nameOf(path);
  if (name.empty() || name.size() > 9 || name.find_first_not_of("0123456789") != std::string::npos) {
    return -1;
  }
  char resolved[PATH_MAX];
  if (realpath(directoryOf(path).c_str(), resolved) == nullptr) {
    return -1;
  }
  return resolved == absl::StrCat("/proc/", getpid(), "/fd") ? std::atoi(name.c_str()) : -1;
}

// What a path stands for.
struct Target {
  std::string path;     // after symbolic links
  bool isFile = false;  // a plain file, or nothing yet; else it is written directly
  int descriptor = -1;  // of this process, if it names one
};

absl::StatusOr<Target> resolve(const std::string& path) {
  std::string at = path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    if (const int descriptor = ownDescriptor(at); descriptor >= 0) {
      return Target{at, false, descriptor};
    }
    struct stat entry = {};
    if (lstat(at.c_str(), &entry) != 0) {
      if (errno != ENOENT || nameOf(at).empty()) {
        return cannotWrite(path, nameOf(at).empty() ? "it names no file; add a file name" : reasonOf(errno));
      }
      return Target{at, true};
    }
    if (S_ISDIR(entry.st_mode) || S_ISSOCK(entry.st_mode)) {
      return cannotWrite(path, S_ISDIR(entry.st_mode) ? "it is a directory; add a file name" : "it is a socket");
    }
    if (!S_ISLNK(entry.st_mode)) {
      return Target{at, S_ISREG(entry.st_mode)};
    }
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) {
      return cannotWrite(path, error.message());
    }
    at = (std::filesystem::path(directoryOf(at)) / next).string();  // an absolute link stands alone
  }
  return cannotWrite(path, reasonOf(ELOOP));
}

// Is there a directory that files can be made in?
absl::Status checkDirectory(const std::string& path, const std::string& directory) {
  struct stat entry = {};
  if (stat(directory.c_str(), &entry) != 0) {
    return cannotWrite(path, errno == ENOENT ? absl::StrCat(std::strerror(errno), ": '", directory, "'; make it first")
                                             : absl::StrCat("'", directory, "': ", reasonOf(errno)));
  }
  if (!S_ISDIR(entry.st_mode)) {
    return cannotWrite(path, absl::StrCat("'", directory, "' is no directory"));
  }
  return access(directory.c_str(), W_OK | X_OK) == 0
             ? absl::OkStatus()
             : cannotWrite(path, absl::StrCat("directory '", directory, "': ", reasonOf(errno)));
}

// Checks a target before anything is written.
absl::Status checkTarget(const std::string& path, const Target& target) {
  if (target.descriptor >= 0) {
    const int mode = fcntl(target.descriptor, F_GETFL);
    return mode >= 0 && (mode & O_ACCMODE) != O_RDONLY ? absl::OkStatus() : cannotWrite(path, reasonOf(EBADF));
  }
  if (access(target.path.c_str(), F_OK) == 0 && access(target.path.c_str(), W_OK) != 0) {
    return cannotWrite(path, reasonOf(errno));
  }
  return target.isFile ? checkDirectory(path, directoryOf(target.path)) : absl::OkStatus();
}

std::string stemOf(const std::string& target) {
  return absl::StrCat(".", nameOf(target).substr(0, kMaxStem), ".weft-");
}

std::string randomSuffix() {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string suffix;
  for (int i = 0; i < 6; ++i) {
    suffix += kLetters[random() % (sizeof(kLetters) - 1)];
  }
  return suffix;
}

// Removes temporary files whose writers are gone: nobody holds their lock.
void removeLeftovers(const std::string& target) {
  const std::string stem = stemOf(target);
  const std::string directory = directoryOf(target);
  DIR* const list = opendir(directory.c_str());
  while (const dirent* const entry = list == nullptr ? nullptr : readdir(list)) {
    if (std::strncmp(entry->d_name, stem.c_str(), stem.size()) != 0) {
      continue;
    }
    const std::string path = directory + "/" + entry->d_name;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0) {
      unlink(path.c_str());
    }
    if (file >= 0) {
      ::close(file);
    }
  }
  if (list != nullptr) {
    closedir(list);
  }
}

// A program whose standard output is closed must not print into the file it writes.
int aboveStandard(int file) {
  if (file < 0 || file > STDERR_FILENO) {
    return file;
  }
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(file);
  return moved;
}

// A renamed file is safe once its directory is on the disk. Some file systems cannot sync directories; then the rename
// is all there is.
int syncDirectory(const std::string& directory) {
  const int file = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  const int error = fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
  ::close(file);
  return error;
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : path_(path) {
  const absl::StatusOr<Target> target = resolve(path);
  status_ = target.ok() ? checkTarget(path, *target) : target.status();
  if (!status_.ok()) {
    return;
  }
  if (target->isFile) {
    target_ = target->path;
    removeLeftovers(target_);
    openTemporary();
  } else {
    file_ = target->descriptor >= 0 ? fcntl(target->descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                    : aboveStandard(open(target->path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (file_ < 0) {
      fail();
    }
  }
}

FileWriter::~FileWriter() {
  close();
}

// Between its creation and its lock a temporary file looks like a leftover, and another writer may remove it: then it
// has no name any more, or that writer holds the lock, and the next name is tried.
bool FileWriter::createTemporary() {
  temporary_ = absl::StrCat(directoryOf(target_), "/", stemOf(target_), randomSuffix());
  file_ = aboveStandard(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file_ < 0) {
    temporary_.clear();
    return false;
  }
  struct stat entry = {};
  const bool locked = flock(file_, LOCK_EX | LOCK_NB) == 0;
  const bool unlockable = !locked && errno != EWOULDBLOCK;  // a file system without locks has no cleaners either
  if ((locked || unlockable) && fstat(file_, &entry) == 0 && entry.st_nlink > 0) {
    return true;
  }
  close();
  errno = EEXIST;
  return false;
}

void FileWriter::openTemporary() {
  for (int i = 0; i < kMaxNames && file_ < 0; ++i) {
    if (!createTemporary() && errno != EEXIST) {
      break;
    }
  }
  if (file_ < 0) {
    fail();
  } else {
    takePermissions();
  }
}

// Those of the file that is replaced. Its owner, too, where this process may give files away.
void FileWriter::takePermissions() {
  struct stat before = {};
  struct stat mine = {};
  if (stat(target_.c_str(), &before) != 0 || fstat(file_, &mine) != 0) {
    return;
  }
  const bool foreign = before.st_uid != mine.st_uid || before.st_gid != mine.st_gid;
  if (foreign && fchown(file_, before.st_uid, before.st_gid) != 0) {
    // It stays with the writer, as if the file had been removed and written anew.
  }
  if (fchmod(file_, before.st_mode & 07777) != 0) {
    fail();
  }
}

void FileWriter::write(std::string_view data) {
  if (!status_.ok()) {
    return;
  }
  buffer_.append(data);
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void FileWriter::flush() {
  size_t done = 0;
  while (status_.ok() && done < buffer_.size()) {
    const ssize_t count = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      errno = count == 0 ? EIO : errno;
      fail();
    }
  }
  buffer_.clear();
}

absl::Status FileWriter::finish() {
  flush();
  if (status_.ok() && !target_.empty() && fsync(file_) != 0) {
    fail();
  }
  if (file_ >= 0 && target_.empty()) {
    const int file = file_;
    file_ = -1;
    if (::close(file) != 0 && status_.ok()) {
      fail();
    }
  }
  if (status_.ok() && !temporary_.empty()) {
    rename();
  }
  close();
  return status_;
}

// The descriptor stays open until the file has its name: closing it gives up the lock.
void FileWriter::rename() {
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail();
    return;
  }
  temporary_.clear();
  if (const int error = syncDirectory(directoryOf(target_)); error != 0) {
    errno = error;
    fail();
  }
}

void FileWriter::fail() {
  status_ = cannotWrite(path_, reasonOf(errno));
}

void FileWriter::close() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    temporary_.clear();
  }
  if (file_ >= 0) {
    ::close(file_);
    file_ = -1;
  }
}

absl::Status writeFile(const std::string& path, std::string_view contents) {
  FileWriter file(path);
  file.write(contents);
  return file.finish();
}

absl::Status canWrite(const std::string& path) {
  const absl::StatusOr<Target> target = resolve(path);
  return target.ok() ? checkTarget(path, *target) : target.status();
}

absl::Status canWriteInto(const std::string& directory) {
  // The nearest ancestor that is there has to take the rest.
  std::string at = directory.empty() ? "." : directory;
  struct stat entry = {};
  while (stat(at.c_str(), &entry) != 0 && errno == ENOENT && directoryOf(at) != at && at != ".") {
    at = directoryOf(at);
  }
  return checkDirectory(directory, at);
}

absl::Status flushStandardOutput() {
  errno = 0;
  const bool arrived = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return arrived ? absl::OkStatus()
                 : cannotWrite("standard output", errno != 0 ? reasonOf(errno) : "an earlier line did not get through");
}

}  // namespace weft
