// Strategies and propagation: from what the user wrote to the axes of every factor of every operator.
//
// Priorities, highest first: what the user wrote (shard, constrain, layouts of arguments); backward operators start
// with their forward operator's factors; what flows along edges, operands before results, larger tensors first; the
// default. An axis flows into a factor only if nothing else of the operator uses it, the factor may be split, and its
// stored size divides. Where two sources disagree the first wins and the other is noted as a conflict (it costs a
// reshard).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/layout/rule.h"
#include "ir/program/module_meshes.h"
#include "ir/registry.h"
#include "llvm/ADT/MapVector.h"
#include "passes/decide/micro_batches.h"
#include "passes/decide/pads.h"

namespace weft {

// What propagation knows of one operator.
struct OperatorSharding {
  std::optional<Rule> rule;                            // over stored shapes
  std::vector<std::optional<std::vector<Axis>>> axes;  // per factor; nothing = open
  std::map<unsigned, Layout> wanted;                   // results whose layout the user asked for
  int batch = -1;
  std::string origin;

  FactorAxes closed() const;  // open factors as not split
};

// The layouts that the user asked for: an argument's own nn.layout, else, of a parameter, the first pattern of the
// request that matches its name. Texts; one of several layouts, "[{dp},{}];[{},{}]", has one for each submesh.
class UserLayouts {
 public:
  UserLayouts(mlir::func::FuncOp step, const std::vector<std::pair<std::string, std::string>>& patterns);

  // Of an argument on the mesh of that number; "" none.
  std::string of(unsigned index, int64_t mesh) const;

 private:
  std::vector<std::string> texts_;  // by argument
};

class Propagation {
 public:
  // Operators have their stage (assign_stages.h).
  Propagation(mlir::func::FuncOp step, const ModuleMeshes& meshes, const ir::OperatorRegistry& registry,
              const MicroBatchAnalysis& microBatches, const StoredShapes& stored);

  // Reads strategies and constraints of operators, and layouts of arguments. Errors at the user's lines.
  mlir::LogicalResult readUser(const UserLayouts& layouts);
  // Runs to a fixpoint over the operators of the forward pass, then over those of the backward pass.
  void run();
  // Gives open batch factors of the inputs' consumers the data-parallel axes.
  void seedInputs(llvm::function_ref<std::vector<Axis>(const Mesh&)> dataAxes);
  // Gives arguments without a layout the one their first reader needs; closes all factors.
  void closeArguments();
  void closeOperators();

  // Layout of an argument on a mesh that reads it, without time axes; set by the user, by seedInputs, closeArguments,
  // or from outside (ZeRO).
  std::optional<Layout>& argument(unsigned index, int64_t mesh) { return arguments_[index][mesh].layout; }
  std::string& argumentOrigin(unsigned index, int64_t mesh) { return arguments_[index][mesh].origin; }
  // The numbers of the meshes that read an argument, and the stage that owns it.
  std::vector<int64_t> meshesOf(unsigned index) const;
  int64_t ownerStage(unsigned index) const { return ownerStages_[index]; }
  // Fixes all factors of an element-wise operator from a layout of its result.
  void fix(mlir::Operation* op, const Layout& layout, const std::string& origin);
  // Propagates among the operators of the update.
  void runUpdate();

  OperatorSharding& of(mlir::Operation* op) { return operators_[op]; }
  // Operators that a split reached on a whole factor and that have an expansion.
  const std::vector<int64_t>& expansions() const { return expansions_; }
  const std::vector<std::string>& conflicts() const { return conflicts_; }

 private:
  mlir::LogicalResult readStrategy(mlir::Operation* op);
  mlir::LogicalResult readSplits(mlir::Operation* op, mlir::DictionaryAttr strategy);
  mlir::LogicalResult readNames(mlir::Operation* op, mlir::DictionaryAttr strategy);
  mlir::LogicalResult readConstraint(mlir::Operation* op);
  void findReaders();
  void seedInput(unsigned index, int64_t mesh, const std::vector<Axis>& dataAxes);
  mlir::LogicalResult readArguments(const UserLayouts& layouts);
  mlir::FailureOr<Layout> parseLayout(const std::string& text, mlir::Value value, const Mesh& mesh, mlir::Location loc);
  bool sweep(const std::string& phase);
  bool inherit(mlir::Operation* op);
  bool fromOperands(mlir::Operation* op);
  bool fromUsers(mlir::Operation* op);
  bool assign(mlir::Operation* op, int factor, const std::vector<Axis>& axes, const std::string& origin);
  bool fits(mlir::Operation* op, int factor, const std::vector<Axis>& axes);
  // The layout of a value on the mesh of `reader`.
  std::optional<Layout> layoutAt(mlir::Value value, mlir::Operation* reader);
  const Mesh& meshOf(mlir::Operation* op) const { return meshes_.of(op); }

  struct ArgumentSharding {
    std::optional<Layout> layout;
    std::string origin;
  };

  mlir::func::FuncOp step_;
  const ModuleMeshes& meshes_;
  const ir::OperatorRegistry& registry_;
  const StoredShapes& stored_;
  llvm::DenseMap<mlir::Operation*, OperatorSharding> operators_;
  std::vector<std::map<int64_t, ArgumentSharding>> arguments_;  // by number of the mesh that reads them
  std::vector<int64_t> ownerStages_;                            // stage of each argument
  llvm::DenseMap<int64_t, mlir::Operation*> byId_;
  std::vector<int64_t> expansions_;
  std::vector<std::string> conflicts_;
  std::set<std::string> noted_;
};

// The arguments that must be stored padded: index to stored shape. `rows`: what the batch of an input must divide by.
// The user's layouts are read on the meshes of `meshes`; the largest pad counts.
mlir::FailureOr<llvm::DenseMap<unsigned, Shape>> paddedArguments(mlir::func::FuncOp step, const ModuleMeshes& meshes,
                                                                 int64_t rows, const UserLayouts& layouts);

// Large parameters none of whose dimensions divides into `shards`, with the largest padded so that it does: what ZeRO
// would like. Where the pad cannot spread to the parameter's readers it stays whole.
llvm::MapVector<unsigned, Shape> zeroPads(mlir::func::FuncOp step, int64_t shards, const UserLayouts& layouts);

}  // namespace weft
