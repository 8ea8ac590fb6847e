#include "ir/program/schedule_attributes.h"

#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR attributes throughout

namespace {

using ir::dist::CallAttr;
using ir::dist::RegionAttr;
using ir::dist::StorageAttr;

// The entries of a list of a module that are of their form.
template <typename Entry>
SmallVector<Entry> listOf(ModuleOp module, StringRef name) {
  auto list = module->getAttrOfType<ArrayAttr>(name);
  SmallVector<Entry> entries;
  for (mlir::Attribute entry : list ? list.getValue() : ArrayRef<mlir::Attribute>()) {
    if (auto known = dyn_cast<Entry>(entry)) {
      entries.push_back(known);
    }
  }
  return entries;
}

void setList(ModuleOp module, StringRef name, ArrayRef<mlir::Attribute> entries) {
  module->setAttr(name, ArrayAttr::get(module.getContext(), entries));
}

SmallVector<ir::dist::ReceiveOp> receivesIn(ModuleOp submesh) {
  SmallVector<ir::dist::ReceiveOp> receives;
  for (func::FuncOp function : functionsInOrder(submesh)) {
    llvm::append_range(receives, function.getOps<ir::dist::ReceiveOp>());
  }
  return receives;
}

StorageAttr placedAt(StorageAttr storage, int64_t offset, int64_t ring) {
  return StorageAttr::get(storage.getContext(), storage.getMemory(), storage.getBytes(), storage.getLabel(), offset,
                          ring);
}

}  // namespace

static_assert(static_cast<int>(ir::dist::Memory::kParameter) == plan::PARAMETER &&
              static_cast<int>(ir::dist::Memory::kState) == plan::STATE &&
              static_cast<int>(ir::dist::Memory::kAccumulator) == plan::ACCUMULATOR &&
              static_cast<int>(ir::dist::Memory::kInput) == plan::INPUT &&
              static_cast<int>(ir::dist::Memory::kOutput) == plan::OUTPUT &&
              static_cast<int>(ir::dist::Memory::kConstant) == plan::CONSTANT &&
              static_cast<int>(ir::dist::Memory::kActivation) == plan::ACTIVATION &&
              static_cast<int>(ir::dist::Memory::kTransient) == plan::TRANSIENT &&
              static_cast<int>(ir::dist::Memory::kWorkspace) == plan::WORKSPACE &&
              static_cast<int>(ir::dist::Memory::kMailbox) == plan::MAILBOX);

ir::dist::Memory memoryWord(plan::MemoryClass memory) {
  return static_cast<ir::dist::Memory>(memory);
}

plan::MemoryClass memoryClass(ir::dist::Memory memory) {
  return static_cast<plan::MemoryClass>(memory);
}

SubmeshCalls callsOf(ModuleOp submesh) {
  auto actions = submesh->getAttrOfType<ir::dist::ActionsAttr>(kActionsAttr);
  SubmeshCalls calls;
  if (!actions) {
    return calls;
  }
  llvm::StringMap<int> numbers;
  for (func::FuncOp function : functionsInOrder(submesh)) {
    numbers.try_emplace(function.getName(), static_cast<int>(numbers.size()));
  }
  const auto read = [&](ArrayRef<CallAttr> from, std::vector<FunctionCall>& to) {
    for (CallAttr call : from) {
      const auto known = numbers.find(call.getFunction().getValue());
      to.push_back({known == numbers.end() ? -1 : known->second, call.getMicroBatch()});
    }
  };
  read(actions.getInit(), calls.init);
  read(actions.getStep(), calls.step);
  return calls;
}

void setCalls(ModuleOp submesh, const SubmeshCalls& calls) {
  const SmallVector<func::FuncOp> functions = functionsInOrder(submesh);
  const auto named = [&](const std::vector<FunctionCall>& from) {
    SmallVector<CallAttr> to;
    for (const FunctionCall& call : from) {
      func::FuncOp function = functions[call.function];
      to.push_back(
          CallAttr::get(submesh.getContext(), FlatSymbolRefAttr::get(function.getNameAttr()), call.microBatch));
    }
    return to;
  };
  submesh->setAttr(kActionsAttr,
                   ir::dist::ActionsAttr::get(submesh.getContext(), named(calls.init), named(calls.step)));
}

int64_t storageOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto storage =
        function ? function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kStorageAttr) : IntegerAttr();
    return storage ? storage.getInt() : -1;
  }
  auto result = cast<OpResult>(value);
  auto storages = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kStorageAttr);
  return storages && storages.size() > result.getResultNumber() ? storages[result.getResultNumber()] : -1;
}

void setStorage(BlockArgument argument, int64_t storage) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  function.setArgAttr(argument.getArgNumber(), kStorageAttr, Builder(function).getI64IntegerAttr(storage));
}

void setStorages(Operation* op, ArrayRef<int64_t> storages) {
  op->setAttr(kStorageAttr, DenseI64ArrayAttr::get(op->getContext(), storages));
}

std::vector<Storage> storagesOf(ModuleOp submesh) {
  std::vector<Storage> storages;
  for (StorageAttr storage : listOf<StorageAttr>(submesh, kStoragesAttr)) {
    storages.push_back({memoryClass(storage.getMemory()), storage.getBytes(), storage.getLabel().str()});
  }
  return storages;
}

void setStorages(ModuleOp submesh, const std::vector<Storage>& storages) {
  SmallVector<mlir::Attribute> entries;
  for (const Storage& storage : storages) {
    entries.push_back(
        StorageAttr::get(submesh.getContext(), memoryWord(storage.memory), storage.bytes, storage.label, -1, 0));
  }
  setList(submesh, kStoragesAttr, entries);
}

StepMemory memoryOf(ModuleOp submesh) {
  StepMemory memory;
  for (StorageAttr storage : listOf<StorageAttr>(submesh, kStoragesAttr)) {
    memory.offsets.push_back(storage.getOffset());
    memory.rings.push_back(static_cast<int>(storage.getRing()));
  }
  for (ir::dist::ReceiveOp receive : receivesIn(submesh)) {
    memory.mailboxes.push_back(receive.getMailbox().value_or(-1));
  }
  for (RegionAttr region : listOf<RegionAttr>(submesh, kRegionsAttr)) {
    memory.regions.push_back({memoryClass(region.getMemory()), static_cast<int>(region.getRing()), region.getBytes(),
                              region.getMaxLive(), region.getLowerBound(), region.getSlots(), region.getStage()});
  }
  memory.peakBytes = peakOf(memory.regions);
  return memory;
}

void setMemory(ModuleOp submesh, const StepMemory& memory) {
  SmallVector<mlir::Attribute> storages;
  for (const auto& [i, storage] : llvm::enumerate(listOf<StorageAttr>(submesh, kStoragesAttr))) {
    storages.push_back(placedAt(storage, memory.offsets[i], memory.rings[i]));
  }
  setList(submesh, kStoragesAttr, storages);
  for (auto [receive, offset] : llvm::zip(receivesIn(submesh), memory.mailboxes)) {
    receive.setMailbox(offset);
  }
  SmallVector<mlir::Attribute> regions;
  for (const StepRegion& region : memory.regions) {
    regions.push_back(RegionAttr::get(submesh.getContext(), memoryWord(region.memory), region.bytes, region.maxLive,
                                      region.lowerBound, region.ring, region.slots, region.stage));
  }
  setList(submesh, kRegionsAttr, regions);
}

}  // namespace weft
