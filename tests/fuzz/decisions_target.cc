// Decisions records: what a record says it says again when it is printed.
#include "planner/decisions.h"
#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

Outcome run(const std::string& bytes) {
  const absl::StatusOr<Decisions> decisions = parseDecisions(bytes);
  if (!decisions.ok()) {
    return Outcome::kRefused;
  }
  const std::string printed = printDecisions(*decisions);
  const absl::StatusOr<Decisions> again = parseDecisions(printed);
  requireOk(again.status(), "a printed record");
  require(printDecisions(*again) == printed, "a printed record is another one");
  return Outcome::kAccepted;
}

}  // namespace

Target decisionsTarget() {
  return {"decisions", run, nullptr,
          wordsOf("{|}|[|]|:|,|\"|null|true|false|\"mesh\":|dp=2,tp=2|[{dp},{}]|[{all},{}]|partial{dp:sum}|"
                  "[{dp},{}] pad{0:8}|\"stage\":|\"elsewhere\":{\"1\":\"[{},{}]\"}|"
                  "\"stage_meshes\":\"dp=2;dp=4\"|\"submeshes\":[0,1]|\"stripes\":|micro|forward|backward|-1|"
                  "1e3|\"expand\":|\"prologue\":|\"results\":{\"0\":\"[{}]\"}|all:(2)2")};
}

}  // namespace weft::fuzz
