// Writes down in which storage each value lies, as assignStorage() finds it, and makes the copies that it asks for.

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "ir/program/schedule_attributes.h"
#include "passes/plan/step_program.h"

namespace weft {

#define GEN_PASS_DEF_ASSIGNSTORAGEPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

class StorageWriter {
 public:
  explicit StorageWriter(const SubmeshStep& step) : step_(step), assignment_(assignStorage(step.program)) {}

  void run(ModuleOp submesh) {
    setStorages(submesh, assignment_.storages);
    for (size_t f = 0; f < step_.functions.size(); ++f) {
      writeStorages(f);
      makeCopies(f);
    }
  }

 private:
  int storageOf(Value value) const { return assignment_.of[step_.numbers.lookup(value)]; }

  void writeStorages(size_t f) {
    func::FuncOp function = step_.functions[f];
    for (BlockArgument argument : function.getArguments()) {
      setStorage(argument, storageOf(argument));
    }
    size_t at = 0;
    for (Operation& op : function.getBody().front().without_terminator()) {
      SmallVector<int64_t> storages;
      for (Value result : op.getResults()) {
        storages.push_back(storageOf(result));
      }
      if (!storages.empty()) {
        setStorages(&op, storages);
      }
      if (assignment_.views[f][at++]) {
        op.setAttr(kViewAttr, UnitAttr::get(op.getContext()));
      }
    }
  }

  // One after another before the function returns; then each name is returned by what lies in its storage.
  void makeCopies(size_t f) {
    func::FuncOp function = step_.functions[f];
    Operation* end = function.getBody().front().getTerminator();
    OpBuilder builder(end);
    llvm::DenseMap<int, Value> moved;  // what a copy has put in a storage
    for (const Copy& copy : assignment_.copies[f]) {
      Value like = step_.values[copy.like];
      Value from = storageOf(like) == copy.from ? like : moved.lookup(copy.from);
      auto made = builder.create<ir::dist::CopyOp>(like.getLoc(), like.getType(), from);
      setStorages(made, {copy.to});
      moved[copy.to] = made.getY();
    }
    const std::vector<StepName>& results = step_.program.functions[f].results;
    for (size_t i = 0; i < results.size(); ++i) {
      const int storage = assignment_.named.at(results[i].name);
      if (assignment_.of[results[i].value] != storage) {
        end->setOperand(i, moved.lookup(storage));
      }
    }
  }

  const SubmeshStep& step_;
  const StorageAssignment assignment_;
};

class AssignStoragePass : public impl::AssignStoragePassBase<AssignStoragePass> {
 public:
  void runOnOperation() override {
    const std::vector<SubmeshStep> steps = stepsOf(getOperation());
    for (const auto& [i, submesh] : llvm::enumerate(submeshesOf(getOperation()))) {
      StorageWriter(steps[i]).run(submesh);
    }
  }
};

}  // namespace
}  // namespace weft
