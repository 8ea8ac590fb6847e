// What a record decides about an operator, as the strategy by axis names that says the same (Tensor::shard).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/rule.h"
#include "planner/decisions.h"
#include "planner/graph/graph_view.h"

namespace weft {

struct StrategyWords {
  UserStrategy strategy;
  // Results that it names only because no operand has their factors: named so, they lie as they would without.
  std::set<unsigned> needless;
};

// Of an operator with this rule whose factors have these axes. `wanted`: layouts that results have beside what follows.
StrategyWords strategyOf(const Rule& rule, const FactorAxes& axes, const std::map<unsigned, Layout>& wanted,
                         const Mesh& mesh);

// What a record decides, as axes of the factors of the operator's rule.
FactorAxes axesOf(const OperatorDecision& decision, const Rule& rule);

class StrategyWriter {
 public:
  // `program`: as the user wrote it; `rewritten`: as the record's rewrites leave it. All outlive the writer.
  StrategyWriter(const GraphView& program, const GraphView& rewritten, const Decisions& record);

  // Of an operator of the program, by its number in the view. Splits of all operands, and of the results where these
  // alone say something. Of one that the record expands: as what it became reads each of its operands first; of one
  // that the record moves into the prologue: of its copy there. Error: its rule does not fit its shapes.
  absl::StatusOr<StrategyWords> of(int op) const;

  // Of an operator of the program that the record expands: the operators of the rewritten program, by their numbers
  // there, that the expansion made in its phase and that read one of its operands.
  std::vector<int> readersOfExpanded(int op) const;

  // Of an operator of the program: its copy in the prologue, by its number in the rewritten program.
  std::optional<int> copyOf(int op) const;

 private:
  std::vector<std::vector<std::string>> namesOfExpanded(int op) const;

  const GraphView& view_;
  const GraphView& rewritten_;
  const StageMeshes meshes_;
  const std::map<int64_t, const OperatorDecision*> decided_;
};

}  // namespace weft
