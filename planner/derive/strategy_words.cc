#include "planner/derive/strategy_words.h"

#include <algorithm>

#include "planner/derive/micro_batches.h"
#include "planner/derive/pads.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// "[{dp,tp},{}]" of a layout to the words of its dimensions, "dp,tp" and "".
std::vector<std::string> namesOf(const Layout& layout, const Mesh& mesh) {
  std::vector<std::string> names;
  for (const AxisList& axes : layout.dims()) {
    const std::string text = Layout({axes}).print(mesh);
    names.push_back(text.substr(2, text.size() - 4));
  }
  return names;
}

// Is a factor split that no operand has?
bool splitsUnread(const Rule& rule, const FactorAxes& axes) {
  const auto isRead = [&](int factor) {
    return std::any_of(rule.operands().begin(), rule.operands().end(),
                       [&](const auto& dims) { return hasFactor(dims, factor); });
  };
  for (size_t f = 0; f < axes.size(); ++f) {
    if (!axes[f].empty() && !isRead(static_cast<int>(f))) {
      return true;
    }
  }
  return false;
}

}  // namespace

FactorAxes axesOf(const OperatorDecision& decision, const Rule& rule) {
  FactorAxes axes(rule.factors().size());
  for (const auto& [factor, list] : decision.axes) {
    if (rule.factorIndex(factor) >= 0) {
      axes[rule.factorIndex(factor)] = list;
    }
  }
  return axes;
}

StrategyWords strategyOf(const Rule& rule, const FactorAxes& axes, const std::map<unsigned, Layout>& wanted,
                         const Mesh& mesh) {
  StrategyWords words;
  UserStrategy& strategy = words.strategy;
  strategy.byName = true;
  for (size_t i = 0; i < rule.operands().size(); ++i) {
    strategy.inNames.push_back(namesOf(rule.operandLayout(i, axes), mesh));
  }
  const bool reads = std::any_of(strategy.inNames.begin(), strategy.inNames.end(),
                                 [](const std::vector<std::string>& names) { return !names.empty(); });
  const bool broadcasts = splitsUnread(rule, axes);
  for (unsigned r = 0; r < rule.results().size() && (!reads || broadcasts); ++r) {
    strategy.outNames.push_back(namesOf(rule.resultLayout(r, axes), mesh));
    words.needless.insert(r);
  }
  for (const auto& [result, layout] : wanted) {
    strategy.outNames.resize(std::max<size_t>(strategy.outNames.size(), result + 1));
    strategy.outNames[result] = namesOf(layout, mesh);
    words.needless.erase(result);
  }
  return words;
}

StrategyWriter::StrategyWriter(const GraphView& program, const GraphView& rewritten, const Decisions& record)
    : view_(program), rewritten_(rewritten), meshes_(record.meshes()), decided_(decisionsById(record)) {}

absl::StatusOr<StrategyWords> StrategyWriter::of(int op) const {
  StrategyWords words;
  const auto found = decided_.find(view_.op(op).id);
  const std::optional<int> moved = found == decided_.end() ? copyOf(op) : std::nullopt;
  if (found == decided_.end() && !moved) {
    words.strategy.byName = true;
    words.strategy.inNames = namesOfExpanded(op);
  } else {
    const OperatorDecision& decision = moved ? *decided_.at(rewritten_.op(*moved).id) : *found->second;
    WEFT_ASSIGN_OR_RETURN(const Rule rule, moved ? ruleOf(rewritten_, StoredShapes(rewritten_), *moved)
                                                 : ruleOf(view_, StoredShapes(view_), op));
    words = strategyOf(rule, axesOf(decision, rule), decision.results, meshes_.ofStage(decision.stage));
  }
  words.strategy.line = view_.op(op).line;
  return words;
}

std::optional<int> StrategyWriter::copyOf(int op) const {
  for (int copy = 0; copy < rewritten_.operators(); ++copy) {
    if (rewritten_.op(copy).prologueOf == view_.op(op).id) {
      return copy;
    }
  }
  return std::nullopt;
}

std::vector<int> StrategyWriter::readersOfExpanded(int op) const {
  const GraphOperator& expanded = view_.op(op);
  std::vector<int> readers;
  for (int inner = 0; inner < rewritten_.operators(); ++inner) {
    const GraphOperator& made = rewritten_.op(inner);
    const bool isMade = !view_.find(made.id) && made.line == expanded.line && made.name == expanded.name &&
                        made.phase == expanded.phase;
    const bool reads = std::any_of(made.operands.begin(), made.operands.end(), [&](const GraphValue& operand) {
      return std::find(expanded.operands.begin(), expanded.operands.end(), operand) != expanded.operands.end();
    });
    if (isMade && reads) {
      readers.push_back(inner);
    }
  }
  return readers;
}

std::vector<std::vector<std::string>> StrategyWriter::namesOfExpanded(int op) const {
  std::vector<std::vector<std::string>> names(view_.op(op).operands.size());
  for (const int inner : readersOfExpanded(op)) {
    const GraphOperator& made = rewritten_.op(inner);
    const absl::StatusOr<Rule> rule = ruleOf(rewritten_, StoredShapes(rewritten_), inner);
    if (!rule.ok()) {
      continue;
    }
    const FactorAxes axes = axesOf(*decided_.at(made.id), *rule);
    for (unsigned i = 0; i < made.operands.size(); ++i) {
      const auto operand = std::find(view_.op(op).operands.begin(), view_.op(op).operands.end(), made.operands[i]);
      std::vector<std::string>* mine =
          operand == view_.op(op).operands.end() ? nullptr : &names[operand - view_.op(op).operands.begin()];
      if (mine != nullptr && mine->empty()) {
        *mine = namesOf(rule->operandLayout(i, axes), meshes_.ofStage(decided_.at(made.id)->stage));
      }
    }
  }
  return names;
}

}  // namespace weft
