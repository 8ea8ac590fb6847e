#include "passes/plan/storage.h"

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "kernels/describe/kernel_spec.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

plan::MemoryClass memoryClass(const std::string& name) {
  static const std::map<std::string, plan::MemoryClass> kClasses = {
      {"parameter", plan::PARAMETER}, {"state", plan::STATE},   {"accumulator", plan::ACCUMULATOR},
      {"input", plan::INPUT},         {"output", plan::OUTPUT}, {"activation", plan::ACTIVATION},
      {"constant", plan::CONSTANT}};
  const auto it = kClasses.find(name);
  return it == kClasses.end() ? plan::TRANSIENT : it->second;
}

// May result `output` take the memory of operand `input`?
bool inPlace(Operation* op, unsigned input, unsigned output) {
  if (isa<ir::nn::AdamOp>(op)) {
    return (input == 0 && output == 0) || (input == 2 && output == 1) || (input == 3 && output == 2);
  }
  if (isa<ir::nn::SgdOp>(op)) {
    return (input == 0 && output == 0) || (input == 2 && output == 1);
  }
  if (isa<ir::dist::AllReduceOp>(op)) {
    return input == output;
  }
  return output == 0 && mayRunInPlace(op->getName().stripDialect().str(), input) &&
         op->getOperand(input).getType() == op->getResult(0).getType();
}

class Assigner {
 public:
  FailureOr<StorageAssignment> run(const std::vector<func::FuncOp>& functions) {
    for (func::FuncOp function : functions) {
      for (Operation& op : function.getBody().front()) {
        result_.steps[&op] = step_++;
      }
    }
    for (size_t i = 0; i < functions.size(); ++i) {
      result_.copies.emplace_back();
      if (failed(assignFunction(functions[i], static_cast<int>(i)))) {
        return failure();
      }
    }
    return std::move(result_);
  }

 private:
  LogicalResult assignFunction(func::FuncOp function, int index) {
    function_ = index;
    isUpdate_ = function.getName() == "update";
    Block& body = function.getBody().front();
    for (BlockArgument argument : body.getArguments()) {
      FailureOr<int> storage = named(argument, function.getArgAttrDict(argument.getArgNumber()));
      if (failed(storage)) {
        return failure();
      }
      bind(argument, *storage);
    }
    Operation* terminator = body.getTerminator();
    // The named storage each returned value should be written to; the first name wins, others are copies.
    llvm::DenseMap<Value, int> targets;
    for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
      Value value = terminator->getOperand(i);
      FailureOr<int> storage = named(value, function.getResultAttrDict(i));
      if (failed(storage)) {
        return failure();
      }
      if (value.getDefiningOp() == nullptr || targets.count(value) > 0 || !writable(value, *storage, body)) {
        result_.copies.back().push_back({value, *storage});
      } else {
        targets[value] = *storage;
      }
    }
    for (Operation& op : body.without_terminator()) {
      for (OpResult result : op.getResults()) {
        const auto target = targets.find(result);
        bind(result, target != targets.end() ? target->second : place(&op, result));
      }
    }
    for (const Copy& copy : result_.copies.back()) {
      touch(copy.storage, result_.steps[terminator]);
    }
    return success();
  }

  FailureOr<int> named(Value value, DictionaryAttr attrs) {
    auto name = attrs ? attrs.getAs<StringAttr>("dist.value") : StringAttr();
    auto memory = attrs ? attrs.getAs<StringAttr>("dist.memory") : StringAttr();
    if (!name || !memory) {
      return emitError(value.getLoc(), "an argument or result of a local function has no dist.value or dist.memory"),
             failure();
    }
    const auto [it, added] =
        result_.named.try_emplace(name.getValue().str(), static_cast<int>(result_.storages.size()));
    if (added) {
      result_.storages.push_back({memoryClass(memory.getValue().str()), bytesOf(value), -1, -1, -1, it->first});
    }
    const Storage& storage = result_.storages[it->second];
    if (storage.bytes != bytesOf(value) || storage.memory != memoryClass(memory.getValue().str())) {
      return emitError(value.getLoc()) << "'" << it->first << "' has " << storage.bytes << " bytes elsewhere and "
                                       << bytesOf(value) << " here, or another memory class (" << memory.getValue()
                                       << ")",
             failure();
    }
    return it->second;
  }

  // May the producer of `value` write straight into the named storage? Not while an argument of that name is still to
  // be read, nor when the producer reads it other than in place.
  bool writable(Value value, int storage, Block& body) {
    Operation* producer = value.getDefiningOp();
    if (isa<ir::nn::ConstantOp>(producer)) {
      return false;
    }
    for (BlockArgument argument : body.getArguments()) {
      if (result_.of[argument] != storage) {
        continue;
      }
      for (OpOperand& use : argument.getUses()) {
        Operation* user = use.getOwner();
        if (result_.steps[user] > result_.steps[producer]) {
          return false;
        }
        if (user == producer && !inPlace(producer, use.getOperandNumber(), cast<OpResult>(value).getResultNumber())) {
          return false;
        }
      }
      if (!readersOfViewsEnd(argument, producer)) {
        return false;
      }
    }
    return true;
  }

  // No view of `argument` (a reshape) is read after `producer`.
  bool readersOfViewsEnd(Value argument, Operation* producer) {
    for (Operation* user : argument.getUsers()) {
      if (isa<ir::nn::ReshapeOp>(user) && !isUpdate_) {
        for (Operation* reader : user->getResult(0).getUsers()) {
          if (result_.steps[reader] >= result_.steps[producer]) {
            return false;
          }
        }
      }
    }
    return true;
  }

  // A storage for a value without a name: a view, in place of a dying operand, or new.
  int place(Operation* op, OpResult result) {
    if (isa<ir::nn::ConstantOp>(op)) {
      return add({plan::CONSTANT, bytesOf(result), -1, -1, -1, "constant"});
    }
    if (isa<ir::nn::ReshapeOp>(op)) {
      const int source = result_.of[op->getOperand(0)];
      // Arguments of the update are rewritten under a view's feet; everywhere else they only change between functions.
      if (!isUpdate_ || result_.storages[source].memory == plan::TRANSIENT) {
        result_.views.insert(op);
        return source;
      }
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const int source = result_.of[op->getOperand(i)];
      const Storage& storage = result_.storages[source];
      if (storage.memory == plan::TRANSIENT && storage.last <= result_.steps[op] && !taken(op, source) &&
          inPlace(op, i, result.getResultNumber()) && readOnce(op, source)) {
        return source;
      }
    }
    return add({plan::TRANSIENT, bytesOf(result), -1, -1, function_, op->getName().stripDialect().str()});
  }

  // Has an earlier result of `op` taken this storage already?
  bool taken(Operation* op, int storage) {
    return llvm::any_of(op->getResults(), [&](Value value) {
      const auto it = result_.of.find(value);
      return it != result_.of.end() && it->second == storage;
    });
  }

  // Does `op` read this storage through one operand only? (add x, x in place is fine; softmax_grad y, y would not be.)
  bool readOnce(Operation* op, int storage) {
    return llvm::count_if(op->getOperands(), [&](Value value) { return result_.of[value] == storage; }) == 1;
  }

  int add(Storage storage) {
    result_.storages.push_back(std::move(storage));
    return static_cast<int>(result_.storages.size()) - 1;
  }

  void touch(int storage, int64_t step) {
    Storage& entry = result_.storages[storage];
    entry.first = entry.first < 0 ? step : std::min(entry.first, step);
    entry.last = std::max(entry.last, step);
  }

  void bind(Value value, int storage) {
    result_.of[value] = storage;
    Operation* producer = value.getDefiningOp();
    if (producer != nullptr) {
      touch(storage, result_.steps[producer]);
    }
    for (Operation* user : value.getUsers()) {
      touch(storage, result_.steps[user]);
    }
  }

  StorageAssignment result_;
  int64_t step_ = 0;
  int function_ = 0;
  bool isUpdate_ = false;
};

}  // namespace

int64_t bytesOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  const int64_t bits = tensor.getElementTypeBitWidth();
  return tensor.getNumElements() * std::max<int64_t>(bits / 8, 1);
}

FailureOr<StorageAssignment> assignStorage(const std::vector<func::FuncOp>& functions) {
  return Assigner().run(functions);
}

}  // namespace weft
