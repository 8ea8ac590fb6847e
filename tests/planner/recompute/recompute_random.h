// Random graphs of what a backward pass needs, and their choices by enumeration: nothing here comes from the code under
// test but the types.
#pragma once

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "planner/recompute/graph.h"

namespace weft::recompute::testing {

struct Cost {
  int64_t bytes = 0;
  Picoseconds time = 0;
};

// By the definition: the operators to run again are the smallest set that makes all that the backward pass reads.
inline Cost costByDefinition(const Graph& graph, const std::set<int>& keep) {
  std::set<int> again;
  std::set<int> keptStorages;
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t v = 0; v < graph.values.size(); ++v) {
      bool needed = graph.values[v].read;
      for (const int op : again) {
        const std::vector<int>& inputs = graph.operators[op].inputs;
        needed |= std::find(inputs.begin(), inputs.end(), static_cast<int>(v)) != inputs.end();
      }
      const int op = graph.values[v].op;
      const bool made = op >= 0 && keep.count(op) == 0 && graph.operators[op].mayRepeat;
      if (needed && made) {
        grown |= again.insert(op).second;
      } else if (needed) {
        keptStorages.insert(graph.storageOf(static_cast<int>(v)));
      }
    }
  }
  Cost cost;
  for (const int storage : keptStorages) {
    cost.bytes += graph.values[storage].bytes;
  }
  for (const int op : again) {
    cost.time += graph.operators[op].time;
  }
  return cost;
}

// Of all subsets of all operators.
inline std::vector<Cost> allCosts(const Graph& graph) {
  std::vector<Cost> costs;
  for (uint64_t subset = 0; subset < uint64_t{1} << graph.operators.size(); ++subset) {
    std::set<int> keep;
    for (size_t op = 0; op < graph.operators.size(); ++op) {
      if ((subset >> op & 1) != 0 && graph.operators[op].mayKeep) {
        keep.insert(static_cast<int>(op));
      }
    }
    costs.push_back(costByDefinition(graph, keep));
  }
  return costs;
}

// The least time within `budget`; negative if none fits.
inline Picoseconds leastTime(const std::vector<Cost>& costs, int64_t budget) {
  Picoseconds least = -1;
  for (const Cost& cost : costs) {
    least = cost.bytes <= budget && (least < 0 || cost.time < least) ? cost.time : least;
  }
  return least;
}

// A chain of operators with skips, views, results of several values, and operators that may not be repeated or kept.
// Appends `size` operators to `graph`; they read `entry` (a value, -1: none) and one another. Returns the last value.
inline int appendRandom(std::mt19937& random, int size, int entry, Graph& graph) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<int> readable;
  if (entry >= 0) {
    readable.push_back(entry);
  }
  for (int i = 0; i < size; ++i) {
    Operator op;
    const int reads = readable.empty() ? 0 : i == 0 ? 1 : 1 + below(2);
    for (int r = 0; r < reads; ++r) {
      const int from = r == 0 ? static_cast<int>(readable.size()) - 1 : below(static_cast<int>(readable.size()));
      op.inputs.push_back(readable[from]);
    }
    const bool view = reads == 1 && below(6) == 0;
    op.time = view || (reads == 0 && below(2) == 0) ? 0 : 1 + below(9);
    op.mayRepeat = below(8) > 0;
    graph.operators.push_back(op);
    const int results = view ? 1 : 1 + (below(5) == 0 ? 1 : 0);
    for (int r = 0; r < results; ++r) {
      Value value{static_cast<int>(graph.operators.size()) - 1, 64 * (1 + below(6)), -1, below(2) == 0};
      if (view) {
        value.storage = op.inputs[0];
        value.bytes = graph.values[op.inputs[0]].bytes;
      }
      graph.values.push_back(value);
      readable.push_back(static_cast<int>(graph.values.size()) - 1);
    }
  }
  return static_cast<int>(graph.values.size()) - 1;
}

}  // namespace weft::recompute::testing
