#include "planner/graph/rewrites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/graph/sums.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

std::vector<GraphOperator>::iterator find(ProgramGraph& graph, int64_t id) {
  return std::find_if(graph.operators.begin(), graph.operators.end(), [&](const auto& op) { return op.id == id; });
}

// Everywhere in the graph.
template <typename Replace>
void replaceValues(ProgramGraph& graph, const Replace& replace) {
  for (GraphOperator& op : graph.operators) {
    for (GraphValue& operand : op.operands) {
      operand = replace(operand);
    }
  }
  for (GraphResult& result : graph.results) {
    result.value = replace(result.value);
  }
}

// Operators of the gradient of `from` become operators of the gradient of `to`.
void moveGradient(ProgramGraph& graph, int64_t from, int64_t to) {
  for (GraphOperator& op : graph.operators) {
    if (op.forward == from) {
      op.forward = to;
    }
  }
}

// Copies operators into the prologue, each once.
class Hoister {
 public:
  explicit Hoister(ProgramGraph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      const GraphOperator& op = graph.operators[i];
      place_[op.id] = i;
      if (op.prologueOf && place_.count(*op.prologueOf) > 0) {
        copies_[*op.prologueOf] = op.id;
      }
    }
  }

  absl::Status run(const Rewrite& rewrite) {
    const auto it = place_.find(rewrite.id);
    if (it == place_.end() || rewrite.operand >= graph_.operators[it->second].operands.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("decisions: no operand ", rewrite.operand, " of operator ", rewrite.id));
    }
    GraphOperator& reader = graph_.operators[it->second];
    WEFT_ASSIGN_OR_RETURN(reader.operands[rewrite.operand], copyOf(reader.operands[rewrite.operand], reader));
    insertCopies();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<GraphValue> copyOf(const GraphValue& value, const GraphOperator& reader) {
    if (value.isArgument()) {
      const GraphArgument& argument = graph_.arguments[value.index];
      if (argument.kind == ArgumentKind::kParameter) {
        return errorAt(reader.line, absl::StrCat(reader.label(),
                                                 " needs a value that is known only after all micro-batches, and it "
                                                 "depends on parameter '",
                                                 argument.name, "'; use micro = 1, or make it depend on inputs only"));
      }
      return value;
    }
    const GraphOperator& op = graph_.operators[place_.at(value.producer)];
    if (op.prologueOf) {
      return value;
    }
    if (const auto known = copies_.find(op.id); known != copies_.end()) {
      return GraphValue{known->second, value.index};
    }
    GraphOperator copy = op;
    for (GraphValue& operand : copy.operands) {
      WEFT_ASSIGN_OR_RETURN(operand, copyOf(operand, reader));
    }
    copy.prologueOf = op.id;
    copy.id = kNoArgument - static_cast<int64_t>(made_.size()) - 1;
    copies_[op.id] = copy.id;
    made_[op.id] = copy;
    return GraphValue{copy.id, value.index};
  }

  // Copies get ids in the order in which they stand.
  void insertCopies() {
    std::vector<GraphOperator> operators;
    std::map<int64_t, int64_t> ids;
    for (GraphOperator& op : graph_.operators) {
      const int64_t id = op.id;
      operators.push_back(std::move(op));
      if (const auto copy = made_.find(id); copy != made_.end()) {
        ids[copy->second.id] = graph_.nextId;
        operators.push_back(copy->second);
        operators.back().id = graph_.nextId++;
      }
    }
    graph_.operators = std::move(operators);
    replaceValues(graph_, [&](const GraphValue& value) {
      const auto it = ids.find(value.producer);
      return it == ids.end() ? value : GraphValue{it->second, value.index};
    });
  }

  // Provisional ids of copies lie below that which stands for arguments.
  static constexpr int64_t kNoArgument = GraphValue::kArgument;

  ProgramGraph& graph_;
  std::map<int64_t, size_t> place_;        // of each operator
  std::map<int64_t, int64_t> copies_;      // of operators
  std::map<int64_t, GraphOperator> made_;  // by the operator that they copy
};

}  // namespace

namespace {

// The entries of a list of `replaced`, one for each of its operands or results, that count for the values of an
// operator in its place; an empty one says nothing.
template <typename Entries>
Entries entriesOf(const Entries& said, const std::vector<std::optional<unsigned>>& places) {
  Entries entries(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] && *places[i] < said.size()) {
      entries[i] = said[*places[i]];
    }
  }
  const bool says = std::any_of(entries.begin(), entries.end(), [](const auto& entry) { return !entry.empty(); });
  return says ? entries : Entries();
}

// What the user says of the operands and results of an operator, for operator `number` of its alternative: how that
// reads them and makes them in its stead. What has another phase, as the update of a running statistic, says nothing.
std::optional<UserStrategy> inheritedStrategy(const GraphOperator& replaced, const Alternative& alternative,
                                              size_t number) {
  const AlternativeOperator& made = alternative.body[number];
  if (!replaced.strategy || made.phase.value_or(replaced.phase) != replaced.phase) {
    return std::nullopt;
  }
  std::vector<std::optional<unsigned>> operands;
  for (const GraphValue& operand : made.operands) {
    operands.push_back(operand.isArgument() ? std::optional<unsigned>(operand.index) : std::nullopt);
  }
  std::vector<std::optional<unsigned>> results(made.results.size());
  for (unsigned r = 0; r < alternative.results.size(); ++r) {
    const GraphValue& result = alternative.results[r];
    // What must be expanded may become something of another shape, of which nothing was said.
    if (!result.isArgument() && result.producer == static_cast<int64_t>(number) &&
        made.results[result.index].shape.size() == replaced.results[r].shape.size()) {
      results[result.index] = r;
    }
  }
  UserStrategy strategy = *replaced.strategy;
  strategy.inSplits = entriesOf(strategy.inSplits, operands);
  strategy.inNames = entriesOf(strategy.inNames, operands);
  strategy.outSplits = entriesOf(strategy.outSplits, results);
  strategy.outNames = entriesOf(strategy.outNames, results);
  const bool says = !strategy.inSplits.empty() || !strategy.inNames.empty() || !strategy.outSplits.empty() ||
                    !strategy.outNames.empty();
  return says ? std::optional<UserStrategy>(std::move(strategy)) : std::nullopt;
}

}  // namespace

absl::Status takeAlternative(ProgramGraph& graph, int64_t id) {
  const auto it = find(graph, id);
  if (it == graph.operators.end() || it->alternatives.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("decisions: operator ", id, " has no expansion in this program"));
  }
  const GraphOperator replaced = *it;
  const Alternative& alternative = replaced.alternatives.front();
  const int64_t first = graph.nextId;
  const auto outside = [&](const GraphValue& value) {
    return value.isArgument() ? replaced.operands[value.index] : GraphValue{first + value.producer, value.index};
  };
  std::vector<GraphOperator> body;
  for (const AlternativeOperator& made : alternative.body) {
    GraphOperator& op = body.emplace_back();
    op.id = graph.nextId++;
    op.facts = made.facts;
    op.name = replaced.name;
    op.phase = made.phase.value_or(replaced.phase);
    op.forward = replaced.forward;
    op.userStage = replaced.userStage;
    op.recomputeScope = replaced.recomputeScope;
    op.strategy = inheritedStrategy(replaced, alternative, body.size() - 1);
    op.line = replaced.line;
    op.results = made.results;
    std::transform(made.operands.begin(), made.operands.end(), std::back_inserter(op.operands), outside);
  }
  graph.operators.insert(graph.operators.erase(it), body.begin(), body.end());
  replaceValues(graph, [&](const GraphValue& value) {
    return value.producer == id ? outside(alternative.results[value.index]) : value;
  });
  if (replaced.facts.mustExpand && !alternative.results.empty() && !alternative.results[0].isArgument()) {
    moveGradient(graph, id, outside(alternative.results[0]).producer);
  }
  return absl::OkStatus();
}

absl::Status hoistToPrologue(ProgramGraph& graph, const Rewrite& rewrite) {
  return Hoister(graph).run(rewrite);
}

void eraseUnused(ProgramGraph& graph) {
  std::set<int64_t> read;
  for (const GraphResult& result : graph.results) {
    read.insert(result.value.producer);
  }
  std::vector<GraphOperator> kept;
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    if (read.count(op->id) > 0) {
      for (const GraphValue& operand : op->operands) {
        read.insert(operand.producer);
      }
      kept.push_back(std::move(*op));
    }
  }
  std::reverse(kept.begin(), kept.end());
  graph.operators = std::move(kept);
}

absl::StatusOr<ProgramGraph> withRewrites(ProgramGraph graph, const std::vector<Rewrite>& rewrites) {
  eraseUnused(graph);
  for (const Rewrite& rewrite : rewrites) {
    switch (rewrite.kind) {
      case Rewrite::kExpand:
        WEFT_RETURN_IF_ERROR(takeAlternative(graph, rewrite.id));
        break;
      case Rewrite::kPrologue:
        WEFT_RETURN_IF_ERROR(hoistToPrologue(graph, rewrite));
        break;
      case Rewrite::kRegroup:
        WEFT_RETURN_IF_ERROR(regroupSum(graph, rewrite));
        continue;
    }
    eraseUnused(graph);
  }
  return graph;
}

}  // namespace weft
