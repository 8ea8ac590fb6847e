// Layouts, axes and rules from text, and records of decisions that tests write by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/layout/rule.h"
#include "planner/decisions.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {

inline Layout layoutOn(const Mesh& mesh, const std::string& text) {
  absl::StatusOr<Layout> layout = Layout::parse(text, mesh);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return *layout;
}

// The axes of a factor: "dp,tp".
inline AxisList axesOn(const Mesh& mesh, const std::string& names) {
  return layoutOn(mesh, "[{" + names + "}]").dim(0);
}

inline Rule ruleOn(const std::string& text, const std::vector<Shape>& operands, const std::vector<Shape>& results) {
  absl::StatusOr<Rule> rule = Rule::parse(text, operands, results);
  EXPECT_TRUE(rule.ok()) << rule.status();
  return *rule;
}

// Arguments lie whole, operators run whole in forward, until a test says otherwise.
inline Decisions openRecord(const ProgramGraph& graph, const std::string& mesh) {
  Decisions record;
  record.mesh = *Mesh::parse(mesh);
  for (const GraphArgument& argument : graph.arguments) {
    record.arguments.push_back(
        {.name = argument.name, .layout = Layout(argument.type.shape.size()), .origin = "default"});
  }
  for (const GraphOperator& op : graph.operators) {
    OperatorDecision& decision = record.operators.emplace_back();
    decision.id = op.id;
    decision.runsIn = op.phase == Phase::kUpdate     ? RunsIn::kUpdate
                      : op.phase == Phase::kBackward ? RunsIn::kBackward
                                                     : RunsIn::kForward;
  }
  return record;
}

}  // namespace weft::testing
