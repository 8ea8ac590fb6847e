#include "passes/pipeline.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Transforms/Passes.h"
#include "passes/choose/choose_gathers.h"
#include "passes/choose/choose_recompute.h"
#include "passes/choose/choose_schedule.h"
#include "passes/comm/passes.h"
#include "passes/decide/passes.h"
#include "passes/gates/attribute_forms.h"
#include "passes/gates/passes.h"
#include "passes/logical/passes.h"
#include "passes/logical/request_attributes.h"
#include "passes/partition/passes.h"
#include "passes/phase_passes.h"
#include "passes/plan/emit_plan.h"
#include "planner/check_request.h"
#include "runtime/base/status.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

struct PhaseOfPipeline {
  std::vector<std::unique_ptr<Pass>> passes;

  // That of its pass, without gates.
  std::string name() const {
    for (const std::unique_ptr<Pass>& pass : passes) {
      const std::string argument = pass->getArgument().str();
      if (argument.find("verify") == std::string::npos) {
        return argument.substr(std::string("weft-").size());
      }
    }
    return "";
  }
};

// What a module must be that `phase` has left; a file may say so and be something else.
std::unique_ptr<Pass> gateBehind(const std::vector<PhaseOfPipeline>& phases, size_t phase) {
  const auto named = [&](const char* name) {
    return std::find_if(phases.begin(), phases.end(), [&](const PhaseOfPipeline& p) { return p.name() == name; }) -
           phases.begin();
  };
  const auto at = static_cast<std::ptrdiff_t>(phase);
  return at >= named("form-buckets")      ? createVerifyScheduledPass()
         : at >= named("localize")        ? createVerifyLocalPass()
         : at >= named("insert-reshards") ? createVerifyAnnotatedPass()
                                          : createVerifyLogicalPass();
}

// The phase after which a module is in a state; the name of a phase stands for itself.
std::string lastPhaseOf(const std::string& from) {
  if (from.empty() || from == "logical") {
    return "";
  }
  return from == "annotated"   ? "insert-reshards"
         : from == "local"     ? "localize"
         : from == "scheduled" ? "form-buckets"
                               : from;
}

// All diagnostics of a run as one text, the user's place first.
class DiagnosticText {
 public:
  explicit DiagnosticText(MLIRContext* context)
      : handler_(context, [this](Diagnostic& diagnostic) {
          add(diagnostic);
          return success();
        }) {}

  const std::string& text() const { return text_; }

 private:
  void add(Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error) {
      return;
    }
    llvm::raw_string_ostream stream(text_);
    if (!text_.empty()) {
      stream << "\n";
    }
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
      stream << place.getFilename().getValue() << ":" << place.getLine() << ": ";
    }
    stream << "error: " << diagnostic.str();
  }

  std::string text_;
  ScopedDiagnosticHandler handler_;
};

}  // namespace

void registerWeftDialects(DialectRegistry& registry) {
  registry.insert<func::FuncDialect, ir::nn::NnDialect, ir::dist::DistDialect>();
}

namespace {

// The whole compiler, in order. A phase ends with its gate, if it closes a state.
std::vector<PhaseOfPipeline> phasesOf(const ir::OperatorRegistry& registry, const PipelineOptions& options) {
  std::vector<PhaseOfPipeline> phases;
  const auto add = [&](auto... passes) {
    PhaseOfPipeline& phase = phases.emplace_back();
    (phase.passes.push_back(std::move(passes)), ...);
  };
  // Before the gradient: what is folded here need not be differentiated.
  add(createVerifyLogicalPass(), createSimplifyPass());
  if (options.program == "train") {
    // Differentiates the serial program: gradients follow the user's operators, not the collectives.
    add(createBuildGradientsPass(registry));
  }
  // After its gradient, which is simpler than that of its parts; before layouts, which are those of the parts.
  add(createExpandBatchNormPass());
  // After the gradients exist, before layouts: optimizer state takes part in all decisions.
  add(createBuildUpdatePass());
  // Everything that chooses stands here; what follows only realizes the record.
  add(createDecidePass(registry, {options.decisions, options.choices}));
  add(createInsertReshardsPass(), createVerifyAnnotatedPass());
  // On reshards too: what is gathered for a recomputed operator is gathered again.
  add(createRecomputePass());
  // Layouts are known: global tensors become one rank's, reshards become collectives.
  add(createLocalizePass(), createVerifyLocalPass());
  // After localize: what another stage waits for is known by its send.
  add(createSplitBackwardPass());
  // On explicit collectives. (The reshard planner has already made most reduce_scatters; first those that are left,
  // because a bucket has several results.)
  add(createFormReduceScatterPass());
  add(createFormBucketsPass(), createVerifyScheduledPass());
  return phases;
}

}  // namespace

absl::Status buildPipeline(OpPassManager& manager, const ir::OperatorRegistry& registry, const PipelineOptions& options,
                           const std::string& from) {
  std::vector<PhaseOfPipeline> phases = phasesOf(registry, options);
  const std::string last = lastPhaseOf(from);
  size_t first = 0;
  std::string names;
  for (size_t i = 0; i < phases.size() && !last.empty(); ++i) {
    names += (names.empty() ? "" : ", ") + phases[i].name();
    first = phases[i].name() == last ? i + 1 : first;
  }
  if (!last.empty() && first == 0) {
    return absl::InvalidArgumentError(absl::StrCat("no state or phase '", from,
                                                   "' to start from; the states are logical, annotated, local and "
                                                   "scheduled, the phases ",
                                                   names));
  }
  if (first == 0 && !options.dumpDir.empty()) {
    manager.addPass(createDumpPass(options.dumpDir, 0, "input"));
  }
  if (first > 0) {
    manager.addPass(gateBehind(phases, first - 1));
  }
  for (size_t i = first; i < phases.size(); ++i) {
    const std::string name = phases[i].name();
    for (std::unique_ptr<Pass>& pass : phases[i].passes) {
      manager.addPass(std::move(pass));
    }
    manager.addPass(createEndPhasePass(name));
    if (!options.dumpDir.empty()) {
      manager.addPass(createDumpPass(options.dumpDir, static_cast<int>(i) + 1, name));
    }
    if (name == options.until) {
      break;
    }
  }
  return absl::OkStatus();
}

std::string resumePoint(ModuleOp module) {
  for (StringRef name : {kPhaseDoneAttr, kStateAttr}) {
    if (auto attr = module->getAttrOfType<StringAttr>(name)) {
      return attr.getValue().str();
    }
  }
  return "";
}

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
  if (options.report != nullptr) {
    ++options.report->compilations;
  }
  DiagnosticText diagnostics(module.getContext());
  absl::StatusOr<plan::Plan> plan = emitPlan(module);
  if (!plan.ok() && !diagnostics.text().empty()) {
    return absl::InvalidArgumentError(diagnostics.text());
  }
  if (plan.ok()) {
    plan->set_program(options.program);
  }
  return plan;
}

// Does the request leave anything to choose for this module? A record decides all.
bool isOpen(ModuleOp module, const PipelineOptions& options) {
  return options.program == "train" && !options.decisions && !module->hasAttr(kDecisionsAttr);
}

// Searches schedule and recomputation, where the request leaves them open, by compiling candidates. Returns the options
// of the compilation that realizes what was found.
absl::StatusOr<PipelineOptions> choose(ModuleOp module, const CompileOptions& request,
                                       const ir::OperatorRegistry& registry, const PipelineOptions& options) {
  PipelineOptions chosen = options;
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  const bool recompute = request.memoryLimit > 0 && request.recompute == "auto";
  const auto halvesFor = [&](const std::optional<ScheduleChoice>& schedule) {
    PipelineOptions quiet = options;
    quiet.dumpDir.clear();
    quiet.choices.schedule = schedule;
    PipelineOptions first = quiet;
    first.until = "insert-reshards";
    return CompilerHalves{[&registry, first](ModuleOp copy) { return runPhases(copy, registry, first); },
                          [&registry, quiet](ModuleOp copy) { return compileOnce(copy, registry, quiet); }, machine};
  };
  if (request.schedule == "auto" && outlineOf(module).stages > 1) {
    WEFT_ASSIGN_OR_RETURN(ScheduleSearchResult best, chooseSchedule(module, request, recompute, halvesFor));
    chosen.choices.schedule = std::move(best.schedule);
    chosen.decisions = std::move(best.decisions);
  } else if (recompute) {
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<RecomputeSearch> search,
                          RecomputeSearch::create(module, halvesFor(std::nullopt)));
    WEFT_ASSIGN_OR_RETURN(const Attempt attempt, search->under(request.memoryLimit));
    if (!attempt.fits) {
      return nothingFits(attempt.peakBytes, request.memoryLimit);
    }
    chosen.decisions = attempt.decisions;
  }
  return chosen;
}

absl::StatusOr<plan::Plan> compileChosen(ModuleOp module, const CompileOptions& request,
                                         const ir::OperatorRegistry& registry, const PipelineOptions& options) {
  PipelineOptions chosen = options;
  if (isOpen(module, options)) {
    WEFT_ASSIGN_OR_RETURN(chosen, choose(module, request, registry, options));
  }
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan, compileOnce(module, registry, chosen));
  if (request.memoryLimit > 0 && plan.memory().peak_bytes() > request.memoryLimit) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the plan needs ", plan.memory().peak_bytes(), " bytes on a rank, the limit is ", request.memoryLimit,
        "; recompute more (CompileOptions::recompute = \"auto\"), shard more (ZeRO, more ranks), cut the "
        "step into more micro-batches, or allow as much"));
  }
  return plan;
}

// Reads and checks what is asked for, before any gate runs.
absl::StatusOr<Request> requestFor(ModuleOp module, const PipelineOptions& options) {
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
  if (options.report != nullptr) {
    options.report->notes = std::move(notes);
  }
  return request;
}

}  // namespace

absl::StatusOr<plan::Plan> compileModule(ModuleOp module, const ir::OperatorRegistry& registry,
                                         const PipelineOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Request request, requestFor(module, options));
  const CompileOptions& asked = request.options;
  PipelineOptions chosen = options;
  if (isOpen(module, options) && asked.memoryLimit > 0 && asked.zero >= 3 && !asked.regather) {
    const auto compile = [&](int64_t gatherBytes) {
      OwningOpRef<ModuleOp> copy(module.clone());
      PipelineOptions quiet = options;
      quiet.dumpDir.clear();
      quiet.choices.gatherBytes = gatherBytes;
      return compileChosen(*copy, asked, registry, quiet);
    };
    WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(asked));
    WEFT_ASSIGN_OR_RETURN(chosen.choices.gatherBytes, chooseGathers(asked.memoryLimit, machine, compile));
  }
  return compileChosen(module, asked, registry, chosen);
}

}  // namespace weft
