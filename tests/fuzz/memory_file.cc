#include "tests/fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

// Takes everything and keeps nothing.
class Nothing : public std::streambuf {
 protected:
  int overflow(int c) override { return traits_type::not_eof(c); }
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

// Sends a stream to nowhere, until it ends.
class Silence {
 public:
  explicit Silence(std::ostream& stream) : stream_(stream), own_(stream.rdbuf(&nothing_)) {}
  ~Silence() { stream_.rdbuf(own_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  Nothing nothing_;
  std::ostream& stream_;
  std::streambuf* own_;
};

}  // namespace

MemoryFile::MemoryFile(const std::string& bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  require(descriptor_ >= 0, "no file in memory can be made");
  for (size_t written = 0; written < bytes.size();) {
    const ssize_t more = write(descriptor_, bytes.data() + written, bytes.size() - written);
    require(more > 0, "a file in memory cannot be written");
    written += static_cast<size_t>(more);
  }
  path_ = absl::StrCat("/proc/self/fd/", descriptor_);
}

MemoryFile::~MemoryFile() {
  close(descriptor_);
}

int runQuietly(int (*command)(int, char**), std::vector<std::string> words) {
  words.insert(words.begin(), "command");
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const Silence out(std::cout);
  const Silence err(std::cerr);
  return command(static_cast<int>(words.size()), argv.data());
}

}  // namespace weft::fuzz
