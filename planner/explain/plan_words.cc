#include "planner/explain/plan_words.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/derive/derive.h"
#include "planner/derive/strategy_words.h"
#include "planner/explain/recompute_words.h"
#include "planner/explain/same_decisions.h"
#include "planner/graph/graph_view.h"
#include "planner/graph/name_classes.h"
#include "planner/graph/rewrites.h"
#include "planner/search/plan.h"
#include "planner/search/recorded_plan.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// How often the program is derived again with more words.
constexpr int kRounds = 24;

bool isForward(const GraphOperator& op) {
  return op.phase == Phase::kForward && !op.prologueOf;
}

// One layout, or with meshes of their own one for each submesh.
std::string layoutText(const ArgumentDecision& argument, const StageMeshes& meshes) {
  if (meshes.same()) {
    return argument.layout.print(meshes.ofSubmesh[0]);
  }
  std::vector<std::string> texts;
  for (size_t submesh = 0; submesh < meshes.ofSubmesh.size(); ++submesh) {
    const int64_t number = meshes.numberOfSubmesh(static_cast<int64_t>(submesh));
    const bool known = number == meshes.number(argument.stage) || argument.elsewhere.count(number) > 0;
    texts.push_back(known ? argument.layoutOn(number).print(meshes.withNumber(number))
                          : Layout(argument.layout.dimensions()).print(meshes.withNumber(number)));
  }
  return absl::StrJoin(texts, ";");
}

using Layouts = std::vector<std::pair<std::string, std::string>>;

// One pattern for all layers of which the same is said.
Layouts folded(const Layouts& layouts, const std::map<std::string, std::string>& mine, const ProgramGraph& graph) {
  std::vector<std::string> parameters;
  for (const GraphArgument& argument : graph.arguments) {
    if (argument.kind == ArgumentKind::kParameter) {
      parameters.push_back(argument.name);
    }
  }
  Layouts folded;
  for (const auto& [name, layout] : layouts) {
    const bool isSaid = mine.count(name) > 0;
    const std::pair<std::string, std::string> entry = {isSaid ? widestPattern(name, mine, parameters) : name, layout};
    if (!isSaid || std::find(folded.begin(), folded.end(), entry) == folded.end()) {
      folded.push_back(entry);
    }
  }
  return folded;
}

class WordFinder {
 public:
  WordFinder(const ProgramGraph& graph, ProgramGraph rewritten, const Decisions& record)
      : graph_(graph),
        rewritten_(std::move(rewritten)),
        view_(graph_),
        rewrittenView_(rewritten_),
        record_(record),
        meshes_(record.meshes()),
        decided_(decisionsById(record)),
        strategies_(view_, rewrittenView_, record) {}

  absl::StatusOr<PlanWords> run(const CompileOptions& request) {
    words_.options = requestOf(record_, request, Mode::kSemi);
    sayStages();
    WEFT_RETURN_IF_ERROR(sayRecomputation());
    for (int round = 0; round < kRounds; ++round) {
      ProgramGraph said = words();
      WEFT_ASSIGN_OR_RETURN(const Derivation derived, deriveDecisions(said, words_.options, {}));
      WEFT_ASSIGN_OR_RETURN(const bool more, sayMore(derived.decisions));
      if (!more) {
        break;
      }
    }
    WEFT_ASSIGN_OR_RETURN(words_.unsaid, unsaid());
    if (!words_.unsaid.empty() && !record_.recomputeSummary.empty()) {
      WEFT_RETURN_IF_ERROR(leaveRecomputation(request));
    }
    words_.options.layouts = folded(words_.options.layouts, saidLayouts_, graph_);
    std::sort(words_.operators.begin(), words_.operators.end(),
              [&](const OperatorWords& a, const OperatorWords& b) { return *view_.find(a.id) < *view_.find(b.id); });
    return std::move(words_);
  }

 private:
  ProgramGraph words() const { return withWords(words_, graph_); }

  // What the program with the words is planned otherwise than the record says.
  absl::StatusOr<std::vector<std::string>> unsaid() const {
    WEFT_ASSIGN_OR_RETURN(const Decisions planned, planProgram(graphForAll(words()), words_.options, {}));
    const Decisions made = withoutNeedless(planned);
    return textsOf(differencesOf(record_, made), record_, made);
  }

  // Layouts that are made again, with what keeps them, have no names: what was chosen for a memory limit is left to be
  // chosen again, where that gives the same.
  absl::Status leaveRecomputation(const CompileOptions& request) {
    PlanWords named = words_;
    words_.options.recompute = request.recompute;
    for (OperatorWords& words : words_.operators) {
      words.recomputed = false;
    }
    std::erase_if(words_.operators, [](const OperatorWords& words) { return !words.strategy && !words.stage; });
    WEFT_ASSIGN_OR_RETURN(words_.unsaid, unsaid());
    if (!words_.unsaid.empty()) {
      words_ = std::move(named);
    }
    return absl::OkStatus();
  }

  OperatorWords& wordsOf(int64_t id) {
    const auto known = std::find_if(words_.operators.begin(), words_.operators.end(),
                                    [&](const OperatorWords& words) { return words.id == id; });
    return known == words_.operators.end() ? words_.operators.emplace_back(OperatorWords{id}) : *known;
  }

  bool saysStrategy(int64_t id) const {
    return std::any_of(words_.operators.begin(), words_.operators.end(),
                       [&](const OperatorWords& words) { return words.id == id && words.strategy; });
  }

  // An operator of the program that the record decides about, as it stands there.
  const OperatorDecision* decisionOf(int op) const {
    const auto found = decided_.find(view_.op(op).id);
    return found == decided_.end() ? nullptr : found->second;
  }

  // Of an operator that was expanded: where the first of what was made of it runs. Nothing: it is gone.
  std::optional<int64_t> stageOf(int op) const {
    if (const OperatorDecision* decision = decisionOf(op)) {
      return decision->stage;
    }
    std::optional<int64_t> first;
    for (const int reader : strategies_.readersOfExpanded(op)) {
      const int64_t stage = decided_.at(rewrittenView_.op(reader).id)->stage;
      first = std::min(first.value_or(stage), stage);
    }
    return first;
  }

  // Follows planner/derive/placement.h: a stage is said where it does not follow from the operands. What stands in a
  // stage scope of the user's does not follow, so each of its operators says another stage.
  void sayStages() {
    std::vector<std::optional<int64_t>> stages(view_.operators());
    for (int op = 0; op < view_.operators(); ++op) {
      const std::optional<int64_t> decided = stageOf(op);
      if (!isForward(view_.op(op)) || !decided) {
        continue;
      }
      std::optional<int64_t> follows = view_.op(op).userStage;
      for (unsigned i = 0; i < view_.op(op).operands.size() && !view_.op(op).userStage; ++i) {
        const int operand = view_.operandOf(op, i);
        const std::optional<int> producer = view_.producerOf(operand);
        if (producer && stages[*producer]) {
          follows = std::max(follows.value_or(0), *stages[*producer]);
        } else if (!producer && view_.graph().arguments[operand].kind == ArgumentKind::kParameter) {
          follows = follows.value_or(0);
        }
      }
      if (follows && *follows != *decided) {
        wordsOf(view_.op(op).id).stage = *decided;
      }
      stages[op] = follows ? decided : std::nullopt;
    }
  }

  // By names where they say just what runs again, else operator by operator.
  absl::Status sayRecomputation() {
    std::vector<bool> wanted(rewrittenView_.operators());
    std::vector<int64_t> stages(rewrittenView_.operators());
    for (int op = 0; op < rewrittenView_.operators(); ++op) {
      const auto found = decided_.find(rewrittenView_.op(op).id);
      if (found == decided_.end()) {
        return absl::InvalidArgumentError(absl::StrCat("the decisions do not name operator ", rewrittenView_.op(op).id,
                                                       " (", rewrittenView_.op(op).label(),
                                                       ") of the program; give the program that they were made for"));
      }
      wanted[op] = found->second->recompute;
      stages[op] = found->second->stage;
    }
    const RecomputeWords found = recomputeWords(rewrittenView_, stages, wanted);
    words_.options.recompute = found.option;
    for (const int op : found.operators) {
      // Of what an expansion made, no operator of the program can say it.
      if (view_.find(rewrittenView_.op(op).id)) {
        wordsOf(rewrittenView_.op(op).id).recomputed = true;
      }
    }
    return absl::OkStatus();
  }

  // Is any word added?
  absl::StatusOr<bool> sayMore(const Decisions& derived) {
    const DecisionDifferences differences = differencesOf(record_, withoutNeedless(derived));
    // First how arguments are padded: without, splits that are said may not divide.
    WEFT_ASSIGN_OR_RETURN(const bool pads, sayArguments(paddedOtherwise(differences.arguments, derived)));
    if (pads) {
      return true;
    }
    std::set<int> differ;  // operators of the forward pass
    for (const int64_t id : differences.operators) {
      const std::optional<int> op = view_.find(id);
      const OperatorDecision& other = *derived.find(id);
      const OperatorDecision& mine = *decided_.at(id);
      if (op && isForward(view_.op(*op)) && !(other.axes == mine.axes && other.results == mine.results)) {
        differ.insert(*op);
      }
    }
    differ.merge(expandedOtherwise(differences.operators, derived));
    differ.merge(movedOtherwise(differences.operators, derived));
    bool more = false;
    for (const int64_t id : differences.expansions) {
      const std::optional<int> op = view_.find(id);
      if (op && isForward(view_.op(*op)) && !view_.op(*op).facts.mustExpand && !saysStrategy(id)) {
        WEFT_RETURN_IF_ERROR(sayStrategy(*op));
        more = true;
      }
    }
    WEFT_ASSIGN_OR_RETURN(const bool first, sayFirst(differ));
    if (more || first) {
      return true;
    }
    return sayArguments(differences.arguments);
  }

  // The operators of which only a copy in the prologue is left, and that is split otherwise.
  std::set<int> movedOtherwise(const std::vector<int64_t>& differing, const Decisions& derived) const {
    std::set<int> moved;
    for (const int64_t id : differing) {
      const std::optional<int> copy = rewrittenView_.find(id);
      const std::optional<int64_t> source = copy ? rewrittenView_.op(*copy).prologueOf : std::nullopt;
      const std::optional<int> op = source ? view_.find(*source) : std::nullopt;
      if (op && decisionOf(*op) == nullptr && !(derived.find(id)->axes == decided_.at(id)->axes)) {
        moved.insert(*op);
      }
    }
    return moved;
  }

  // The operators that exist only to be expanded of which what reads their operands is split otherwise.
  std::set<int> expandedOtherwise(const std::vector<int64_t>& differing, const Decisions& derived) const {
    const std::set<int64_t> ids(differing.begin(), differing.end());
    std::set<int> expanded;
    for (int op = 0; op < view_.operators(); ++op) {
      if (!view_.op(op).facts.mustExpand || !isForward(view_.op(op))) {
        continue;
      }
      for (const int reader : strategies_.readersOfExpanded(op)) {
        const int64_t id = rewrittenView_.op(reader).id;
        if (ids.count(id) > 0 && !(derived.find(id)->axes == decided_.at(id)->axes)) {
          expanded.insert(op);
        }
      }
    }
    return expanded;
  }

  // The operators that differ though nothing before them does, and what is like them.
  absl::StatusOr<bool> sayFirst(const std::set<int>& differ) {
    std::set<std::string> classes;
    for (const int op : differ) {
      bool isFirst = !saysStrategy(view_.op(op).id);
      for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
        const std::optional<int> producer = view_.producerOf(view_.operandOf(op, i));
        isFirst = isFirst && !(producer && differ.count(*producer) > 0 && !saysStrategy(view_.op(*producer).id));
      }
      if (isFirst) {
        classes.insert(classOf(op));
      }
    }
    bool more = false;
    for (const int op : differ) {
      if (classes.count(classOf(op)) > 0 && !saysStrategy(view_.op(op).id)) {
        WEFT_RETURN_IF_ERROR(sayStrategy(op));
        more = true;
      }
    }
    return more;
  }

  std::string splitText(const OperatorDecision& decision) const {
    std::string text;
    for (const auto& [factor, axes] : decision.axes) {
      absl::StrAppend(&text, factor, Layout({axes}).print(meshes_.ofStage(decision.stage)));
    }
    return text;
  }

  // Operators of one are alike but for the number of their layer.
  std::string classOf(int op) const {
    const GraphOperator& node = view_.op(op);
    std::string text =
        absl::StrCat(layerPattern(node.label()), " ", node.facts.kind, " ", node.line.file, ":", node.line.line, ":");
    const OperatorDecision* decision = decisionOf(op);
    if (const std::optional<int> copy = decision == nullptr ? strategies_.copyOf(op) : std::nullopt) {
      decision = decided_.at(rewrittenView_.op(*copy).id);
    }
    for (const int reader : decision == nullptr ? strategies_.readersOfExpanded(op) : std::vector<int>()) {
      absl::StrAppend(&text, splitText(*decided_.at(rewrittenView_.op(reader).id)), ";");
    }
    return decision == nullptr ? text : absl::StrCat(text, splitText(*decision));
  }

  absl::Status sayStrategy(int op) {
    WEFT_ASSIGN_OR_RETURN(StrategyWords words, strategies_.of(op));
    const int64_t id = view_.op(op).id;
    for (const unsigned result : words.needless) {
      needless_.insert({id, result});
    }
    wordsOf(id).strategy = std::move(words.strategy);
    return absl::OkStatus();
  }

  std::vector<unsigned> paddedOtherwise(std::vector<unsigned> arguments, const Decisions& derived) const {
    std::erase_if(arguments, [&](unsigned index) {
      const Shape& shape = graph_.arguments[index].type.shape;
      return record_.arguments[index].layout.storedShape(shape) == derived.arguments[index].layout.storedShape(shape);
    });
    return arguments;
  }

  absl::StatusOr<bool> sayArguments(const std::vector<unsigned>& arguments) {
    bool more = false;
    for (const unsigned index : arguments) {
      const GraphArgument& argument = graph_.arguments[index];
      if (argument.kind == ArgumentKind::kState || !saidArguments_.insert(index).second) {
        continue;
      }
      const std::string text = layoutText(record_.arguments[index], meshes_);
      if (argument.kind == ArgumentKind::kInput) {
        words_.inputs.push_back({index, text});
      } else {
        words_.options.layouts.insert(words_.options.layouts.begin() + static_cast<int64_t>(saidLayouts_.size()),
                                      {argument.name, text});
        saidLayouts_[argument.name] = text;
      }
      more = true;
    }
    return more;
  }

  // Results that words name only because no operand has their factors lie as they would without.
  Decisions withoutNeedless(Decisions record) const {
    for (OperatorDecision& op : record.operators) {
      for (auto result = op.results.begin(); result != op.results.end();) {
        result = needless_.count({op.id, result->first}) > 0 ? op.results.erase(result) : std::next(result);
      }
    }
    return record;
  }

  const ProgramGraph& graph_;
  const ProgramGraph rewritten_;
  const GraphView view_, rewrittenView_;
  const Decisions& record_;
  const StageMeshes meshes_;
  const std::map<int64_t, const OperatorDecision*> decided_;
  const StrategyWriter strategies_;
  PlanWords words_;
  std::set<std::pair<int64_t, unsigned>> needless_;  // results that words name without asking for another layout
  std::set<unsigned> saidArguments_;
  std::map<std::string, std::string> saidLayouts_;  // of parameters
};

}  // namespace

absl::StatusOr<PlanWords> wordsOf(const GraphFor& graphs, const CompileOptions& request, const Decisions& decisions) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, graphs(decisions.mesh.microBatches()));
  WEFT_ASSIGN_OR_RETURN(ProgramGraph made, withRewrites(*graph, decisions.rewrites));
  return WordFinder(*graph, std::move(made), decisions).run(request);
}

ProgramGraph withWords(const PlanWords& words, const ProgramGraph& graph) {
  ProgramGraph said = graph;
  std::map<int64_t, const OperatorWords*> byId;
  for (const OperatorWords& each : words.operators) {
    byId[each.id] = &each;
  }
  for (GraphOperator& op : said.operators) {
    const auto found = byId.find(op.id);
    if (found == byId.end()) {
      continue;
    }
    op.strategy = found->second->strategy ? found->second->strategy : op.strategy;
    op.userStage = found->second->stage ? found->second->stage : op.userStage;
    op.recomputeScope = found->second->recomputed ? std::optional<int64_t>(kRecomputedAlone) : op.recomputeScope;
  }
  for (const InputWords& input : words.inputs) {
    said.arguments[input.argument].layout = input.layout;
  }
  return said;
}

}  // namespace weft
