// Programs run as a user runs them: with signals, and with limits on what they may write.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace weft::testing {

struct ProcessOptions {
  std::string output;               // file for stdout and stderr
  rlim_t fileSize = RLIM_INFINITY;  // files end there, as on a full disk
};

class Process {
 public:
  Process(const std::string& program, std::vector<std::string> arguments, const ProcessOptions& options)
      : output_(options.output) {
    arguments.insert(arguments.begin(), program);
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    std::ofstream(output_).flush();
    child_ = fork();
    if (child_ == 0) {
      if (std::freopen(output_.c_str(), "a", stdout) == nullptr || dup2(STDOUT_FILENO, STDERR_FILENO) < 0) {
        _exit(126);
      }
      // A shell that runs the tests in the background has them ignore SIGINT.
      std::signal(SIGINT, SIG_DFL);
      std::signal(SIGTERM, SIG_DFL);
      if (options.fileSize != RLIM_INFINITY) {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {options.fileSize, options.fileSize};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      execv(program.c_str(), argv.data());
      _exit(127);
    }
  }
  ~Process() {
    if (child_ > 0) {
      signal(SIGKILL);
      wait();
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { kill(child_, number); }

  // Until the program has printed this. False if it ends before.
  bool waitFor(const std::string& text) {
    while (output().find(text) == std::string::npos) {
      if (child_ > 0 && waitpid(child_, &status_, WNOHANG) == child_) {
        child_ = -1;
        return output().find(text) != std::string::npos;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  // Exit status as a shell shows it: 128 + n after signal n.
  int wait() {
    if (child_ > 0) {
      waitpid(child_, &status_, 0);
      child_ = -1;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }
  // Did it end by itself, not by a signal?
  bool exited() const { return WIFEXITED(status_); }

  std::string output() const {
    std::ostringstream text;
    text << std::ifstream(output_).rdbuf();
    return text.str();
  }

 private:
  std::string output_;
  pid_t child_ = -1;
  int status_ = 0;
};

}  // namespace weft::testing
