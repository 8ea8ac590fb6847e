#include "passes/plan/storage.h"

#include <algorithm>

#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "kernels/describe/describe.h"
#include "passes/plan/copies.h"
#include "passes/plan/instruction_facts.h"
#include "runtime/plan/collectives.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

plan::MemoryClass memoryClass(StringRef name) {
  static const std::map<std::string, plan::MemoryClass> kClasses = {
      {"parameter", plan::PARAMETER}, {"state", plan::STATE},   {"accumulator", plan::ACCUMULATOR},
      {"input", plan::INPUT},         {"output", plan::OUTPUT}, {"activation", plan::ACTIVATION},
      {"constant", plan::CONSTANT}};
  return kClasses.at(name.str());
}

// Which results may take the memory of which operands.
std::vector<InPlacePair> inPlacePairs(Operation* op) {
  if (op->getNumOperands() == 0) {
    return {};
  }
  const std::optional<plan::CollectiveKind> collective = collectiveKindOf(op);
  if (!collective) {
    return describe(kernelSpecOf(op), Target::kCpu).inPlace;
  }
  std::vector<InPlacePair> pairs;
  for (size_t i = 0; mayRunInPlace(*collective) && i < op->getNumOperands(); ++i) {
    pairs.push_back({i, i});
  }
  return pairs;
}

struct NameFacts {
  int writers = 0;      // functions that return it
  int lastWriter = -1;  // index of the last of them
  int lastReader = -1;  // index of the last function that takes it as an argument
};

class Assigner {
 public:
  Assigner(const std::vector<func::FuncOp>& functions, const std::set<std::string>& visible)
      : functions_(functions), visible_(visible) {}

  StorageAssignment run() {
    int64_t step = 0;
    for (size_t f = 0; f < functions_.size(); ++f) {
      for (Operation& op : functions_[f].getBody().front()) {
        out_.steps[&op] = step++;
      }
      for (unsigned i = 0; i < functions_[f].getNumArguments(); ++i) {
        facts_[nameOf(functions_[f].getArgAttrDict(i))].lastReader = static_cast<int>(f);
      }
      for (unsigned i = 0; i < functions_[f].getNumResults(); ++i) {
        NameFacts& facts = facts_[nameOf(functions_[f].getResultAttrDict(i))];
        ++facts.writers;
        facts.lastWriter = static_cast<int>(f);
      }
    }
    for (size_t f = 0; f < functions_.size(); ++f) {
      assignFunction(static_cast<int>(f));
    }
    return std::move(out_);
  }

 private:
  // A value and its views: one content of one storage.
  struct Cell {
    int storage = -1;
    int64_t lastUse = -1;
  };

  static std::string nameOf(DictionaryAttr attrs) { return attrs.getAs<StringAttr>(kValueAttr).getValue().str(); }

  void assignFunction(int index) {
    index_ = index;
    function_ = functions_[index];
    occupant_.clear();
    cellOf_.clear();
    cells_.clear();
    targets_.clear();
    copies_.clear();
    for (BlockArgument argument : function_.getArguments()) {
      const int storage = named(argument, function_.getArgAttrDict(argument.getArgNumber()));
      const auto known = occupant_.find(storage);
      bind(argument, known == occupant_.end() ? newCell(storage) : known->second);
    }
    std::vector<unsigned> fresh;
    for (unsigned i = 0; i < function_.getNumResults(); ++i) {
      if (isFresh(i)) {
        fresh.push_back(i);
      } else {
        target(returned(function_, i), named(returned(function_, i), function_.getResultAttrDict(i)));
      }
    }
    for (Operation& op : function_.getBody().front().without_terminator()) {
      const std::vector<InPlacePair> inPlace = inPlacePairs(&op);
      for (OpResult result : op.getResults()) {
        place(&op, result, inPlace);
      }
    }
    for (const unsigned i : fresh) {
      settle(returned(function_, i), function_.getResultAttrDict(i));
    }
    finishCopies();
  }

  // The storage of a name; made on first sight.
  int named(Value value, DictionaryAttr attrs) {
    const std::string name = nameOf(attrs);
    const auto [it, added] = out_.named.try_emplace(name, static_cast<int>(out_.storages.size()));
    if (added) {
      addStorage({memoryClass(attrs.getAs<StringAttr>(kMemoryAttr).getValue()), bytesOf(value), -1, -1, -1, name});
      names_[it->second].push_back(name);
    }
    return it->second;
  }

  // Is result `i` the only writer of its name, and the name new? Then its storage may be whatever its value lies in.
  bool isFresh(unsigned i) {
    const std::string name = nameOf(function_.getResultAttrDict(i));
    return facts_[name].writers == 1 && out_.named.find(name) == out_.named.end();
  }

  void target(Value value, int storage) {
    Operation* producer = value.getDefiningOp();
    if (producer == nullptr || isa<ir::nn::ConstantOp>(producer) || targets_.count(value) > 0) {
      copies_.push_back({value, -1, storage});
    } else {
      targets_[value] = storage;
    }
  }

  void place(Operation* op, OpResult result, const std::vector<InPlacePair>& inPlace) {
    if (isa<ir::nn::ConstantOp>(op)) {
      return bind(result, newCell(constantStorage(op)));
    }
    const auto wanted = targets_.find(result);
    if (wanted != targets_.end()) {
      if (mayWrite(op, result, wanted->second, inPlace)) {
        describe(wanted->second, op);
        return bind(result, newCell(wanted->second));
      }
      copies_.push_back({result, -1, wanted->second});
    }
    if (ir::viewKindOf(op) == ViewKind::kShape) {
      out_.views.insert(op);
      return bind(result, cellOf_[op->getOperand(0)]);
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const int storage = cells_[cellOf_[op->getOperand(i)]].storage;
      if (reusable(storage) && llvm::is_contained(inPlace, InPlacePair{i, result.getResultNumber()}) &&
          mayWrite(op, result, storage, inPlace)) {
        return bind(result, newCell(storage));
      }
    }
    bind(result, newCell(addStorage({plan::TRANSIENT, bytesOf(result), -1, -1, index_, labelOf(op)})));
  }

  // Is what the storage holds read no more after `op`, and by `op` only in a way that `result` may take its place?
  bool mayWrite(Operation* op, OpResult result, int storage, const std::vector<InPlacePair>& inPlace) {
    const auto it = occupant_.find(storage);
    if (it == occupant_.end() || cells_[it->second].lastUse < out_.steps[op]) {
      return true;
    }
    if (cells_[it->second].lastUse > out_.steps[op]) {
      return false;
    }
    unsigned readers = 0;
    bool allowed = false;
    for (OpOperand& operand : op->getOpOperands()) {
      if (cellOf_[operand.get()] == it->second) {
        ++readers;
        allowed = llvm::is_contained(inPlace, InPlacePair{operand.getOperandNumber(), result.getResultNumber()});
      }
    }
    return readers == 1 && allowed;
  }

  // May what this function does not name be written here? Transients; and what came in only for this function, the last
  // to read it before it is written again: activations in the backward pass, accumulators in the update.
  bool reusable(int storage) {
    const plan::MemoryClass memory = out_.storages[storage].memory;
    if (memory == plan::TRANSIENT) {
      return true;
    }
    const bool last =
        (memory == plan::ACTIVATION && isPerMicroBatch(kindOf(function_)) && kindOf(function_) != "forward") ||
        (memory == plan::ACCUMULATOR && kindOf(function_) == "update");
    return last && llvm::all_of(names_[storage], [&](const std::string& name) {
             return visible_.count(name) == 0 && facts_[name].lastReader == index_ && facts_[name].lastWriter < index_;
           });
  }

  // Gives a fresh name its storage: the value's own where that lasts, else a copy.
  void settle(Value value, DictionaryAttr attrs) {
    const std::string name = nameOf(attrs);
    const plan::MemoryClass memory = memoryClass(attrs.getAs<StringAttr>(kMemoryAttr).getValue());
    const int storage = cells_[cellOf_[value]].storage;
    Storage& entry = out_.storages[storage];
    const bool internal = memory == plan::ACTIVATION || memory == plan::ACCUMULATOR;
    // Later micro-batches reuse a ring's slot: what is read after the last one must be copied out.
    const bool slotted = entry.memory == plan::ACTIVATION && memory == plan::ACCUMULATOR;
    if (entry.memory == plan::TRANSIENT) {
      entry.memory = memory;
      entry.function = -1;
      entry.label = internal ? entry.label : name;
    } else if (!internal || slotted || !lasts(storage, name, memory)) {
      copies_.push_back({value, -1, named(value, attrs)});
      return;
    }
    out_.named[name] = storage;
    names_[storage].push_back(name);
  }

  // Does the storage keep what it holds now until the last reader of `name` has begun? (That one sees both names and
  // takes care itself.) What the prologue leaves must outlast all micro-batches; so must an activation that lies in
  // memory the micro-batches share. In the slot of its micro-batch it meets no other.
  bool lasts(int storage, const std::string& name, plan::MemoryClass memory) {
    for (int f = 0; f < static_cast<int>(functions_.size()); ++f) {
      const bool between = f >= index_ && f < std::max(facts_[name].lastReader, index_ + 1);
      const bool otherMicroBatch = perMicroBatch(f) && out_.storages[storage].memory != plan::ACTIVATION &&
                                   (memory == plan::ACTIVATION || (f > index_ && !perMicroBatch(index_)));
      if ((between || otherMicroBatch) && writes(f, storage)) {
        return false;
      }
    }
    return true;
  }

  bool perMicroBatch(int f) { return isPerMicroBatch(kindOf(functions_[f])); }

  bool writes(int f, int storage) {
    func::FuncOp function = functions_[f];
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      const std::string name = nameOf(function.getResultAttrDict(i));
      const auto it = out_.named.find(name);
      // Names that the function at hand has just settled hold the same value.
      const bool same =
          f == index_ && facts_[name].writers == 1 && cellOf_[returned(function, i)] == occupant_[storage];
      if (it != out_.named.end() && it->second == storage && !same) {
        return true;
      }
    }
    return false;
  }

  void finishCopies() {
    for (Copy& copy : copies_) {
      copy.from = cells_[cellOf_[copy.like]].storage;
    }
    const int64_t end = out_.steps[function_.getBody().front().getTerminator()];
    auto temporary = [&](const Copy& copy) {
      const int storage = addStorage({plan::TRANSIENT, bytesOf(copy.like), -1, -1, index_, "copy"});
      touch(storage, end);
      return storage;
    };
    out_.copies.push_back(orderCopies(copies_, temporary));
    for (const Copy& copy : out_.copies.back()) {
      touch(copy.to, end);
    }
  }

  // Equal constants share one storage.
  int constantStorage(Operation* op) {
    const auto key = std::make_pair(cast<ir::nn::ConstantOp>(op).getValueAttr().getAsOpaquePointer(),
                                    op->getResult(0).getType().getAsOpaquePointer());
    const auto [it, added] = constants_.try_emplace(key, static_cast<int>(out_.storages.size()));
    if (added) {
      addStorage({plan::CONSTANT, bytesOf(op->getResult(0)), -1, -1, -1, labelOf(op)});
    }
    return it->second;
  }

  // Accumulators have made-up names; what they hold says more.
  void describe(int storage, Operation* producer) {
    Storage& entry = out_.storages[storage];
    if (entry.memory == plan::ACCUMULATOR && producer->hasAttr(kNameAttr)) {
      entry.label = labelOf(producer);
    }
  }

  int addStorage(Storage storage) {
    out_.storages.push_back(std::move(storage));
    return static_cast<int>(out_.storages.size()) - 1;
  }

  int newCell(int storage) {
    cells_.push_back({storage, -1});
    occupant_[storage] = static_cast<int>(cells_.size()) - 1;
    return occupant_[storage];
  }

  void touch(int storage, int64_t step) {
    Storage& entry = out_.storages[storage];
    entry.first = entry.first < 0 ? step : std::min(entry.first, step);
    entry.last = std::max(entry.last, step);
    if (entry.users.empty() || entry.users.back() != index_) {
      entry.users.push_back(index_);
    }
  }

  void bind(Value value, int cell) {
    const int storage = cells_[cell].storage;
    cellOf_[value] = cell;
    out_.of[value] = storage;
    if (Operation* producer = value.getDefiningOp()) {
      touch(storage, out_.steps[producer]);
      cells_[cell].lastUse = std::max(cells_[cell].lastUse, out_.steps[producer]);
    }
    for (Operation* user : value.getUsers()) {
      touch(storage, out_.steps[user]);
      cells_[cell].lastUse = std::max(cells_[cell].lastUse, out_.steps[user]);
    }
  }

  std::vector<func::FuncOp> functions_;
  const std::set<std::string>& visible_;
  StorageAssignment out_;
  std::map<std::string, NameFacts> facts_;
  std::map<int, std::vector<std::string>> names_;  // of each storage
  std::map<std::pair<const void*, const void*>, int> constants_;
  // State of the function that is being walked.
  int index_ = 0;
  func::FuncOp function_;
  std::vector<Cell> cells_;
  llvm::DenseMap<Value, int> cellOf_;
  std::map<int, int> occupant_;  // storage to cell
  llvm::DenseMap<Value, int> targets_;
  std::vector<Copy> copies_;
};

}  // namespace

int64_t bytesOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  const int64_t bits = tensor.getElementTypeBitWidth();
  return tensor.getNumElements() * std::max<int64_t>(bits / 8, 1);
}

StorageAssignment assignStorage(const std::vector<func::FuncOp>& functions, const std::set<std::string>& visible) {
  return Assigner(functions, visible).run();
}

}  // namespace weft
