#include "passes/compile.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "passes/decide/graph_source.h"
#include "passes/diagnostic_text.h"
#include "passes/gates/attribute_forms.h"
#include "passes/logical/request_attributes.h"
#include "passes/plan/emit_plan.h"
#include "planner/check_request.h"
#include "planner/explain/ways_to_fit.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

absl::Status runPhases(ModuleOp module, const ir::OperatorRegistry& registry, const PipelineOptions& options) {
  DiagnosticText diagnostics(module.getContext());
  PassManager manager(module.getContext());
  WEFT_RETURN_IF_ERROR(buildPipeline(manager, registry, options, resumePoint(module)));
  return succeeded(manager.run(module)) ? absl::OkStatus() : absl::InvalidArgumentError(diagnostics.text());
}

absl::StatusOr<plan::Plan> compileOnce(ModuleOp module, const ir::OperatorRegistry& registry,
                                       const PipelineOptions& options) {
  WEFT_RETURN_IF_ERROR(runPhases(module, registry, options));
  DiagnosticText diagnostics(module.getContext());
  absl::StatusOr<plan::Plan> plan = emitPlan(module);
  if (!plan.ok() && !diagnostics.text().empty()) {
    return absl::InvalidArgumentError(diagnostics.text());
  }
  return plan;
}

// Reads and checks what is asked for, before any gate runs.
absl::StatusOr<Request> requestFor(ModuleOp module, CompileReport* report) {
  DiagnosticText diagnostics(module.getContext());
  if (failed(checkModuleAttributes(module))) {
    return absl::InvalidArgumentError(diagnostics.text());
  }
  WEFT_ASSIGN_OR_RETURN(Request request, requestOf(module));
  if (!resumePoint(module).empty()) {
    WEFT_RETURN_IF_ERROR(checkRequest(request));
    return request;
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<std::string> notes, checkRequest(request, outlineOf(module)));
  WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(request.options));
  request.options.memoryLimit = limits.areAlike() ? limits.least() : request.options.memoryLimit;
  if (report != nullptr) {
    report->notes = std::move(notes);
  }
  return request;
}

// Would the planner choose otherwise if it knew better? Not where a record says what to realize.
bool isOpen(ModuleOp module, const PipelineOptions& options) {
  return options.program == "train" && !options.decisions && !module->hasAttr(kDecisionsAttr);
}

// Adds what the plan's submeshes need beyond their prediction.
void learn(const plan::Plan& plan, const Prediction& predicted, Correction& correction) {
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  correction.bytes.resize(submeshes.size(), 0);
  for (size_t s = 0; s < std::min(submeshes.size(), predicted.peakBytes.size()); ++s) {
    correction.bytes[s] += submeshes[s]->memory().peak_bytes() - predicted.peakBytes[s];
  }
}

// Of each submesh.
std::vector<int64_t> peaksOf(const plan::Plan& plan) {
  std::vector<int64_t> peaks;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    peaks.push_back(submesh->memory().peak_bytes());
  }
  return peaks;
}

absl::Status exceeds(const plan::Plan& plan, const CompileOptions& asked, const MemoryLimits& limits,
                     const Decisions& decisions) {
  const int64_t bytes = plan.memory().peak_bytes();
  if (asked.mode == Mode::kAuto) {
    return absl::ResourceExhaustedError(doesNotFitText(limits, decisions, bytes, {}));
  }
  const ScheduleDecision& schedule = decisions.schedule;
  const bool recompute = asked.recompute == "auto";
  const bool searched = asked.schedule == "auto" && schedule.submeshes.size() > 1;
  std::string found;
  if (searched) {
    found = absl::StrCat("no schedule fits in ", limits.print(), " bytes per rank; the least is ", bytes, " with ",
                         schedule.kind, recompute ? ", whatever is recomputed" : "");
  } else {
    found = absl::StrCat(recompute ? "whatever is recomputed, " : "", "the plan needs at least ", bytes,
                         " bytes on a rank, the limit is ", limits.print());
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(found, "; ", recompute ? "" : "recompute (CompileOptions::recompute = \"auto\"), ",
                   "shard more (ZeRO, more ranks), cut the step into more micro-batches, or allow as much"));
}

// The module as it was, for another compilation.
void restore(ModuleOp module, ModuleOp original) {
  OwningOpRef<ModuleOp> copy(original.clone());
  module->setAttrs((*copy)->getAttrs());
  module.getBodyRegion().takeBody(copy->getBodyRegion());
}

}  // namespace

absl::StatusOr<plan::Plan> compileModule(ModuleOp module, const ir::OperatorRegistry& registry,
                                         const PipelineOptions& options, CompileReport* report) {
  if (options.decisions && options.decisions->precision) {
    const std::string type = dtypeName(*options.decisions->precision);
    return absl::InvalidArgumentError(absl::StrCat("decisions: precision: found ", type,
                                                   "; a program can be priced with ", type,
                                                   " values, but not compiled yet; plan it without --precision"));
  }
  if (options.decisions && options.decisions->overlap) {
    return absl::InvalidArgumentError(
        "decisions: overlap: found true; collectives beside computation can be planned, but not compiled yet: ranks "
        "have one queue; plan it without --overlap");
  }
  if (options.decisions && options.decisions->offload != Offload::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        "decisions: offload: found ", offloadName(options.decisions->offload),
        "; what lies in the host's memory can be planned, but not compiled yet: ranks have one memory; plan it with "
        "--offload none"));
  }
  WEFT_ASSIGN_OR_RETURN(const Request request, requestFor(module, report));
  const CompileOptions& asked = request.options;
  MemoryLimits limits(asked.memoryLimit);  // of a module that is resumed, if it says one
  if (resumePoint(module).empty()) {
    WEFT_ASSIGN_OR_RETURN(limits, memoryLimitsOf(asked));
  }
  const bool mayAskAgain = limits.least() > 0 && isOpen(module, options);
  OwningOpRef<ModuleOp> original(mayAskAgain ? module.clone() : ModuleOp());
  PipelineOptions now = options;
  for (int compilations = 1;; ++compilations) {
    WEFT_ASSIGN_OR_RETURN(plan::Plan plan, compileOnce(module, registry, now));
    plan.set_program(options.program);
    plan.set_machine(asked.machine);
    if (report != nullptr) {
      report->compilations = compilations;
    }
    const Decisions& decisions = *decisionsOf(module);
    // A module that is resumed has perhaps no record, but then one limit.
    const bool fits = limits.areAlike() ? limits.least() == 0 || plan.memory().peak_bytes() <= limits.least()
                                        : limits.hold(decisions.meshes(), peaksOf(plan));
    if (fits) {
      if (report != nullptr) {
        report->notes.insert(report->notes.end(), decisions.notes.begin(), decisions.notes.end());
      }
      return plan;
    }
    const bool expected = !decisions.prediction || !limits.hold(decisions.meshes(), decisions.prediction->peakBytes);
    if (!mayAskAgain || expected || compilations == kMostCompilations) {
      return exceeds(plan, asked, limits, decisions);
    }
    learn(plan, *decisions.prediction, now.correction);
    restore(module, *original);
  }
}

absl::StatusOr<PlannerProblem> plannerProblem(ModuleOp module, const ir::OperatorRegistry& registry) {
  if (module->hasAttr(kDecisionsAttr)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the module is past '", resumePoint(module),
                     "' and has its decisions; give the logical module, 00-input.mlir of a dump"));
  }
  PipelineOptions logical;
  logical.until = "build-update";
  WEFT_ASSIGN_OR_RETURN(Request request, requestFor(module, nullptr));
  OwningOpRef<ModuleOp> copy(module.clone());
  WEFT_RETURN_IF_ERROR(runPhases(*copy, registry, logical));
  WEFT_ASSIGN_OR_RETURN(const ir::ExpansionContext context, expansionContextOf(request.options));
  GraphFor graphs = graphSource(stepFunction(*copy), registry, context.rowParts());
  return PlannerProblem{std::move(copy), std::move(graphs), std::move(request.options)};
}

absl::Status plannerError(ModuleOp module, const absl::Status& status) {
  DiagnosticText diagnostics(module.getContext());
  emitPlannerError(module, status);
  return {status.code(), diagnostics.text()};
}

absl::StatusOr<MemoryAdvice> adviseModule(ModuleOp module, const ir::OperatorRegistry& registry) {
  WEFT_ASSIGN_OR_RETURN(const PlannerProblem problem, plannerProblem(module, registry));
  absl::StatusOr<MemoryAdvice> advice = adviseMemory(problem.graphs, problem.request);
  return advice.ok() ? std::move(advice) : plannerError(module, advice.status());
}

}  // namespace weft
