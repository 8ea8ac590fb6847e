#include "passes/plan/step_program.h"

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "llvm/ADT/StringSwitch.h"
#include "passes/plan/instruction_facts.h"
#include "planner/step/step_calls.h"
#include "runtime/plan/collectives.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

plan::FunctionKind functionKind(StringRef kind) {
  return llvm::StringSwitch<plan::FunctionKind>(kind)
      .Case("prologue", plan::PROLOGUE)
      .Case("forward", plan::FORWARD)
      .Case("backward", plan::BACKWARD)
      .Case("input_grad", plan::INPUT_GRAD)
      .Case("weight_grad", plan::WEIGHT_GRAD)
      .Case("update", plan::UPDATE)
      .Default(plan::INIT);
}

plan::MemoryClass memoryClass(StringRef name) {
  return llvm::StringSwitch<plan::MemoryClass>(name)
      .Case("parameter", plan::PARAMETER)
      .Case("state", plan::STATE)
      .Case("accumulator", plan::ACCUMULATOR)
      .Case("input", plan::INPUT)
      .Case("output", plan::OUTPUT)
      .Case("constant", plan::CONSTANT)
      .Default(plan::ACTIVATION);
}

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
  StepReader(SubmeshStep& step, const SubmeshContext& context) : step_(step), context_(context) {}

  StepFunction read(func::FuncOp function) {
    auto stage = function->getAttrOfType<IntegerAttr>(kStageAttr);
    StepFunction made{.kind = functionKind(kindOf(function)), .stage = stage ? stage.getInt() : onlyStage()};
    for (BlockArgument argument : function.getArguments()) {
      made.arguments.push_back(nameOf(argument, function.getArgAttrDict(argument.getArgNumber())));
    }
    for (Operation& op : function.getBody().front().without_terminator()) {
      made.instructions.push_back(read(&op));
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      made.results.push_back(nameOf(returned(function, i), function.getResultAttrDict(i)));
    }
    return made;
  }

 private:
  // The stage of a submesh that owns one.
  int64_t onlyStage() const { return llvm::find(context_.submeshes, context_.submesh) - context_.submeshes.begin(); }

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
    return {numberOf(value), attrs.getAs<StringAttr>(kValueAttr).getValue().str(),
            memoryClass(attrs.getAs<StringAttr>(kMemoryAttr).getValue())};
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
        made.mailboxBytes = capacityOf(op, context_) * tensorSpec(op->getResult(0)).bytes();
        break;
      case StepInstruction::Kind::kKernel:
      case StepInstruction::Kind::kView:
        describeKernel(op, made);
        break;
      case StepInstruction::Kind::kSend:
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
  const SubmeshContext& context_;
  llvm::DenseMap<std::pair<mlir::Attribute, Type>, int> constants_;
};

}  // namespace

SubmeshStep stepOf(ModuleOp submesh, std::set<std::string> visible, const SubmeshContext& context) {
  SubmeshStep step;
  step.program.visible = std::move(visible);
  StepReader reader(step, context);
  for (func::FuncOp function : functionsInOrder(submesh)) {
    step.functions.push_back(function);
    step.program.functions.push_back(reader.read(function));
  }
  return step;
}

int64_t capacityOf(Operation* transfer, const SubmeshContext& context) {
  const int64_t other = transfer->getAttrOfType<IntegerAttr>("submesh").getInt();
  const plan::FunctionKind kind = functionKind(kindOf(transfer->getParentOfType<func::FuncOp>()));
  return channelCapacity(kind, {context.submeshes, context.inFlight, context.submesh, other});
}

}  // namespace weft
