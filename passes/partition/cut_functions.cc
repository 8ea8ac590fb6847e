// Cuts the annotated step into the functions that run at different times and on different submeshes. Layouts stay.
//
// Each submesh owns some pipeline stages and gets a program of its own, in a module @submesh<n> where there are
// several. Every op goes into the function the annotated state names (dist.function). A value read in another function
// than its own crosses: it is returned under a unique name there and taken as an argument of that name here. A value
// read in another submesh than its own is sent there once per call, on a channel; where the meshes differ, a
// dist.transfer becomes a channel whose boxes say which rank sends what to whom.
//
// A reshard that carries out a sum over the micro-batches becomes an accumulation, since what it leaves is read in
// other functions only. One that makes the batch whole, of an output, puts each micro-batch's rows in their place.

#include <map>
#include <memory>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/layout/across.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/micro_batch_rows.h"
#include "passes/partition/named_tensors.h"
#include "passes/partition/readers.h"
#include "passes/partition/submesh_program.h"
#include "passes/partition/value_layouts.h"
#include "planner/step/time_layouts.h"

namespace weft {

#define GEN_PASS_DEF_CUTFUNCTIONSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// The argument that a value is, on its own mesh or through a transfer on another; null for other values.
BlockArgument argumentBehind(Value value) {
  if (auto transfer = value.getDefiningOp<ir::dist::TransferOp>()) {
    value = transfer->getOperand(0);
  }
  return dyn_cast<BlockArgument>(value);
}

// What earlier phases said of an operator.
void removeMarks(Operation* clone) {
  for (const char* name : {kRunsInAttr, kIdAttr, kForwardAttr, kPrologueAttr, kStrategyAttr, kGradientOfAttr,
                           kStageAttr, kUserStageAttr, kUserRecomputeAttr, kRecomputeAttr}) {
    clone->removeAttr(name);
  }
}

Place placeOf(const CutFunction& function) {
  return {runsInNamed(kindOf(function.function).str()).value_or(RunsIn::kUpdate), function.stage};
}

ModuleOp submeshModule(ModuleOp module, int64_t submesh, const Mesh& mesh) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto made = builder.create<ModuleOp>(module.getLoc(), "submesh" + std::to_string(submesh));
  made->setAttr(kMeshAttr, ir::dist::MeshAttr::get(module.getContext(), mesh.print()));
  return made;
}

class StepCutter {
 public:
  StepCutter(ModuleOp module, func::FuncOp step, ValueLayouts& layouts)
      : step_(step), layouts_(layouts), meshes_(layouts.meshes()) {
    const int64_t count = submeshCount(meshes_.submeshes);
    for (int64_t submesh = 0; submesh < count; ++submesh) {
      std::vector<int64_t> stages;
      for (size_t stage = 0; stage < meshes_.submeshes.size(); ++stage) {
        if (meshes_.submeshes[stage] == submesh) {
          stages.push_back(static_cast<int64_t>(stage));
        }
      }
      programs_.push_back(std::make_unique<SubmeshProgram>(
          count == 1 ? module : submeshModule(module, submesh, meshOfSubmesh(submesh)), submesh, stages));
    }
  }

  LogicalResult cutStep() {
    for (Operation& op : step_.getBody().front().without_terminator()) {
      if (failed(visit(&op))) {
        return failure();
      }
    }
    holdUnread();
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      if (failed(finishResult(i))) {
        return failure();
      }
    }
    return success();
  }

  // First values of what each submesh holds; after cutStep, which finds that out. Generators depend on nothing.
  LogicalResult cutInit(func::FuncOp init) {
    for (const auto& program : programs_) {
      CutFunction& function = program->function("init", 0);
      for (unsigned i = 0; i < init.getNumResults(); ++i) {
        const std::string name = resultText(init, i, kNameAttr);
        Value value = returned(init, i);
        if (programs_.size() > 1 &&
            (held_.count({name, function.submesh}) == 0 || !onMeshOf(value, function.submesh))) {
          continue;
        }
        if (failed(move(value.getDefiningOp(), function))) {
          return failure();
        }
        program->returnValue(function, function.values[value], name,
                             ir::dist::symbolizeMemory(resultText(init, i, kKindAttr)));
      }
    }
    return success();
  }

  void finish() {
    for (const auto& program : programs_) {
      describeTensors(*program);
      program->finish();
    }
  }

 private:
  int64_t submeshOf(Operation* op) const { return meshes_.submeshes[stageOf(op)]; }
  const Mesh& meshOfSubmesh(int64_t submesh) const { return meshes_.withNumber(meshes_.numberOfSubmesh(submesh)); }
  bool onMeshOf(Value value, int64_t submesh) const {
    return meshes_.number(value) == meshes_.numberOfSubmesh(submesh);
  }

  LogicalResult visit(Operation* op) {
    auto where = op->getAttrOfType<StringAttr>(kRunsInAttr);
    if (!where) {
      return op->emitError("has no dist.function; run --weft-assign-layouts first");
    }
    CutFunction& function = programs_[submeshOf(op)]->function(where.getValue(), stageOf(op));
    if (isa<ir::dist::TransferOp>(op)) {
      return transfer(op, function);
    }
    return move(op, op->getNumOperands() == 0 ? whereFirstRead(op->getResult(0), function) : function);
  }

  // What stands for `value` in `function`; an argument if it comes from outside.
  FailureOr<Value> cut(Value value, CutFunction& function) {
    const auto known = function.values.find(value);
    if (known != function.values.end()) {
      return known->second;
    }
    SubmeshProgram& program = *programs_[function.submesh];
    if (auto argument = argumentBehind(value)) {
      const Argument named = argumentAt(step_, argument.getArgNumber());
      held_[{named.name, function.submesh}] = value;
      return function.values[value] =
                 program.argument(function, value, named.name, ir::dist::symbolizeMemory(named.kind));
    }
    if (program.whereDefined(value) == nullptr && failed(bring(value, function))) {
      return failure();
    }
    const auto brought = function.values.find(value);
    if (brought != function.values.end()) {
      return brought->second;
    }
    return function.values[value] = program.crossing(function, value);
  }

  // Makes a value of another submesh of the same mesh known in the submesh of `reader`. What depends on nothing is
  // computed again, where the submesh reads it first.
  LogicalResult bring(Value value, CutFunction& reader) {
    Operation* producer = value.getDefiningOp();
    if (producer->getNumOperands() > 0) {
      return connect({value, value, {}, ""}, reader);
    }
    return move(producer, whereFirstRead(value, reader));
  }

  // The function that reads a value first on the submesh of `reader`. There stands what depends on nothing, whichever
  // reader is the first in the program.
  CutFunction& whereFirstRead(Value value, const CutFunction& reader) {
    const Place first = firstPlaceToRead(value, reader);
    return programs_[reader.submesh]->function(runsInName(first.where), first.stage);
  }

  // A value of another mesh. An argument is held on both.
  LogicalResult transfer(Operation* op, CutFunction& reader) {
    Value source = op->getOperand(0);
    Value target = op->getResult(0);
    if (isa<BlockArgument>(source)) {
      return success();
    }
    const Layout& from = layouts_.of(source);
    const Layout& to = layouts_.of(target);
    const Mesh& there = meshes_.of(source);
    const Mesh& here = meshes_.of(target);
    const Shape microBatch = microBatchShape(ir::shapeOf(source), from, there.microBatches());
    const std::vector<TransferBox> boxes = boxesAcross(microBatch, {withoutTime(from), there}, {withoutTime(to), here});
    const std::string why =
        ": " + from.print(there) + " on " + there.print() + " -> " + to.print(here) + " on " + here.print();
    return connect({source, target, flatBoxes(boxes), why}, reader);
  }

  // A value that crosses between submeshes.
  struct Crossing {
    Value value;   // as it is made
    Value target;  // as it is read; the same between equal meshes
    std::vector<int64_t> boxes;
    std::string why;
  };

  // The first reader of a value on the submesh of `reader`, which need not be the first in the program.
  Place firstPlaceToRead(Value value, const CutFunction& reader) const {
    Place first = placeOf(reader);
    for (Operation* user : value.getUsers()) {
      const bool isHere = user->hasAttr(kRunsInAttr) && submeshOf(user) == reader.submesh;
      first = isHere && isPassedBefore(weft::placeOf(user), first) ? weft::placeOf(user) : first;
    }
    return first;
  }

  LogicalResult connect(const Crossing& crossing, CutFunction& reader) {
    Value value = crossing.value;
    Operation* producer = value.getDefiningOp();
    SubmeshProgram& owner = *programs_[submeshOf(producer)];
    SubmeshProgram& there = *programs_[reader.submesh];
    CutFunction* made = owner.whereDefined(value);
    const Place first = firstPlaceToRead(crossing.target, reader);
    const std::optional<Place> receives =
        made == nullptr ? std::nullopt : receiverOf(placeOf(*made), first, there.stages());
    if (!receives) {
      return producer->emitError() << labelOf(producer) << " of stage " << stageOf(producer) << " is read on stage "
                                   << first.stage << " in the " << runsInName(first.where)
                                   << " pass: the stages would wait for each other; move it to stage " << first.stage;
    }
    CutFunction& receiver = there.function(runsInName(receives->where), receives->stage);
    CutFunction& sender = owner.function(kindOf(receiver.function), made->stage);
    FailureOr<Value> sent = cut(value, sender);
    if (failed(sent)) {
      return failure();
    }
    const int64_t channel = channels_++;
    const std::string reason = sourceLabel(value) + " of stage " + std::to_string(made->stage) + " is read in the " +
                               kindOf(reader.function).str() + " pass of submesh " + std::to_string(there.submesh()) +
                               crossing.why;
    owner.send(sender, *sent, {channel, there.submesh(), value, reason, {}});
    const ChannelEnd end = {channel, owner.submesh(), value, reason, crossing.boxes};
    there.define(receiver, crossing.target, there.receive(receiver, crossing.target, end));
    return success();
  }

  LogicalResult move(Operation* op, CutFunction& function) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> value = cut(operand, function);
      if (failed(value)) {
        return failure();
      }
      operands.push_back(*value);
    }
    SubmeshProgram& program = *programs_[function.submesh];
    // Annotations for the compiler: their operand stands for them.
    if (ir::viewKindOf(op) == ViewKind::kAnnotation) {
      program.define(function, op->getResult(0), operands[0]);
      return success();
    }
    auto reshard = dyn_cast<ir::dist::ReshardOp>(op);
    if (reshard && partialOverTime(layouts_.of(reshard.getX())) && !partialOverTime(layouts_.of(reshard.getY()))) {
      program.accumulate(function, reshard.getY(), operands[0], *kindOverTime(layouts_.of(reshard.getX())));
      return success();
    }
    if (reshard && isCollection(layouts_.of(reshard.getX()), layouts_.of(reshard.getY()))) {
      program.collect(function, reshard.getY(), operands[0], nameOfOutput(reshard.getY()));
      return success();
    }
    Operation* clone = function.builder.clone(*op);
    clone->setOperands(operands);
    removeMarks(clone);
    if (reshard) {
      clone->setAttr(kNameAttr, function.builder.getStringAttr(sourceLabel(reshard.getX())));
    }
    for (auto [result, made] : llvm::zip(op->getResults(), clone->getResults())) {
      program.define(function, result, made);
    }
    return success();
  }

  // An argument that nothing reads (a state that only keeps what a step has seen) is held by its own stage.
  void holdUnread() {
    for (const Argument& argument : argumentsOf(step_)) {
      Value value = step_.getArgument(argument.index);
      const auto held = held_.lower_bound({argument.name, 0});
      if (held == held_.end() || held->first.first != argument.name) {
        held_[{argument.name, meshes_.submeshes[stageOfValue(value)]}] = value;
      }
    }
  }

  // The first output that a value leaves as.
  std::string nameOfOutput(Value value) {
    unsigned index = 0;
    while (returned(step_, index) != value) {
      ++index;
    }
    return "out." + resultText(step_, index, kNameAttr);
  }

  // An output leaves the submesh that makes it; what replaces an argument goes to every submesh that holds the
  // argument.
  LogicalResult finishResult(unsigned index) {
    Value value = returned(step_, index);
    const std::string name = resultText(step_, index, kNameAttr);
    if (resultText(step_, index, kKindAttr) != "updated") {
      const int64_t owner = meshes_.submeshes[stageOfValue(value)];
      if (programs_[owner]->isCollectedAs(value, "out." + name)) {
        return success();
      }
      return finishIn(value, programs_[owner]->functionOf(value), "out." + name, ir::dist::Memory::kOutput);
    }
    const Argument argument = argumentAt(step_, step_.getResultAttrOfType<IntegerAttr>(index, kUpdatesAttr).getInt());
    // What was sent to a submesh of another mesh is that submesh's alone.
    auto stage = step_.getResultAttrOfType<IntegerAttr>(index, kStageAttr);
    for (const auto& program : programs_) {
      CutFunction& update = program->function("update", 0);
      const bool here = stage ? meshes_.submeshes[stage.getInt()] == update.submesh : onMeshOf(value, update.submesh);
      const bool holds = programs_.size() == 1 || (here && held_.count({argument.name, update.submesh}) > 0);
      CutFunction& where = program->functionOf(value);
      CutFunction& last = mayReplaceIn(where, argument.name) ? where : update;
      if (holds && failed(finishIn(value, last, name, ir::dist::symbolizeMemory(argument.kind)))) {
        return failure();
      }
    }
    return success();
  }

  // May the function that makes an argument's next value replace it? Where it runs several times in a step, or another
  // one reads the argument, that would be too early: the value is kept until the update.
  bool mayReplaceIn(CutFunction& function, const std::string& argument) const {
    const bool runsOnce = !isPerMicroBatch(kindOf(function.function)) || meshes_.ofSubmesh[0].microBatches() == 1;
    return runsOnce && !programs_[function.submesh]->isReadElsewhere(argument, function);
  }

  LogicalResult finishIn(Value value, CutFunction& function, const std::string& name,
                         std::optional<ir::dist::Memory> memory) {
    FailureOr<Value> made = cut(value, function);
    if (failed(made)) {
      return failure();
    }
    programs_[function.submesh]->returnValue(function, *made, name, memory);
    return success();
  }

  void describeTensors(const SubmeshProgram& program) {
    NamedTensors tensors(meshOfSubmesh(program.submesh()));
    for (const Argument& argument : argumentsOf(step_)) {
      const auto held = held_.find({argument.name, program.submesh()});
      if (programs_.size() == 1 || held != held_.end()) {
        Value value = held != held_.end() ? held->second : step_.getArgument(argument.index);
        tensors.add(value, layouts_.of(value), {argument.name, argument.kind, argument.name},
                    step_.getArgAttr(argument.index, kFileShapeAttr));
      }
    }
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      const std::string name = resultText(step_, i, kNameAttr);
      Value value = returned(step_, i);
      const bool here = meshes_.submeshes[stageOfValue(value)] == program.submesh();
      if (here && resultText(step_, i, kKindAttr) != "updated") {
        tensors.add(value, layouts_.of(value), {name, "output", "out." + name}, nullptr);
      }
    }
    tensors.write(program.module());
  }

  func::FuncOp step_;
  ValueLayouts& layouts_;
  const ModuleMeshes& meshes_;
  std::vector<std::unique_ptr<SubmeshProgram>> programs_;  // by submesh
  std::map<std::pair<std::string, int64_t>, Value> held_;  // arguments and the submeshes that hold them, as they do
  int64_t channels_ = 0;
};

class CutFunctionsPass : public impl::CutFunctionsPassBase<CutFunctionsPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<ModuleMeshes> meshes = stageMeshesOf(module);
    FailureOr<func::FuncOp> found = stepOf(module);
    if (failed(meshes) || failed(found)) {
      return signalPassFailure();
    }
    func::FuncOp step = *found;
    func::FuncOp init = initFunction(module);
    // The old functions keep their names while the new ones are built.
    step.setName("annotated_step");
    if (init) {
      init.setName("annotated_init");
    }
    ValueLayouts layouts(*std::move(meshes));
    if (failed(layouts.read(step)) || (init && failed(layouts.read(init)))) {
      return signalPassFailure();
    }
    module->setAttr(kStripesAttr, Builder(module).getI64IntegerAttr(countStripes(step, layouts)));
    StepCutter cutter(module, step, layouts);
    if (failed(cutter.cutStep()) || (init && failed(cutter.cutInit(init)))) {
      return signalPassFailure();
    }
    cutter.finish();
    step.erase();
    if (init) {
      init.erase();
    }
  }
};

}  // namespace
}  // namespace weft
