#include "tests/planner/assign/random_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"

namespace weft::testing {
namespace {

using assign::Rows;
using assign::StrategyGraph;

constexpr double kImpossible = 1e18;
constexpr int kLayouts = 12;
constexpr int kParts[kLayouts] = {1, 2, 2, 4, 4, 4, 8, 8, 8, 16, 16, 32};

template <typename Value>
void append(Rows<Value>& rows, const std::vector<Value>& row) {
  rows.values.insert(rows.values.end(), row.begin(), row.end());
  rows.begins.push_back(rows.values.size());
}

class Generator {
 public:
  explicit Generator(const RandomGraphOptions& options) : options_(options), random_(options.seed) {}

  RandomGraph make() {
    for (int v = 0; v < options_.nodes; ++v) {
      addNode(v);
    }
    for (int v = 0; v < options_.nodes; ++v) {
      // A parameter lives as long as the program, a result until its last reader is done.
      const bool stays = random(20) == 0;
      append(made_.graph.intervals, {stays ? 0 : int64_t{v}, stays ? options_.nodes : lastReader_[v] + 1});
    }
    if (options_.limited) {
      made_.graph.usageLimit = peak();
    }
    return std::move(made_);
  }

 private:
  int random(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  double real() { return static_cast<double>(random_() % 1000000) / 1e6; }

  void addNode(int v) {
    lastReader_.push_back(v);
    const bool follows = v > 0 && real() < options_.followers;
    const int source = v > 0 ? earlier(v) : -1;
    layouts_.push_back(follows ? layouts_[source] : newLayouts());
    const std::vector<int>& layouts = layouts_.back();
    sizes_.push_back(follows ? sizes_[source] : std::ldexp(1 + real(), 12 + random(6)));
    const double work = follows ? 0 : sizes_.back() * (0.5 + real());
    std::vector<double> costs;
    std::vector<int64_t> usages;
    for (const int layout : layouts) {
      costs.push_back(std::floor(work * (0.2 + 0.8 * real()) * (1 + std::log2(kParts[layout]) / 2)));
      usages.push_back(static_cast<int64_t>(sizes_.back() / kParts[layout]));
    }
    append(made_.graph.costs, costs);
    append(made_.graph.usages, usages);
    made_.planted.push_back(follows ? made_.planted[source] : plant(usages));
    if (source >= 0) {
      addEdge(source, v, follows);
    }
    for (int more = follows ? 0 : random(3); more > 0 && v > 0; --more) {
      addEdge(earlier(v), v, false);
    }
  }

  int earlier(int v) {
    const int distance = random(8) == 0 ? random(v) : std::min({random(v), random(12), random(30)});
    return v - 1 - distance;
  }

  std::vector<int> newLayouts() {
    std::vector<int> layouts;
    const int count = random(6) == 0 ? 1 : 2 + random(kLayouts - 2);
    for (int i = 0; i < count; ++i) {
      layouts.push_back(random(kLayouts));
    }
    return layouts;
  }

  int plant(const std::vector<int64_t>& usages) {
    return real() < options_.tightness
               ? static_cast<int>(std::min_element(usages.begin(), usages.end()) - usages.begin())
               : random(static_cast<int>(usages.size()));
  }

  void addEdge(int from, int to, bool follows) {
    lastReader_[from] = to;
    const double size = sizes_[from];
    std::vector<double> costs;
    for (size_t a = 0; a < layouts_[from].size(); ++a) {
      for (size_t b = 0; b < layouts_[to].size(); ++b) {
        const int made = layouts_[from][a];
        const int read = layouts_[to][b];
        const bool planted = made_.planted[from] == static_cast<int>(a) && made_.planted[to] == static_cast<int>(b);
        if (follows) {
          costs.push_back(a == b ? 0 : kImpossible);
        } else if (!planted && real() < options_.forbidden) {
          costs.push_back(kImpossible);
        } else {
          costs.push_back(made == read ? 0 : std::floor(size * (0.5 + real())));
        }
      }
    }
    append(made_.graph.edges, {int64_t{from}, int64_t{to}});
    append(made_.graph.edgeCosts, costs);
  }

  int64_t peak() const {
    std::map<int64_t, int64_t> change;
    for (int v = 0; v < options_.nodes; ++v) {
      const int64_t usage = made_.graph.usages.of(v)[made_.planted[v]];
      change[made_.graph.intervals.of(v)[0]] += usage;
      change[made_.graph.intervals.of(v)[1]] -= usage;
    }
    int64_t used = 0;
    int64_t peak = 0;
    for (const auto& [time, usage] : change) {
      used += usage;
      peak = std::max(peak, used);
    }
    return peak;
  }

  const RandomGraphOptions& options_;
  std::mt19937_64 random_;
  RandomGraph made_;
  std::vector<std::vector<int>> layouts_;  // of each strategy of a node
  std::vector<double> sizes_;
  std::vector<int64_t> lastReader_;
};

template <typename Value>
std::string print(const Rows<Value>& rows) {
  std::string text = "[";
  for (size_t row = 0; row < rows.size(); ++row) {
    absl::StrAppend(&text, row > 0 ? ",[" : "[");
    for (size_t i = 0; i < rows.sizeOf(row); ++i) {
      absl::StrAppend(&text, i > 0 ? "," : "", rows.of(row)[i]);
    }
    absl::StrAppend(&text, "]");
  }
  return text + "]";
}

}  // namespace

RandomGraph randomGraph(const RandomGraphOptions& options) {
  return Generator(options).make();
}

std::string printStrategyGraph(const StrategyGraph& graph) {
  std::string text =
      absl::StrCat("{\"problem\": {\"nodes\": {\"intervals\": ", print(graph.intervals),
                   ",\n\"costs\": ", print(graph.costs), ",\n\"usages\": ", print(graph.usages),
                   "},\n\"edges\": {\"nodes\": ", print(graph.edges), ",\n\"costs\": ", print(graph.edgeCosts), "}");
  if (graph.usageLimit) {
    absl::StrAppend(&text, ",\n\"usage_limit\": ", *graph.usageLimit);
  }
  return text + "}}\n";
}

}  // namespace weft::testing
