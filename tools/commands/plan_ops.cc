#include "tools/commands/plan_ops.h"

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/assign/strategy_graph.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;
using assign::StrategyChoice;
using assign::StrategyGraph;

constexpr RealRange kEfforts = {0, 1e6};

// Whole numbers without a point, as the file has them.
Json numberOf(double number) {
  return number == std::floor(number) && std::fabs(number) < 0x1p53 ? Json(static_cast<int64_t>(number)) : Json(number);
}

std::string textOf(double number) {
  return numberOf(number).dump();
}

// On one line: the strategies are many.
void printJson(const StrategyChoice& choice) {
  Json json = {{"feasible", choice.feasible}};
  if (choice.feasible) {
    json["cost"] = numberOf(choice.cost);
    json["bound"] = numberOf(choice.bound);
    json["gap"] = choice.gap;
    json["strategies"] = choice.strategies;
  } else {
    json["proven"] = choice.provenInfeasible;
  }
  json["ticks"] = choice.ticks;
  std::cout << json.dump() << "\n";
}

void printTable(const StrategyGraph& graph, const StrategyChoice& choice) {
  const std::string limit = graph.usageLimit ? absl::StrCat("of ", *graph.usageLimit) : "without a limit";
  std::cout << table({{"nodes", absl::StrCat(graph.nodes())},
                      {"edges", absl::StrCat(graph.edges.size())},
                      {"cost", textOf(choice.cost)},
                      {"bound", textOf(choice.bound)},
                      {"gap", absl::StrFormat("%.4f %%", 100 * choice.gap)},
                      {"usage", absl::StrCat(choice.peakUsage), limit},
                      {"ticks", absl::StrCat(choice.ticks)}})
            << (choice.gap == 0 ? "No choice costs less." : "No choice costs less than the bound.")
            << " The strategies: --json.\n";
}

absl::Status statusOf(const StrategyGraph& graph, const StrategyChoice& choice) {
  if (choice.feasible) {
    return absl::OkStatus();
  }
  const std::string limit = graph.usageLimit ? absl::StrCat(" within usage_limit ", *graph.usageLimit) : "";
  return choice.provenInfeasible
             ? absl::ResourceExhaustedError(
                   absl::StrCat("there is no choice of strategies", limit, " that takes no forbidden cost (",
                                absl::StrFormat("%g", assign::kImpossibleCost), " or more)",
                                graph.usageLimit ? "; raise the limit, or give nodes strategies that take less" : ""))
             : absl::ResourceExhaustedError(absl::StrCat("no choice of strategies was found", limit, " in ",
                                                         choice.ticks,
                                                         " ticks, nor a proof that there is none; give "
                                                         "more --effort, or raise the limit"));
}

}  // namespace

std::vector<Flag> planOpsFlags() {
  return {{"ops", Flag::kOptional, "instead of a module: a strategy graph in the form of the IOPDDL contest"},
          {"effort", Flag::kOptional, "with --ops: how much longer than usual to search (1)"}};
}

absl::Status planOps(const Flags& flags) {
  double effort = 1;
  if (flags.has("effort")) {
    const absl::StatusOr<double> given = parseReal(flags.text("effort"), kEfforts);
    if (!given.ok()) {
      return absl::Status(given.status().code(), absl::StrCat("--effort: ", given.status().message()));
    }
    effort = *given;
  }
  const std::string path = flags.text("ops");
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  const absl::StatusOr<StrategyGraph> graph = assign::parseStrategyGraph(text);
  if (!graph.ok()) {
    return absl::Status(graph.status().code(), absl::StrCat(path, ": ", graph.status().message()));
  }
  WEFT_ASSIGN_OR_RETURN(const StrategyChoice choice, assign::chooseStrategies(*graph, effort));
  if (flags.has("json")) {
    printJson(choice);
  } else if (choice.feasible) {
    printTable(*graph, choice);
  }
  return statusOf(*graph, choice);
}

}  // namespace weft::tools
