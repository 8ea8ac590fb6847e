// Every value lies in a storage that is large enough for it, and of its kind of memory.

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "ir/program/schedule_attributes.h"
#include "passes/gates/check_local.h"
#include "passes/gates/check_ordered.h"
#include "passes/gates/checks.h"
#include "passes/plan/instruction_facts.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

class StorageChecker {
 public:
  explicit StorageChecker(ModuleOp submesh) : submesh_(submesh), storages_(storagesOf(submesh)) {}

  LogicalResult run() {
    if (!submesh_->hasAttr(kStoragesAttr)) {
      return submesh_.emitError() << "the submesh has no " << kStoragesAttr << "; --weft-assign-storage writes it";
    }
    for (func::FuncOp function : functionsInOrder(submesh_)) {
      if (failed(visit(function))) {
        return failure();
      }
    }
    return success();
  }

 private:
  LogicalResult visit(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments()) {
      if (failed(lies(argument, function)) ||
          failed(named(argument, function.getArgAttrDict(argument.getArgNumber())))) {
        return failure();
      }
    }
    bool copies = false;
    for (Operation& op : function.getBody().front().without_terminator()) {
      const bool copy = isa<ir::dist::CopyOp>(op);
      if (copies && !copy) {
        return op.emitError() << op.getName() << " stands behind a copy; copies are the end of a function";
      }
      copies = copy;
      if (failed(visit(&op, function))) {
        return failure();
      }
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (failed(named(returned(function, i), function.getResultAttrDict(i)))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult visit(Operation* op, func::FuncOp function) {
    const bool view = op->hasAttr(kViewAttr);
    if (view && ir::viewKindOf(op) != ViewKind::kShape) {
      return op->emitError() << op->getName() << " cannot be a view (" << kViewAttr << "); it makes bytes of its own";
    }
    for (OpResult result : op->getResults()) {
      if (failed(lies(result, function))) {
        return failure();
      }
      if (view && storageOf(result) != storageOf(op->getOperand(0))) {
        return op->emitError() << "the view lies in storage " << storageOf(result) << ", what it is a view of in "
                               << storageOf(op->getOperand(0));
      }
      const bool constant = storages_[storageOf(result)].memory == plan::CONSTANT;
      if (!view && constant != isa<ir::nn::ConstantOp>(op)) {
        return op->emitError() << op->getName() << (constant ? " writes" : " does not lie in") << " constant memory";
      }
    }
    return success();
  }

  LogicalResult lies(Value value, func::FuncOp function) {
    const int64_t storage = storageOf(value);
    if (storage < 0 || storage >= static_cast<int64_t>(storages_.size())) {
      return emitError(value.getLoc()) << "a value of @" << function.getName() << " lies in storage " << storage << " ("
                                       << kStorageAttr << "); there are " << storages_.size();
    }
    const Storage& held = storages_[storage];
    if (held.memory == plan::MAILBOX || held.memory == plan::WORKSPACE) {
      return emitError(value.getLoc()) << "a value of @" << function.getName() << " lies in storage " << storage
                                       << ", which is mailbox or workspace";
    }
    if (tensorSpec(value).bytes() > held.bytes) {
      return emitError(value.getLoc()) << "a value of @" << function.getName() << " has " << tensorSpec(value).bytes()
                                       << " bytes, its storage " << storage << " has " << held.bytes;
    }
    const auto [user, added] = users_.try_emplace(storage, function);
    if (!added && held.memory == plan::TRANSIENT && user->second != function) {
      return emitError(value.getLoc()) << "storage " << storage << " is transient; @" << user->second.getName()
                                       << " and @" << function.getName() << " cannot both use it";
    }
    return success();
  }

  LogicalResult named(Value value, DictionaryAttr attrs) {
    const StringRef name = attrs.getAs<StringAttr>(kValueAttr).getValue();
    const int64_t storage = storageOf(value);
    if (storages_[storage].memory == plan::TRANSIENT) {
      return emitError(value.getLoc()) << "'" << name << "' lies in storage " << storage
                                       << ", which is transient: it would be lost";
    }
    const auto [known, added] = names_.try_emplace(name, storage);
    if (!added && known->second != storage) {
      return emitError(value.getLoc()) << "'" << name << "' lies in storage " << storage << " here, and in "
                                       << known->second << " before";
    }
    return success();
  }

  ModuleOp submesh_;
  const std::vector<Storage> storages_;
  llvm::StringMap<int64_t> names_;               // the storage of each name
  llvm::DenseMap<int64_t, func::FuncOp> users_;  // the first function that uses a storage
};

}  // namespace

LogicalResult checkStored(ModuleOp module) {
  if (failed(checkLocalWithCopies(module)) || failed(checkCalls(module))) {
    return failure();
  }
  for (ModuleOp submesh : submeshesOf(module)) {
    if (failed(StorageChecker(submesh).run())) {
      return failure();
    }
  }
  return success();
}

}  // namespace weft
