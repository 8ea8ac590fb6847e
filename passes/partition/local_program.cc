#include "passes/partition/local_program.h"

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

NamedAttrList valueAttributes(Builder& builder, const std::string& name, const std::string& memory) {
  NamedAttrList attrs;
  attrs.set(kValueAttr, builder.getStringAttr(name));
  attrs.set(kMemoryAttr, builder.getStringAttr(memory));
  return attrs;
}

// The place of `rank` among the members of its group.
int64_t placeInGroup(const std::vector<std::vector<int64_t>>& groups, int64_t rank) {
  for (const std::vector<int64_t>& group : groups) {
    const auto it = std::find(group.begin(), group.end(), rank);
    if (it != group.end()) {
      return it - group.begin();
    }
  }
  return 0;
}

}  // namespace

std::string sourceLabel(Value value) {
  Operation* producer = value.getDefiningOp();
  while (producer != nullptr && (isa<ir::dist::ReshardOp, ir::dist::MaskPadOp>(producer) ||
                                 ir::viewKindOf(producer) == ir::ViewKind::kAnnotation)) {
    value = producer->getOperand(0);
    producer = value.getDefiningOp();
  }
  if (producer != nullptr) {
    return labelOf(producer);
  }
  auto argument = cast<BlockArgument>(value);
  return argumentAt(cast<func::FuncOp>(argument.getOwner()->getParentOp()), argument.getArgNumber()).name;
}

LocalProgram::LocalProgram(ModuleOp module, const Mesh& mesh, int64_t submesh, std::vector<int64_t> stages)
    : module_(module), mesh_(mesh), submesh_(submesh), stages_(std::move(stages)), attributes_(module.getContext()) {}

LocalFunction& LocalProgram::function(StringRef kind, int64_t stage) {
  const std::string name = functionName(kind, stage, stages_.size() == 1);
  std::unique_ptr<LocalFunction>& entry = functions_[name];
  if (!entry) {
    OpBuilder builder = OpBuilder::atBlockEnd(module_.getBody());
    auto function = builder.create<func::FuncOp>(module_.getLoc(), name, builder.getFunctionType({}, {}));
    function->setAttr(kFunctionKindAttr, builder.getStringAttr(kind));
    if (isPerMicroBatch(kind) && stages_.size() > 1) {
      function->setAttr(kStageAttr, builder.getI64IntegerAttr(stage));
    }
    builder.setInsertionPointToStart(function.addEntryBlock());
    entry = std::make_unique<LocalFunction>(function, builder, submesh_, stage);
  }
  return *entry;
}

LocalFunction* LocalProgram::whereDefined(Value value) {
  const auto it = definedIn_.find(value);
  return it == definedIn_.end() ? nullptr : accumulators_.count(value) > 0 ? &function("update", 0) : it->second;
}

LocalFunction& LocalProgram::functionOf(Value value) {
  LocalFunction* where = whereDefined(value);
  return where == nullptr ? function("update", 0) : *where;
}

void LocalProgram::nameEnd(OperationState& state, const ChannelEnd& end) {
  state.addAttribute("channel", attributes_.getI64IntegerAttr(end.channel));
  state.addAttribute("submesh", attributes_.getI64IntegerAttr(end.submesh));
  state.addAttribute("reason", attributes_.getStringAttr(end.reason));
  state.addAttribute(kNameAttr, attributes_.getStringAttr(sourceLabel(end.annotated)));
}

void LocalProgram::send(LocalFunction& function, Value value, const ChannelEnd& end) {
  OperationState state(end.annotated.getLoc(), ir::dist::SendOp::getOperationName());
  state.addOperands(value);
  nameEnd(state, end);
  function.builder.create(state);
}

Value LocalProgram::receive(LocalFunction& function, RankedTensorType type, const ChannelEnd& end) {
  OperationState state(end.annotated.getLoc(), ir::dist::ReceiveOp::getOperationName());
  state.addTypes(type);
  nameEnd(state, end);
  if (!end.boxes.empty()) {
    state.addAttribute("boxes", attributes_.getDenseI64ArrayAttr(end.boxes));
  }
  return function.builder.create(state)->getResult(0);
}

void LocalProgram::define(LocalFunction& function, Value annotated, Value local) {
  function.values[annotated] = local;
  definedIn_[annotated] = &function;
}

Value LocalProgram::argument(LocalFunction& function, RankedTensorType type, const std::string& name,
                             const std::string& memory, Location loc) {
  Value& known = function.arguments[name];
  if (!known) {
    known = function.function.getBody().front().addArgument(type, loc);
    function.argumentNames.emplace_back(name, memory);
  }
  return known;
}

Value LocalProgram::crossing(LocalFunction& reader, Value annotated, RankedTensorType type) {
  const auto accumulator = accumulators_.find(annotated);
  if (accumulator != accumulators_.end()) {
    return argument(reader, type, accumulator->second, "accumulator", annotated.getLoc());
  }
  Crossing& crossing = crossings_[annotated];
  if (crossing.name.empty()) {
    crossing.name = "v" + std::to_string(crossings_.size() - 1);
    crossing.producer = definedIn_[annotated];
  }
  crossing.betweenMicroBatchFunctions &=
      isPerMicroBatch(kindOf(crossing.producer->function)) && isPerMicroBatch(kindOf(reader.function));
  return argument(reader, type, crossing.name, "", annotated.getLoc());
}

void LocalProgram::returnValue(LocalFunction& function, Value local, const std::string& name,
                               const std::string& memory) {
  function.results.push_back(local);
  function.resultNames.emplace_back(name, memory);
}

void LocalProgram::accumulate(LocalFunction& function, Value annotated, Value value, Location loc,
                              const std::string& label) {
  const std::string name = "acc" + std::to_string(accumulatorCount_++);
  Value before = argument(function, cast<RankedTensorType>(value.getType()), name, "accumulator", loc);
  OperationState state(loc, ir::dist::AccumulateOp::getOperationName());
  state.addOperands({before, value});
  state.addTypes(value.getType());
  const std::vector<int64_t> zeros(mesh_.ranks(), 0);
  state.addAttribute(kScalarsAttr, attributes_.getArrayAttr({scalar(zeros, 1)}));
  state.addAttribute(kNameAttr, attributes_.getStringAttr(label));
  // Where the value is made: a gradient does not wait for the end of the function.
  OpBuilder builder = function.builder;
  if (Operation* producer = value.getDefiningOp()) {
    builder.setInsertionPointAfter(producer);
  }
  Value after = builder.create(state)->getResult(0);
  returnValue(function, after, name, "accumulator");
  definedIn_[annotated] = &function;
  accumulators_[annotated] = name;
}

Value LocalProgram::dynamicSlice(LocalFunction& function, Value value, RankedTensorType type,
                                 ArrayRef<Attribute> starts, Location loc) {
  OperationState state(loc, ir::dist::DynamicSliceOp::getOperationName());
  state.addOperands(value);
  state.addTypes(type);
  state.addAttribute(kScalarsAttr, attributes_.getArrayAttr(starts));
  return function.builder.create(state)->getResult(0);
}

Value LocalProgram::step(LocalFunction& function, Value value, const ReshardStep& step, const Layout& before,
                         Operation* reshard) {
  auto type = RankedTensorType::get(step.localShape, cast<RankedTensorType>(value.getType()).getElementType());
  const std::vector<std::vector<int64_t>> groups = groupsOf(step, mesh_);
  const Location loc = reshard->getLoc();
  if (step.kind == CollectiveKind::kSlice) {
    SmallVector<Attribute> starts;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      std::vector<int64_t> offsets(mesh_.ranks(), 0);
      for (int64_t rank = 0; d == step.targetDim && rank < mesh_.ranks(); ++rank) {
        offsets[rank] = placeInGroup(groups, rank) * step.localShape[d];
      }
      starts.push_back(scalar(offsets, 0));
    }
    return dynamicSlice(function, value, type, starts, loc);
  }
  OperationState state(loc, "dist." + collectiveName(step.kind));
  state.addOperands(value);
  state.addTypes(type);
  auto dim = [&](int64_t d) { return attributes_.getI64IntegerAttr(d); };
  if (step.kind == CollectiveKind::kPermute) {
    state.addAttribute("source", attributes_.getDenseI64ArrayAttr(step.source));
  } else {
    state.addAttribute("groups", ir::dist::groupsAttr(module_.getContext(), groups));
  }
  if (step.kind == CollectiveKind::kAllGather || step.kind == CollectiveKind::kAllToAll) {
    state.addAttribute("dim", dim(step.sourceDim));
  }
  if (step.kind == CollectiveKind::kReduceScatter) {
    state.addAttribute("dim", dim(step.targetDim));
  }
  if (step.kind == CollectiveKind::kAllToAll) {
    state.addAttribute("split_dim", dim(step.targetDim));
  }
  if (step.kind == CollectiveKind::kReduceScatter || step.kind == CollectiveKind::kAllReduce) {
    state.addAttribute("reduce", attributes_.getStringAttr(reduceKindName(step.reduce)));
  }
  const std::string reason = cast<StringAttr>(reshard->getAttr("reason")).getValue().str() + ": " +
                             before.print(mesh_) + " -> " + step.layout.print(mesh_);
  state.addAttribute("reason", attributes_.getStringAttr(reason));
  state.addAttribute("cost", attributes_.getF64FloatAttr(step.cost));
  state.addAttribute("bytes_received", attributes_.getI64IntegerAttr(step.bytesReceived));
  state.addAttribute(kNameAttr, attributes_.getStringAttr(sourceLabel(reshard->getOperand(0))));
  return function.builder.create(state)->getResult(0);
}

Attribute LocalProgram::scalar(const std::vector<int64_t>& offsets, int64_t perMicroBatch) {
  const bool same = std::all_of(offsets.begin(), offsets.end(), [&](int64_t value) { return value == offsets[0]; });
  int64_t column = -1;
  if (!same) {
    const auto [it, added] = columns_.try_emplace(offsets, static_cast<int64_t>(table_.size()));
    if (added) {
      table_.push_back(offsets);
    }
    column = it->second;
  }
  return ir::dist::ScalarAttr::get(module_.getContext(), same ? offsets[0] : 0, column, perMicroBatch);
}

DType LocalProgram::elementType(Value value) {
  Type type = cast<RankedTensorType>(value.getType()).getElementType();
  if (type.isF64()) {
    return DType::kF64;
  }
  if (type.isBF16()) {
    return DType::kBF16;
  }
  if (type.isF16()) {
    return DType::kF16;
  }
  if (type.isInteger(1)) {
    return DType::kBool;
  }
  return type.isInteger(32) ? DType::kI32 : type.isInteger(64) ? DType::kI64 : DType::kF32;
}

void LocalProgram::addTensor(Value annotated, const Layout& layout, const TensorNames& names) {
  const Shape shape = ir::shapeOf(annotated);
  SmallVector<Attribute> offsets;
  SmallVector<Attribute> valid;
  for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
    const Slice slice = layout.slice(shape, mesh_, rank, 0);
    offsets.push_back(attributes_.getDenseI64ArrayAttr(slice.offset));
    valid.push_back(attributes_.getDenseI64ArrayAttr(slice.valid));
  }
  NamedAttrList attrs;
  attrs.set("name", attributes_.getStringAttr(names.name));
  attrs.set("kind", attributes_.getStringAttr(names.kind));
  attrs.set("value", attributes_.getStringAttr(names.buffer));
  attrs.set("type", attributes_.getStringAttr(dtypeName(elementType(annotated))));
  attrs.set("shape", attributes_.getDenseI64ArrayAttr(shape));
  attrs.set("file_shape", attributes_.getDenseI64ArrayAttr(shape));
  attrs.set("offsets", attributes_.getArrayAttr(offsets));
  attrs.set("valid", attributes_.getArrayAttr(valid));
  tensors_.push_back(attrs.getDictionary(module_.getContext()));
}

void LocalProgram::lastTensorAttribute(Attribute fileShape) {
  SmallVector<int64_t> shape;
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(fileShape)) {
    shape.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
  } else if (auto array = dyn_cast_or_null<ArrayAttr>(fileShape)) {
    for (Attribute value : array) {
      shape.push_back(cast<IntegerAttr>(value).getInt());
    }
  } else {
    return;
  }
  NamedAttrList attrs(tensors_.back());
  attrs.set("file_shape", attributes_.getDenseI64ArrayAttr(shape));
  tensors_.back() = attrs.getDictionary(module_.getContext());
}

void LocalProgram::finish() {
  for (auto& [value, crossing] : crossings_) {
    returnValue(*crossing.producer, crossing.producer->values[value], crossing.name, "");
  }
  std::map<std::string, std::string> memory;
  for (auto& [value, crossing] : crossings_) {
    memory[crossing.name] = crossing.betweenMicroBatchFunctions ? "activation" : "accumulator";
  }
  for (func::FuncOp made : functionsInOrder(module_)) {
    LocalFunction& local = *functions_.at(made.getName().str());
    local.builder.create<func::ReturnOp>(module_.getLoc(), local.results);
    refreshType(local.function);
    auto attributesOf = [&](const std::pair<std::string, std::string>& entry) {
      return valueAttributes(attributes_, entry.first, entry.second.empty() ? memory[entry.first] : entry.second);
    };
    for (size_t i = 0; i < local.argumentNames.size(); ++i) {
      local.function.setArgAttrs(i, attributesOf(local.argumentNames[i]));
    }
    for (size_t i = 0; i < local.resultNames.size(); ++i) {
      local.function.setResultAttrs(i, attributesOf(local.resultNames[i]).getDictionary(module_.getContext()));
    }
    local.function->moveBefore(module_.getBody(), module_.getBody()->end());
  }
  SmallVector<int64_t> values;
  for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
    for (const std::vector<int64_t>& column : table_) {
      values.push_back(column[rank]);
    }
  }
  auto type = RankedTensorType::get({mesh_.ranks(), static_cast<int64_t>(table_.size())}, attributes_.getI64Type());
  module_->setAttr(kRankTableAttr, DenseIntElementsAttr::get(type, values));
  SmallVector<Attribute> tensors(tensors_.begin(), tensors_.end());
  module_->setAttr(kTensorsAttr, attributes_.getArrayAttr(tensors));
}

}  // namespace weft
