// Small program graphs, written operator by operator.
//
//   GraphBuilder b;
//   const GraphValue x = b.input("x", {8, 4});
//   const GraphValue w = b.parameter("w", {4, 6});
//   const GraphValue y = b.add({.kind = "matmul", .rule = "m k+, k+ n -> m n"}, {x, w}, {8, 6});
//   b.returns(y);
#pragma once

#include <string>
#include <vector>

#include "planner/graph/program_graph.h"

namespace weft::testing {

class GraphBuilder {
 public:
  GraphValue input(const std::string& name, const Shape& shape) { return argument(ArgumentKind::kInput, name, shape); }
  GraphValue parameter(const std::string& name, const Shape& shape) {
    return argument(ArgumentKind::kParameter, name, shape);
  }
  GraphValue state(const std::string& name, const Shape& shape) { return argument(ArgumentKind::kState, name, shape); }

  // Result 0 of a new operator; last() for what else it has.
  GraphValue add(const OperatorFacts& facts, const std::vector<GraphValue>& operands, const Shape& result) {
    GraphOperator& op = graph.operators.emplace_back();
    op.id = graph.nextId++;
    op.facts = facts;
    op.name = "op" + std::to_string(op.id);
    op.line = {"model.cc", 10 + op.id, 1};
    op.operands = operands;
    op.results = {{result, DType::kF32}};
    return {op.id, 0};
  }
  GraphOperator& last() { return graph.operators.back(); }

  void returns(const GraphValue& value) { graph.results.push_back({value, std::nullopt}); }
  void updates(const GraphValue& argument, const GraphValue& value) {
    graph.results.push_back({value, argument.index});
  }

  ProgramGraph graph;

 private:
  GraphValue argument(ArgumentKind kind, const std::string& name, const Shape& shape) {
    graph.arguments.push_back(
        {kind, name, {shape, DType::kF32}, 0, "", {"model.cc", static_cast<int64_t>(graph.arguments.size()) + 1, 1}});
    return {GraphValue::kArgument, static_cast<unsigned>(graph.arguments.size() - 1)};
  }
};

inline const OperatorFacts kMatmul = {"matmul", "m k+, k+ n -> m n", {{0}, {1}}};
inline const OperatorFacts kRelu = {"relu", "a b -> a b"};
inline const OperatorFacts kSoftmax = {"softmax", "a v! -> a v"};
inline const OperatorFacts kAdd = {"add", "a b, a b -> a b", {{0, 1}}, /*passesSums=*/true, /*isSum=*/true};
inline const OperatorFacts kSumAll = {"sum", "a+ b+ ->", {{0}}, /*passesSums=*/true};

}  // namespace weft::testing
