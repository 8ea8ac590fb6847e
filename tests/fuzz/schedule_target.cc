// Tables of pipeline schedules.
#include "planner/schedule/table.h"
#include "planner/schedule/timeline.h"
#include "planner/schedule/transfers.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tools/commands/schedule.h"

namespace weft::fuzz {
namespace {

Outcome run(const std::string& bytes) {
  schedule::parseAction(bytes).IgnoreError();
  const absl::StatusOr<schedule::Table> table = schedule::parseCsv(bytes);
  if (table.ok()) {
    const absl::StatusOr<schedule::Table> again = schedule::parseCsv(schedule::printCsv(*table));
    requireOk(again.status(), "a printed table");
    require(*again == *table, "a printed table is another one");
  }
  const MemoryFile file(bytes);
  int status = 1;
  for (const char* form : {"--csv", "--timeline", "--transfers", "--json"}) {
    status = runQuietly(tools::scheduleCommand, {"--file", file.path(), form});
  }
  require(table.ok() || status != 0, "a table that is refused is shown");
  return status == 0 ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace

Target scheduleTarget() {
  return {"schedule", run, nullptr, wordsOf("0F0|1I0|0W0|1B1|,|\n|\r\n|(0F0;0B0)OVERLAP_F_B| |999999")};
}

}  // namespace weft::fuzz
