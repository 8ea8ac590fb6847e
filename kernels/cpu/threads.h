// Threads of the libraries that kernels call (oneDNN, through OpenMP).
//
// The count belongs to the calling thread: each thread of the ranks sets it before it makes kernels. OpenMP is reached
// through the dynamic linker; a program without it has one thread.
#pragma once

namespace weft::cpu {

int libraryThreads();
void setLibraryThreads(int threads);

// A limit while it lives.
class ThreadLimit {
 public:
  // `most` 0: no limit.
  explicit ThreadLimit(int most) : before_(most > 0 ? libraryThreads() : 0), changes_(most > 0 && most < before_) {
    if (changes_) {
      setLibraryThreads(most);
    }
  }
  ~ThreadLimit() {
    if (changes_) {
      setLibraryThreads(before_);
    }
  }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
  bool changes_;
};

}  // namespace weft::cpu
