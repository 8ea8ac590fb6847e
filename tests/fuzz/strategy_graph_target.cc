// Strategy graphs, which `weft plan --ops` solves: what is chosen fits, and costs no less than the bound.
#include "planner/assign/strategy_graph.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tools/commands/plan_ops.h"

namespace weft::fuzz {
namespace {

constexpr double kEffort = 1e-4;

int planOpsCommand(int argc, char** argv) {
  const absl::StatusOr<tools::Flags> flags = tools::Flags::parse(
      {{"ops", tools::Flag::kRequired, ""}, {"effort", tools::Flag::kOptional, ""}, {"json", tools::Flag::kSwitch, ""}},
      argc, argv);
  return flags.ok() && tools::planOps(*flags).ok() ? 0 : 1;
}

Outcome run(const std::string& bytes) {
  const absl::StatusOr<assign::StrategyGraph> graph = assign::parseStrategyGraph(bytes);
  if (!graph.ok()) {
    return Outcome::kRefused;
  }
  const absl::StatusOr<assign::StrategyChoice> choice = assign::chooseStrategies(*graph, kEffort);
  if (!choice.ok()) {
    return Outcome::kRefused;
  }
  if (choice->feasible) {
    require(choice->bound <= choice->cost, "a choice costs less than the bound");
    require(choice->peakUsage <= graph->usageLimit.value_or(INT64_MAX), "a choice takes more than the limit");
    require(choice->strategies.size() == graph->nodes(), "a choice lacks nodes");
  }
  const MemoryFile file(bytes);
  runQuietly(planOpsCommand, {"--ops", file.path(), "--effort", "0"});
  runQuietly(planOpsCommand, {"--ops", file.path(), "--effort", "0", "--json"});
  return Outcome::kAccepted;
}

}  // namespace

Target strategyGraphTarget() {
  return {"strategy_graph", run, nullptr,
          wordsOf("{|}|[|]|[[|]]|],[|,|:|\"problem\":|\"nodes\":|\"edges\":|\"intervals\":|\"costs\":|\"usages\":|"
                  "\"usage_limit\":|null|true|\"x\"|0|1|-1|7|1e18|1e14|-1e14|0.1|1e300|9223372036854775807|"
                  "18446744073709551615|4000000000000000000")};
}

}  // namespace weft::fuzz
