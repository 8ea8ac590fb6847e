#include "tools/commands/compile.h"

#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "ir/dist/dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/pipeline.h"
#include "passes/support/program.h"
#include "passes/support/read_module.h"
#include "passes/support/stage_meshes.h"
#include "runtime/base/limits.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

constexpr char kName[] = "compile";
constexpr char kUsage[] = "weft compile MODEL.mlir -o MODEL.plan";

const std::vector<Flag>& compileFlags() {
  static const std::vector<Flag> flags{
      {"output", Flag::kRequired, "the plan file (also -o)"},
      {"mesh", Flag::kOptional, "mesh instead of the module's, as dp=2,tp=2"},
      {"stage-meshes", Flag::kOptional, "a mesh for each block of pipeline stages instead, as 'dp=2,tp=2;dp=4'"},
      {"micro", Flag::kOptional, "micro-batches of one step"},
      {"zero", Flag::kOptional, "ZeRO level 0 to 3"},
      {"dump-dir", Flag::kOptional, "write the IR after every phase there"},
      {"decisions", Flag::kOptional, "realise this decisions record instead of deciding"},
      {"save-decisions", Flag::kOptional, "write the decisions record there"},
  };
  return flags;
}

// What the flags say goes into the module's attributes.
absl::Status applyFlags(mlir::ModuleOp module, const Flags& flags) {
  mlir::Builder builder(module.getContext());
  auto attr = module->getAttrOfType<ir::dist::MeshAttr>("dist.mesh");
  if (flags.has("mesh") && flags.has("stage-meshes")) {
    return absl::InvalidArgumentError(
        "--mesh and --stage-meshes are both given; give one mesh for all, or one for each");
  }
  if (flags.has("stage-meshes")) {
    WEFT_RETURN_IF_ERROR(parseStageMeshes(flags.text("stage-meshes"), 1).status());
    module->setAttr(kStageMeshesAttr, builder.getStringAttr(flags.text("stage-meshes")));
  } else if (flags.has("mesh")) {
    module->removeAttr(kStageMeshesAttr);
  }
  const std::string text = flags.has("mesh") ? flags.text("mesh") : attr ? attr.getText().str() : "1";
  WEFT_ASSIGN_OR_RETURN(Mesh mesh, Mesh::parse(text));
  if (flags.has("micro")) {
    WEFT_ASSIGN_OR_RETURN(const int64_t micro, flags.integer("micro", 1, {1, kMaxPieces}));
    mesh = micro > 1 ? mesh.withMicro(micro) : mesh;
  }
  module->setAttr("dist.mesh", ir::dist::MeshAttr::get(module.getContext(), mesh.print()));
  if (flags.has("zero")) {
    WEFT_ASSIGN_OR_RETURN(const int64_t zero, flags.integer("zero", 0, {0, 3}));
    auto options = module->getAttrOfType<mlir::DictionaryAttr>("nn.options");
    mlir::NamedAttrList entries(options ? options : builder.getDictionaryAttr({}));
    entries.set("zero", builder.getI64IntegerAttr(zero));
    module->setAttr("nn.options", entries.getDictionary(module.getContext()));
  }
  return absl::OkStatus();
}

// What a module has behind it cannot be asked for again.
absl::Status checkResumed(mlir::ModuleOp module, const std::string& done, const Flags& flags) {
  for (const char* name : {"mesh", "stage-meshes", "micro", "zero", "decisions"}) {
    if (flags.has(name) && (std::string(name) != "decisions" || module->hasAttr(kDecisionsAttr))) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " comes too late: the module is past '", done,
                                                     "', where that was decided; give it with the logical module, "
                                                     "00-input.mlir of a dump"));
    }
  }
  return absl::OkStatus();
}

absl::Status run(const std::string& path, const Flags& flags) {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects);
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, readModule(text, path, context));
  WEFT_RETURN_IF_ERROR(checkAttributeForms(*module));
  const std::string done = resumePoint(*module);
  WEFT_RETURN_IF_ERROR(done.empty() ? applyFlags(*module, flags) : checkResumed(*module, done, flags));
  PipelineOptions options;
  options.dumpDir = flags.text("dump-dir");
  if (flags.has("decisions")) {
    WEFT_ASSIGN_OR_RETURN(options.decisions, readText(flags.text("decisions")));
  }
  const bool trains = (*module)->hasAttr("nn.optimizer");
  options.program = trains ? "train" : "evaluate";
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plan, compileModule(*module, registry, options));
  if (flags.has("save-decisions")) {
    std::ofstream stream(flags.text("save-decisions"));
    stream << plan.decisions();
    if (!stream.flush()) {
      return absl::UnavailableError("cannot write " + flags.text("save-decisions"));
    }
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
