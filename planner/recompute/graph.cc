#include "planner/recompute/graph.h"

#include <algorithm>
#include <map>

namespace weft::recompute {

std::vector<std::vector<int>> Graph::results() const {
  std::vector<std::vector<int>> of(operators.size());
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].op >= 0) {
      of[values[v].op].push_back(static_cast<int>(v));
    }
  }
  return of;
}

Outcome outcomeOf(const Graph& graph, const std::vector<bool>& keep) {
  Outcome out;
  out.repeated.assign(graph.operators.size(), false);
  out.kept.assign(graph.values.size(), false);
  std::vector<int> needed;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].read) {
      needed.push_back(static_cast<int>(v));
    }
  }
  while (!needed.empty()) {
    const int value = needed.back();
    needed.pop_back();
    const int op = graph.values[value].op;
    const bool keeps = op < 0 || !graph.operators[op].mayRepeat || (graph.operators[op].mayKeep && keep[op]);
    if (keeps) {
      out.kept[value] = true;
    } else if (!out.repeated[op]) {
      out.repeated[op] = true;
      needed.insert(needed.end(), graph.operators[op].inputs.begin(), graph.operators[op].inputs.end());
    }
  }
  std::map<int, int64_t> storages;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (out.kept[v]) {
      int64_t& bytes = storages[graph.storageOf(static_cast<int>(v))];
      bytes = std::max(bytes, graph.values[v].bytes);
    }
  }
  for (const auto& [storage, bytes] : storages) {
    out.bytes += bytes;
  }
  for (size_t op = 0; op < graph.operators.size(); ++op) {
    out.time += out.repeated[op] ? graph.operators[op].time : 0;
  }
  return out;
}

}  // namespace weft::recompute
