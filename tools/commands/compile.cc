#include "tools/commands/compile.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "ir/program/program.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "passes/logical/request_attributes.h"
#include "planner/check_request.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tools/commands/flags.h"
#include "tools/commands/request_flags.h"

namespace weft::tools {
namespace {

constexpr char kName[] = "compile";
constexpr char kUsage[] = "weft compile MODEL.mlir -o MODEL.plan";

const std::vector<Flag>& compileFlags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all{{"output", Flag::kRequired, "the plan file (also -o)"}};
    all.insert(all.end(), requestFlags().begin(), requestFlags().end());
    all.push_back({"dump-dir", Flag::kOptional, "write the IR after every phase there"});
    all.push_back({"decisions", Flag::kOptional, "realize this decisions record instead of deciding"});
    all.push_back({"save-decisions", Flag::kOptional, "write the decisions record there"});
    return all;
  }();
  return flags;
}

// What a module has behind it cannot be asked for again.
absl::Status checkResumed(mlir::ModuleOp module, const std::string& done, const Flags& flags) {
  for (const char* name : {"mode", "mesh", "devices", "stage-meshes", "max-stages", "departures", "without",
                           "memory-limit", "machine", "micro", "zero", "decisions"}) {
    if (flags.has(name) && (std::string(name) != "decisions" || module->hasAttr(kDecisionsAttr))) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " comes too late: the module is past '", done,
                                                     "', where that was decided; give it with the logical module, "
                                                     "00-input.mlir of a dump"));
    }
  }
  return absl::OkStatus();
}

// Before the compiler works for nothing.
absl::Status checkOutputs(const Flags& flags) {
  for (const std::string name : {"output", "save-decisions"}) {
    WEFT_RETURN_IF_ERROR(flags.has(name) ? canWrite(flags.text(name)) : absl::OkStatus());
  }
  return flags.has("dump-dir") ? canWriteInto(flags.text("dump-dir")) : absl::OkStatus();
}

absl::Status run(const std::string& path, const Flags& flags) {
  WEFT_RETURN_IF_ERROR(checkOutputs(flags));
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, readModule(text, path, context));
  const std::string done = resumePoint(*module);
  WEFT_RETURN_IF_ERROR(done.empty() ? applyRequestFlags(*module, flags) : checkResumed(*module, done, flags));
  CompileReport report;
  PipelineOptions options;
  options.dumpDir = flags.text("dump-dir");
  if (flags.has("decisions")) {
    WEFT_ASSIGN_OR_RETURN(const std::string record, readText(flags.text("decisions")));
    absl::StatusOr<Decisions> parsed = parseDecisions(record);
    if (!parsed.ok()) {
      return absl::Status(parsed.status().code(),
                          absl::StrCat(flags.text("decisions"), ": ", parsed.status().message(),
                                       "; give a whole record, as decisions.json of a dump or of `weft plan -o`"));
    }
    options.decisions = *std::move(parsed);
  }
  const bool trains = (*module)->hasAttr(kOptimizerAttr);
  options.program = trains ? "train" : "evaluate";
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plan, compileModule(*module, registry, options, &report));
  for (const std::string& note : report.notes) {
    std::cerr << "note: " << note << "\n";
  }
  if (report.compilations > 1) {
    std::cerr << "compiled " << report.compilations << " times: the memory was predicted too low before\n";
  }
  if (flags.has("save-decisions")) {
    WEFT_RETURN_IF_ERROR(writeFile(flags.text("save-decisions"), plan.decisions()));
  }
  return writePlan(plan, flags.text("output"));
}

}  // namespace

int compileCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, compileFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  absl::StatusOr<Flags> flags = Flags::parse(compileFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError(kName, flags.ok() ? absl::InvalidArgumentError("a module file is missing") : flags.status());
  }
  const absl::Status status = run(path, *flags);
  return status.ok() ? 0 : fail(kName, status);
}

}  // namespace weft::tools
