#include "passes/partition/submesh_program.h"

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "passes/partition/rank_table.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

using ir::dist::Memory;

NamedAttrList valueAttributes(MLIRContext* context, const std::string& name, Memory memory) {
  NamedAttrList attrs;
  attrs.set(kValueAttr, StringAttr::get(context, name));
  setMemory(attrs, memory, context);
  return attrs;
}

// What both ends of a channel say.
OperationState channelState(StringRef name, const ChannelEnd& end) {
  Builder builder(end.value.getContext());
  OperationState state(end.value.getLoc(), name);
  state.addAttribute("channel", builder.getI64IntegerAttr(end.channel));
  state.addAttribute("submesh", builder.getI64IntegerAttr(end.submesh));
  state.addAttribute("reason", builder.getStringAttr(end.reason));
  state.addAttribute(kNameAttr, builder.getStringAttr(sourceLabel(end.value)));
  return state;
}

}  // namespace

std::string sourceLabel(Value value) {
  Operation* producer = value.getDefiningOp();
  while (producer != nullptr && (isa<ir::dist::ReshardOp, ir::dist::MaskPadOp>(producer) ||
                                 ir::viewKindOf(producer) == ViewKind::kAnnotation)) {
    value = producer->getOperand(0);
    producer = value.getDefiningOp();
  }
  if (producer != nullptr) {
    return labelOf(producer);
  }
  auto argument = cast<BlockArgument>(value);
  return argumentAt(cast<func::FuncOp>(argument.getOwner()->getParentOp()), argument.getArgNumber()).name;
}

SubmeshProgram::SubmeshProgram(ModuleOp module, int64_t submesh, std::vector<int64_t> stages)
    : module_(module), submesh_(submesh), stages_(std::move(stages)) {}

CutFunction& SubmeshProgram::function(StringRef kind, int64_t stage) {
  const std::string name = functionName(kind, stage, stages_.size() == 1);
  std::unique_ptr<CutFunction>& entry = functions_[name];
  if (!entry) {
    OpBuilder builder = OpBuilder::atBlockEnd(module_.getBody());
    auto function = builder.create<func::FuncOp>(module_.getLoc(), name, builder.getFunctionType({}, {}));
    function->setAttr(kFunctionKindAttr, builder.getStringAttr(kind));
    if (isPerMicroBatch(kind) && stages_.size() > 1) {
      function->setAttr(kStageAttr, builder.getI64IntegerAttr(stage));
    }
    builder.setInsertionPointToStart(function.addEntryBlock());
    entry = std::make_unique<CutFunction>(function, builder, submesh_, stage);
  }
  return *entry;
}

CutFunction* SubmeshProgram::whereDefined(Value value) {
  const auto it = definedIn_.find(value);
  return it == definedIn_.end() ? nullptr : madeTogether_.count(value) > 0 ? &function("update", 0) : it->second;
}

CutFunction& SubmeshProgram::functionOf(Value value) {
  CutFunction* where = whereDefined(value);
  return where == nullptr ? function("update", 0) : *where;
}

void SubmeshProgram::send(CutFunction& function, Value cut, const ChannelEnd& end) {
  OperationState state = channelState(ir::dist::SendOp::getOperationName(), end);
  state.addOperands(cut);
  function.builder.create(state);
}

Value SubmeshProgram::receive(CutFunction& function, Value target, const ChannelEnd& end) {
  OperationState state = channelState(ir::dist::ReceiveOp::getOperationName(), end);
  state.addTypes(target.getType());
  if (!end.boxes.empty()) {
    state.addAttribute("boxes", function.builder.getDenseI64ArrayAttr(end.boxes));
  }
  return function.builder.create(state)->getResult(0);
}

void SubmeshProgram::define(CutFunction& function, Value value, Value cut) {
  function.values[value] = cut;
  definedIn_[value] = &function;
}

Value SubmeshProgram::argument(CutFunction& function, Value value, const std::string& name,
                               std::optional<Memory> memory) {
  Value& known = function.arguments[name];
  if (!known) {
    known = function.function.getBody().front().addArgument(value.getType(), value.getLoc());
    function.argumentNames.emplace_back(name, memory);
  }
  return known;
}

Value SubmeshProgram::crossing(CutFunction& reader, Value value) {
  const auto together = madeTogether_.find(value);
  if (together != madeTogether_.end()) {
    return argument(reader, value, together->second.first, together->second.second);
  }
  Crossing& crossing = crossings_[value];
  if (crossing.name.empty()) {
    crossing.name = "v" + std::to_string(crossings_.size() - 1);
    crossing.producer = definedIn_[value];
  }
  crossing.betweenMicroBatchFunctions &=
      isPerMicroBatch(kindOf(crossing.producer->function)) && isPerMicroBatch(kindOf(reader.function));
  return argument(reader, value, crossing.name, std::nullopt);
}

bool SubmeshProgram::isReadElsewhere(const std::string& name, const CutFunction& function) const {
  return llvm::any_of(functions_, [&](const auto& entry) {
    return entry.second.get() != &function && entry.second->arguments.count(name) > 0;
  });
}

void SubmeshProgram::returnValue(CutFunction& function, Value cut, const std::string& name,
                                 std::optional<Memory> memory) {
  function.results.push_back(cut);
  function.resultNames.emplace_back(name, memory);
}

void SubmeshProgram::makeTogether(CutFunction& function, Value value, Value cut, OperationState& op,
                                  const NamedMemory& as) {
  Value before = argument(function, value, as.first, as.second);
  // Where a term is made: a gradient does not wait for the end of the function.
  OpBuilder builder = function.builder;
  if (Operation* producer = cut.getDefiningOp()) {
    builder.setInsertionPointAfter(producer);
  }
  op.addOperands({before, cut});
  op.addTypes(value.getType());
  Operation* made = builder.create(op);
  returnValue(function, made->getResult(0), as.first, as.second);
  definedIn_[value] = &function;
  madeTogether_[value] = as;
}

void SubmeshProgram::accumulate(CutFunction& function, Value value, Value cut, ReduceKind kind) {
  Builder& builder = function.builder;
  OperationState op(value.getLoc(), ir::dist::AccumulateOp::getOperationName());
  op.addAttribute(kScalarsAttr, builder.getArrayAttr({RankTable::scalar(0, 1, builder.getContext())}));
  op.addAttribute(kNameAttr, builder.getStringAttr(labelOf(value.getDefiningOp()->getOperand(0).getDefiningOp())));
  if (kind != ReduceKind::kSum) {
    op.addAttribute("reduce", builder.getStringAttr(reduceKindName(kind)));
  }
  const std::string name = "acc" + std::to_string(accumulators_++);
  makeTogether(function, value, cut, op, {name, Memory::kAccumulator});
}

void SubmeshProgram::collect(CutFunction& function, Value value, Value cut, const std::string& name) {
  OperationState op(value.getLoc(), ir::dist::DynamicUpdateSliceOp::getOperationName());
  op.addAttribute(kNameAttr, function.builder.getStringAttr(sourceLabel(value)));
  makeTogether(function, value, cut, op, {name, Memory::kOutput});
}

bool SubmeshProgram::isCollectedAs(Value value, const std::string& name) const {
  const auto known = madeTogether_.find(value);
  return known != madeTogether_.end() && known->second.first == name;
}

void SubmeshProgram::finish() {
  std::map<std::string, Memory> memory;
  for (auto& [value, crossing] : crossings_) {
    returnValue(*crossing.producer, crossing.producer->values[value], crossing.name, std::nullopt);
    memory[crossing.name] = crossing.betweenMicroBatchFunctions ? Memory::kActivation : Memory::kAccumulator;
  }
  MLIRContext* context = module_.getContext();
  for (func::FuncOp made : functionsInOrder(module_)) {
    CutFunction& cut = *functions_.at(made.getName().str());
    cut.builder.create<func::ReturnOp>(module_.getLoc(), cut.results);
    refreshType(cut.function);
    auto attributesOf = [&](const NamedMemory& entry) {
      return valueAttributes(context, entry.first, entry.second ? *entry.second : memory.at(entry.first));
    };
    for (size_t i = 0; i < cut.argumentNames.size(); ++i) {
      cut.function.setArgAttrs(i, attributesOf(cut.argumentNames[i]));
    }
    for (size_t i = 0; i < cut.resultNames.size(); ++i) {
      cut.function.setResultAttrs(i, attributesOf(cut.resultNames[i]).getDictionary(context));
    }
    cut.function->moveBefore(module_.getBody(), module_.getBody()->end());
  }
}

}  // namespace weft
