// How every file of Weft is written: whole, or not at all.
//
//   FileWriter file(path);
//   file.write(header);
//   file.write(data);
//   absl::Status status = file.finish();   // now `path` has the new contents, on the disk
//
// What is written goes to a temporary file beside the target, which is synced and then renamed over it. Until then, and
// after any error (a full disk, a limit, a killed process), the file before is untouched. Programs that write the same
// file do not meet: each has a temporary file of its own, and the last to finish wins.
//
// Targets. A new file gets the permissions that the process gives to plain files, an existing one keeps its own. Behind
// a symbolic link the file that it names is replaced, not the link. Devices (/dev/null), pipes and descriptors
// (/dev/stdout, /dev/fd/3) are written through directly. Directories, sockets and write-protected files are refused.
//
// Temporary files are named ".NAME.weft-XXXXXX" and locked (flock) while their writer lives. One that is not locked
// was left by a killed process: the next writer of the same target removes it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace weft {

class FileWriter {
 public:
  // Errors are kept for finish().
  explicit FileWriter(const std::string& path);
  // Without finish(): the target stays as it was.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view data);
  // Puts the file in its place. The first error: path and reason.
  absl::Status finish();

 private:
  void openTemporary();
  bool createTemporary();
  void openDirectly(int descriptor);
  void takePermissions();
  void flush();
  void rename();
  void fail();
  void close();

  std::string path_;       // as given, for errors
  std::string target_;     // the file it names; empty: written directly
  std::string temporary_;  // empty: none
  int file_ = -1;
  std::string buffer_;
  absl::Status status_;
};

absl::Status writeFile(const std::string& path, std::string_view contents);

// Can a file be written there? To be asked before work whose result goes there: is the directory there and writable, is
// the target no directory? Leaves nothing behind; the disk may still be full later. An empty path is refused.
absl::Status canWrite(const std::string& path);
// The same for a directory that is made where it is missing.
absl::Status canWriteInto(const std::string& directory);

// Has all that went to standard output arrived? To be asked once before a program ends, by std::cout or stdio alike.
// Error: a full disk, a closed descriptor.
absl::Status flushStandardOutput();

}  // namespace weft
