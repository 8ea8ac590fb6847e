#include "passes/logical/module_file.h"

#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/dist/dist.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
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

// The frontend knows lines, not columns.
constexpr unsigned kColumn = 1;

// Locations in the text are names, "model.cc:32": the file's own name, or the whole path where two files share one.
class ShortLocations {
 public:
  explicit ShortLocations(ModuleOp module) : module_(module) {
    AttrTypeWalker walker;
    walker.addWalk([this](FileLineColLoc place) { add(place.getFilename()); });
    module->walk([&](Operation* op) {
      walker.walk(op->getLoc());
      for (Region& region : op->getRegions()) {
        for (Block& block : region) {
          llvm::for_each(block.getArguments(), [&](BlockArgument argument) { walker.walk(argument.getLoc()); });
        }
      }
    });
  }

  void write() {
    AttrTypeReplacer replacer;
    replacer.addReplacement([this](FileLineColLoc place) -> std::optional<Attribute> {
      if (place.getColumn() != kColumn || place.getFilename().empty()) {
        return std::nullopt;
      }
      const std::string name = absl::StrCat(shortName(place.getFilename()), ":", place.getLine());
      return NameLoc::get(StringAttr::get(place.getContext(), name));
    });
    replacer.recursivelyReplaceElementsIn(module_, /*replaceAttrs=*/false, /*replaceLocs=*/true);
    NamedAttrList sources;
    for (const auto& [name, path] : paths_) {
      sources.set(shortName(path), path);
    }
    if (!sources.empty()) {
      module_->setAttr(kSourcesAttr, sources.getDictionary(module_.getContext()));
    }
  }

 private:
  static std::string fileName(StringAttr path) { return std::filesystem::path(path.getValue().str()).filename(); }

  void add(StringAttr path) {
    if (path.empty()) {
      return;
    }
    const auto [it, isNew] = paths_.try_emplace(path.getValue().str(), path);
    files_[fileName(path)] += isNew ? 1 : 0;
  }

  std::string shortName(StringAttr path) const {
    const std::string name = fileName(path);
    return name.empty() || files_.at(name) > 1 ? path.getValue().str() : name;
  }

  ModuleOp module_;
  std::map<std::string, StringAttr> paths_;
  std::map<std::string, int> files_;  // how many of the paths have the name
};

// The inverse.
absl::Status restoreLocations(ModuleOp module, const std::string& path) {
  const Attribute attribute = module->removeAttr(kSourcesAttr);
  auto sources = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (attribute && !sources) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", kSourcesAttr, " should be a dictionary of paths, like {model.cc = \"src/model.cc\"}"));
  }
  for (NamedAttribute entry : sources ? sources.getValue() : ArrayRef<NamedAttribute>()) {
    if (!isa<StringAttr>(entry.getValue())) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", kSourcesAttr, ".", entry.getName().str(), " should be the path of a file"));
    }
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](NameLoc named) -> std::optional<Attribute> {
    const auto [file, digits] = named.getName().getValue().rsplit(':');
    auto whole = sources.getAs<StringAttr>(file);
    unsigned line = 0;
    if (!whole || digits.getAsInteger(10, line)) {
      return std::nullopt;
    }
    return FileLineColLoc::get(whole, line, kColumn);
  });
  if (sources) {
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/false, /*replaceLocs=*/true);
  }
  return absl::OkStatus();
}

// Operators without a stage are of stage 0.
void removeFirstStage(ModuleOp module) {
  module.walk([](Operation* op) {
    auto stage = op->getAttrOfType<IntegerAttr>(kStageAttr);
    if (stage && stage.getInt() == 0 && !isa<func::FuncOp>(op)) {
      op->removeAttr(kStageAttr);
    }
  });
}

// Moves the record of `module`, which is about to be printed, to its file.
absl::Status writeRecord(ModuleOp module, const std::filesystem::path& folder) {
  auto record = module->getAttrOfType<ir::dist::DecisionsAttr>(kDecisionsAttr);
  if (!record) {
    return absl::OkStatus();
  }
  WEFT_RETURN_IF_ERROR(writeFile((folder / kDecisionsFile).string(), record.getRecord().text()));
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
      // Of the module's place, not of the module: that would print all of it below the message.
      emitError(getOperation().getLoc(), std::string(status.message()));
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
  ShortLocations(*copy).write();
  removeFirstStage(*copy);
  std::string text;
  llvm::raw_string_ostream stream(text);
  // A local scope: no aliases, so that each line shows its own location.
  (*copy)->print(stream, OpPrintingFlags().enableDebugInfo(true, false).useLocalScope().assumeVerified());
  return writeFile(path, text + "\n");
}

absl::Status restoreModule(ModuleOp module, const std::string& path) {
  WEFT_RETURN_IF_ERROR(restoreLocations(module, path));
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
  absl::StatusOr<Decisions> decisions = parseDecisions(*record);
  if (!decisions.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(beside, ": ", std::string(decisions.status().message())));
  }
  module->removeAttr(kDecisionsFileAttr);
  setDecisions(module, *std::move(decisions));
  return absl::OkStatus();
}

std::unique_ptr<Pass> createRestoreModulePass(const std::string& path) {
  return std::make_unique<RestoreModulePass>(path);
}

}  // namespace weft
