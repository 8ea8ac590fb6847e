#include "tools/analysis/module_table.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "ir/dist/dist.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/decisions.h"
#include "runtime/base/status.h"

namespace weft::tools {

using namespace mlir;  // NOLINT

namespace {

constexpr char kUser[] = "user";

std::string textOf(Attribute attribute) {
  auto text = dyn_cast_or_null<StringAttr>(attribute);
  return text ? text.getValue().str() : "";
}

std::string shapeOf(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    stream << type;
    return text;
  }
  stream << tensor.getElementType() << "[";
  llvm::interleave(tensor.getShape(), stream, ",");
  stream << "]";
  return text;
}

std::string layoutTextOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto layout = tensor ? dyn_cast_or_null<ir::dist::LayoutAttr>(tensor.getEncoding()) : ir::dist::LayoutAttr();
  return layout ? layout.getText().str() : "";
}

// One text for each result. A bucket may have hundreds.
template <typename Text>
std::string ofResults(TypeRange types, const Text& textOfType) {
  constexpr size_t kMost = 3;
  std::vector<std::string> texts;
  for (Type type : types) {
    texts.push_back(textOfType(type));
  }
  texts.erase(std::remove(texts.begin(), texts.end(), ""), texts.end());
  const size_t left = texts.size() - std::min(texts.size(), kMost);
  texts.resize(texts.size() - left);
  return llvm::join(texts, " ") + (left > 0 ? absl::StrCat(" and ", left, " more") : "");
}

// What the record says, by operator and by argument.
class Origins {
 public:
  static Origins of(ModuleOp module) {
    Origins origins;
    if (const Decisions* record = decisionsOf(module)) {
      origins.record_ = *record;
    }
    for (size_t i = 0; i < origins.record_.operators.size(); ++i) {
      const OperatorDecision& op = origins.record_.operators[i];
      origins.byId_[op.id] = i;
      // In the local state operators have lost their numbers; a name that stands for several decisions tells nothing.
      const auto [it, added] = origins.byLabel_.try_emplace(op.label, op.origin);
      it->second = added || it->second == op.origin ? op.origin : "";
    }
    return origins;
  }

  const OperatorDecision* find(Operation* op) const {
    const auto it = byId_.find(idOf(op));
    return it == byId_.end() ? nullptr : &record_.operators[it->second];
  }

  std::string of(Operation* op) const {
    if (const std::string reason = textOf(op->getAttr(kReasonAttr)); !reason.empty()) {
      return reason;
    }
    if (const OperatorDecision* decision = find(op)) {
      return decision->origin;
    }
    const auto it = byLabel_.find(labelOf(op));
    return it != byLabel_.end() && idOf(op) < 0 ? it->second : op->hasAttr(kStrategyAttr) ? kUser : "";
  }

  const ArgumentDecision* argument(const std::string& name) const {
    const auto it = std::find_if(record_.arguments.begin(), record_.arguments.end(),
                                 [&](const ArgumentDecision& argument) { return argument.name == name; });
    return it == record_.arguments.end() ? nullptr : &*it;
  }

  std::string layoutOf(const ArgumentDecision& argument) const {
    return argument.layout.print(record_.meshes().ofStage(argument.stage));
  }

 private:
  Decisions record_;
  std::map<int64_t, size_t> byId_;  // indices of operators
  std::map<std::string, std::string> byLabel_;
};

void setSource(Location location, ModuleRow& row) {
  if (auto place = location->findInstanceOf<FileLineColLoc>()) {
    row.file = place.getFilename().getValue().str();
    row.line = place.getLine();
  }
}

ModuleRow rowOf(Operation& op, const Origins& origins) {
  ModuleRow row;
  row.name = labelOf(&op);
  row.op = op.getName().getStringRef().str();
  // An operator without results sends its operand.
  const TypeRange types = op.getNumResults() > 0 ? TypeRange(op.getResultTypes()) : TypeRange(op.getOperandTypes());
  row.shape = ofResults(types, shapeOf);
  row.layout = ofResults(types, layoutTextOf);
  row.origin = origins.of(&op);
  setSource(op.getLoc(), row);
  return row;
}

ModuleRow rowOf(func::FuncOp step, unsigned index, const Origins& origins) {
  const Argument argument = argumentAt(step, index);
  const Type type = step.getArgument(index).getType();
  ModuleRow row;
  row.name = argument.name;
  row.op = argument.kind;
  row.shape = shapeOf(type);
  row.layout = layoutTextOf(type);
  const std::string asked = textOf(step.getArgAttr(index, kLayoutAttr));
  if (const ArgumentDecision* decision = origins.argument(argument.name)) {
    row.layout = row.layout.empty() ? origins.layoutOf(*decision) : row.layout;
    row.origin = decision->origin;
  } else if (!asked.empty()) {
    row.layout = asked;
    row.origin = kUser;
  }
  setSource(step.getArgument(index).getLoc(), row);
  return row;
}

// The groups of a table by function and stage.
class Groups {
 public:
  void add(const std::string& function, int64_t stage, ModuleRow row) {
    const int64_t order = orderOf(function);
    // Backward functions run from the last stage to the first.
    ModuleGroup& group = groups_[{order, function == "forward" || order < 0 ? stage : -stage, function}];
    group.function = function;
    group.stage = stage;
    group.rows.push_back(std::move(row));
  }

  std::vector<ModuleGroup> take() {
    std::vector<ModuleGroup> groups;
    for (auto& [key, group] : groups_) {
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  std::map<std::tuple<int64_t, int64_t, std::string>, ModuleGroup> groups_;
};

// The function that an operator of @step will be in: from insert-reshards on it says so itself, before that the record
// does, before that its phase.
std::string functionOf(Operation& op, const OperatorDecision* decision) {
  if (const std::string runsIn = textOf(op.getAttr(kRunsInAttr)); !runsIn.empty()) {
    return runsIn;
  }
  const std::string phase = textOf(op.getAttr(kPhaseAttr));
  return decision != nullptr ? runsInName(decision->runsIn) : phase.empty() ? "forward" : phase;
}

// Its stage likewise; before decide the user has said it of some forward operators, and it is open for all others.
int64_t stageOf(Operation& op, const OperatorDecision* decision, bool isStaged) {
  if (auto stage = op.getAttrOfType<IntegerAttr>(kStageAttr)) {
    return stage.getInt();
  }
  if (decision != nullptr) {
    return decision->stage;
  }
  auto asked = op.getAttrOfType<IntegerAttr>(kUserStageAttr);
  return asked ? asked.getInt() : isStaged ? kOpenStage : 0;
}

// Did the user ask for more than one stage?
bool isStaged(func::FuncOp function) {
  return llvm::any_of(function.getOps(), [](Operation& op) {
    auto asked = op.getAttrOfType<IntegerAttr>(kUserStageAttr);
    return asked && asked.getInt() > 0;
  });
}

// Before the local state: @step and @init.
std::vector<ModuleGroup> wholeGroups(ModuleOp module, const Origins& origins) {
  Groups groups;
  for (auto function : module.getOps<func::FuncOp>()) {
    const bool isStep = function == stepFunction(module);
    const bool staged = isStep && isStaged(function);
    for (unsigned i = 0; isStep && i < function.getNumArguments(); ++i) {
      groups.add("", 0, rowOf(function, i, origins));
    }
    for (Operation& op : function.getOps()) {
      const OperatorDecision* decision = origins.find(&op);
      if (!isa<func::ReturnOp>(op)) {
        groups.add(isStep ? functionOf(op, decision) : function.getName().str(), stageOf(op, decision, staged),
                   rowOf(op, origins));
      }
    }
  }
  return groups.take();
}

// The first stage of a submesh. A function of the local state names its stage only where its submesh has several.
int64_t firstStageOf(const std::vector<int64_t>& submeshes, int64_t submesh) {
  const auto it = std::find(submeshes.begin(), submeshes.end(), submesh);
  return it == submeshes.end() ? 0 : it - submeshes.begin();
}

std::vector<ModuleGroup> localGroups(ModuleOp module, const Origins& origins) {
  std::vector<ModuleGroup> groups;
  const std::vector<int64_t> stages = scheduleOf(module).submeshes;
  for (const auto& [b, submesh] : llvm::enumerate(submeshesOf(module))) {
    const std::string prefix = submesh == module ? "" : submesh.getName().value_or("submesh").str() + ".";
    for (func::FuncOp function : functionsInOrder(submesh)) {
      ModuleGroup group;
      group.function = prefix + function.getName().str();
      auto stage = function->getAttrOfType<IntegerAttr>(kStageAttr);
      group.stage = stage ? stage.getInt() : firstStageOf(stages, static_cast<int64_t>(b));
      for (Operation& op : function.getOps()) {
        if (!isa<func::ReturnOp>(op)) {
          group.rows.push_back(rowOf(op, origins));
        }
      }
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace

absl::StatusOr<ModuleTable> tableOf(ModuleOp module) {
  const Origins origins = Origins::of(module);
  ModuleTable table;
  table.state = textOf(module->getAttr(kStateAttr));
  table.state = table.state.empty() ? "logical" : table.state;
  table.phase = textOf(module->getAttr(kPhaseDoneAttr));
  const bool cut = table.state == "local" || table.state == "scheduled";
  table.groups = cut ? localGroups(module, origins) : wholeGroups(module, origins);
  return table;
}

}  // namespace weft::tools
