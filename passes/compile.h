// The compiler as one function: a module in, a plan out.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/registry.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/pipeline.h"
#include "planner/advise/advise_memory.h"
#include "planner/search/choose_plan.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// What a compilation has to say beside its plan.
struct CompileReport {
  // What is no error but worth a line: options that have no effect (planner/check_request.h).
  std::vector<std::string> notes;
  int compilations = 0;  // of the module to a plan: more than one where the planner's prediction of memory was wrong
};

// Runs what is left of the phases on `module` (changed in place, ending in the scheduled state) and emits the plan.
//
// The planner predicts the memory of what it chooses; the plan's own memory has the last word. Where a plan exceeds the
// request's limit though it was predicted to fit, the planner is told by how much and asked again, kMostCompilations
// times at most. `report` is filled if given.
//
// Errors: what the module asks for makes no sense (planner/check_request.h); kResourceExhausted: nothing fits in the
// memory limit; others carry the user's source line: "model.cc:12: error: ...".
absl::StatusOr<plan::Plan> compileModule(mlir::ModuleOp module, const ir::OperatorRegistry& registry,
                                         const PipelineOptions& options, CompileReport* report = nullptr);

inline constexpr int kMostCompilations = 3;

// What the planner is asked about a logical module: its program, with gradients and update, and the request.
struct PlannerProblem {
  mlir::OwningOpRef<mlir::ModuleOp> module;  // that the graphs are built of
  GraphFor graphs;
  CompileOptions request;
};

// `registry` lives as long as the answer. Errors: as compileModule, up to the decisions; a module that is past them.
absl::StatusOr<PlannerProblem> plannerProblem(mlir::ModuleOp module, const ir::OperatorRegistry& registry);

// An error of the planner, with the user's line before it.
absl::Status plannerError(mlir::ModuleOp module, const absl::Status& status);

// What would lower the memory of the program that a logical module is compiled to (planner/advise/advise_memory.h).
// Nothing is compiled. Errors: as plannerProblem.
absl::StatusOr<MemoryAdvice> adviseModule(mlir::ModuleOp module, const ir::OperatorRegistry& registry);

}  // namespace weft
