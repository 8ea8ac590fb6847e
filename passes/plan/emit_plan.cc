#include "passes/plan/emit_plan.h"

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/nn/kernel_attributes.h"
#include "ir/nn/nn.h"
#include "kernels/describe/kernel_spec.h"
#include "passes/plan/pack.h"
#include "passes/plan/storage.h"
#include "passes/support/program.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

constexpr std::pair<const char*, plan::FunctionKind> kFunctions[] = {{"init", plan::INIT},
                                                                     {"prologue", plan::PROLOGUE},
                                                                     {"forward", plan::FORWARD},
                                                                     {"backward", plan::BACKWARD},
                                                                     {"update", plan::UPDATE}};

DType elementType(Value value) {
  Type type = cast<RankedTensorType>(value.getType()).getElementType();
  if (auto real = dyn_cast<FloatType>(type)) {
    return real.isF64() ? DType::kF64 : real.isBF16() ? DType::kBF16 : real.isF16() ? DType::kF16 : DType::kF32;
  }
  return type.isInteger(1) ? DType::kBool : type.isInteger(64) ? DType::kI64 : DType::kI32;
}

TensorSpec specOf(Value value) {
  return {elementType(value), ir::shapeOf(value)};
}

void writeAttribute(const weft::Attribute& from, plan::Attribute* to) {
  if (const auto* integer = std::get_if<int64_t>(&from)) {
    to->set_integer(*integer);
  } else if (const auto* real = std::get_if<double>(&from)) {
    to->set_real(*real);
  } else if (const auto* text = std::get_if<std::string>(&from)) {
    to->set_text(*text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&from)) {
    to->mutable_integers()->mutable_values()->Assign(integers->begin(), integers->end());
  } else if (const auto* floats = std::get_if<std::vector<double>>(&from)) {
    to->mutable_floats()->mutable_values()->Assign(floats->begin(), floats->end());
  }
}

// The elements of a constant as bytes, little-endian.
std::string constantBytes(ir::nn::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  const int64_t count = cast<RankedTensorType>(op->getResult(0).getType()).getNumElements();
  std::string bytes;
  auto append = [&](const llvm::APInt& value, unsigned width) {
    const uint64_t word = value.getZExtValue();
    bytes.append(reinterpret_cast<const char*>(&word), std::max(width / 8, 1u));
  };
  for (int64_t i = 0; elements && i < count; ++i) {
    const int64_t at = elements.isSplat() ? 0 : i;
    if (isa<FloatType>(elements.getElementType())) {
      append((*(elements.value_begin<llvm::APFloat>() + at)).bitcastToAPInt(),
             elements.getElementType().getIntOrFloatBitWidth());
    } else {
      append(*(elements.value_begin<llvm::APInt>() + at), elements.getElementType().getIntOrFloatBitWidth());
    }
  }
  return bytes;
}

class PlanEmitter {
 public:
  explicit PlanEmitter(ModuleOp module) : module_(module) {}

  LogicalResult run() {
    FailureOr<Mesh> mesh = meshOf(module_);
    if (failed(mesh)) {
      return failure();
    }
    plan_.set_format_version(kPlanFormatVersion);
    plan_.set_name(module_.getName() ? module_.getName()->str() : "step");
    plan_.set_mesh(mesh->print());
    plan_.set_ranks(mesh->ranks());
    plan_.set_pieces(mesh->pieces());
    if (auto decisions = module_->getAttrOfType<StringAttr>(kDecisionsAttr)) {
      plan_.set_decisions(decisions.getValue().str());
    }
    readRankTable();
    for (const auto& [name, kind] : kFunctions) {
      if (auto function = module_.lookupSymbol<func::FuncOp>(name)) {
        functions_.push_back(function);
        kinds_.push_back(kind);
      }
    }
    FailureOr<StorageAssignment> storage = assignStorage(functions_);
    if (failed(storage)) {
      return failure();
    }
    storage_ = *std::move(storage);
    layOut();
    for (size_t i = 0; i < functions_.size(); ++i) {
      emitFunction(functions_[i], i);
    }
    finishRegions();
    emitRankTable();
    emitSchedules();
    return emitTensors();
  }

  plan::Plan takePlan() { return std::move(plan_); }

 private:
  void readRankTable() {
    if (auto table = module_->getAttrOfType<DenseIntElementsAttr>("dist.rank_table")) {
      const int64_t columns = table.getType().getDimSize(1);
      columns_.assign(columns, std::vector<int64_t>(plan_.ranks()));
      auto values = table.getValues<int64_t>();
      for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
        for (int64_t c = 0; c < columns; ++c) {
          columns_[c][rank] = values[rank * columns + c];
        }
      }
    }
  }

  // Offsets of all storages: classes that live long one after another, activations and transients packed by lifetime.
  void layOut() {
    offsets_.assign(storage_.storages.size(), 0);
    const size_t count = storage_.storages.size();
    for (size_t i = 0; i < count; ++i) {
      const Storage& entry = storage_.storages[i];
      if (entry.memory != plan::TRANSIENT && entry.memory != plan::ACTIVATION) {
        offsets_[i] = regions_[entry.memory].bytes;
        regions_[entry.memory].bytes += alignUp(entry.bytes);
        regions_[entry.memory].maxLive = regions_[entry.memory].bytes;
      }
    }
    packClass(plan::ACTIVATION, -1);
    for (size_t f = 0; f < functions_.size(); ++f) {
      packClass(plan::TRANSIENT, static_cast<int>(f));
    }
  }

  void packClass(plan::MemoryClass memory, int function) {
    std::vector<size_t> members;
    std::vector<PackItem> items;
    for (size_t i = 0; i < storage_.storages.size(); ++i) {
      const Storage& entry = storage_.storages[i];
      if (entry.memory == memory && (function < 0 || entry.function == function)) {
        members.push_back(i);
        items.push_back({entry.first, entry.last + 1, entry.bytes});
      }
    }
    const Packing packing = pack(items);
    for (size_t k = 0; k < members.size(); ++k) {
      offsets_[members[k]] = packing.offsets[k];
    }
    Extent& region = regions_[memory];
    region.bytes = std::max(region.bytes, packing.bytes);
    region.maxLive = std::max(region.maxLive, packing.maxLive);
  }

  // The buffer of a value: its storage seen with the value's type and shape.
  uint32_t bufferOf(Value value, int storage) {
    const TensorSpec spec = specOf(value);
    std::string key = std::to_string(storage) + dtypeName(spec.type);
    for (const int64_t size : spec.shape) {
      key += "," + std::to_string(size);
    }
    const auto [it, added] = buffers_.try_emplace(key, static_cast<uint32_t>(plan_.buffers_size()));
    if (added) {
      plan::Buffer* buffer = plan_.add_buffers();
      buffer->set_memory(storage_.storages[storage].memory);
      buffer->set_offset(offsets_[storage]);
      buffer->set_bytes(spec.bytes());
      buffer->set_type(elementTypeOf(spec.type));
      buffer->mutable_shape()->Assign(spec.shape.begin(), spec.shape.end());
      Operation* producer = value.getDefiningOp();
      buffer->set_label(storage_.storages[storage].memory == plan::TRANSIENT && producer != nullptr
                            ? labelOf(producer)
                            : storage_.storages[storage].label);
    }
    return it->second;
  }

  void addOperand(Value value, int storage, google::protobuf::RepeatedPtrField<plan::Operand>* operands) {
    operands->Add()->set_buffer(bufferOf(value, storage));
  }

  void emitFunction(func::FuncOp function, size_t index) {
    plan::Function* made = plan_.add_functions();
    made->set_name(function.getName().str());
    made->set_kind(kinds_[index]);
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (auto constant = dyn_cast<ir::nn::ConstantOp>(op)) {
        plan_.mutable_buffers(bufferOf(constant->getResult(0), storage_.of[constant->getResult(0)]))
            ->set_data(constantBytes(constant));
      } else if (!storage_.views.contains(&op)) {
        emitInstruction(&op, made->add_instructions());
      }
    }
    for (const Copy& copy : storage_.copies[index]) {
      plan::Instruction* instruction = made->add_instructions();
      instruction->set_kernel("reshape");
      instruction->set_label("copy of " + storage_.storages[copy.storage].label);
      instruction->set_location(locationOf(copy.from.getLoc()));
      addOperand(copy.from, storage_.of[copy.from], instruction->mutable_inputs());
      addOperand(copy.from, copy.storage, instruction->mutable_outputs());
    }
  }

  void emitInstruction(Operation* op, plan::Instruction* instruction) {
    for (Value operand : op->getOperands()) {
      addOperand(operand, storage_.of[operand], instruction->mutable_inputs());
    }
    for (Value result : op->getResults()) {
      addOperand(result, storage_.of[result], instruction->mutable_outputs());
    }
    instruction->set_label(labelOf(op));
    instruction->set_location(locationOf(op->getLoc()));
    if (op->hasAttr("reason")) {
      emitCollective(op, instruction->mutable_collective());
      return;
    }
    instruction->set_kernel(op->getName().stripDialect().str());
    KernelSpec spec{instruction->kernel(), {}, {}, ir::kernelAttributes(op), 0};
    for (Value operand : op->getOperands()) {
      spec.inputs.push_back(specOf(operand));
    }
    for (Value result : op->getResults()) {
      spec.outputs.push_back(specOf(result));
    }
    for (const auto& [name, value] : spec.attributes) {
      writeAttribute(value, &(*instruction->mutable_attributes())[name]);
    }
    if (auto scalars = op->getAttrOfType<ArrayAttr>("dist.scalars")) {
      for (auto scalar : scalars.getAsRange<ir::dist::ScalarAttr>()) {
        plan::Scalar* made = instruction->add_scalars();
        made->set_immediate(scalar.getImmediate());
        made->set_column(scalar.getColumn());
        made->set_piece_factor(scalar.getPieceFactor());
      }
      spec.scalars = scalars.size();
    }
    workspace_ = std::max(workspace_, workspaceBound(spec));
    if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
      instruction->set_flops(interface.getFlops());
    }
  }

  void emitCollective(Operation* op, plan::Collective* collective) {
    static const std::map<std::string, plan::CollectiveKind> kKinds = {{"all_reduce", plan::ALL_REDUCE},
                                                                       {"all_gather", plan::ALL_GATHER},
                                                                       {"reduce_scatter", plan::REDUCE_SCATTER},
                                                                       {"all_to_all", plan::ALL_TO_ALL},
                                                                       {"permute", plan::PERMUTE}};
    collective->set_kind(kKinds.at(op->getName().stripDialect().str()));
    auto integer = [&](StringRef name) {
      auto attr = op->getAttrOfType<IntegerAttr>(name);
      return attr ? attr.getInt() : 0;
    };
    collective->set_dim(integer("dim"));
    collective->set_split_dim(integer("split_dim"));
    collective->set_bytes_received(integer("bytes_received"));
    if (auto reduce = op->getAttrOfType<StringAttr>("reduce")) {
      collective->set_reduction(reduce.getValue() == "max"   ? plan::MAX
                                : reduce.getValue() == "min" ? plan::MIN
                                                             : plan::SUM);
    }
    if (auto groups = op->getAttrOfType<ArrayAttr>("groups")) {
      collective->set_group_set(groupSet(groups));
    }
    if (auto source = op->getAttrOfType<DenseI64ArrayAttr>("source")) {
      collective->set_source_column(static_cast<int64_t>(columns_.size()));
      columns_.emplace_back(source.asArrayRef().begin(), source.asArrayRef().end());
    }
    if (auto cost = op->getAttrOfType<FloatAttr>("cost")) {
      collective->set_cost(cost.getValueAsDouble());
    }
    collective->set_reason(op->getAttrOfType<StringAttr>("reason").getValue().str());
  }

  uint32_t groupSet(ArrayAttr groups) {
    const auto [it, added] = groupSets_.try_emplace(groups, static_cast<uint32_t>(plan_.group_sets_size()));
    if (added) {
      plan::GroupSet* set = plan_.add_group_sets();
      for (const auto& ranks : ir::dist::groupLists(groups)) {
        set->add_groups()->mutable_ranks()->Assign(ranks.begin(), ranks.end());
      }
    }
    return it->second;
  }

  uint32_t locationOf(Location loc) {
    auto place = loc->findInstanceOf<FileLineColLoc>();
    const std::string file = place ? place.getFilename().getValue().str() : "";
    const int64_t line = place ? place.getLine() : 0;
    const auto [it, added] = locations_.try_emplace({file, line}, static_cast<uint32_t>(plan_.locations_size()));
    if (added) {
      plan::Location* made = plan_.add_locations();
      made->set_file(file);
      made->set_line(line);
    }
    return it->second;
  }

  void finishRegions() {
    regions_[plan::WORKSPACE] = {alignUp(workspace_), alignUp(workspace_)};
    int64_t peak = 0;
    for (const auto& [memory, extent] : regions_) {
      plan::Region* region = plan_.mutable_memory()->add_regions();
      region->set_memory(memory);
      region->set_bytes(extent.bytes);
      region->set_max_live(extent.maxLive);
      region->set_slots(1);
      peak += extent.bytes;
    }
    plan_.mutable_memory()->set_peak_bytes(peak);
  }

  void emitRankTable() {
    plan::RankTable* table = plan_.mutable_rank_table();
    table->set_columns(static_cast<int64_t>(columns_.size()));
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (const std::vector<int64_t>& column : columns_) {
        table->add_values(column[rank]);
      }
    }
  }

  // One stage: prologue, then forward and backward of each piece in order, then the update.
  void emitSchedules() {
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      plan::RankSchedule* schedule = plan_.add_schedules();
      auto add = [&](plan::FunctionKind kind, int64_t piece) {
        for (size_t f = 0; f < kinds_.size(); ++f) {
          if (kinds_[f] == kind) {
            plan::Action* action = kind == plan::INIT ? schedule->add_init() : schedule->add_step();
            action->set_function(static_cast<uint32_t>(f));
            action->set_piece(piece);
          }
        }
      };
      add(plan::INIT, 0);
      add(plan::PROLOGUE, 0);
      for (int64_t piece = 0; piece < plan_.pieces(); ++piece) {
        add(plan::FORWARD, piece);
        add(plan::BACKWARD, piece);
      }
      add(plan::UPDATE, 0);
    }
  }

  LogicalResult emitTensors() {
    static const std::map<std::string, plan::TensorKind> kKinds = {{"input", plan::TENSOR_INPUT},
                                                                   {"parameter", plan::TENSOR_PARAMETER},
                                                                   {"state", plan::TENSOR_STATE},
                                                                   {"output", plan::TENSOR_OUTPUT}};
    auto tensors = module_->getAttrOfType<ArrayAttr>("dist.tensors");
    for (mlir::Attribute entry : tensors ? tensors.getValue() : ArrayRef<mlir::Attribute>()) {
      auto tensor = cast<DictionaryAttr>(entry);
      auto text = [&](StringRef key) { return tensor.getAs<StringAttr>(key).getValue().str(); };
      const auto storage = storage_.named.find(text("value"));
      if (storage == storage_.named.end()) {
        // An argument nothing reads or writes needs no memory: the host need not know it.
        continue;
      }
      plan::NamedTensor* made = plan_.add_tensors();
      made->set_name(text("name"));
      made->set_kind(kKinds.at(text("kind")));
      made->set_type(elementTypeOf(parseDType(text("type")).value_or(DType::kF32)));
      auto numbers = [](mlir::Attribute attr, google::protobuf::RepeatedField<int64_t>* to) {
        ArrayRef<int64_t> values = cast<DenseI64ArrayAttr>(attr).asArrayRef();
        to->Assign(values.begin(), values.end());
      };
      numbers(tensor.get("shape"), made->mutable_shape());
      numbers(tensor.get("file_shape"), made->mutable_file_shape());
      made->set_pad_value(tensor.getAs<FloatAttr>("pad_value").getValueAsDouble());
      auto offsets = tensor.getAs<ArrayAttr>("offsets");
      auto valid = tensor.getAs<ArrayAttr>("valid");
      for (size_t rank = 0; rank < offsets.size(); ++rank) {
        plan::Slice* slice = made->add_slices();
        numbers(offsets[rank], slice->mutable_offset());
        numbers(valid[rank], slice->mutable_valid());
      }
      const Value value = valueNamed(text("value"));
      made->set_buffer(bufferOf(value, storage->second));
    }
    return success();
  }

  // Some argument or result of that name: it has the buffer's type and shape.
  Value valueNamed(const std::string& name) {
    for (func::FuncOp function : functions_) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i) {
        if (function.getArgAttrOfType<StringAttr>(i, "dist.value").getValue() == name) {
          return function.getArgument(i);
        }
      }
      for (unsigned i = 0; i < function.getNumResults(); ++i) {
        if (function.getResultAttrOfType<StringAttr>(i, "dist.value").getValue() == name) {
          return returned(function, i);
        }
      }
    }
    return Value();
  }

  struct Extent {
    int64_t bytes = 0;
    int64_t maxLive = 0;
  };

  ModuleOp module_;
  plan::Plan plan_;
  std::vector<func::FuncOp> functions_;
  std::vector<plan::FunctionKind> kinds_;
  StorageAssignment storage_;
  std::vector<int64_t> offsets_;
  std::map<plan::MemoryClass, Extent> regions_;
  std::map<std::string, uint32_t> buffers_;
  llvm::DenseMap<mlir::Attribute, uint32_t> groupSets_;
  std::map<std::pair<std::string, int64_t>, uint32_t> locations_;
  std::vector<std::vector<int64_t>> columns_;
  int64_t workspace_ = 0;
};

}  // namespace

absl::StatusOr<plan::Plan> emitPlan(ModuleOp module) {
  PlanEmitter emitter(module);
  if (failed(emitter.run())) {
    return absl::InvalidArgumentError("the plan could not be emitted; see the diagnostics");
  }
  return emitter.takePlan();
}

}  // namespace weft
