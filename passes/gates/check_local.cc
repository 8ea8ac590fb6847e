#include "passes/gates/check_local.h"

#include "ir/bounded.h"
#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "passes/gates/attribute_forms.h"
#include "passes/gates/check_numbers.h"
#include "passes/gates/check_program.h"
#include "passes/gates/check_stages.h"
#include "passes/gates/checks.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

constexpr StringRef kFunctions[] = {"init", "prologue", "forward", "backward", "input_grad", "weight_grad", "update"};
// Of a name: what functions pass on.
bool isPassedOn(ir::dist::Memory memory) {
  using ir::dist::Memory;
  return memory != Memory::kTransient && memory != Memory::kWorkspace && memory != Memory::kMailbox;
}

LogicalResult checkFunction(func::FuncOp function) {
  auto kind = function->getAttrOfType<StringAttr>(kFunctionKindAttr);
  if (!kind) {
    return function.emitError() << "@" << function.getName() << " is no function of the local state (no dist.kind)";
  }
  if (!llvm::is_contained(kFunctions, kind.getValue()) || function.getName().split('.').first != kind.getValue()) {
    return function.emitError() << "@" << function.getName() << " has dist.kind '" << kind.getValue()
                                << "'; the local state has @init, @prologue, @forward, @backward (or @input_grad and "
                                   "@weight_grad) and @update, each of the kind of its name";
  }
  return checkFunctionAttributes(function);
}

// What is wrong with the attributes of an argument or result; empty if nothing.
std::string wrongAttributes(DictionaryAttr attrs) {
  auto value = attrs ? attrs.getAs<StringAttr>(kValueAttr) : StringAttr();
  const std::optional<ir::dist::Memory> memory = memoryOf(attrs);
  if (!value || value.empty()) {
    return "has no dist.value";
  }
  if (!memory || !isPassedOn(*memory)) {
    return "('" + value.str() + "') has dist.memory '" + (memory ? stringifyMemory(*memory).str() : "") +
           "'; it should be parameter, state, accumulator, input, output, activation or constant";
  }
  return "";
}

LogicalResult checkNames(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (const std::string wrong = wrongAttributes(function.getArgAttrDict(i)); !wrong.empty()) {
      return emitError(function.getArgument(i).getLoc())
             << "argument " << i << " of @" << function.getName() << " " << wrong;
    }
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (const std::string wrong = wrongAttributes(function.getResultAttrDict(i)); !wrong.empty()) {
      return emitError(returned(function, i).getLoc())
             << "result " << i << " of @" << function.getName() << " " << wrong;
    }
  }
  return success();
}

// Whose shapes the types have: of the whole tensor, with its layout, or of a rank; and is memory assigned, so that
// copies may stand there?
enum class Shapes : uint8_t { kGlobal, kLocal, kStored };

// A layout that its tensor and its mesh fit.
LogicalResult checkLayouts(Location place, TypeRange types, const Mesh& mesh) {
  for (Type type : types) {
    if (!ir::dist::hasLayout(type)) {
      return emitError(place) << "every value has a layout until shapes are local, this one is " << type;
    }
    FailureOr<Layout> layout = ir::dist::layoutOf(type, mesh, place);
    if (failed(layout)) {
      return failure();
    }
    const ArrayRef<int64_t> dimensions = cast<RankedTensorType>(type).getShape();
    const Shape shape(dimensions.begin(), dimensions.end());
    if (absl::Status status = layout->check(shape, mesh); !status.ok()) {
      return emitError(place) << std::string(status.message());
    }
    if (!ir::isBounded(layout->storedShape(shape))) {
      return emitError(place) << "with the pads of its layout this has more than " << kMaxBytes << " bytes: " << type;
    }
  }
  return success();
}

LogicalResult checkTypes(Location place, TypeRange types) {
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      return emitError(place) << "the local state has tensors of static shape only, this is " << type;
    }
    if (tensor.getEncoding()) {
      return emitError(place) << "a layout has no place in the local state: " << type;
    }
  }
  return success();
}

LogicalResult checkOp(Operation* op, Shapes shapes) {
  if (isa<ir::dist::CopyOp>(op) && shapes != Shapes::kStored) {
    return op->emitError("a copy has no place before storages are assigned");
  }
  if (isa<ir::dist::ReshardOp>(op) && shapes != Shapes::kGlobal) {
    return op->emitError("a reshard has no place in the local state; it should have become collectives");
  }
  if (isa<ir::dist::TransferOp>(op)) {
    return op->emitError("a transfer has no place in the local state; it should have become a send and a receive");
  }
  if (ir::viewKindOf(op) == ViewKind::kAnnotation) {
    return op->emitError() << op->getName() << " has no place in the local state; it is a word to the compiler only";
  }
  if (!isa_and_nonnull<ir::dist::DistDialect, ir::nn::NnDialect>(op->getDialect())) {
    return op->emitError() << op->getName() << " is no operator of the local state";
  }
  return checkOperatorAttributes(op);
}

// One submesh: its functions, and the stages it owns.
class SubmeshChecker {
 public:
  SubmeshChecker(ModuleOp module, int64_t submesh, const ScheduleDecision& schedule, Shapes shapes)
      : module_(module), submesh_(submesh), shapes_(shapes) {
    for (size_t stage = 0; stage < schedule.submeshes.size(); ++stage) {
      if (schedule.submeshes[stage] == submesh) {
        stages_.push_back(static_cast<int64_t>(stage));
      }
      submeshes_ = std::max(submeshes_, schedule.submeshes[stage] + 1);
    }
  }

  LogicalResult run() {
    FailureOr<Mesh> mesh = shapes_ == Shapes::kGlobal ? meshOf(module_) : FailureOr<Mesh>(Mesh());
    if (failed(mesh)) {
      return failure();
    }
    for (Operation& op : *module_.getBody()) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function) {
        return op.emitError() << op.getName() << " has no place in the local state; it holds functions only";
      }
      if (failed(checkBody(function)) || failed(checkFunction(function)) || failed(checkNames(function)) ||
          failed(stage(function))) {
        return failure();
      }
      for (BlockArgument argument : function.getArguments()) {
        if (failed(types(argument.getLoc(), argument.getType(), *mesh))) {
          return failure();
        }
      }
      for (Operation& inner : function.getBody().front().without_terminator()) {
        if (failed(checkOp(&inner, shapes_)) || failed(types(inner.getLoc(), inner.getResultTypes(), *mesh)) ||
            failed(channel(&inner))) {
          return failure();
        }
      }
    }
    return success();
  }

 private:
  LogicalResult types(Location place, TypeRange types, const Mesh& mesh) const {
    return shapes_ == Shapes::kGlobal ? checkLayouts(place, types, mesh) : checkTypes(place, types);
  }

  // A function of one stage says which, where its submesh owns several; one for each kind and stage.
  LogicalResult stage(func::FuncOp function) {
    auto named = function->getAttrOfType<IntegerAttr>(kStageAttr);
    const bool several = isPerMicroBatch(kindOf(function)) && stages_.size() > 1;
    if (several && (!named || !llvm::is_contained(stages_, named.getInt()))) {
      return function.emitError() << "@" << function.getName() << " should say in " << kStageAttr
                                  << " which of the stages of submesh " << submesh_ << " it is of";
    }
    const int64_t of = named ? named.getInt() : stages_.front();
    if (!several && named && !llvm::is_contained(stages_, of)) {
      return function.emitError() << "@" << function.getName() << " is of stage " << of << ", which submesh "
                                  << submesh_ << " does not own";
    }
    if (function.getName() != functionName(kindOf(function), of, !several)) {
      return function.emitError() << "@" << function.getName() << " should be named @"
                                  << functionName(kindOf(function), of, !several) << " by its kind and stage";
    }
    return success();
  }

  // The other end is another submesh.
  LogicalResult channel(Operation* op) {
    if (!isa<ir::dist::SendOp, ir::dist::ReceiveOp>(op)) {
      return success();
    }
    const int64_t other = op->getAttrOfType<IntegerAttr>("submesh").getInt();
    const int64_t number = op->getAttrOfType<IntegerAttr>("channel").getInt();
    constexpr int64_t kMostChannels = int64_t{1} << 31;
    if (other < 0 || other >= submeshes_ || other == submesh_ || number < 0 || number >= kMostChannels) {
      return op->emitError() << op->getName() << " of submesh " << submesh_ << " names submesh " << other
                             << ", channel " << number << "; there are " << submeshes_
                             << " submeshes, and a channel joins two of them";
    }
    return success();
  }

  ModuleOp module_;
  int64_t submesh_;
  Shapes shapes_;
  int64_t submeshes_ = 1;
  std::vector<int64_t> stages_;
};

// One module for each submesh of the schedule, beside nothing else; or the module itself.
LogicalResult checkSubmeshes(ModuleOp module, const ScheduleDecision& schedule) {
  const int64_t count = submeshCount(schedule.submeshes);
  SmallVector<ModuleOp> submeshes(module.getOps<ModuleOp>());
  if (count == 1 && submeshes.empty()) {
    return success();
  }
  if (static_cast<int64_t>(submeshes.size()) != count) {
    return module.emitError() << "the schedule has " << count << " submeshes, the module holds " << submeshes.size()
                              << " modules of submeshes";
  }
  FailureOr<Mesh> mesh = meshOf(module);
  for (const auto& [i, submesh] : llvm::enumerate(submeshes)) {
    const std::string name = "submesh" + std::to_string(i);
    FailureOr<Mesh> own = meshOf(submesh);
    if (failed(mesh) || failed(own) || failed(checkModuleAttributes(submesh))) {
      return failure();
    }
    if (submesh.getName() != StringRef(name) || own->microBatches() != mesh->microBatches()) {
      return submesh.emitError() << "module " << i << " is @" << submesh.getName().value_or("") << " on mesh "
                                 << own->print() << "; it should be @" << name << " with " << mesh->microBatches()
                                 << " micro-batches as all";
    }
  }
  for (Operation& op : *module.getBody()) {
    if (!isa<ModuleOp>(op)) {
      return op.emitError() << op.getName() << " has no place beside the modules of the submeshes";
    }
  }
  return success();
}

LogicalResult checkFunctions(ModuleOp module, Shapes shapes) {
  if (failed(checkModuleAttributes(module)) || failed(checkStages(module))) {
    return failure();
  }
  const ScheduleDecision schedule = scheduleOf(module);
  if (failed(checkSubmeshes(module, schedule))) {
    return failure();
  }
  for (const auto& [i, submesh] : llvm::enumerate(submeshesOf(module))) {
    if (failed(SubmeshChecker(submesh, static_cast<int64_t>(i), schedule, shapes).run())) {
      return failure();
    }
  }
  return success();
}

}  // namespace

LogicalResult checkCut(ModuleOp module) {
  return checkFunctions(module, Shapes::kGlobal);
}

LogicalResult checkLocal(ModuleOp module) {
  return success(succeeded(checkFunctions(module, Shapes::kLocal)) && succeeded(checkNumbers(module)));
}

LogicalResult checkLocalWithCopies(ModuleOp module) {
  return success(succeeded(checkFunctions(module, Shapes::kStored)) && succeeded(checkNumbers(module)));
}

}  // namespace weft
