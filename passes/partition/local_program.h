// Builds the local state: functions, values that cross between them, the rank table, the named tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/layout/reshard.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

struct LocalFunction {
  LocalFunction(mlir::func::FuncOp made, mlir::OpBuilder atEnd, int64_t ofSubmesh, int64_t ofStage)
      : function(made), builder(std::move(atEnd)), submesh(ofSubmesh), stage(ofStage) {}

  mlir::func::FuncOp function;
  mlir::OpBuilder builder;                          // at the end of the body
  llvm::DenseMap<mlir::Value, mlir::Value> values;  // annotated value to local value
  int64_t submesh;                                  // whose function it is
  int64_t stage;                                    // of functions that run for each micro-batch
  std::map<std::string, mlir::Value> arguments;     // by buffer name
  std::vector<mlir::Value> results;
  std::vector<std::pair<std::string, std::string>> resultNames;  // buffer name, memory
  std::vector<std::pair<std::string, std::string>> argumentNames;
};

struct TensorNames {
  std::string name;
  std::string kind;    // "input", "parameter", "state", "output"
  std::string buffer;  // dist.value of its buffer
};

// One end of a channel to or from another submesh.
struct ChannelEnd {
  int64_t channel = 0;
  int64_t submesh = 0;    // of the other end
  mlir::Value annotated;  // what it carries
  std::string reason;     // for people
  // A receiver on another mesh than the sender lists boxes and the ranks that send them, as dist.receive does. Empty:
  // rank i receives the whole tensor of rank i.
  std::vector<int64_t> boxes;
};

// The user's name of what an annotated value is: its operator past reshards and masks, or the argument.
std::string sourceLabel(mlir::Value value);

class LocalProgram {
 public:
  // `submesh`: the number of the submesh that runs it; `stages`: those it owns.
  LocalProgram(mlir::ModuleOp module, const Mesh& mesh, int64_t submesh, std::vector<int64_t> stages);

  int64_t submesh() const { return submesh_; }

  const std::vector<int64_t>& stages() const { return stages_; }

  // The function of a kind ("forward", ...) and, where it runs for each micro-batch, of a stage; made on first use.
  LocalFunction& function(llvm::StringRef kind, int64_t stage);
  // The function that defines an annotated value; for an argument of @step the update.
  LocalFunction& functionOf(mlir::Value value);

  // Null if this program does not make or receive the value.
  LocalFunction* whereDefined(mlir::Value value);

  void define(LocalFunction& function, mlir::Value annotated, mlir::Value local);
  mlir::Value argument(LocalFunction& function, mlir::RankedTensorType type, const std::string& name,
                       const std::string& memory, mlir::Location loc);
  // An argument of `reader` that another function returns.
  mlir::Value crossing(LocalFunction& reader, mlir::Value annotated, mlir::RankedTensorType type);
  void returnValue(LocalFunction& function, mlir::Value local, const std::string& name, const std::string& memory);

  // acc' = accumulate(acc, value) in `function`; later functions read `annotated` as the accumulator.
  void accumulate(LocalFunction& function, mlir::Value annotated, mlir::Value value, mlir::Location loc,
                  const std::string& label);
  // One step of a reshard plan; `before` is the layout before it.
  mlir::Value step(LocalFunction& function, mlir::Value value, const ReshardStep& step, const Layout& before,
                   mlir::Operation* reshard);
  mlir::Value dynamicSlice(LocalFunction& function, mlir::Value value, mlir::RankedTensorType type,
                           llvm::ArrayRef<mlir::Attribute> starts, mlir::Location loc);

  void send(LocalFunction& function, mlir::Value value, const ChannelEnd& end);
  mlir::Value receive(LocalFunction& function, mlir::RankedTensorType type, const ChannelEnd& end);

  // A scalar whose value at rank r and micro-batch p is offsets[r] + p * perMicroBatch.
  mlir::Attribute scalar(const std::vector<int64_t>& offsets, int64_t perMicroBatch);

  void addTensor(mlir::Value annotated, const Layout& layout, const TensorNames& names);
  // The shape in files of the tensor added last; null keeps its own.
  void lastTensorAttribute(mlir::Attribute fileShape);

  static DType elementType(mlir::Value value);

  // Writes terminators, argument and result attributes, module attributes.
  void finish();

 private:
  void nameEnd(mlir::OperationState& state, const ChannelEnd& end);

  struct Crossing {
    std::string name;
    LocalFunction* producer = nullptr;
    bool betweenMicroBatchFunctions = true;  // all readers and the producer run for each micro-batch
  };

  mlir::ModuleOp module_;
  Mesh mesh_;
  int64_t submesh_;
  std::vector<int64_t> stages_;
  mlir::Builder attributes_;
  std::map<std::string, std::unique_ptr<LocalFunction>> functions_;  // by name
  llvm::DenseMap<mlir::Value, LocalFunction*> definedIn_;
  llvm::DenseMap<mlir::Value, std::string> accumulators_;
  llvm::MapVector<mlir::Value, Crossing> crossings_;
  std::map<std::vector<int64_t>, int64_t> columns_;
  std::vector<std::vector<int64_t>> table_;  // by column
  std::vector<mlir::DictionaryAttr> tensors_;
  int64_t accumulatorCount_ = 0;
};

}  // namespace weft
