#include "planner/graph/graph_view.h"

namespace weft {

GraphView::GraphView(const ProgramGraph& graph) : graph_(graph), producers_(graph.arguments.size(), -1) {
  for (int op = 0; op < operators(); ++op) {
    byId_[graph.operators[op].id] = op;
    firstResults_.push_back(values());
    producers_.resize(producers_.size() + graph.operators[op].results.size(), op);
  }
  uses_.resize(producers_.size());
  for (int op = 0; op < operators(); ++op) {
    std::vector<int>& operands = operands_.emplace_back();
    for (const GraphValue& operand : graph.operators[op].operands) {
      uses_[valueOf(operand)].push_back({op, static_cast<unsigned>(operands.size())});
      operands.push_back(valueOf(operand));
    }
  }
  for (unsigned r = 0; r < graph.results.size(); ++r) {
    uses_[valueOf(graph.results[r].value)].push_back({kStep, r});
  }
}

std::optional<int> GraphView::find(int64_t id) const {
  const auto it = byId_.find(id);
  return it == byId_.end() ? std::nullopt : std::optional<int>(it->second);
}

int GraphView::valueOf(const GraphValue& value) const {
  return static_cast<int>(value.index) + (value.isArgument() ? 0 : firstResults_[byId_.at(value.producer)]);
}

std::optional<int> GraphView::producerOf(int value) const {
  return producers_[value] < 0 ? std::nullopt : std::optional<int>(producers_[value]);
}

unsigned GraphView::indexOf(int value) const {
  return static_cast<unsigned>(value - (producers_[value] < 0 ? 0 : firstResults_[producers_[value]]));
}

const TensorType& GraphView::typeOf(int value) const {
  const int producer = producers_[value];
  return producer < 0 ? graph_.arguments[value].type : graph_.operators[producer].results[indexOf(value)];
}

}  // namespace weft
