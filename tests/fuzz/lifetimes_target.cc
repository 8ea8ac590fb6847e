// Tables of buffer lifetimes, which `weft memory` packs.
#include "planner/memory/pack.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tools/analysis/lifetimes_csv.h"
#include "tools/commands/memory.h"

namespace weft::fuzz {
namespace {

Outcome run(const std::string& bytes) {
  const absl::StatusOr<tools::Lifetimes> lifetimes = tools::parseLifetimes(bytes, "fuzz.csv");
  const MemoryFile file(bytes);
  // A table is told from a plan by its first line, so that the command may read what is no table.
  const int status = runQuietly(tools::memoryCommand, {file.path(), "--effort", "10000", "--json"});
  runQuietly(tools::memoryCommand, {file.path(), "--effort", "10000", "--alignment", "64"});
  require(!lifetimes.ok() || lifetimes->ids.size() == lifetimes->items.size(), "lifetimes without names");
  return lifetimes.ok() && status == 0 ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace

Target lifetimesTarget() {
  return {"lifetimes", run, nullptr, wordsOf("id|lower|upper|size|,|\n|\r\n| |\xEF\xBB\xBF|b7,0,3,4096\n")};
}

}  // namespace weft::fuzz
