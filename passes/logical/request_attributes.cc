#include "passes/logical/request_attributes.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/dist/dist.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "planner/check_request.h"
#include "planner/open_mesh.h"
#include "runtime/base/limits.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

using mlir::Attribute;
using mlir::DictionaryAttr;

constexpr char kZero[] = "zero";
constexpr char kZeroOf[] = "zero_of";
constexpr char kDataParallel[] = "data_parallel";
constexpr char kReplicate[] = "replicate";
constexpr char kKeep[] = "keep";
constexpr char kRegather[] = "regather";
constexpr char kMachine[] = "machine";
constexpr char kOpenMesh[] = "mesh";
constexpr char kMode[] = "mode";
constexpr char kMicro[] = "micro";
constexpr char kStages[] = "stages";

std::string printed(Attribute attribute) {
  if (!attribute) {
    return "nothing";
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  attribute.print(stream);
  return text;
}

absl::Status wrong(const std::string& name, Attribute attribute, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat(name, " = ", printed(attribute), "; it should be ", wanted));
}

// Readers of one entry, which say its name where it has another type.
absl::StatusOr<int64_t> integerOf(const std::string& name, Attribute attribute) {
  auto integer = mlir::dyn_cast_or_null<mlir::IntegerAttr>(attribute);
  if (!integer || !integer.getType().isSignlessInteger(64)) {
    return wrong(name, attribute, "an integer, such as 1 : i64");
  }
  return integer.getInt();
}

absl::StatusOr<double> realOf(const std::string& name, Attribute attribute) {
  auto real = mlir::dyn_cast<mlir::FloatAttr>(attribute);
  return real ? absl::StatusOr<double>(real.getValueAsDouble()) : wrong(name, attribute, "a number, such as 1.0 : f64");
}

absl::StatusOr<bool> flagOf(const std::string& name, Attribute attribute) {
  auto flag = mlir::dyn_cast<mlir::BoolAttr>(attribute);
  return flag ? absl::StatusOr<bool>(flag.getValue()) : wrong(name, attribute, "true or false");
}

absl::StatusOr<std::string> textOf(const std::string& name, Attribute attribute) {
  auto text = mlir::dyn_cast<mlir::StringAttr>(attribute);
  return text ? absl::StatusOr<std::string>(text.str()) : wrong(name, attribute, "a text in quotes");
}

// One of two words; true for the second.
absl::StatusOr<bool> wordOf(const std::string& name, Attribute attribute, const char* first, const char* second) {
  const auto text = mlir::dyn_cast<mlir::StringAttr>(attribute);
  if (!text || (text.getValue() != first && text.getValue() != second)) {
    return wrong(name, attribute, absl::StrCat("\"", first, "\" or \"", second, "\""));
  }
  return text.getValue() == second;
}

template <typename T>
absl::Status set(T& value, const absl::StatusOr<T>& read) {
  if (read.ok()) {
    value = *read;
  }
  return read.status();
}

using ReadEntry = std::function<absl::Status(const std::string& name, Attribute attribute)>;
using Entries = std::map<std::string, ReadEntry>;

// Reads each entry of a dictionary; an absent dictionary has none.
absl::Status readEntries(const std::string& name, Attribute attribute, const Entries& known) {
  auto dictionary = mlir::dyn_cast_or_null<DictionaryAttr>(attribute);
  if (attribute && !dictionary) {
    return wrong(name, attribute, "a dictionary {name = value, ...}");
  }
  for (const mlir::NamedAttribute& entry :
       dictionary ? dictionary.getValue() : llvm::ArrayRef<mlir::NamedAttribute>()) {
    const std::string key = entry.getName().str();
    const auto it = known.find(key);
    if (it == known.end()) {
      std::vector<std::string> names;
      for (const auto& [each, read] : known) {
        names.push_back(each);
      }
      return absl::InvalidArgumentError(absl::StrCat(name, " has an unknown entry '", key, "'; did you mean '",
                                                     nearestName(key, names), "'? There are ",
                                                     absl::StrJoin(names, ", ")));
    }
    WEFT_RETURN_IF_ERROR(it->second(absl::StrCat(name, ".", key), entry.getValue()));
  }
  return absl::OkStatus();
}

absl::Status readStages(const std::string& name, Attribute attribute, CompileOptions& options) {
  auto dictionary = mlir::dyn_cast<DictionaryAttr>(attribute);
  if (!dictionary) {
    return wrong(name, attribute, "a dictionary {\"parameter\" = array<i64: stage, ...>, ...}");
  }
  for (const mlir::NamedAttribute& entry : dictionary) {
    const std::string parameter = entry.getName().str();
    auto stages = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(entry.getValue());
    if (!stages) {
      return wrong(absl::StrCat(name, ".", parameter), entry.getValue(), "an array, such as array<i64: 0>");
    }
    options.stages[parameter] = stages.asArrayRef().vec();
  }
  return absl::OkStatus();
}

Entries optionEntries(CompileOptions& options) {
  const auto integer = [](int64_t& value) {
    return [&value](const std::string& name, Attribute a) { return set(value, integerOf(name, a)); };
  };
  const auto text = [](std::string& value) {
    return [&value](const std::string& name, Attribute a) { return set(value, textOf(name, a)); };
  };
  const auto word = [](const char* first, const char* second, std::function<void(bool)> store) {
    return [=](const std::string& name, Attribute a) {
      const absl::StatusOr<bool> read = wordOf(name, a, first, second);
      store(read.value_or(false));
      return read.status();
    };
  };
  return {
      {kZero,
       [&options](const std::string& name, Attribute a) {
         WEFT_ASSIGN_OR_RETURN(const int64_t level, integerOf(name, a));
         options.zero = static_cast<int>(std::clamp<int64_t>(level, INT_MIN, INT_MAX));  // both ends are refused
         return absl::OkStatus();
       }},
      {kZeroOf,
       [&options](const std::string& name, Attribute a) {
         WEFT_ASSIGN_OR_RETURN(const std::string patterns, textOf(name, a));
         return set(options.zeroOf, parseZeroOf(patterns));
       }},
      {kMode,
       [&options](const std::string& name, Attribute a) {
         WEFT_ASSIGN_OR_RETURN(const std::string mode, textOf(name, a));
         return set(options.mode, parseMode(mode));
       }},
      // Beside the time axis of dist.mesh, which there is only for more than one.
      {kMicro,
       [&options](const std::string& name, Attribute a) {
         WEFT_ASSIGN_OR_RETURN(options.micro, integerOf(name, a));
         return absl::OkStatus();
       }},
      {kStages, [&options](const std::string& name, Attribute a) { return readStages(name, a, options); }},
      {"max_stages", integer(options.maxStages)},
      {"departures", integer(options.departures)},
      {"without",
       [&options](const std::string& name, Attribute a) {
         WEFT_ASSIGN_OR_RETURN(const std::string names, textOf(name, a));
         return set(options.without, parseFreedoms(names));
       }},
      {"default", word(kDataParallel, kReplicate,
                       [&](bool second) { options.fill = second ? Fill::kReplicate : Fill::kDataParallel; })},
      {"schedule", text(options.schedule)},
      {"schedule_table", text(options.scheduleTable)},
      {"memory_limit", integer(options.memoryLimit)},
      {"virtual", integer(options.virtualStages)},
      {"recompute", text(options.recompute)},
      {"regather", word(kKeep, kRegather, [&](bool second) { options.regather = second; })},
      {"gather_bucket", integer(options.gatherBucket)},
      {"overlap", [&options](const std::string& name, Attribute a) { return set(options.overlap, flagOf(name, a)); }},
      {"offload",
       [&options](const std::string& name, Attribute a) {
         WEFT_ASSIGN_OR_RETURN(const std::string offload, textOf(name, a));
         return set(options.offload, parseOffload(offload));
       }},
      {"clip_norm",
       [&options](const std::string& name, Attribute a) { return set(options.clipNorm, realOf(name, a)); }},
      {"seed", integer(options.seed)},
      {kMachine, text(options.machine)},
      // Instead of the ranks without names that dist.mesh has then.
      {kOpenMesh,
       [&options](const std::string& name, Attribute a) {
         WEFT_ASSIGN_OR_RETURN(const Mesh ranks, Mesh::parse(options.mesh));
         options.devices = ranks.ranks();
         return set(options.mesh, textOf(name, a));
       }},
      {"gradient_outputs",
       [&options](const std::string& name, Attribute a) { return set(options.gradientOutputs, flagOf(name, a)); }},
  };
}

absl::Status readGroup(Attribute attribute, optim::Groups& groups) {
  const std::string name = absl::StrCat(kOptimizerAttr, ".groups");
  auto pair = mlir::dyn_cast<mlir::ArrayAttr>(attribute);
  auto pattern = pair && pair.size() == 2 ? mlir::dyn_cast<mlir::StringAttr>(pair[0]) : mlir::StringAttr();
  if (!pattern) {
    return wrong(name, attribute, "an entry [\"pattern\", {lr_factor = 0.5, weight_decay = 0.0, frozen = true}]");
  }
  optim::Group group;
  const auto real = [](std::optional<double>& value) {
    return [&value](const std::string& entry, Attribute a) -> absl::Status {
      WEFT_ASSIGN_OR_RETURN(value, realOf(entry, a));
      return absl::OkStatus();
    };
  };
  WEFT_RETURN_IF_ERROR(readEntries(
      name, pair[1],
      {{"lr_factor", real(group.lrFactor)},
       {"weight_decay", real(group.weightDecay)},
       {"frozen", [&](const std::string& entry, Attribute a) { return set(group.frozen, flagOf(entry, a)); }}}));
  groups.emplace_back(pattern.str(), group);
  return absl::OkStatus();
}

absl::Status readGroups(const std::string& name, Attribute attribute, optim::Groups& groups) {
  auto list = mlir::dyn_cast<mlir::ArrayAttr>(attribute);
  if (!list) {
    return wrong(name, attribute, "a list [[\"pattern\", {...}], ...]");
  }
  for (Attribute entry : list) {
    WEFT_RETURN_IF_ERROR(readGroup(entry, groups));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Optimizer> optimizerOf(Attribute attribute) {
  Optimizer read("none", {});
  Entries entries = {
      {"kind", [&](const std::string& name, Attribute a) { return set(read.kind, textOf(name, a)); }},
      {"groups", [&](const std::string& name, Attribute a) { return readGroups(name, a, read.groups); }}};
  for (const std::string& setting : optimizerSettings()) {
    entries[setting] = [&read, setting](const std::string& name, Attribute a) -> absl::Status {
      double value = 0;
      if (isFlagSetting(setting)) {
        WEFT_ASSIGN_OR_RETURN(const bool flag, flagOf(name, a));
        value = flag ? 1 : 0;
      } else {
        WEFT_ASSIGN_OR_RETURN(value, realOf(name, a));
      }
      read.settings.emplace_back(setting, value);
      return absl::OkStatus();
    };
  }
  WEFT_RETURN_IF_ERROR(readEntries(kOptimizerAttr, attribute, entries));
  return read;
}

namespace {

absl::Status readOptimizer(Attribute attribute, std::optional<Optimizer>& optimizer) {
  if (attribute) {
    WEFT_ASSIGN_OR_RETURN(optimizer, optimizerOf(attribute));
  }
  return absl::OkStatus();
}

absl::Status readLayouts(Attribute attribute, CompileOptions& options) {
  const std::string wanted = "a list of pairs [[\"pattern\", \"[{dp},{}]\"], ...]";
  auto list = mlir::dyn_cast_or_null<mlir::ArrayAttr>(attribute);
  if (attribute && !list) {
    return wrong(kLayoutsAttr, attribute, wanted);
  }
  for (Attribute entry : list ? list.getValue() : llvm::ArrayRef<Attribute>()) {
    auto pair = mlir::dyn_cast<mlir::ArrayAttr>(entry);
    auto pattern = pair && pair.size() == 2 ? mlir::dyn_cast<mlir::StringAttr>(pair[0]) : mlir::StringAttr();
    auto layout = pair && pair.size() == 2 ? mlir::dyn_cast<mlir::StringAttr>(pair[1]) : mlir::StringAttr();
    if (!pattern || !layout) {
      return wrong(kLayoutsAttr, entry, "an entry of " + wanted);
    }
    options.layouts.emplace_back(pattern.str(), layout.str());
  }
  return absl::OkStatus();
}

absl::Status readMesh(mlir::ModuleOp module, CompileOptions& options) {
  if (Attribute attribute = module->getAttr(kMeshAttr)) {
    auto text = mlir::dyn_cast<ir::dist::MeshAttr>(attribute);
    if (!text) {
      return wrong(kMeshAttr, attribute, "a mesh, such as #dist.mesh<\"dp=2,tp=2\">");
    }
    WEFT_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::parse(text.getText().str()));
    options.mesh = mesh.ofRanks().print();
    options.micro = mesh.microBatches() > 1 ? std::optional(mesh.microBatches()) : std::nullopt;
  }
  if (Attribute attribute = module->getAttr(kStageMeshesAttr)) {
    // The shared mesh only has the micro-batches then.
    options.mesh.clear();
    return set(options.stageMeshes, textOf(kStageMeshesAttr, attribute));
  }
  return absl::OkStatus();
}

void setOrRemove(mlir::ModuleOp module, llvm::StringRef name, const mlir::NamedAttrList& entries) {
  if (entries.empty()) {
    module->removeAttr(name);
  } else {
    module->setAttr(name, entries.getDictionary(module.getContext()));
  }
}

Attribute groupAttribute(mlir::Builder& builder, const optim::Group& group) {
  mlir::NamedAttrList entries;
  if (group.lrFactor) {
    entries.set("lr_factor", builder.getF64FloatAttr(*group.lrFactor));
  }
  if (group.weightDecay) {
    entries.set("weight_decay", builder.getF64FloatAttr(*group.weightDecay));
  }
  if (group.frozen) {
    entries.set("frozen", builder.getBoolAttr(true));
  }
  return entries.getDictionary(builder.getContext());
}

}  // namespace

DictionaryAttr optimizerAttribute(mlir::Builder& builder, const Optimizer& optimizer) {
  mlir::NamedAttrList entries;
  entries.set("kind", builder.getStringAttr(optimizer.kind));
  for (const auto& [name, value] : optimizer.settings) {
    if (!isFlagSetting(name)) {
      entries.set(name, builder.getF64FloatAttr(value));
    } else if (value != 0) {
      entries.set(name, builder.getBoolAttr(true));
    }
  }
  llvm::SmallVector<Attribute> groups;
  for (const auto& [pattern, group] : optimizer.groups) {
    groups.push_back(builder.getArrayAttr({builder.getStringAttr(pattern), groupAttribute(builder, group)}));
  }
  if (!groups.empty()) {
    entries.set("groups", builder.getArrayAttr(groups));
  }
  return entries.getDictionary(builder.getContext());
}

namespace {

// Only what differs from the defaults, which absent entries have: the module shows what was asked for.
void setOptions(mlir::ModuleOp module, const CompileOptions& options) {
  const CompileOptions defaults;
  mlir::Builder builder(module.getContext());
  mlir::NamedAttrList entries(module->getAttrOfType<DictionaryAttr>(kOptionsAttr));
  const auto set = [&](llvm::StringRef name, auto member, const auto& attributeOf) {
    entries.erase(name);
    if (options.*member != defaults.*member) {
      entries.set(name, attributeOf(options.*member));
    }
  };
  const auto integer = [&](int64_t value) -> Attribute { return builder.getI64IntegerAttr(value); };
  const auto text = [&](const std::string& value) -> Attribute { return builder.getStringAttr(value); };
  const bool searched = options.mode == Mode::kAuto;
  const auto setIf = [&](bool given, llvm::StringRef name, const auto& attribute) {
    entries.erase(name);
    if (given) {
      entries.set(name, attribute());
    }
  };
  setIf(isOpenMesh(options.mesh) || (searched && !options.mesh.empty()), kOpenMesh, [&] { return text(options.mesh); });
  setIf(searched ? options.zero.has_value() : options.zeroLevel() != 0, kZero,
        [&] { return integer(options.zeroLevel()); });
  set(kZeroOf, &CompileOptions::zeroOf, [&](const ZeroPatterns& patterns) { return text(printZeroOf(patterns)); });
  setIf(searched && options.micro, kMicro, [&] { return integer(options.microBatches()); });
  setIf(!options.stages.empty(), kStages, [&]() -> Attribute {
    mlir::NamedAttrList stages;
    for (const auto& [parameter, ofParameter] : options.stages) {
      stages.set(parameter, mlir::DenseI64ArrayAttr::get(module.getContext(), ofParameter));
    }
    return stages.getDictionary(module.getContext());
  });
  set("max_stages", &CompileOptions::maxStages, integer);
  set("departures", &CompileOptions::departures, integer);
  set("without", &CompileOptions::without, [&](const Freedoms& freedoms) { return text(printFreedoms(freedoms)); });
  set(kMode, &CompileOptions::mode, [&](Mode mode) { return text(modeName(mode)); });
  set("default", &CompileOptions::fill,
      [&](Fill fill) { return text(fill == Fill::kDataParallel ? kDataParallel : kReplicate); });
  set("schedule", &CompileOptions::schedule, text);
  set("schedule_table", &CompileOptions::scheduleTable, text);
  set("memory_limit", &CompileOptions::memoryLimit, integer);
  set("virtual", &CompileOptions::virtualStages, integer);
  set("recompute", &CompileOptions::recompute, text);
  set("regather", &CompileOptions::regather, [&](bool again) { return text(again ? kRegather : kKeep); });
  set("gather_bucket", &CompileOptions::gatherBucket, integer);
  set("overlap", &CompileOptions::overlap, [&](bool overlaps) { return builder.getBoolAttr(overlaps); });
  set("offload", &CompileOptions::offload, [&](Offload offload) { return text(offloadName(offload)); });
  set("clip_norm", &CompileOptions::clipNorm, [&](double norm) { return builder.getF64FloatAttr(norm); });
  set("seed", &CompileOptions::seed, integer);
  set(kMachine, &CompileOptions::machine, text);
  set("gradient_outputs", &CompileOptions::gradientOutputs, [&](bool are) { return builder.getBoolAttr(are); });
  setOrRemove(module, kOptionsAttr, entries);
}

int64_t batchRows(mlir::func::FuncOp step, const Argument& argument) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(step.getArgument(argument.index).getType());
  auto dim = step.getArgAttrOfType<mlir::IntegerAttr>(argument.index, kBatchDimAttr);
  const int64_t batch = dim ? dim.getInt() : 0;
  return type && batch >= 0 && batch < type.getRank() ? type.getDimSize(batch) : 0;
}

void setMesh(mlir::ModuleOp module, const CompileOptions& options) {
  const absl::StatusOr<Mesh> mesh = meshOf(options);
  module->setAttr(kMeshAttr, ir::dist::MeshAttr::get(module.getContext(), mesh.value_or(Mesh()).print()));
  if (options.stageMeshes.empty()) {
    module->removeAttr(kStageMeshesAttr);
  } else {
    module->setAttr(kStageMeshesAttr, mlir::StringAttr::get(module.getContext(), options.stageMeshes));
  }
}

}  // namespace

absl::StatusOr<Request> requestOf(mlir::ModuleOp module) {
  Request request;
  WEFT_RETURN_IF_ERROR(readMesh(module, request.options));
  WEFT_RETURN_IF_ERROR(readEntries(kOptionsAttr, module->getAttr(kOptionsAttr), optionEntries(request.options)));
  openLine(request.options);
  WEFT_RETURN_IF_ERROR(readLayouts(module->getAttr(kLayoutsAttr), request.options));
  WEFT_RETURN_IF_ERROR(readOptimizer(module->getAttr(kOptimizerAttr), request.optimizer));
  return request;
}

mlir::FailureOr<Request> readRequest(mlir::ModuleOp module) {
  absl::StatusOr<Request> request = requestOf(module);
  if (!request.ok()) {
    return module.emitError(std::string(request.status().message()));
  }
  return *std::move(request);
}

mlir::LogicalResult forEachSubmesh(mlir::ModuleOp module,
                                   llvm::function_ref<mlir::LogicalResult(mlir::ModuleOp, const Machine&)> visit) {
  const mlir::FailureOr<Request> request = readRequest(module);
  if (mlir::failed(request)) {
    return mlir::failure();
  }
  absl::StatusOr<Machine> machine = machineOf(request->options);
  if (!machine.ok()) {
    return module.emitError(std::string(machine.status().message()));
  }
  int64_t firstRank = 0;
  for (mlir::ModuleOp submesh : submeshesOf(module)) {
    const mlir::FailureOr<Mesh> mesh = meshOf(submesh);
    if (mlir::failed(mesh) || mlir::failed(visit(submesh, machine->of(firstRank, mesh->ranks())))) {
      return mlir::failure();
    }
    firstRank += mesh->ranks();
  }
  return mlir::success();
}

void setRequest(mlir::ModuleOp module, const Request& request) {
  const CompileOptions& options = request.options;
  mlir::Builder builder(module.getContext());
  setMesh(module, options);
  setOptions(module, options);
  llvm::SmallVector<Attribute> layouts;
  for (const auto& [pattern, layout] : options.layouts) {
    layouts.push_back(builder.getArrayAttr({builder.getStringAttr(pattern), builder.getStringAttr(layout)}));
  }
  if (!layouts.empty()) {
    module->setAttr(kLayoutsAttr, builder.getArrayAttr(layouts));
  }
  if (request.optimizer) {
    module->setAttr(kOptimizerAttr, optimizerAttribute(builder, *request.optimizer));
  }
}

ProgramOutline outlineOf(mlir::ModuleOp module) {
  ProgramOutline outline;
  mlir::func::FuncOp step = stepFunction(module);
  if (!step || step.isExternal()) {  // which the gate of the state refuses
    return outline;
  }
  for (const Argument& argument : argumentsOf(step)) {
    if (argument.kind == "parameter") {
      outline.parameters.push_back(argument.name);
    }
    const int64_t rows = argument.kind == "input" ? batchRows(step, argument) : 0;
    outline.rows = rows > 0 && outline.rows > 0 ? std::min(rows, outline.rows) : std::max(rows, outline.rows);
  }
  step->walk([&](mlir::Operation* op) {
    const absl::StatusOr<int64_t> stage = integerOf(kUserStageAttr, op->getAttr(kUserStageAttr));
    if (stage.ok() && *stage < kMaxRanks) {
      outline.stages = std::max(outline.stages, *stage + 1);
    }
  });
  return outline;
}

}  // namespace weft
