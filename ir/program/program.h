// Reading and writing what a module says of itself: mesh, and the named arguments and results of its
// functions. The attribute names are listed in docs/ir.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/layout/layout.h"
#include "ir/layout/mesh.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

namespace ir::dist {
enum class Memory : uint32_t;
}  // namespace ir::dist

// Attribute names used by several phases.
inline constexpr char kKindAttr[] = "nn.kind";
inline constexpr char kNameAttr[] = "nn.name";
inline constexpr char kIdAttr[] = "nn.id";
inline constexpr char kForwardAttr[] = "nn.fwd";
inline constexpr char kPhaseAttr[] = "nn.phase";
inline constexpr char kInitAttr[] = "nn.init";
inline constexpr char kStrategyAttr[] = "nn.strategy";
inline constexpr char kUpdatesAttr[] = "nn.arg";
inline constexpr char kPrologueAttr[] = "nn.prologue";
inline constexpr char kGradientOfAttr[] = "nn.gradient_of";
inline constexpr char kUserStageAttr[] = "nn.stage";          // what the user wrote
inline constexpr char kStageAttr[] = "dist.stage";            // of every operator, from decide on
inline constexpr char kUserRecomputeAttr[] = "nn.recompute";  // number of the user's scope
inline constexpr char kRecomputeAttr[] = "dist.recompute";    // results are recomputed in the backward pass
// It is such a copy of a forward operator, or a gather of the backward pass that runs again for gradients of weights.
inline constexpr char kRecomputedAttr[] = "dist.recomputed";
inline constexpr char kSubmeshesAttr[] = "dist.submeshes";  // submesh of each stage
inline constexpr char kDecisionsAttr[] = "dist.decisions";
inline constexpr char kDecisionsFileAttr[] = "dist.decisions_file";  // in a file: the file of the record beside it
inline constexpr char kSourcesAttr[] = "dist.sources";  // in a file: the paths of the short names in its locations
inline constexpr char kStateAttr[] = "dist.state";
inline constexpr char kPhaseDoneAttr[] = "dist.phase";  // the last phase that ran
inline constexpr char kMeshAttr[] = "dist.mesh";
inline constexpr char kOptionsAttr[] = "nn.options";
inline constexpr char kOptimizerAttr[] = "nn.optimizer";
inline constexpr char kLayoutsAttr[] = "nn.layouts";
inline constexpr char kBatchDimAttr[] = "nn.batch_dim";
inline constexpr char kLayoutAttr[] = "nn.layout";
inline constexpr char kFileShapeAttr[] = "nn.file_shape";
inline constexpr char kFrozenAttr[] = "nn.frozen";
inline constexpr char kScheduleAttr[] = "dist.schedule";
inline constexpr char kVirtualAttr[] = "dist.virtual";
inline constexpr char kTableAttr[] = "dist.table";
inline constexpr char kRunsInAttr[] = "dist.function";    // of an operator of the annotated state
inline constexpr char kReadsAttr[] = "dist.reads";        // layouts of the operands, until reshards stand there
inline constexpr char kFunctionKindAttr[] = "dist.kind";  // of a function of the local state
inline constexpr char kValueAttr[] = "dist.value";        // name of the buffer of an argument or result
inline constexpr char kMemoryAttr[] = "dist.memory";      // its memory, by which functions pass it on
inline constexpr char kScalarsAttr[] = "dist.scalars";
inline constexpr char kMembersAttr[] = "dist.members";
inline constexpr char kReasonAttr[] = "reason";  // of what moves a value: who reads it so
inline constexpr char kRankTableAttr[] = "dist.rank_table";
inline constexpr char kTensorsAttr[] = "dist.tensors";
inline constexpr char kActionsAttr[] = "dist.actions";    // of a submesh: what its ranks call
inline constexpr char kStoragesAttr[] = "dist.storages";  // of a submesh
inline constexpr char kStorageAttr[] = "dist.storage";    // of an argument, of each result of an operator: its number
inline constexpr char kViewAttr[] = "dist.view";          // of an operator: nothing runs, the result lies in operand 0
inline constexpr char kRegionsAttr[] = "dist.regions";    // of a submesh
// Of the module: the meshes of the submeshes as text, "dp=2,tp=2;dp=4". Absent: all have dist.mesh.
inline constexpr char kStageMeshesAttr[] = "dist.stage_meshes";
// Of the module, where meshes differ: the stripes of the batch, in each of which the micro-batches are cut
// (docs/sharding.md). Absent: as many parts as the inputs' batch has.
inline constexpr char kStripesAttr[] = "dist.stripes";

// The functions @step and @init of a module; null if absent.
mlir::func::FuncOp stepFunction(mlir::ModuleOp module);
mlir::func::FuncOp initFunction(mlir::ModuleOp module);
// The functions beside @step and @init: in the logical state, the gradients of the user's own operators.
llvm::SmallVector<mlir::func::FuncOp> gradientFunctions(mlir::ModuleOp module);
// Of a module whose gradients are built, or that gets none.
void dropGradientFunctions(mlir::ModuleOp module);

// The programs of the submeshes in the local state: the modules @submesh0, @submesh1, ... inside, or the module
// itself where one submesh owns everything.
llvm::SmallVector<mlir::ModuleOp> submeshesOf(mlir::ModuleOp module);

// A submesh's functions in the order in which one micro-batch meets them: init, prologue, forward of each stage,
// backward (or input_grad) from the last stage to the first, weight_grad, update.
llvm::SmallVector<mlir::func::FuncOp> functionsInOrder(mlir::ModuleOp submesh);
// "init", "prologue", "forward", "backward", "input_grad", "weight_grad" or "update"; "" for other functions.
llvm::StringRef kindOf(mlir::func::FuncOp function);
// Where a kind stands in that order; -1 for others.
int orderOf(llvm::StringRef kind);
// Run for each micro-batch of a step?
bool isPerMicroBatch(llvm::StringRef kind);
// Does anything run in the backward pass, in a module of any state?
bool trains(mlir::ModuleOp module);
// The kind and the stage of a function of the local state as its name: "forward" on a submesh of one stage, else
// "forward.2".
std::string functionName(llvm::StringRef kind, int64_t stage, bool alone);

// The mesh of the module; an error on the module op if it is missing or malformed.
mlir::FailureOr<Mesh> meshOf(mlir::ModuleOp module);

// One named argument of a function.
struct Argument {
  unsigned index = 0;
  std::string kind;  // "input", "parameter", "state"
  std::string name;
};
Argument argumentAt(mlir::func::FuncOp function, unsigned index);
std::vector<Argument> argumentsOf(mlir::func::FuncOp function);

// The memory of a named argument or result of the local state, by its attributes; none if they do not say it.
std::optional<ir::dist::Memory> memoryOf(mlir::DictionaryAttr attrs);
void setMemory(mlir::NamedAttrList& attrs, ir::dist::Memory memory, mlir::MLIRContext* context);

// The name and kind of a result ("loss", "output", "gradient", "updated").
std::string resultText(mlir::func::FuncOp function, unsigned index, llvm::StringRef attr);

// "grad.w": the name of the gradient of parameter "w"; and back: "w", or "" for another name.
std::string gradientName(llvm::StringRef parameter);
std::string parameterOfGradient(llvm::StringRef gradient);

// The value a function returns as result `index`.
mlir::Value returned(mlir::func::FuncOp function, unsigned index);

// Appends an argument or a result with its dictionary attributes; the function type follows.
mlir::BlockArgument addArgument(mlir::func::FuncOp function, mlir::Type type, mlir::NamedAttrList attrs,
                                mlir::Location loc);
void addResult(mlir::func::FuncOp function, mlir::Value value, mlir::NamedAttrList attrs);
// Makes the function type agree with block arguments and returned values.
void refreshType(mlir::func::FuncOp function);

// The unique number of an op, -1 if it has none; gives numbers to the ops that lack one, in order, after the greatest
// in use.
int64_t idOf(mlir::Operation* op);
void assignIds(mlir::ModuleOp module);

// The pipeline stage of an operator, 0 if it has none.
int64_t stageOf(mlir::Operation* op);

// The layouts in which an operator reads its operands: written by assign-layouts, read until insert-reshards has made
// them true. An array of dist.layout, one for each operand; null if they are not there.
void setReads(mlir::Operation* op, llvm::ArrayRef<Layout> layouts, const Mesh& mesh);
mlir::ArrayAttr readsOf(mlir::Operation* op);
void removeReads(mlir::Operation* op);

// "h0.fc/matmul": the user's name of an op, else its mnemonic.
std::string labelOf(mlir::Operation* op);

// Gives `op` the location of `like` and, where it has none of its own, its marks: phase, forward operator, name, the
// user's stage and recompute scope.
void copyMarks(mlir::Operation* like, mlir::Operation* op);

}  // namespace weft
