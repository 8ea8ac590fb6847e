#include "planner/cost/lower_step.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/cost/submesh_functions.h"
#include "planner/machine/times.h"
#include "planner/step/time_layouts.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

plan::FunctionKind kindOf(RunsIn where) {
  switch (where) {
    case RunsIn::kPrologue:
      return plan::PROLOGUE;
    case RunsIn::kForward:
      return plan::FORWARD;
    case RunsIn::kBackward:
      return plan::BACKWARD;
    case RunsIn::kUpdate:
      return plan::UPDATE;
  }
  return plan::UPDATE;
}

plan::MemoryClass memoryOf(ArgumentKind kind) {
  return kind == ArgumentKind::kParameter ? plan::PARAMETER : kind == ArgumentKind::kState ? plan::STATE : plan::INPUT;
}

// Functions are not cut into input and weight gradients yet.
Place placeOf(const CutStepFunction& function) {
  for (const RunsIn where : {RunsIn::kPrologue, RunsIn::kForward, RunsIn::kBackward}) {
    if (kindOf(where) == function.kind) {
      return {where, function.stage};
    }
  }
  return {RunsIn::kUpdate, function.stage};
}

// Writes what one operation becomes into a function of its submesh.
class InstructionWriter {
 public:
  InstructionWriter(const GraphView& view, const AnnotatedStep& step, Prices& prices, CutStepFunction& function,
                    SubmeshFunctions& submesh)
      : view_(view), step_(step), prices_(prices), function_(function), submesh_(submesh) {}

  // The whole is there on every rank, with its pad; each takes its part.
  void constant(const AnnotatedOp& op) {
    const AnnotatedValue& value = step_.values[op.results[0]];
    const TensorType& type = view_.typeOf(value.source);
    const TensorSpec stored = {type.type, value.layout.storedShape(type.shape)};
    const TensorSpec local = prices_.localTensor(value);
    StepInstruction whole;
    whole.kind = StepInstruction::Kind::kConstant;
    whole.constant = op.op;
    whole.outputs = {submesh_.addValue(stored.bytes())};
    int made = whole.outputs[0];
    function_.instructions.push_back({whole, std::nullopt});
    if (local.bytes() != stored.bytes()) {
      StepInstruction slice;
      slice.inputs = whole.outputs;
      slice.outputs = {made = submesh_.addValue(local.bytes())};
      prices_.moving(function_.submesh, kDynamicSliceKernel, {stored}, local).applyTo(slice);
      function_.instructions.push_back({std::move(slice), std::nullopt});
    }
    submesh_.define(function_, op.results[0], made);
  }

  absl::Status reshard(const AnnotatedOp& op, int value) {
    const AnnotatedValue& from = step_.values[op.operands[0]];
    const AnnotatedValue& to = step_.values[op.results[0]];
    const TensorSpec local = prices_.localTensor(to);
    if (partialOverTime(from.layout) && !partialOverTime(to.layout)) {
      StepInstruction sum;
      prices_.moving(function_.submesh, kAccumulateKernel, {local, local}, local).applyTo(sum);
      submesh_.accumulate(function_, op.results[0], value, std::move(sum));
      return absl::OkStatus();
    }
    if (isCollection(from.layout, to.layout)) {
      StepInstruction update;
      const std::vector<TensorSpec> inputs = {local, prices_.localTensor(from)};
      prices_.moving(function_.submesh, kDynamicUpdateSliceKernel, inputs, local).applyTo(update);
      const StepName name = {value, nameOfOutput(op.results[0]), plan::OUTPUT};
      submesh_.makeTogether(function_, op.results[0], name, local.bytes(), {std::move(update)});
      return absl::OkStatus();
    }
    if (timeDim(to.layout) >= 0 && timeDim(from.layout) < 0) {
      value = sliced(value, {prices_.localTensor(from), local});
    } else {
      WEFT_ASSIGN_OR_RETURN(const ReshardPlan path, prices_.path(step_, op));
      TensorSpec current = prices_.localTensor(from);
      for (const ReshardStep& next : path.steps) {
        const TensorSpec made = {local.type, next.localShape};
        value = next.kind == CollectiveKind::kSlice ? sliced(value, {current, made}) : collective(value, made, next);
        current = made;
      }
    }
    submesh_.define(function_, op.results[0], value);
    return absl::OkStatus();
  }

 private:
  // The first output that a value leaves as.
  std::string nameOfOutput(int value) const {
    const auto result = std::find_if(step_.results.begin(), step_.results.end(),
                                     [&](const AnnotatedResult& leaving) { return leaving.value == value; });
    return absl::StrCat("out.", result - step_.results.begin());
  }

  struct Slice {
    const TensorSpec& from;
    const TensorSpec& to;
  };

  int sliced(int value, const Slice& slice) const {
    StepInstruction made;
    made.inputs = {value};
    made.outputs = {submesh_.addValue(slice.to.bytes())};
    prices_.moving(function_.submesh, kDynamicSliceKernel, {slice.from}, slice.to).applyTo(made);
    function_.instructions.push_back({made, std::nullopt});
    return made.outputs[0];
  }

  int collective(int value, const TensorSpec& to, const ReshardStep& step) const {
    StepInstruction made;
    made.inputs = {value};
    made.outputs = {submesh_.addValue(to.bytes())};
    made.time = step.cost;
    made.queue = Queue::kCommunication;
    made.label = collectiveName(step.kind);
    std::optional<BucketReduction> reduction;
    const bool gathers = step.kind == CollectiveKind::kAllGather;
    if (gathers || step.kind == CollectiveKind::kAllReduce || step.kind == CollectiveKind::kReduceScatter) {
      const int64_t dim = gathers ? step.sourceDim : step.targetDim;
      reduction = {step.kind, step.axes, step.reduce, dim, to.type, step.span, step.bytesReceived};
    }
    if (step.kind == CollectiveKind::kAllReduce) {
      made.inPlace = {{0, 0}};
    }
    function_.instructions.push_back({made, std::move(reduction)});
    return made.outputs[0];
  }

  const GraphView& view_;
  const AnnotatedStep& step_;
  Prices& prices_;
  CutStepFunction& function_;
  SubmeshFunctions& submesh_;
};

class Lowerer {
 public:
  Lowerer(const GraphView& view, const Decisions& decisions, const AnnotatedStep& step, Prices& prices)
      : view_(view), decisions_(decisions), step_(step), prices_(prices), meshes_(decisions.meshes()) {
    const int64_t count = submeshCount(meshes_.submeshes);
    for (int64_t submesh = 0; submesh < count; ++submesh) {
      std::vector<int64_t> stages;
      for (size_t stage = 0; stage < meshes_.submeshes.size(); ++stage) {
        if (meshes_.submeshes[stage] == submesh) {
          stages.push_back(static_cast<int64_t>(stage));
        }
      }
      submeshes_.emplace_back(submesh, std::move(stages));
    }
    held_.resize(submeshes_.size());
  }

  absl::StatusOr<LoweredStep> run(bool splitsBackward) {
    for (const AnnotatedOp& op : step_.ops) {
      CutStepFunction& own = functionOf(op);
      CutStepFunction& function = op.operands.empty() ? whereFirstRead(op.results[0], own) : own;
      const size_t before = function.instructions.size();
      WEFT_RETURN_IF_ERROR(op.kind == AnnotatedOp::Kind::kTransfer ? transfer(op, function) : move(op, function));
      for (size_t i = before; op.repeated && i < function.instructions.size(); ++i) {
        function.instructions[i].step.recomputed = true;
      }
    }
    holdUnread();
    for (size_t r = 0; r < step_.results.size(); ++r) {
      WEFT_RETURN_IF_ERROR(leave(r));
    }
    for (SubmeshFunctions& submesh : submeshes_) {
      made_.submeshes.push_back(submesh.finish(decisions_, splitsBackward, prices_.machines().of(submesh.number())));
    }
    return std::move(made_);
  }

 private:
  int64_t submeshOf(const AnnotatedOp& op) const { return meshes_.submeshes[op.place.stage]; }
  CutStepFunction& functionOf(const AnnotatedOp& op) {
    return submeshes_[submeshOf(op)].function(kindOf(op.place.where), op.place.stage);
  }
  SubmeshFunctions& submeshWith(const CutStepFunction& function) { return submeshes_[function.submesh]; }
  int64_t bytesOf(int value) const { return prices_.localTensor(step_.values[value]).bytes(); }

  // The argument that a value is, on its own mesh or through a transfer on another.
  std::optional<int> argumentBehind(int value) const {
    int producer = step_.values[value].producer;
    if (producer >= 0 && step_.ops[producer].kind == AnnotatedOp::Kind::kTransfer) {
      value = step_.ops[producer].operands[0];
      producer = step_.values[value].producer;
    }
    return producer < 0 ? std::optional<int>(value) : std::nullopt;
  }

  // What stands for a value in a function; an argument if it comes from outside.
  absl::StatusOr<int> cut(int value, CutStepFunction& function) {
    const auto known = function.values.find(value);
    if (known != function.values.end()) {
      return known->second;
    }
    SubmeshFunctions& submesh = submeshWith(function);
    if (const std::optional<int> argument = argumentBehind(value)) {
      const GraphArgument& named = view_.graph().arguments[*argument];
      held_[function.submesh].insert(*argument);
      submesh.showToHost(named.name);
      return function.values[value] = submesh.argument(function, named.name, bytesOf(value), memoryOf(named.kind));
    }
    if (submesh.whereDefined(value) == nullptr) {
      WEFT_RETURN_IF_ERROR(bring(value, function));
    }
    const auto brought = function.values.find(value);
    if (brought != function.values.end()) {
      return brought->second;
    }
    return function.values[value] = submesh.crossing(function, value, bytesOf(value));
  }

  // Makes a value of another submesh of the same mesh known in the submesh of `reader`. What depends on nothing is made
  // again, where the submesh reads it first.
  absl::Status bring(int value, CutStepFunction& reader) {
    const AnnotatedOp& producer = step_.ops[step_.values[value].producer];
    if (!producer.operands.empty()) {
      return connect(value, value, reader);
    }
    return move(producer, whereFirstRead(value, reader));
  }

  // The function that reads a value first on the submesh of `reader`. There stands what depends on nothing.
  CutStepFunction& whereFirstRead(int value, const CutStepFunction& reader) {
    const Place first = firstPlaceToRead(value, reader);
    return submeshWith(reader).function(kindOf(first.where), first.stage);
  }

  absl::Status transfer(const AnnotatedOp& op, CutStepFunction& reader) {
    return argumentBehind(op.results[0]) ? absl::OkStatus() : connect(op.operands[0], op.results[0], reader);
  }

  // The first reader of a value on the submesh of `reader`, which need not be the first in the program.
  Place firstPlaceToRead(int value, const CutStepFunction& reader) const {
    Place first = placeOf(reader);
    for (const int op : readers_[value]) {
      const bool isHere = submeshOf(step_.ops[op]) == reader.submesh;
      first = isHere && isPassedBefore(step_.ops[op].place, first) ? step_.ops[op].place : first;
    }
    return first;
  }

  // Sends `value` of its submesh to that of `reader`, which has it as `target`.
  absl::Status connect(int value, int target, CutStepFunction& reader) {
    const AnnotatedOp& producer = step_.ops[step_.values[value].producer];
    SubmeshFunctions& owner = submeshes_[submeshOf(producer)];
    SubmeshFunctions& there = submeshWith(reader);
    CutStepFunction* made = owner.whereDefined(value);
    const Place first = firstPlaceToRead(target, reader);
    const std::optional<Place> receives =
        made == nullptr ? std::nullopt : receiverOf(placeOf(*made), first, there.stages());
    if (!receives) {
      return errorAt(producer.op < 0 ? view_.graph().line : view_.op(producer.op).line,
                     absl::StrCat("what stage ", producer.place.stage, " makes is read on stage ", first.stage,
                                  ": the stages would wait for each other; put both on one stage"));
    }
    CutStepFunction& receiver = there.function(kindOf(receives->where), receives->stage);
    CutStepFunction& sender = owner.function(receiver.kind, made->stage);
    WEFT_ASSIGN_OR_RETURN(const int sent, cut(value, sender));
    StepInstruction send;
    send.kind = StepInstruction::Kind::kSend;
    send.inputs = {sent};
    sender.instructions.push_back({send, std::nullopt});
    StepInstruction receive;
    receive.kind = StepInstruction::Kind::kReceive;
    receive.outputs = {there.addValue(bytesOf(target))};
    there.define(receiver, target, receive.outputs[0]);
    receiver.instructions.push_back({receive, std::nullopt, submeshOf(producer)});
    if (sender.perMicroBatch()) {
      made_.transferTime =
          std::max(made_.transferTime, transferTime(prices_.machines().all(), meshes_.ranks(), bytesOf(value)));
    }
    return absl::OkStatus();
  }

  absl::Status move(const AnnotatedOp& op, CutStepFunction& function) {
    std::vector<int> operands;
    for (const int operand : op.operands) {
      WEFT_ASSIGN_OR_RETURN(operands.emplace_back(), cut(operand, function));
    }
    if (op.kind == AnnotatedOp::Kind::kReshard) {
      return InstructionWriter(view_, step_, prices_, function, submeshWith(function)).reshard(op, operands[0]);
    }
    SubmeshFunctions& submesh = submeshWith(function);
    const OperatorFacts* facts = op.op < 0 ? nullptr : &view_.op(op.op).facts;
    if (facts != nullptr && facts->view == ViewKind::kAnnotation) {
      submesh.define(function, op.results[0], operands[0]);
      return absl::OkStatus();
    }
    if (facts != nullptr && facts->isConstant) {
      InstructionWriter(view_, step_, prices_, function, submesh).constant(op);
      return absl::OkStatus();
    }
    LoweredInstruction lowered;
    StepInstruction& made = lowered.step;
    made.inputs = std::move(operands);
    if (facts != nullptr && facts->view == ViewKind::kShape) {
      made.kind = StepInstruction::Kind::kView;
    } else {
      WEFT_ASSIGN_OR_RETURN(const KernelPrice price, prices_.kernel(step_, op));
      price.applyTo(made);
      if (partialOverTime(step_.values[op.results[0]].layout)) {
        WEFT_ASSIGN_OR_RETURN(lowered.accumulating, prices_.accumulating(step_, op));
      }
    }
    for (const int result : op.results) {
      made.outputs.push_back(submesh.addValue(bytesOf(result)));
      submesh.define(function, result, made.outputs.back());
    }
    function.instructions.push_back(std::move(lowered));
    return absl::OkStatus();
  }

  // An argument that nothing reads is held by its own stage.
  void holdUnread() {
    for (size_t i = 0; i < decisions_.arguments.size(); ++i) {
      const int argument = static_cast<int>(i);
      const auto holds = [&](const std::set<int>& held) { return held.count(argument) > 0; };
      if (std::none_of(held_.begin(), held_.end(), holds)) {
        held_[meshes_.submeshes[decisions_.arguments[i].stage]].insert(argument);
      }
    }
  }

  // An output leaves the submesh that makes it; what replaces an argument goes to every submesh of its mesh that holds
  // the argument.
  absl::Status leave(size_t index) {
    const AnnotatedResult& result = step_.results[index];
    const AnnotatedValue& value = step_.values[result.value];
    const int64_t owner = value.producer < 0 ? 0 : submeshOf(step_.ops[value.producer]);
    if (!result.updates) {
      const std::string name = absl::StrCat("out.", index);
      submeshes_[owner].showToHost(name);
      if (submeshes_[owner].isCollectedAs(result.value, name)) {
        return absl::OkStatus();
      }
      return leaveFrom(result.value, owner, name, plan::OUTPUT);
    }
    const GraphArgument& argument = view_.graph().arguments[*result.updates];
    for (size_t s = 0; s < submeshes_.size(); ++s) {
      const auto submesh = static_cast<int64_t>(s);
      const bool sent = value.producer >= 0 && step_.ops[value.producer].kind == AnnotatedOp::Kind::kTransfer;
      const bool here = sent ? submesh == owner : meshes_.numberOfSubmesh(submesh) == value.mesh;
      const bool holds = held_[s].count(static_cast<int>(*result.updates)) > 0;
      if (submeshes_.size() == 1 || (here && holds)) {
        WEFT_RETURN_IF_ERROR(leaveFrom(result.value, submesh, argument.name, memoryOf(argument.kind)));
      }
    }
    return absl::OkStatus();
  }

  // May the function that makes an argument's next value replace it, or is it kept until the update?
  bool mayReplaceIn(CutStepFunction& function, const std::string& argument) const {
    const bool runsOnce = !function.perMicroBatch() || meshes_.ofSubmesh[0].microBatches() == 1;
    return runsOnce && !submeshes_[function.submesh].isReadElsewhere(argument, function);
  }

  absl::Status leaveFrom(int value, int64_t submesh, const std::string& name, plan::MemoryClass memory) {
    CutStepFunction* where = submeshes_[submesh].whereDefined(value);
    const bool isHere = where != nullptr && (memory == plan::OUTPUT || mayReplaceIn(*where, name));
    CutStepFunction& function = isHere ? *where : submeshes_[submesh].update();
    WEFT_ASSIGN_OR_RETURN(const int made, cut(value, function));
    submeshes_[submesh].returnValue(function, made, name, memory);
    return absl::OkStatus();
  }

  const GraphView& view_;
  const Decisions& decisions_;
  const AnnotatedStep& step_;
  Prices& prices_;
  StageMeshes meshes_;
  const std::vector<std::vector<int>> readers_ = step_.readers();
  std::vector<SubmeshFunctions> submeshes_;
  std::vector<std::set<int>> held_;  // by submesh: the arguments that it reads
  LoweredStep made_;
};

}  // namespace

absl::StatusOr<LoweredStep> lowerStep(const GraphView& view, const Decisions& decisions, const AnnotatedStep& step,
                                      bool splitsBackward, Prices& prices) {
  return Lowerer(view, decisions, step, prices).run(splitsBackward);
}

}  // namespace weft
