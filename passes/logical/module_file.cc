#include "passes/logical/module_file.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "ir/program/program.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

// A plain file name, so that a module from anywhere reads nothing outside of its own folder.
bool isFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// Moves the record of `module`, which is about to be printed, to its file.
absl::Status writeRecord(ModuleOp module, const std::filesystem::path& folder) {
  auto record = module->getAttrOfType<StringAttr>(kDecisionsAttr);
  if (!record) {
    return absl::OkStatus();
  }
  WEFT_RETURN_IF_ERROR(writeFile((folder / kDecisionsFile).string(), record.getValue()));
  module->removeAttr(kDecisionsAttr);
  module->setAttr(kDecisionsFileAttr, StringAttr::get(module.getContext(), kDecisionsFile));
  return absl::OkStatus();
}

class RestoreModulePass : public PassWrapper<RestoreModulePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RestoreModulePass)
  explicit RestoreModulePass(std::string path) : path_(std::move(path)) {}

  void runOnOperation() override {
    if (const absl::Status status = restoreModule(getOperation(), path_); !status.ok()) {
      getOperation()->emitError(std::string(status.message()));
      signalPassFailure();
    }
  }

 private:
  std::string path_;
};

}  // namespace

absl::Status writeModuleFile(ModuleOp module, const std::string& path) {
  const OwningOpRef<ModuleOp> copy(module.clone());
  WEFT_RETURN_IF_ERROR(writeRecord(*copy, std::filesystem::path(path).parent_path()));
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*copy)->print(stream, OpPrintingFlags().enableDebugInfo(true, false).assumeVerified());
  return writeFile(path, text);
}

absl::Status restoreModule(ModuleOp module, const std::string& path) {
  const Attribute attribute = module->getAttr(kDecisionsFileAttr);
  if (!attribute) {
    return absl::OkStatus();
  }
  auto text = dyn_cast<StringAttr>(attribute);
  const std::string name = text ? text.getValue().str() : "";
  if (!isFileName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", kDecisionsFileAttr, " is '", name,
                                                   "'; it should be the name of a file in the module's own folder, "
                                                   "like '",
                                                   kDecisionsFile, "'"));
  }
  if (module->hasAttr(kDecisionsAttr)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the module holds a decisions record and names the file '",
                                                   name, "' for it; remove ", kDecisionsAttr, " or ",
                                                   kDecisionsFileAttr));
  }
  if (path == "-") {
    return absl::InvalidArgumentError(absl::StrCat("the module keeps its decisions record in '", name,
                                                   "' beside its file, and the standard input has no folder; give the "
                                                   "module by its path"));
  }
  const std::string beside = (std::filesystem::path(path).parent_path() / name).string();
  absl::StatusOr<std::string> record = readText(beside);
  if (!record.ok()) {
    return absl::NotFoundError(absl::StrCat(
        path, ": cannot read '", beside, "', the decisions record of the module; copy ", name,
        " of the same dump there, or go on from a dump that was written before 'decide', as 00-input.mlir"));
  }
  module->removeAttr(kDecisionsFileAttr);
  module->setAttr(kDecisionsAttr, StringAttr::get(module.getContext(), *record));
  return absl::OkStatus();
}

std::unique_ptr<Pass> createRestoreModulePass(const std::string& path) {
  return std::make_unique<RestoreModulePass>(path);
}

}  // namespace weft
