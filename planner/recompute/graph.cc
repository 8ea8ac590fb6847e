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

OutcomeFinder::OutcomeFinder(const Graph& graph)
    : graph_(graph),
      repeatedIn_(graph.operators.size(), 0),
      keptIn_(graph.values.size(), 0),
      liesIn_(graph.values.size(), 0),
      lies_(graph.values.size(), 0) {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    storages_.push_back(graph.storageOf(static_cast<int>(v)));
    if (graph.values[v].read) {
      read_.push_back(static_cast<int>(v));
    }
  }
}

void OutcomeFinder::find(const std::vector<uint8_t>& keep) {
  ++round_;
  bytes_ = 0;
  time_ = 0;
  needed_ = read_;
  while (!needed_.empty()) {
    const int value = needed_.back();
    needed_.pop_back();
    const Value& facts = graph_.values[value];
    const int op = facts.op;
    const bool keeps = op < 0 || !graph_.operators[op].mayRepeat || (graph_.operators[op].mayKeep && keep[op] != 0);
    if (keeps && keptIn_[value] != round_) {
      keptIn_[value] = round_;
      const int storage = storages_[value];
      const int64_t before = liesIn_[storage] == round_ ? lies_[storage] : 0;
      bytes_ += std::max<int64_t>(facts.bytes - before, 0);
      lies_[storage] = std::max(before, facts.bytes);
      liesIn_[storage] = round_;
    } else if (!keeps && repeatedIn_[op] != round_) {
      repeatedIn_[op] = round_;
      time_ += graph_.operators[op].time;
      needed_.insert(needed_.end(), graph_.operators[op].inputs.begin(), graph_.operators[op].inputs.end());
    }
  }
}

Outcome outcomeOf(const Graph& graph, const std::vector<bool>& keep) {
  OutcomeFinder finder(graph);
  finder.find({keep.begin(), keep.end()});
  Outcome outcome = {{}, {}, finder.bytes(), finder.time()};
  for (size_t op = 0; op < graph.operators.size(); ++op) {
    outcome.repeated.push_back(finder.isRepeated(op));
  }
  for (size_t value = 0; value < graph.values.size(); ++value) {
    outcome.kept.push_back(finder.isKept(value));
  }
  return outcome;
}

}  // namespace weft::recompute
