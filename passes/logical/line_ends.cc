#include "passes/logical/line_ends.h"

#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/program/program.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

// The frontend knows lines, not columns.
constexpr unsigned kColumn = 1;
// Words that say what follows.
constexpr char kOf[] = "of";
constexpr char kStage[] = "stage";

// Locations in the text are names, "model.cc:32".
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
    module_->setAttr(kSourcesAttr, sources.getDictionary(module_.getContext()));
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

// Moves attributes of an operator to the text at the end of its line. Values that the text cannot hold stay where they
// are.
class EndWriter {
 public:
  explicit EndWriter(Operation* op) : op_(op) {}

  std::string take() {
    number(kIdAttr, "");
    number(kForwardAttr, kOf);
    word(kPhaseAttr, "");
    word(kRunsInAttr, "@");
    number(kStageAttr, kStage);
    if (auto name = op_->getAttrOfType<StringAttr>(kNameAttr)) {
      absl::StrAppend(&text_, ": ", name.getValue().str());
      op_->removeAttr(kNameAttr);
    }
    return text_;
  }

 private:
  void number(StringRef attribute, const std::string& before) {
    auto value = op_->getAttrOfType<IntegerAttr>(attribute);
    if (value && value.getType().isInteger(64)) {
      say(attribute, before.empty() ? "" : before + " ", std::to_string(value.getInt()));
    }
  }

  void word(StringRef attribute, const std::string& before) {
    auto value = op_->getAttrOfType<StringAttr>(attribute);
    if (value && orderOf(value.getValue()) >= 0) {
      say(attribute, before, value.getValue().str());
    }
  }

  void say(StringRef attribute, const std::string& before, const std::string& value) {
    absl::StrAppend(&text_, text_.empty() ? "" : " ", before, value);
    op_->removeAttr(attribute);
  }

  Operation* op_;
  std::string text_;
};

// The attributes that the text at the end of a line says; nothing if it is not one that EndWriter wrote.
std::optional<NamedAttrList> attributesOf(StringRef text, MLIRContext* context) {
  Builder builder(context);
  NamedAttrList attributes;
  const bool isNamed = text.contains(": ");
  auto [before, name] = text.split(": ");
  SmallVector<StringRef> items;
  before.split(items, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  const auto number = [&](StringRef attribute, StringRef digits) {
    int64_t value = 0;
    const bool isNumber = !digits.getAsInteger(10, value);
    attributes.set(attribute, builder.getI64IntegerAttr(value));
    return isNumber;
  };
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i] == kOf || items[i] == kStage) {
      if (i + 1 == items.size() || !number(items[i] == kOf ? kForwardAttr : kStageAttr, items[i + 1])) {
        return std::nullopt;
      }
      ++i;
    } else if (StringRef word = items[i]; orderOf(word) >= 0) {
      attributes.set(kPhaseAttr, builder.getStringAttr(word));
    } else if (word.consume_front("@") && orderOf(word) >= 0) {
      attributes.set(kRunsInAttr, builder.getStringAttr(word));
    } else if (!number(kIdAttr, items[i])) {
      return std::nullopt;
    }
  }
  if (isNamed) {
    attributes.set(kNameAttr, builder.getStringAttr(name));
  }
  return attributes;
}

// Functions and modules keep their attributes in their headers.
bool hasLineEnd(Operation* op) {
  return !isa<ModuleOp, func::FuncOp>(op);
}

// A location that reads as the end of a line, though no attribute stands in it, gets an empty one around it: so reading
// is the inverse of writing.
void writeEnd(Operation* op) {
  const std::string text = EndWriter(op).take();
  auto named = dyn_cast<NameLoc>(op->getLoc());
  if (!text.empty() || (named && attributesOf(named.getName().getValue(), op->getContext()))) {
    op->setLoc(NameLoc::get(StringAttr::get(op->getContext(), text), op->getLoc()));
  }
}

void readEnd(Operation* op) {
  auto named = dyn_cast<NameLoc>(op->getLoc());
  const std::optional<NamedAttrList> attributes =
      named ? attributesOf(named.getName().getValue(), op->getContext()) : std::nullopt;
  if (attributes) {
    for (NamedAttribute attribute : *attributes) {
      op->setAttr(attribute.getName(), attribute.getValue());
    }
    op->setLoc(named.getChildLoc());
  }
}

// The place that a name like "model.cc:32" stands for, if its file is one of the sources.
std::optional<Attribute> placeOf(NameLoc named, DictionaryAttr sources) {
  const auto [file, digits] = named.getName().getValue().rsplit(':');
  auto whole = sources.getAs<StringAttr>(file);
  unsigned line = 0;
  if (!whole || digits.getAsInteger(10, line)) {
    return std::nullopt;
  }
  return FileLineColLoc::get(whole, line, kColumn);
}

}  // namespace

std::string shortPlace(Location location) {
  auto named = location->findInstanceOf<NameLoc>();
  while (named && isa<NameLoc>(named.getChildLoc())) {
    named = cast<NameLoc>(named.getChildLoc());
  }
  return named ? named.getName().getValue().str() : "";
}

void writeLineEnds(ModuleOp module) {
  ShortLocations(module).write();
  module.walk([](Operation* op) {
    if (hasLineEnd(op)) {
      writeEnd(op);
    }
  });
}

absl::Status readLineEnds(ModuleOp module, const std::string& path) {
  const Attribute attribute = module->removeAttr(kSourcesAttr);
  if (!attribute) {
    return absl::OkStatus();
  }
  auto sources = dyn_cast<DictionaryAttr>(attribute);
  if (!sources) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", kSourcesAttr, " should be a dictionary of paths, like {model.cc = \"src/model.cc\"}"));
  }
  for (NamedAttribute entry : sources) {
    if (!isa<StringAttr>(entry.getValue())) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", kSourcesAttr, ".", entry.getName().str(), " should be the path of a file"));
    }
  }
  module.walk([](Operation* op) {
    if (hasLineEnd(op)) {
      readEnd(op);
    }
  });
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](NameLoc named) { return placeOf(named, sources); });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/false, /*replaceLocs=*/true);
  return absl::OkStatus();
}

}  // namespace weft
