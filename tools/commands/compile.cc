#include "tools/commands/compile.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "ir/dist/dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/pipeline.h"
#include "passes/support/stage_meshes.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

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

absl::StatusOr<int64_t> integerFlag(const Flags& flags, const std::string& name) {
  const std::string text = flags.text(name);
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--", name, " takes a number, not '", text, "'"));
  }
  return value;
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
    WEFT_ASSIGN_OR_RETURN(const int64_t micro, integerFlag(flags, "micro"));
    if (micro < 1) {
      return absl::InvalidArgumentError("--micro is at least 1");
    }
    mesh = micro > 1 ? mesh.withMicro(micro) : mesh;
  }
  module->setAttr("dist.mesh", ir::dist::MeshAttr::get(module.getContext(), mesh.print()));
  if (flags.has("zero")) {
    WEFT_ASSIGN_OR_RETURN(const int64_t zero, integerFlag(flags, "zero"));
    if (zero > 3) {
      return absl::InvalidArgumentError(absl::StrCat("--zero ", zero, ": the level is 0, 1, 2 or 3"));
    }
    auto options = module->getAttrOfType<mlir::DictionaryAttr>("nn.options");
    mlir::NamedAttrList entries(options ? options : builder.getDictionaryAttr({}));
    entries.set("zero", builder.getI64IntegerAttr(zero));
    module->setAttr("nn.options", entries.getDictionary(module.getContext()));
  }
  return absl::OkStatus();
}

absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> readModule(const std::string& path, mlir::MLIRContext& context) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    llvm::raw_string_ostream stream(errors);
    if (auto place = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>()) {
      stream << place.getFilename().getValue() << ":" << place.getLine() << ": ";
    }
    stream << diagnostic.str() << "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), path);
  if (!module) {
    return absl::InvalidArgumentError(errors);
  }
  return module;
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
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, readModule(path, context));
  if (resumePoint(*module).empty()) {
    WEFT_RETURN_IF_ERROR(applyFlags(*module, flags));
  }
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
    return usageError(kUsage, flags.ok() ? absl::InvalidArgumentError("a module file is missing") : flags.status());
  }
  const absl::Status status = run(path, *flags);
  return status.ok() ? 0 : fail(kUsage, status);
}

}  // namespace weft::tools
