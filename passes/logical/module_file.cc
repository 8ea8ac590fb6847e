#include "passes/logical/module_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/dist/dist.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/logical/line_ends.h"
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

// Lines of headers are broken where they are longer.
constexpr size_t kLongLine = 200;

// Of the string that opens at `open`, the place of its end.
size_t endOfString(StringRef text, size_t open) {
  size_t i = open + 1;
  while (i < text.size() && text[i] != '"') {
    i += text[i] == '\\' ? 2 : 1;
  }
  return i;
}

// The end of the bracket that opens at `open`; npos if it stays open. Brackets in strings are none, nor is that of ->.
size_t closing(StringRef text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '"') {
      i = endOfString(text, i);
    } else if (StringRef("([{<").contains(text[i])) {
      ++depth;
    } else if (StringRef(")]}>").contains(text[i]) && text[i - 1] != '-' && --depth == 0) {
      return i;
    }
  }
  return StringRef::npos;
}

// The items between commas that stand in no bracket.
SmallVector<StringRef> itemsOf(StringRef text) {
  SmallVector<StringRef> items;
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      items.push_back(text.slice(from, i));
      from = i + 1;
    } else if (text[i] == '"' || StringRef("([{<").contains(text[i])) {
      i = text[i] == '"' ? endOfString(text, i) : std::min(closing(text, i), text.size());
    }
  }
  items.push_back(text.substr(from));
  return items;
}

// Writes `text`; where it is too long, each item of its brackets on a line of its own.
void writeBroken(llvm::raw_ostream& stream, StringRef text, unsigned indent) {
  while (text.size() + indent > kLongLine) {
    const size_t open = text.find_first_of("([{");
    const size_t close = open == StringRef::npos ? open : closing(text, open);
    if (close == StringRef::npos) {
      break;
    }
    const StringRef inside = text.slice(open + 1, close);
    stream << text.take_front(open + 1);
    if (inside.size() <= kLongLine / 2) {
      stream << inside;
    } else {
      StringRef before = "\n";
      for (StringRef item : itemsOf(inside)) {
        stream << std::exchange(before, ",\n");
        stream.indent(indent + 4);
        writeBroken(stream, item.trim(), indent + 4);
      }
    }
    stream << text[close];
    text = text.drop_front(close + 1);
  }
  stream << text;
}

// The text of a module, long headers of modules and functions broken into lines.
std::string withShortHeaders(StringRef text) {
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  while (!text.empty()) {
    const auto [line, rest] = text.split('\n');
    const StringRef words = line.ltrim(' ');
    if (words.starts_with("module") || words.starts_with("func.func")) {
      writeBroken(stream, line, static_cast<unsigned>(line.size() - words.size()));
    } else {
      stream << line;
    }
    stream << "\n";
    text = rest;
  }
  return broken;
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
  removeFirstStage(*copy);
  writeLineEnds(*copy);
  std::string text;
  llvm::raw_string_ostream stream(text);
  // A local scope: no aliases, so that each line shows its own location.
  (*copy)->print(stream, OpPrintingFlags().enableDebugInfo(true, false).useLocalScope().assumeVerified());
  return writeFile(path, withShortHeaders(text));
}

absl::Status restoreModule(ModuleOp module, const std::string& path) {
  WEFT_RETURN_IF_ERROR(readLineEnds(module, path));
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
