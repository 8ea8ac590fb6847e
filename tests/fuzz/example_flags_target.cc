// The flags that all examples share, one argument a line.
#include "absl/strings/str_split.h"
#include "examples/common/flags.h"
#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

Outcome run(const std::string& bytes) {
  std::vector<std::string> words = absl::StrSplit(bytes.c_str(), '\n', absl::SkipEmpty());
  // --help prints to the standard output; no argument may name a file of this machine.
  std::erase_if(words, [](const std::string& word) { return word == "--help" || word.find('/') != std::string::npos; });
  words.insert(words.begin(), "example");
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  examples::CommonFlags common;
  examples::Flags flags;
  common.addTo(flags);
  double rate = 0.1;
  flags.real("lr", &rate, "learning rate");
  bool helped = false;
  const absl::Status status = flags.parse(static_cast<int>(argv.size()), argv.data(), &helped);
  if (status.ok()) {
    common.options();
    common.trainerOptions();
  }
  return outcomeOf(status);
}

}  // namespace

Target exampleFlagsTarget() {
  return {"example_flags", run, nullptr,
          wordsOf("\n|--|=|--devices\n|--mesh\n|--steps\n|--zero=3|--lr=nan|--lr=1e999|--regather|--micro=|"
                  "--virtual=|--threads=|--seed=|--memory-limit=|inf|0x10| 1")};
}

}  // namespace weft::fuzz
