#include "planner/derive/micro_batches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/layout/linear_sets.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Does any operand have the factor?
bool onlyInResults(const Rule& rule, int factor) {
  for (const auto& operand : rule.operands()) {
    for (const DimFactors& dim : operand) {
      if (std::find(dim.begin(), dim.end(), factor) != dim.end()) {
        return false;
      }
    }
  }
  return true;
}

// The dimension whose major factor is `factor` (factors of size 1 may stand before it).
int dimOf(const std::vector<DimFactors>& dims, int factor) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!dims[d].empty() && dims[d].front() == factor) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

// The dimension of a result that counts the micro-batches.
int dimOfMicroBatches(const Rule& rule, unsigned result) {
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (rule.factors()[f].microBatches) {
      return dimOf(rule.results()[result], static_cast<int>(f));
    }
  }
  return -1;
}

class Analyzer {
 public:
  Analyzer(const GraphView& view, const std::vector<int64_t>& stages, int64_t microBatches)
      : view_(view),
        stages_(stages),
        microBatches_(microBatches),
        partial_(view.values()),
        after_(view.values(), false) {
    result_.operators.resize(view.operators());
    result_.batchDim.assign(view.values(), -1);
  }

  absl::StatusOr<MicroBatchAnalysis> run() {
    for (size_t i = 0; i < view_.graph().arguments.size(); ++i) {
      const GraphArgument& argument = view_.graph().arguments[i];
      // A batch of one row is not cut.
      result_.batchDim[i] = argument.hasBatch() ? static_cast<int>(argument.batchDim) : -1;
    }
    for (int op = 0; op < view_.operators(); ++op) {
      WEFT_ASSIGN_OR_RETURN(Rule rule, ruleOf(view_, op));
      rules_.push_back(std::move(rule));
      WEFT_RETURN_IF_ERROR(visit(op, rules_.back()));
    }
    return std::move(result_);
  }

 private:
  absl::Status visit(int number, const Rule& rule) {
    const GraphOperator& op = view_.op(number);
    OperatorMicroBatches& state = result_.operators[number];
    WEFT_RETURN_IF_ERROR(findBatch(number, rule, state));
    const bool timed = microBatches_ > 1 && !op.prologueOf;
    const bool passes = timed && state.batch < 0 && passesPartial(number);
    state.perMicroBatch = timed && (state.batch >= 0 || passes);
    for (unsigned i = 0; timed && i < op.operands.size(); ++i) {
      const int operand = view_.operandOf(number, i);
      const bool accumulated = after_[operand] || (partial_[operand].has_value() && !passes);
      if (accumulated && state.perMicroBatch) {
        result_.needed.push_back({Rewrite::kPrologue, op.id, i});
      }
      state.after |= accumulated && !state.perMicroBatch;
    }
    return setResults(number, rule, state, passes);
  }

  // The factor that carries the batch: the one the operands bring, or the forward operator's of the same name.
  absl::Status findBatch(int number, const Rule& rule, OperatorMicroBatches& state) const {
    const GraphOperator& op = view_.op(number);
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      const int dim = result_.batchDim[view_.operandOf(number, i)];
      if (dim < 0 || rule.operands()[i][dim].empty()) {
        continue;
      }
      const int factor = rule.operands()[i][dim].front();
      if (rule.factors()[factor].microBatches || (state.batch >= 0 && state.batch != factor && microBatches_ == 1)) {
        continue;
      }
      if (state.batch >= 0 && state.batch != factor) {
        return errorAt(op.line, absl::StrCat(op.label(), " brings the batch in two dimensions at once (factors ",
                                             rule.factors()[state.batch].name, " and ", rule.factors()[factor].name,
                                             "): the micro-batches of a step would mix; use micro = 1 or another "
                                             "operator"));
      }
      state.batch = factor;
    }
    if (state.batch < 0) {
      inheritBatch(op, rule, state);
    }
    return absl::OkStatus();
  }

  void inheritBatch(const GraphOperator& op, const Rule& rule, OperatorMicroBatches& state) const {
    const std::optional<int> forward = op.forward ? view_.find(*op.forward) : std::nullopt;
    if (!forward || result_.operators[*forward].batch < 0) {
      return;
    }
    const Factor& factor = rules_[*forward].factors()[result_.operators[*forward].batch];
    const int mine = rule.factorIndex(factor.name);
    if (mine >= 0 && rule.factors()[mine].size == factor.size && rule.splittable(mine) && onlyInResults(rule, mine)) {
      state.batch = mine;
    }
  }

  bool passesPartial(int number) const {
    const GraphOperator& op = view_.op(number);
    if (op.phase == Phase::kUpdate || !op.facts.passesSums) {
      return false;
    }
    std::vector<bool> partial;
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      const int operand = view_.operandOf(number, i);
      partial.push_back(partial_[operand].has_value());
      // No operator passes on a maximum or minimum.
      if (partial.back() && partial_[operand] != ReduceKind::kSum) {
        return false;
      }
      // A sum from another stage is sent once, not for each micro-batch.
      const std::optional<int> producer = view_.producerOf(operand);
      if (partial.back() && producer && stages_[*producer] != stages_[number]) {
        return false;
      }
    }
    bool any = false;
    for (unsigned i = 0; i < partial.size(); ++i) {
      any |= partial[i];
      if (partial[i] && !linearIn(op.facts.linear, i, partial)) {
        return false;
      }
    }
    return any;
  }

  absl::Status setResults(int number, const Rule& rule, const OperatorMicroBatches& state, bool passes) {
    for (unsigned r = 0; r < view_.op(number).results.size(); ++r) {
      const int value = view_.resultOf(number, r);
      partial_[value] = passes ? std::optional<ReduceKind>(ReduceKind::kSum) : std::nullopt;
      after_[value] = state.after;
      if (state.batch < 0) {
        continue;
      }
      const int dim = dimOf(rule.results()[r], state.batch);
      const int microBatches = state.perMicroBatch ? dimOfMicroBatches(rule, r) : -1;
      if (std::max(dim, microBatches) >= 0) {
        result_.batchDim[value] = std::max(dim, microBatches);
      } else if (state.perMicroBatch && !rule.reducedIn(state.batch, r)) {
        return refuseMix(view_.op(number), rule, state.batch);
      } else if (state.perMicroBatch) {
        partial_[value] = view_.op(number).facts.reduceOf(r);
      }
    }
    if (state.perMicroBatch && state.batch >= 0 && !rule.splittable(state.batch)) {
      return refuseMix(view_.op(number), rule, state.batch);
    }
    return absl::OkStatus();
  }

  absl::Status refuseMix(const GraphOperator& op, const Rule& rule, int factor) const {
    return errorAt(op.line, absl::StrCat(op.label(), " needs dimension '", rule.factors()[factor].name,
                                         "' of the batch whole, but the step runs in ", microBatches_,
                                         " micro-batches; use micro = 1 or an operator that treats rows one by one"));
  }

  const GraphView& view_;
  const std::vector<int64_t>& stages_;
  int64_t microBatches_;
  MicroBatchAnalysis result_;
  std::vector<std::optional<ReduceKind>> partial_;  // by value: a term of a reduction over the micro-batches
  std::vector<bool> after_;                         // by value
  std::vector<Rule> rules_;                         // of the operators so far
};

}  // namespace

absl::StatusOr<MicroBatchAnalysis> analyzeMicroBatches(const GraphView& view, const std::vector<int64_t>& stages,
                                                       int64_t microBatches) {
  return Analyzer(view, stages, microBatches).run();
}

RunsIn runsIn(const GraphOperator& op, const OperatorMicroBatches& microBatches) {
  if (op.prologueOf) {
    return RunsIn::kPrologue;
  }
  if (microBatches.after || (op.phase == Phase::kUpdate && !microBatches.perMicroBatch)) {
    return RunsIn::kUpdate;
  }
  return op.phase == Phase::kBackward ? RunsIn::kBackward : RunsIn::kForward;
}

absl::StatusOr<Rule> ruleOf(const GraphView& view, int op) {
  std::vector<Shape> operands;
  std::vector<Shape> results;
  for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
    operands.push_back(view.typeOf(view.operandOf(op, i)).shape);
  }
  for (const TensorType& result : view.op(op).results) {
    results.push_back(result.shape);
  }
  return ruleOver(view, op, operands, results);
}

absl::StatusOr<Rule> ruleOver(const GraphView& view, int op, const std::vector<Shape>& operands,
                              const std::vector<Shape>& results) {
  absl::StatusOr<Rule> rule = Rule::parse(view.op(op).facts.rule, operands, results);
  return rule.ok()
             ? rule
             : errorAt(view.op(op).line, absl::StrCat(view.op(op).label(), ": ", std::string(rule.status().message())));
}

}  // namespace weft
