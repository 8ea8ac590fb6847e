#include "planner/search/forward_graphs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/step/time_layouts.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

class Builder {
 public:
  Builder(const GraphView& view, const AnnotatedStep& step, const std::vector<bool>& repeated, int64_t stages,
          Prices& prices)
      : view_(view), step_(step), repeated_(repeated), prices_(prices), readers_(step.readers()), graphs_(stages) {
    leaves_.resize(step.values.size(), false);
    for (const AnnotatedResult& result : step.results) {
      leaves_[result.value] = true;
    }
  }

  absl::StatusOr<std::vector<ForwardGraph>> run() {
    for (size_t op = 0; op < step_.ops.size(); ++op) {
      if (step_.ops[op].place.where == RunsIn::kForward) {
        WEFT_RETURN_IF_ERROR(add(static_cast<int>(op)));
      }
    }
    return std::move(graphs_);
  }

 private:
  absl::Status add(int index) {
    const AnnotatedOp& op = step_.ops[index];
    ForwardGraph& stage = graphs_[op.place.stage];
    recompute::Operator made;
    for (const int operand : op.operands) {
      const int input = inputOf(operand, op.place.stage);
      if (input >= 0) {
        made.inputs.push_back(input);
      }
    }
    WEFT_ASSIGN_OR_RETURN(made.time, prices_.time(step_, op));
    made.mayRepeat = mayRepeat(op);
    made.mayKeep = !repeated_[index];
    const auto number = static_cast<int>(stage.graph.operators.size());
    stage.graph.operators.push_back(std::move(made));
    stage.ops.push_back(index);
    for (const int result : op.results) {
      addValue(result, op.place.stage, number);
    }
    return absl::OkStatus();
  }

  // The value's index in a stage's graph, -1 for what is there anyway.
  int inputOf(int value, int64_t stage) {
    const int producer = step_.values[value].producer;
    if (producer < 0 || step_.ops[producer].place.where != RunsIn::kForward) {
      return -1;
    }
    const auto known = values_.find({value, stage});
    return known != values_.end() ? known->second : addValue(value, stage, -1);
  }

  int addValue(int value, int64_t at, int op) {
    ForwardGraph& stage = graphs_[at];
    recompute::Value made{op, alignUp(prices_.localTensor(step_.values[value]).bytes()), -1, false};
    if (op >= 0 && isView(step_.ops[stage.ops[op]]) && !stage.graph.operators[op].inputs.empty()) {
      made.storage = stage.graph.operators[op].inputs[0];
    }
    made.read = std::any_of(readers_[value].begin(), readers_[value].end(), [&](int reader) {
      const Place& place = step_.ops[reader].place;
      return place.where == RunsIn::kBackward && place.stage == at;
    });
    const auto index = static_cast<int>(stage.graph.values.size());
    stage.graph.values.push_back(made);
    values_[{value, at}] = index;
    return index;
  }

  bool isView(const AnnotatedOp& op) const {
    return op.kind == AnnotatedOp::Kind::kOperator && view_.op(op.op).facts.view != ViewKind::kNone;
  }

  bool mayRepeat(const AnnotatedOp& op) const {
    const auto partial = [&](int value) { return partialOverTime(step_.values[value].layout); };
    if (op.kind == AnnotatedOp::Kind::kTransfer || std::any_of(op.results.begin(), op.results.end(), partial) ||
        std::any_of(op.operands.begin(), op.operands.end(), partial)) {
      return false;
    }
    return std::none_of(op.results.begin(), op.results.end(), [&](int value) {
      const std::vector<int>& readers = readers_[value];
      return leaves_[value] || std::any_of(readers.begin(), readers.end(),
                                           [&](int reader) { return step_.ops[reader].place.stage != op.place.stage; });
    });
  }

  const GraphView& view_;
  const AnnotatedStep& step_;
  const std::vector<bool>& repeated_;
  Prices& prices_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> leaves_;                       // of each value: is it a result of the step?
  std::map<std::pair<int, int64_t>, int> values_;  // by value and stage
  std::vector<ForwardGraph> graphs_;
};

}  // namespace

absl::StatusOr<std::vector<ForwardGraph>> forwardGraphs(const GraphView& view, const AnnotatedStep& step,
                                                        const std::vector<bool>& repeated, int64_t stages,
                                                        Prices& prices) {
  return Builder(view, step, repeated, stages, prices).run();
}

}  // namespace weft
