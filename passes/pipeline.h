// The phases of the compiler in order, each state of the program closed by its gate.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ir/registry.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/decide/passes.h"

namespace weft {

// What the user may ask of one compilation beside what the module itself says (mesh, strategies, optimizer: see the
// module attributes in docs/ir.md).
struct PipelineOptions {
  // Numbered files `04-decide.mlir`, ... with the user's source line on every op; empty: no dump.
  std::string dumpDir;
  // A decisions record to realize instead of deciding.
  std::optional<Decisions> decisions;
  // A record that mode auto begins from (CompileOptions::from); empty: none.
  std::string from;
  // The program's name over a parameter store; "evaluate" leaves out gradients and update.
  std::string program = "train";
  // The last phase to run ("mark-recompute"); empty: all.
  std::string until;
  // By how much the planner's prediction of memory was wrong when it was asked before (compileModule sets it).
  Correction correction;
};

// Adds the phases after `from` in order: a state ("logical", "annotated", "local", "scheduled"), the name of a phase
// ("build-gradients", ...), or "" for all. After each phase the module says in `dist.phase` how far it is. Errors: an
// unknown name (with the known ones).
absl::Status buildPipeline(mlir::OpPassManager& manager, const ir::OperatorRegistry& registry,
                           const PipelineOptions& options, const std::string& from = "");

// Where compiling goes on with this module: behind the phase or state it names, "" at the beginning.
std::string resumePoint(mlir::ModuleOp module);

// Registers the dialects that modules of any state use.
void registerWeftDialects(mlir::DialectRegistry& registry);

}  // namespace weft
