#include "passes/gates/attribute_forms.h"

#include <cmath>

#include "ir/dist/dist.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "passes/logical/request_attributes.h"
#include "runtime/base/names.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR attributes throughout

namespace {

// What an attribute should be, in words; empty if it is that.
using Form = std::string (*)(Attribute);

struct Known {
  StringRef name;
  Form wanted;
};

// Numbers count things, or name them; 2^40 is beyond any count, and far from the values that a map keeps for itself.
constexpr int64_t kMostNumber = int64_t{1} << 40;

bool isInteger64(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(64);
}

bool isWithin(Attribute value, int64_t least, int64_t most) {
  return isInteger64(value) && cast<IntegerAttr>(value).getInt() >= least && cast<IntegerAttr>(value).getInt() <= most;
}

std::string text(Attribute value) {
  auto given = dyn_cast<StringAttr>(value);
  return given && llvm::json::isUTF8(given.getValue()) ? "" : "a text in UTF-8";
}

std::string unit(Attribute value) {
  return isa<UnitAttr>(value) ? "" : "a unit attribute, without value";
}

std::string integer(Attribute value) {
  return isInteger64(value) ? "" : "a 64-bit integer";
}

std::string count(Attribute value) {
  return isWithin(value, 0, kMostNumber) ? "" : "a 64-bit integer from 0 to 2^40";
}

std::string positive(Attribute value) {
  return isWithin(value, 1, kMostNumber) ? "" : "a 64-bit integer from 1 to 2^40";
}

std::string dimension(Attribute value) {
  return isWithin(value, -1, kMostNumber) ? "" : "a 64-bit integer, a dimension or -1 for none";
}

std::string real(Attribute value) {
  auto number = dyn_cast<FloatAttr>(value);
  return number && number.getType().isF64() && std::isfinite(number.getValueAsDouble()) ? "" : "a finite f64";
}

// What a user asks for is read, and refused, in one place (requestOf).
std::string requested(Attribute) {
  return "";
}

std::string numbers(Attribute value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  const bool fit = list && llvm::all_of(list.asArrayRef(), [](int64_t n) { return n >= 0 && n <= kMostNumber; });
  return fit ? "" : "an array of i64 from 0 to 2^40";
}

std::string sizes(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, isInteger64) ? "" : numbers(value);
}

bool isOneOf(Attribute value, ArrayRef<StringRef> words) {
  auto given = dyn_cast<StringAttr>(value);
  return given && llvm::is_contained(words, given.getValue());
}

std::string oneOf(Attribute value, ArrayRef<StringRef> words) {
  return isOneOf(value, words) ? "" : "one of \"" + llvm::join(words, "\", \"") + "\"";
}

std::string decisions(Attribute value) {
  return isa<ir::dist::DecisionsAttr>(value) ? "" : "a decisions record, #dist.decisions<\"{...}\">";
}

std::string phase(Attribute value) {
  return oneOf(value, {"backward", "update"});
}

std::string state(Attribute value) {
  return oneOf(value, {"annotated", "local", "scheduled"});
}

std::string function(Attribute value) {
  return oneOf(value, {"init", "prologue", "forward", "backward", "input_grad", "weight_grad", "update"});
}

std::string distribution(Attribute value) {
  return oneOf(value, {"normal", "uniform", "zeros", "ones", "constant"});
}

bool isListOf(Attribute value, bool (*fits)(Attribute)) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, fits);
}

// [[4, 1], [1, 1]]
bool isSplits(Attribute value) {
  return isListOf(value, [](Attribute list) { return isa<DenseI64ArrayAttr>(list) || isListOf(list, isInteger64); });
}

// [["dp", ""], ["", "tp"]]
bool isNames(Attribute value) {
  return isListOf(value,
                  [](Attribute list) { return isListOf(list, [](Attribute name) { return isa<StringAttr>(name); }); });
}

std::string splits(Attribute value) {
  return isSplits(value) || isNames(value)
             ? ""
             : "a list of lists, of numbers like [[4, 1], [1, 1]] or of names like [[\"dp\", \"\"]]";
}

std::string scalars(Attribute value) {
  const auto isBounded = [](Attribute entry) {
    auto scalar = dyn_cast<ir::dist::ScalarAttr>(entry);
    const auto fits = [](int64_t number) { return number >= -kMaxBytes && number <= kMaxBytes; };
    return scalar && fits(scalar.getImmediate()) && fits(scalar.getMicroBatchFactor());
  };
  return isListOf(value, isBounded) ? "" : "a list of #dist.scalar, each number below 2^48";
}

std::string memory(Attribute value) {
  return isa<ir::dist::MemoryAttr>(value) ? "" : "memory, such as #dist.memory<activation>";
}

bool isBetween(int64_t number, int64_t least, int64_t most) {
  return number >= least && number <= most;
}

std::string storages(Attribute value) {
  constexpr auto kFits = [](Attribute entry) {
    auto storage = dyn_cast<ir::dist::StorageAttr>(entry);
    return storage && isBetween(storage.getBytes(), 0, kMaxBytes) && isBetween(storage.getOffset(), -1, kMaxBytes) &&
           isBetween(storage.getRing(), 0, kMaxMicroBatches) && llvm::json::isUTF8(storage.getLabel());
  };
  return isListOf(value, kFits) ? "" : "a list of #dist.storage, with sizes up to 2^48 and labels in UTF-8";
}

std::string regions(Attribute value) {
  constexpr auto kFits = [](Attribute entry) {
    auto region = dyn_cast<ir::dist::RegionAttr>(entry);
    return region && isBetween(region.getBytes(), 0, kMaxBytes) && isBetween(region.getMaxLive(), 0, kMaxBytes) &&
           isBetween(region.getLowerBound(), 0, kMaxBytes) && isBetween(region.getRing(), 0, kMaxMicroBatches) &&
           isBetween(region.getSlots(), 1, kMaxMicroBatches) && isBetween(region.getStage(), 0, kMostNumber);
  };
  return isListOf(value, kFits) ? "" : "a list of #dist.region, with sizes up to 2^48 and at least one slot";
}

std::string actions(Attribute value) {
  return isa<ir::dist::ActionsAttr>(value) ? "" : "#dist.actions<init = [@init 0], step = [@forward 0, ...]>";
}

std::string layouts(Attribute value) {
  return isListOf(value, [](Attribute entry) { return isa<ir::dist::LayoutAttr>(entry); }) ? ""
                                                                                           : "a list of #dist.layout";
}

std::string texts(Attribute value) {
  return isListOf(value, [](Attribute entry) { return text(entry).empty(); }) ? "" : "a list of texts in UTF-8";
}

std::string dictionaries(Attribute value) {
  return isListOf(value, [](Attribute entry) { return isa<DictionaryAttr>(entry); }) ? "" : "a list of dictionaries";
}

std::string rankTable(Attribute value) {
  auto table = dyn_cast<DenseIntElementsAttr>(value);
  return table && table.getElementType().isSignlessInteger(64) && table.getType().getRank() == 2
             ? ""
             : "a table of i64, one row for each rank";
}

std::string dictionary(Attribute value) {
  return isa<DictionaryAttr>(value) ? "" : "a dictionary";
}

constexpr Known kModule[] = {{kMeshAttr, requested},      {kNameAttr, text},  // of the model, for people
                             {kOptionsAttr, requested},   {kOptimizerAttr, requested},
                             {kLayoutsAttr, requested},   {kStageMeshesAttr, requested},
                             {kStripesAttr, positive},    {kDecisionsAttr, decisions},
                             {kStateAttr, state},         {kPhaseDoneAttr, text},
                             {kSubmeshesAttr, numbers},   {kScheduleAttr, text},
                             {kVirtualAttr, positive},    {kTableAttr, text},
                             {kRankTableAttr, rankTable}, {kTensorsAttr, dictionaries},
                             {kActionsAttr, actions},     {kStoragesAttr, storages},
                             {kRegionsAttr, regions}};

constexpr Known kFunction[] = {{kNameAttr, text}, {kFunctionKindAttr, function}, {kStageAttr, count}};

constexpr Known kArgument[] = {{kKindAttr, text},          {kNameAttr, text},    {kInitAttr, dictionary},
                               {kBatchDimAttr, dimension}, {kLayoutAttr, text},  {kFileShapeAttr, sizes},
                               {kFrozenAttr, unit},        {kStageAttr, count},  {kValueAttr, text},
                               {kMemoryAttr, memory},      {kStorageAttr, count}};

constexpr Known kInit[] = {{"distribution", distribution}, {"a", real}, {"b", real}};

constexpr Known kResult[] = {
    {kKindAttr, text},   {kNameAttr, text},  {kUpdatesAttr, count}, {kOptimizerAttr, dictionary},
    {kStageAttr, count}, {kValueAttr, text}, {kMemoryAttr, memory}};

constexpr Known kOperator[] = {{kNameAttr, text},       {kIdAttr, count},          {kForwardAttr, count},
                               {kPhaseAttr, phase},     {kUserStageAttr, integer}, {kUserRecomputeAttr, integer},
                               {kPrologueAttr, count},  {kGradientOfAttr, text},   {kStrategyAttr, dictionary},
                               {kStageAttr, count},     {kRecomputeAttr, unit},    {kRunsInAttr, function},
                               {kScalarsAttr, scalars}, {kMembersAttr, texts},     {kReadsAttr, layouts},
                               {kStorageAttr, numbers}, {kViewAttr, unit},         {kRecomputedAttr, unit}};

constexpr Known kStrategy[] = {{"in", splits}, {"out", splits}};

std::string shown(Attribute value) {
  constexpr size_t kMost = 80;
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  value.print(stream);
  return printed.size() <= kMost ? printed : printed.substr(0, kMost) + "...";
}

// Where attributes stand, and how messages name it: "argument 0 of @step".
struct Owner {
  Location place;
  std::string name;
};

const Known* find(ArrayRef<Known> known, StringRef name) {
  const auto* const it = llvm::find_if(known, [&](const Known& entry) { return entry.name == name; });
  return it == known.end() ? nullptr : it;
}

LogicalResult unknown(const Owner& owner, StringRef name, ArrayRef<Known> known) {
  std::vector<std::string> names;
  for (const Known& entry : known) {
    names.push_back(entry.name.str());
  }
  return emitError(owner.place) << owner.name << ": nothing reads an attribute '" << name << "'; did you mean '"
                                << nearestName(name.str(), names) << "'?";
}

// `inside`: the dictionary in which the attributes stand, whose every key is ours; else ours begin with our dialects.
LogicalResult check(const Owner& owner, DictionaryAttr attributes, ArrayRef<Known> known, StringRef inside = "") {
  for (NamedAttribute entry : attributes ? attributes.getValue() : ArrayRef<NamedAttribute>()) {
    const StringRef name = entry.getName().getValue();
    if (inside.empty() && !name.starts_with("nn.") && !name.starts_with("dist.")) {
      continue;
    }
    const Known* form = find(known, name);
    const std::string full = inside.empty() ? name.str() : (inside + "." + name).str();
    if (form == nullptr) {
      return unknown({owner.place, owner.name + (inside.empty() ? "" : ", " + inside.str())}, name, known);
    }
    if (const std::string wanted = form->wanted(entry.getValue()); !wanted.empty()) {
      return emitError(owner.place) << owner.name << ": " << full << " is " << shown(entry.getValue())
                                    << "; it should be " << wanted;
    }
  }
  return success();
}

LogicalResult checkInside(const Owner& owner, DictionaryAttr attributes, StringRef name, ArrayRef<Known> known) {
  auto inner = attributes ? attributes.getAs<DictionaryAttr>(name) : DictionaryAttr();
  return check(owner, inner, known, name);
}

}  // namespace

LogicalResult checkModuleAttributes(ModuleOp module) {
  const Owner owner = {module.getLoc(), "the module"};
  const DictionaryAttr attributes = module->getAttrDictionary();
  if (failed(check(owner, attributes, kModule))) {
    return failure();
  }
  const absl::Status request = requestOf(module).status();
  return request.ok() ? success() : emitError(owner.place) << std::string(request.message());
}

LogicalResult checkFunctionAttributes(func::FuncOp function) {
  const std::string name = "@" + function.getName().str();
  if (failed(check({function.getLoc(), name}, function->getAttrDictionary(), kFunction))) {
    return failure();
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    const Owner owner = {function.getArgument(i).getLoc(), "argument " + std::to_string(i) + " of " + name};
    const DictionaryAttr attributes = function.getArgAttrDict(i);
    if (failed(check(owner, attributes, kArgument)) || failed(checkInside(owner, attributes, kInitAttr, kInit))) {
      return failure();
    }
    auto spec = attributes ? attributes.getAs<DictionaryAttr>(kInitAttr) : DictionaryAttr();
    if (spec && !spec.get("distribution")) {
      return emitError(owner.place) << owner.name << ": " << kInitAttr << " says no distribution; write normal, "
                                    << "uniform, zeros, ones or constant";
    }
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    const Owner owner = {function.getLoc(), "result " + std::to_string(i) + " of " + name};
    if (failed(check(owner, function.getResultAttrDict(i), kResult))) {
      return failure();
    }
  }
  return success();
}

LogicalResult checkOperatorAttributes(Operation* op) {
  const Owner owner = {op->getLoc(), labelOf(op)};
  const DictionaryAttr attributes = op->getDiscardableAttrDictionary();
  if (failed(check(owner, attributes, kOperator)) || failed(checkInside(owner, attributes, kStrategyAttr, kStrategy))) {
    return failure();
  }
  auto strategy = attributes.getAs<DictionaryAttr>(kStrategyAttr);
  const auto all = [&](bool (*are)(Attribute)) {
    return llvm::all_of(strategy, [&](NamedAttribute entry) { return are(entry.getValue()); });
  };
  if (strategy && !all(isSplits) && !all(isNames)) {
    return emitError(owner.place) << owner.name
                                  << ": the strategy has numbers of parts and names of axes; write one kind of both";
  }
  return success();
}

}  // namespace weft
