#include "planner/recompute/graph.h"

#include <algorithm>

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

OutcomeFinder::OutcomeFinder(const Graph& graph) : graph_(graph), lies_(graph.values.size(), 0) {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    storages_.push_back(graph.storageOf(static_cast<int>(v)));
    if (graph.values[v].read) {
      read_.push_back(static_cast<int>(v));
    }
  }
}

const Outcome& OutcomeFinder::of(const std::vector<bool>& keep) {
  out_.repeated.assign(graph_.operators.size(), false);
  out_.kept.assign(graph_.values.size(), false);
  out_.bytes = 0;
  out_.time = 0;
  needed_ = read_;
  kept_.clear();
  while (!needed_.empty()) {
    const int value = needed_.back();
    needed_.pop_back();
    const int op = graph_.values[value].op;
    const bool keeps = op < 0 || !graph_.operators[op].mayRepeat || (graph_.operators[op].mayKeep && keep[op]);
    if (keeps && !out_.kept[value]) {
      out_.kept[value] = true;
      kept_.push_back(value);
      int64_t& bytes = lies_[storages_[value]];
      out_.bytes += std::max<int64_t>(graph_.values[value].bytes - bytes, 0);
      bytes = std::max(bytes, graph_.values[value].bytes);
    } else if (!keeps && !out_.repeated[op]) {
      out_.repeated[op] = true;
      out_.time += graph_.operators[op].time;
      needed_.insert(needed_.end(), graph_.operators[op].inputs.begin(), graph_.operators[op].inputs.end());
    }
  }
  for (const int value : kept_) {
    lies_[storages_[value]] = 0;
  }
  return out_;
}

Outcome outcomeOf(const Graph& graph, const std::vector<bool>& keep) {
  return OutcomeFinder(graph).of(keep);
}

}  // namespace weft::recompute
