#include "planner/search/forward_graphs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "planner/stage_table.h"
#include "planner/step/backward_parts.h"
#include "planner/step/time_layouts.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

class Builder {
 public:
  Builder(const Decisions& record, StepModel& model)
      : view_(model.view()),
        step_(model.step()),
        repeated_(repeatedOps(view_, record, step_)),
        prices_(model.prices()),
        readers_(step_.readers()),
        graphs_(record.schedule.submeshes.size()) {
    leaves_.resize(step_.values.size(), false);
    for (const AnnotatedResult& result : step_.results) {
      leaves_[result.value] = true;
    }
  }

  absl::StatusOr<std::vector<ForwardGraph>> run(bool splitsBackward) {
    if (splitsBackward) {
      findBothHalves();
    }
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
    made.time *= runsInBackwardAnyway(op) ? 0 : inBothHalves_.count(index) > 0 ? 2 : 1;
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

  // Cuts the backward function that each stage would have if all that it reads of the forward pass were recomputed.
  void findBothHalves() {
    for (int64_t stage = 0; stage < static_cast<int64_t>(graphs_.size()); ++stage) {
      std::vector<int> ops;
      std::vector<BackwardOperation> operations;
      std::set<int> read, readOutside;
      for (int op = static_cast<int>(step_.ops.size()) - 1; op >= 0; --op) {
        const AnnotatedOp& made = step_.ops[op];
        const bool backward = made.place.where == RunsIn::kBackward;
        const bool recomputed =
            made.place.where == RunsIn::kForward &&
            std::any_of(made.results.begin(), made.results.end(), [&](int value) { return read.count(value) > 0; });
        if (made.place.stage != stage || (!backward && !recomputed)) {
          continue;
        }
        ops.push_back(op);
        operations.push_back({backward && made.kind == AnnotatedOp::Kind::kTransfer, recomputed || repeated_[op],
                              made.operands, made.results});
        read.insert(made.operands.begin(), made.operands.end());
        std::copy_if(made.results.begin(), made.results.end(), std::inserter(readOutside, readOutside.end()),
                     [&](int value) { return backward && isReadElsewhere(value, stage); });
      }
      std::reverse(operations.begin(), operations.end());
      const std::vector<BackwardPart> parts = backwardParts(operations, readOutside);
      for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i] == BackwardPart::kBoth) {
          inBothHalves_.insert(ops[ops.size() - 1 - i]);
        }
      }
    }
  }

  // A parameter gathered in each call is gathered once for all that reads it in the backward pass.
  bool runsInBackwardAnyway(const AnnotatedOp& op) const {
    if (op.kind != AnnotatedOp::Kind::kReshard) {
      return false;
    }
    const std::vector<int>& readers = readers_[op.operands[0]];
    return std::any_of(readers.begin(), readers.end(), [&](int reader) {
      const AnnotatedOp& other = step_.ops[reader];
      return other.kind == op.kind && other.place == Place{RunsIn::kBackward, op.place.stage} &&
             step_.values[other.results[0]].layout == step_.values[op.results[0]].layout;
    });
  }

  bool isReadElsewhere(int value, int64_t stage) const {
    return std::any_of(readers_[value].begin(), readers_[value].end(),
                       [&](int reader) { return step_.ops[reader].place.stage != stage; });
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
    return std::none_of(op.results.begin(), op.results.end(),
                        [&](int value) { return leaves_[value] || isReadElsewhere(value, op.place.stage); });
  }

  const GraphView& view_;
  const AnnotatedStep& step_;
  const std::vector<bool> repeated_;
  Prices& prices_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> leaves_;                       // of each value: is it a result of the step?
  std::map<std::pair<int, int64_t>, int> values_;  // by value and stage
  std::vector<ForwardGraph> graphs_;
  std::set<int> inBothHalves_;  // operations of the step; none where the backward pass is not cut
};

}  // namespace

absl::StatusOr<std::vector<ForwardGraph>> forwardGraphs(const Decisions& record, StepModel& model) {
  const bool trains = model.view().graph().trains();
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, stageTable(record.schedule, record.mesh.microBatches(), trains));
  return Builder(record, model).run(record.schedule.submeshes.size() > 1 && splitsBackward(table));
}

}  // namespace weft
