// A program graph with its operators and values numbered 0, 1, ..., so that what is known of them can stand in vectors.
// It holds while the graph does not change.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "planner/graph/program_graph.h"

namespace weft {

class GraphView {
 public:
  // A reader of a value: operand `operand` of operator `op`; kStep where the step returns it as result `operand`.
  static constexpr int kStep = -1;
  struct Use {
    int op = kStep;
    unsigned operand = 0;
  };

  explicit GraphView(const ProgramGraph& graph);

  const ProgramGraph& graph() const { return graph_; }
  int operators() const { return static_cast<int>(graph_.operators.size()); }
  const GraphOperator& op(int number) const { return graph_.operators[number]; }
  // The operator with that id; nullopt if there is none.
  std::optional<int> find(int64_t id) const;

  // Values: the arguments first, then the results in program order.
  int values() const { return static_cast<int>(producers_.size()); }
  int valueOf(const GraphValue& value) const;
  int operandOf(int op, unsigned operand) const { return operands_[op][operand]; }
  int resultOf(int op, unsigned result) const { return firstResults_[op] + static_cast<int>(result); }
  // The operator that makes a value; nullopt for an argument.
  std::optional<int> producerOf(int value) const;
  // Which result of its operator, or which argument.
  unsigned indexOf(int value) const;
  const TensorType& typeOf(int value) const;
  // In program order, the step's own at the end.
  const std::vector<Use>& usesOf(int value) const { return uses_[value]; }
  // For people: of the operator that makes it, or its own as an argument.
  std::string labelOf(int value) const {
    const std::optional<int> producer = producerOf(value);
    return producer ? op(*producer).label() : graph_.arguments[indexOf(value)].name;
  }

 private:
  const ProgramGraph& graph_;
  std::unordered_map<int64_t, int> byId_;
  std::vector<int> firstResults_;           // of each operator
  std::vector<std::vector<int>> operands_;  // of each operator: the values it reads
  std::vector<int> producers_;              // of each value, -1 for arguments
  std::vector<std::vector<Use>> uses_;
};

}  // namespace weft
