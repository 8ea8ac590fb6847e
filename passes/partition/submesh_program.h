// Builds the program of one submesh out of the step: its functions, and the values that cross between them.
//
// The step is the annotated @step, from which operators are cloned; its values are the keys here. A cut value is what
// stands for one of them in a function of this program.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

// Buffer name and memory. None: of a value that crosses between functions; all its readers say together what it is.
using NamedMemory = std::pair<std::string, std::optional<ir::dist::Memory>>;

struct CutFunction {
  CutFunction(mlir::func::FuncOp made, mlir::OpBuilder atEnd, int64_t ofSubmesh, int64_t ofStage)
      : function(made), builder(std::move(atEnd)), submesh(ofSubmesh), stage(ofStage) {}

  mlir::func::FuncOp function;
  mlir::OpBuilder builder;                          // at the end of the body
  llvm::DenseMap<mlir::Value, mlir::Value> values;  // value of the step to cut value
  int64_t submesh;                                  // whose function it is
  int64_t stage;                                    // of functions that run for each micro-batch
  std::map<std::string, mlir::Value> arguments;     // by buffer name
  std::vector<mlir::Value> results;
  std::vector<NamedMemory> resultNames;
  std::vector<NamedMemory> argumentNames;
};

// One end of a channel to or from another submesh.
struct ChannelEnd {
  int64_t channel = 0;
  int64_t submesh = 0;  // of the other end
  mlir::Value value;    // of the step, that it carries
  std::string reason;   // for people
  // A receiver on another mesh than the sender lists boxes and the ranks that send them, as dist.receive does. Empty:
  // rank i receives the whole tensor of rank i.
  std::vector<int64_t> boxes;
};

// The user's name of what a value of the step is: its operator past reshards and masks, or the argument.
std::string sourceLabel(mlir::Value value);

class SubmeshProgram {
 public:
  // `submesh`: the number of the submesh that runs it; `stages`: those it owns.
  SubmeshProgram(mlir::ModuleOp module, int64_t submesh, std::vector<int64_t> stages);

  mlir::ModuleOp module() const { return module_; }
  int64_t submesh() const { return submesh_; }
  const std::vector<int64_t>& stages() const { return stages_; }

  // The function of a kind ("forward", ...) and, where it runs for each micro-batch, of a stage; made on first use.
  CutFunction& function(llvm::StringRef kind, int64_t stage);
  // The function that defines a value; for an argument of @step the update.
  CutFunction& functionOf(mlir::Value value);
  // Null if this program does not make or receive the value.
  CutFunction* whereDefined(mlir::Value value);

  void define(CutFunction& function, mlir::Value value, mlir::Value cut);
  // An argument of this name, which has the type of `value`.
  mlir::Value argument(CutFunction& function, mlir::Value value, const std::string& name,
                       std::optional<ir::dist::Memory> memory);
  // An argument of `reader` that another function returns.
  mlir::Value crossing(CutFunction& reader, mlir::Value value);
  // Does another function take an argument of this name?
  bool isReadElsewhere(const std::string& name, const CutFunction& function) const;
  void returnValue(CutFunction& function, mlir::Value cut, const std::string& name,
                   std::optional<ir::dist::Memory> memory);

  // acc' = accumulate(acc, cut) in `function`; later functions read `value` as the accumulator.
  void accumulate(CutFunction& function, mlir::Value value, mlir::Value cut, ReduceKind kind);
  // `cut`, of one micro-batch, goes to its place in the output `name`, which is the value whole.
  void collect(CutFunction& function, mlir::Value value, mlir::Value cut, const std::string& name);
  bool isCollectedAs(mlir::Value value, const std::string& name) const;

  void send(CutFunction& function, mlir::Value cut, const ChannelEnd& end);
  // Receives what the step has as `target`.
  mlir::Value receive(CutFunction& function, mlir::Value target, const ChannelEnd& end);

  // Writes terminators, argument and result attributes.
  void finish();

 private:
  struct Crossing {
    std::string name;
    CutFunction* producer = nullptr;
    bool betweenMicroBatchFunctions = true;  // all readers and the producer run for each micro-batch
  };

  // `value` is what the calls of `function` for all micro-batches leave together: before' = op(before, cut).
  void makeTogether(CutFunction& function, mlir::Value value, mlir::Value cut, mlir::OperationState& op,
                    const NamedMemory& as);

  mlir::ModuleOp module_;
  int64_t submesh_;
  std::vector<int64_t> stages_;
  std::map<std::string, std::unique_ptr<CutFunction>> functions_;  // by name
  llvm::DenseMap<mlir::Value, CutFunction*> definedIn_;
  llvm::DenseMap<mlir::Value, NamedMemory> madeTogether_;  // by the calls for all micro-batches
  int64_t accumulators_ = 0;
  llvm::MapVector<mlir::Value, Crossing> crossings_;
};

}  // namespace weft
