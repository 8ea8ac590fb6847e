// weft-ops-bench [EFFORT]: a table of generated strategy graphs solved: time, gap, fits. Figures for people, not a
// test.
#include <ctime>
#include <iostream>

#include "absl/strings/str_format.h"
#include "tests/planner/assign/random_graph.h"

namespace weft::bench {
namespace {

void solve(const testing::RandomGraphOptions& options, double effort) {
  const testing::RandomGraph made = testing::randomGraph(options);
  const std::clock_t start = std::clock();
  const absl::StatusOr<assign::StrategyChoice> choice = assign::chooseStrategies(made.graph, effort);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const std::string memory = options.limited ? absl::StrFormat("%.2f", options.tightness) : "none";
  std::cout << absl::StrFormat("%6d %7d %9.0f %% %6s %9s %8.2f %% %8.2f s %8.3f G\n", options.nodes,
                               made.graph.edges.size(), 100 * options.followers, memory,
                               !choice.ok()       ? "error"
                               : choice->feasible ? "yes"
                                                  : "NO",
                               choice.ok() ? 100 * choice->gap : 0, seconds,
                               choice.ok() ? static_cast<double>(choice->ticks) / 1e9 : 0);
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  const double effort = argc > 1 ? std::atof(argv[1]) : 1;
  std::cout << " nodes   edges   followers memory  feasible      gap   CPU time      ticks\n";
  for (const int nodes : {1000, 10000, 60000}) {
    for (const double followers : {0.0, 0.7}) {
      for (const double tightness : {-1.0, 0.5, 0.9}) {
        weft::testing::RandomGraphOptions options;
        options.nodes = nodes;
        options.followers = followers;
        options.limited = tightness >= 0;
        options.tightness = options.limited ? tightness : 0;
        weft::bench::solve(options, effort);
      }
    }
  }
}
