// Arguments of the tools, one a line: the reader of flags, and the commands that only print.
#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tools/commands/flags.h"
#include "tools/commands/layout.h"
#include "tools/commands/reshard.h"
#include "tools/commands/schedule.h"

namespace weft::fuzz {
namespace {

// A schedule of many actions takes long in proportion, up to the tool's own limit of a gigabyte; here it would pass for
// a hang. Counts the words' numbers, but for those of --times.
bool asksForMuch(const std::vector<std::string>& words) {
  constexpr double kMostActions = 1e5;
  double actions = 1;
  for (const std::string& word : words) {
    const size_t digits = word.find_first_of("0123456789");
    if (digits != std::string::npos && word.find("f=") == std::string::npos) {
      actions *= std::max(1.0, std::strtod(word.c_str() + digits, nullptr));
    }
  }
  return actions > kMostActions;
}

Outcome run(const std::string& bytes) {
  std::vector<std::string> words = absl::StrSplit(bytes.c_str(), '\n');
  // No argument may name a file of this machine.
  std::erase_if(words, [](const std::string& word) { return word.find('/') != std::string::npos; });
  if (words.size() < 2 || bytes.find("--file") != std::string::npos || bytes.find("--plan") != std::string::npos) {
    return Outcome::kRefused;
  }
  const std::string command = words[0];
  words.erase(words.begin());
  int status = 1;
  if (command == "layout") {
    status = runQuietly(tools::layoutCommand, words);
  } else if (command == "reshard") {
    status = runQuietly(tools::reshardCommand, words);
  } else if (command == "schedule" && !asksForMuch(words)) {
    status = runQuietly(tools::scheduleCommand, words);
  }
  return status == 0 ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace

Target flagsTarget() {
  return {"flags", run, nullptr,
          wordsOf("\n|--mesh\n|--shape\n|--layout\n|--from\n|--to\n|--type\n|--machine\n|--kind\n|"
                  "--stages\n|--micro\n|--virtual\n|--group\n|--micro-batches\n|--times\n|f=1,b=2,comm=0|"
                  "f=1/2,i=nan|inf|--json|--csv|--timeline|--transfers|--help|dp=2,tp=4|[{dp},{}]|16,32|=|"
                  "gpipe|1f1b|interleaved|zb_h1|zb_v|v_min|dualpipe_v|seq1f1b|layout\n|reshard\n|schedule\n")};
}

}  // namespace weft::fuzz
