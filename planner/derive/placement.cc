#include "planner/derive/placement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/graph/place_text.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Other than the first?
bool namesStages(const GraphView& view) {
  const std::vector<GraphOperator>& operators = view.graph().operators;
  return std::any_of(operators.begin(), operators.end(),
                     [](const GraphOperator& op) { return op.userStage.value_or(0) != 0; });
}

class StageAssigner {
 public:
  StageAssigner(const GraphView& view, const std::map<std::string, std::vector<int64_t>>& ofParameters)
      : view_(view), countsWords_(ofParameters.empty() || namesStages(view)), stages_(view.operators()) {
    for (size_t i = 0; i < view.graph().arguments.size(); ++i) {
      const GraphArgument& argument = view.graph().arguments[i];
      if (argument.kind == ArgumentKind::kParameter) {
        parameters_[argument.name] = static_cast<int>(i);
        if (const auto given = ofParameters.find(argument.name); given != ofParameters.end()) {
          given_[static_cast<int>(i)] = given->second;
        }
      }
    }
  }

  absl::StatusOr<Stages> run() {
    for (int op = 0; op < view_.operators(); ++op) {
      WEFT_RETURN_IF_ERROR(setForward(op));
    }
    followReaders(Phase::kForward, /*prologue=*/false);
    for (int op = 0; op < view_.operators(); ++op) {
      setFromForward(op);
    }
    followReaders(Phase::kForward, /*prologue=*/true);
    for (int op = 0; op < view_.operators(); ++op) {
      setFromOperands(op);
    }
    followReaders(Phase::kBackward, /*prologue=*/false);
    followReaders(Phase::kUpdate, /*prologue=*/false);
    return result();
  }

 private:
  bool isParameter(int value) const {
    return !view_.producerOf(value) && view_.graph().arguments[value].kind == ArgumentKind::kParameter;
  }

  absl::Status setForward(int number) {
    const GraphOperator& op = view_.op(number);
    if (op.phase != Phase::kForward || op.prologueOf) {
      return absl::OkStatus();
    }
    std::optional<int64_t> stage;
    std::string last;  // what makes the operand of the latest stage
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      const int operand = view_.operandOf(number, i);
      const std::optional<int> producer = view_.producerOf(operand);
      if (producer && stages_[*producer] && (!stage || *stages_[*producer] > *stage)) {
        stage = *stages_[*producer];
        last = absl::StrCat(", of ", view_.op(*producer).label(), placeText(view_.op(*producer).line));
      }
    }
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      if (const int operand = view_.operandOf(number, i); isParameter(operand)) {
        stage = withParameter(operand, stage.value_or(0));
      }
    }
    if (op.userStage && countsWords_) {
      if (*op.userStage < 0) {
        return errorAt(op.line, absl::StrCat(op.label(), " is on stage ", *op.userStage, "; stages are 0, 1, ..."));
      }
      if (stage && *stage > *op.userStage) {
        return errorAt(op.line,
                       absl::StrCat(op.label(), " is on stage ", *op.userStage, ", but reads a value of stage ", *stage,
                                    last, ": values flow from a stage to the same or a later one; put it on stage ",
                                    *stage, " or later"));
      }
      stage = op.userStage;
    }
    stages_[number] = stage;
    return absl::OkStatus();
  }

  // The first of the parameter's stages from `stage` on; `stage` where it has none such.
  int64_t withParameter(int argument, int64_t stage) const {
    const auto given = given_.find(argument);
    if (given == given_.end()) {
      return stage;
    }
    const auto later = std::ranges::lower_bound(given->second, stage);
    return later == given->second.end() ? stage : *later;
  }

  // What has no place yet goes to its first reader's; without a reader to stage 0.
  void followReaders(Phase phase, bool prologue) {
    for (int op = view_.operators() - 1; op >= 0; --op) {
      if (view_.op(op).phase != phase || stages_[op] || view_.op(op).prologueOf.has_value() != prologue) {
        continue;
      }
      std::optional<int64_t> stage;
      for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
        for (const GraphView::Use& use : view_.usesOf(view_.resultOf(op, r))) {
          takeEarlier(use, stage);
        }
      }
      stages_[op] = stage.value_or(0);
    }
  }

  void takeEarlier(const GraphView::Use& reader, std::optional<int64_t>& stage) const {
    if (reader.op != GraphView::kStep && stages_[reader.op]) {
      stage = std::min(stage.value_or(*stages_[reader.op]), *stages_[reader.op]);
    }
  }

  // Backward operators run with the operator they come from.
  void setFromForward(int number) {
    const GraphOperator& op = view_.op(number);
    const std::optional<int> forward = op.forward && !op.prologueOf ? view_.find(*op.forward) : std::nullopt;
    if (forward && stages_[*forward] && !stages_[number]) {
      stages_[number] = stages_[*forward];
    }
  }

  // Where the first of the operands is made. In the update scalars (the scale of clipping) follow the tensors, and what
  // belongs to a parameter runs on its stage, wherever gradient and scale come from.
  void setFromOperands(int number) {
    const GraphOperator& op = view_.op(number);
    if (stages_[number]) {
      return;
    }
    const bool update = op.phase == Phase::kUpdate;
    std::optional<int64_t> stage = update ? stageOfParameter(number) : std::nullopt;
    const bool known = stage.has_value();
    int64_t largest = 0;
    for (unsigned i = 0; i < op.operands.size() && !known; ++i) {
      const int operand = view_.operandOf(number, i);
      const std::optional<int> producer = view_.producerOf(operand);
      const std::optional<int64_t> at = producer ? stages_[*producer] : std::nullopt;
      const int64_t elements = update ? view_.typeOf(operand).elements() : 1;
      if (at && elements >= largest) {
        stage = elements > largest ? *at : std::min(*stage, *at);
        largest = elements;
      }
    }
    stages_[number] = stage;
  }

  // The stage of the parameter that an operator of the update reads, or whose gradient it takes.
  std::optional<int64_t> stageOfParameter(int number) const {
    const GraphOperator& op = view_.op(number);
    if (!op.gradientOf.empty()) {
      const auto it = parameters_.find(op.gradientOf);
      return it == parameters_.end() ? std::nullopt : parameterStage(it->second);
    }
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      if (isParameter(view_.operandOf(number, i))) {
        return parameterStage(view_.operandOf(number, i));
      }
    }
    return std::nullopt;
  }

  std::optional<int64_t> parameterStage(int argument) const {
    std::optional<int64_t> stage;
    for (const GraphView::Use& use : view_.usesOf(argument)) {
      if (use.op != GraphView::kStep && view_.op(use.op).phase == Phase::kForward) {
        takeEarlier(use, stage);
      }
    }
    return stage;
  }

  absl::StatusOr<Stages> result() const {
    Stages stages;
    std::set<int64_t> used;
    for (int op = 0; op < view_.operators(); ++op) {
      stages.ofOperator.push_back(stages_[op].value_or(0));
      if (view_.op(op).phase == Phase::kForward) {
        used.insert(stages.ofOperator.back());
      }
    }
    stages.count = used.empty() ? 1 : *used.rbegin() + 1;
    // Between two stages in use; the least of them may be far from 0, as a user wrote it.
    std::string empty;
    int64_t next = 0;
    int gaps = 0;
    for (const int64_t stage : used) {
      if (stage > next && ++gaps <= 3) {
        absl::StrAppend(&empty, empty.empty() ? "" : ", ", next,
                        stage - next > 1 ? absl::StrCat(" to ", stage - 1) : "");
      }
      next = stage + 1;
    }
    if (gaps > 0) {
      return errorAt(view_.graph().line, absl::StrCat("no operator is on stage ", empty, gaps > 3 ? ", ..." : "",
                                                      ", but some are on stage ", stages.count - 1,
                                                      "; number the stages 0, 1, ... without gaps"));
    }
    return stages;
  }

  const GraphView& view_;
  // Do the stages that operators name count? Stage 0 alone is no word where parameters have stages: a model that would
  // put its layers on any number of stages says so of one.
  const bool countsWords_;
  std::vector<std::optional<int64_t>> stages_;
  std::map<std::string, int> parameters_;
  std::map<int, std::vector<int64_t>> given_;  // of parameters, ascending
};

}  // namespace

absl::StatusOr<Stages> assignStages(const GraphView& view,
                                    const std::map<std::string, std::vector<int64_t>>& ofParameters) {
  return StageAssigner(view, ofParameters).run();
}

std::set<int64_t> readingMeshes(const GraphView& view, const Placement& placement, int value) {
  std::set<int64_t> numbers;
  for (const GraphView::Use& use : view.usesOf(value)) {
    if (use.op != GraphView::kStep) {
      numbers.insert(placement.meshNumber(use.op));
    }
  }
  return numbers;
}

}  // namespace weft
