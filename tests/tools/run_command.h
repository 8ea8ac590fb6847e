// Runs a command of a tool as the tool would, and captures what it prints.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::tools {

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

inline Outcome run(int (*command)(int, char**), std::vector<std::string> words) {
  words.insert(words.begin(), "command");
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.status = command(static_cast<int>(argv.size()), argv.data());
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

}  // namespace weft::tools
