// Files for readers that take a path, and silence for commands that print.
#pragma once

#include <streambuf>
#include <string>
#include <vector>

namespace weft::fuzz {

// A file of these bytes in memory, for as long as this object lives.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

// Calls a command of a tool with these arguments and throws away what it prints. Returns its exit status.
int runQuietly(int (*command)(int, char**), std::vector<std::string> words);

}  // namespace weft::fuzz
