#include "passes/plan/step_program.h"

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "ir/program/schedule_attributes.h"
#include "llvm/ADT/StringSwitch.h"
#include "passes/plan/instruction_facts.h"
#include "runtime/plan/collectives.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

StepInstruction::Kind instructionKind(Operation* op) {
  using Kind = StepInstruction::Kind;
  if (isa<ir::nn::ConstantOp>(op)) {
    return Kind::kConstant;
  }
  if (isa<ir::dist::SendOp>(op)) {
    return Kind::kSend;
  }
  if (isa<ir::dist::ReceiveOp>(op)) {
    return Kind::kReceive;
  }
  return ir::viewKindOf(op) == ViewKind::kShape ? Kind::kView : Kind::kKernel;
}

// The value that copies were made of.
Value copied(Value value) {
  while (auto copy = value.getDefiningOp<ir::dist::CopyOp>()) {
    value = copy.getX();
  }
  return value;
}

// Those that the host reads or writes.
std::set<std::string> visibleNames(ModuleOp submesh) {
  std::set<std::string> names;
  if (auto tensors = submesh->getAttrOfType<ArrayAttr>(kTensorsAttr)) {
    for (auto tensor : tensors.getAsRange<DictionaryAttr>()) {
      names.insert(tensor.getAs<StringAttr>("value").getValue().str());
    }
  }
  return names;
}

// Each operand of a collective alone.
std::vector<InPlacePair> inPlaceOf(Operation* op, plan::CollectiveKind kind) {
  std::vector<InPlacePair> pairs;
  for (size_t i = 0; mayRunInPlace(kind) && i < op->getNumOperands(); ++i) {
    pairs.push_back({i, i});
  }
  return pairs;
}

class StepReader {
 public:
  explicit StepReader(SubmeshStep& step) : step_(step) {}

  StepFunction read(func::FuncOp function, int64_t stage) {
    StepFunction made{.kind = functionKind(function), .stage = stage};
    for (BlockArgument argument : function.getArguments()) {
      made.arguments.push_back(nameOf(argument, function.getArgAttrDict(argument.getArgNumber())));
    }
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (!isa<ir::dist::CopyOp>(op)) {
        made.instructions.push_back(read(&op));
      }
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      made.results.push_back(nameOf(copied(returned(function, i)), function.getResultAttrDict(i)));
    }
    return made;
  }

 private:
  int numberOf(Value value) {
    StepProgram& program = step_.program;
    const auto [it, added] = step_.numbers.try_emplace(value, static_cast<int>(program.values.size()));
    if (added) {
      program.values.push_back({tensorSpec(value).bytes()});
      step_.values.push_back(value);
    }
    return it->second;
  }

  StepName nameOf(Value value, DictionaryAttr attrs) {
    return {numberOf(value), attrs.getAs<StringAttr>(kValueAttr).getValue().str(), memoryClass(*memoryOf(attrs))};
  }

  StepInstruction read(Operation* op) {
    StepInstruction made{.kind = instructionKind(op), .label = labelOf(op), .named = op->hasAttr(kNameAttr)};
    for (Value operand : op->getOperands()) {
      made.inputs.push_back(numberOf(operand));
    }
    for (Value result : op->getResults()) {
      made.outputs.push_back(numberOf(result));
    }
    switch (made.kind) {
      case StepInstruction::Kind::kConstant:
        made.constant = constantNumber(op);
        break;
      case StepInstruction::Kind::kReceive:
        made.mailboxBytes =
            cast<ir::dist::ReceiveOp>(op).getCapacity().value_or(0) * tensorSpec(op->getResult(0)).bytes();
        break;
      case StepInstruction::Kind::kKernel:
      case StepInstruction::Kind::kView:
        describeKernel(op, made);
        break;
      case StepInstruction::Kind::kSend:
      case StepInstruction::Kind::kWait:  // there is none
        break;
    }
    return made;
  }

  static void describeKernel(Operation* op, StepInstruction& instruction) {
    if (const std::optional<plan::CollectiveKind> collective = collectiveKindOf(op)) {
      instruction.inPlace = inPlaceOf(op, *collective);
      return;
    }
    KernelDescription description = describe(kernelSpecOf(op), Target::kCpu);
    instruction.inPlace = std::move(description.inPlace);
    instruction.workspaceBytes = description.workspaceBytes;
  }

  int constantNumber(Operation* op) {
    const auto key =
        std::make_pair(mlir::Attribute(cast<ir::nn::ConstantOp>(op).getValueAttr()), op->getResult(0).getType());
    return constants_.try_emplace(key, static_cast<int>(constants_.size())).first->second;
  }

  SubmeshStep& step_;
  llvm::DenseMap<std::pair<mlir::Attribute, Type>, int> constants_;
};

}  // namespace

plan::FunctionKind functionKind(func::FuncOp function) {
  return llvm::StringSwitch<plan::FunctionKind>(kindOf(function))
      .Case("prologue", plan::PROLOGUE)
      .Case("forward", plan::FORWARD)
      .Case("backward", plan::BACKWARD)
      .Case("input_grad", plan::INPUT_GRAD)
      .Case("weight_grad", plan::WEIGHT_GRAD)
      .Case("update", plan::UPDATE)
      .Default(plan::INIT);
}

int64_t stageOfFunction(func::FuncOp function, const ScheduleDecision& schedule, int64_t submesh) {
  auto stage = function->getAttrOfType<IntegerAttr>(kStageAttr);
  return stage ? stage.getInt() : llvm::find(schedule.submeshes, submesh) - schedule.submeshes.begin();
}

std::vector<SubmeshStep> stepsOf(ModuleOp module) {
  const ScheduleDecision schedule = scheduleOf(module);
  std::vector<SubmeshStep> steps;
  for (const auto& [i, submesh] : llvm::enumerate(submeshesOf(module))) {
    SubmeshStep& step = steps.emplace_back();
    step.program.visible = visibleNames(submesh);
    StepReader reader(step);
    for (func::FuncOp function : functionsInOrder(submesh)) {
      step.functions.push_back(function);
      step.program.functions.push_back(
          reader.read(function, stageOfFunction(function, schedule, static_cast<int64_t>(i))));
    }
  }
  return steps;
}

StorageAssignment assignmentOf(ModuleOp submesh, const SubmeshStep& step) {
  StorageAssignment assignment{.storages = storagesOf(submesh)};
  for (const Value value : step.values) {
    assignment.of.push_back(static_cast<int>(storageOf(value)));
  }
  for (func::FuncOp function : step.functions) {
    std::vector<bool>& views = assignment.views.emplace_back();
    std::vector<Copy>& copies = assignment.copies.emplace_back();
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (auto copy = dyn_cast<ir::dist::CopyOp>(op)) {
        copies.push_back({step.numbers.lookup(copied(copy.getY())), static_cast<int>(storageOf(copy.getX())),
                          static_cast<int>(storageOf(copy.getY()))});
      } else {
        views.push_back(op.hasAttr(kViewAttr));
      }
    }
    const auto name = [&](DictionaryAttr attrs, Value value) {
      assignment.named[attrs.getAs<StringAttr>(kValueAttr).getValue().str()] = static_cast<int>(storageOf(value));
    };
    for (const BlockArgument argument : function.getArguments()) {
      name(function.getArgAttrDict(argument.getArgNumber()), argument);
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      name(function.getResultAttrDict(i), returned(function, i));
    }
  }
  return assignment;
}

}  // namespace weft
