// annotated -> local: what one rank computes.
//
// Each block of ranks owns some pipeline stages and gets a program of its own, in a module @block<n> where there are
// several. A value read in another block than its own is sent there once per call, on a channel.
//
// Every op goes into the function the annotated state names (dist.function). A value read in another function than its
// own crosses: it is returned under a unique name there and taken as an argument of that name here. Reshards become the
// planner's collectives, global shapes local ones; what differs between ranks (origins, starts of slices, sources of
// permutes) becomes columns of the rank table.

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/layout/reshard.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/local_program.h"
#include "passes/partition/passes.h"
#include "passes/partition/time_layout.h"
#include "passes/stage/assign_stages.h"
#include "passes/support/program.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

class Localiser {
 public:
  // `blocks`: the block of each stage.
  Localiser(ModuleOp module, Mesh mesh, std::vector<int64_t> blocks)
      : mesh_(mesh), planner_(mesh, Machine()), builder_(module.getContext()), blocks_(std::move(blocks)) {
    const int64_t count = *llvm::max_element(blocks_) + 1;
    for (int64_t block = 0; block < count; ++block) {
      std::vector<int64_t> stages;
      for (size_t stage = 0; stage < blocks_.size(); ++stage) {
        if (blocks_[stage] == block) {
          stages.push_back(static_cast<int64_t>(stage));
        }
      }
      programs_.push_back(
          std::make_unique<LocalProgram>(count == 1 ? module : blockModule(module, block), mesh, block, stages));
    }
  }

  LogicalResult runStep(func::FuncOp step) {
    step_ = step;
    for (Operation& op : step.getBody().front().without_terminator()) {
      if (failed(visit(&op))) {
        return failure();
      }
    }
    for (unsigned i = 0; i < step.getNumResults(); ++i) {
      if (failed(finishResult(i))) {
        return failure();
      }
    }
    return success();
  }

  // First values of what each block holds; after runStep, which finds that out. Generators depend on nothing.
  LogicalResult runInit(func::FuncOp init) {
    for (const auto& program : programs_) {
      LocalFunction& function = program->function("init", 0);
      for (unsigned i = 0; i < init.getNumResults(); ++i) {
        const std::string name = resultText(init, i, kNameAttr);
        if (programs_.size() > 1 && held_.count({name, function.block}) == 0) {
          continue;
        }
        Value value = returned(init, i);
        if (failed(localise(value.getDefiningOp(), function))) {
          return failure();
        }
        program->returnValue(function, function.values[value], name, resultText(init, i, kKindAttr));
      }
    }
    return success();
  }

  LogicalResult finish(func::FuncOp step) {
    if (failed(describeTensors(step))) {
      return failure();
    }
    for (const auto& program : programs_) {
      program->finish();
    }
    return success();
  }

 private:
  static ModuleOp blockModule(ModuleOp module, int64_t block) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto made = builder.create<ModuleOp>(module.getLoc(), "block" + std::to_string(block));
    made->setAttr("dist.mesh", module->getAttr("dist.mesh"));
    return made;
  }

  int64_t blockOf(Operation* op) const { return blocks_[stageOf(op)]; }

  LocalProgram& programOf(const LocalFunction& function) { return *programs_[function.block]; }

  FailureOr<Layout> layoutOf(Value value) {
    auto attr = dyn_cast_or_null<ir::dist::LayoutAttr>(cast<RankedTensorType>(value.getType()).getEncoding());
    if (!attr) {
      return emitError(value.getLoc(), "value has no layout; run --weft-insert-reshards first"), failure();
    }
    const auto known = layouts_.find(attr);
    if (known != layouts_.end()) {
      return known->second;
    }
    absl::StatusOr<Layout> layout = Layout::parse(attr.getText().str(), mesh_);
    if (!layout.ok()) {
      return emitError(value.getLoc(), std::string(layout.status().message())), failure();
    }
    return layouts_[attr] = *layout;
  }

  RankedTensorType localType(Value value, const Layout& layout) {
    auto tensor = cast<RankedTensorType>(value.getType());
    return RankedTensorType::get(layout.localShape(ir::shapeOf(value)), tensor.getElementType());
  }

  LogicalResult visit(Operation* op) {
    auto where = op->getAttrOfType<StringAttr>("dist.function");
    if (!where) {
      return op->emitError("has no dist.function; run --weft-insert-reshards first");
    }
    LocalFunction& function = programs_[blockOf(op)]->function(where.getValue(), stageOf(op));
    if (auto reshard = dyn_cast<ir::dist::ReshardOp>(op)) {
      return lowerReshard(reshard, function);
    }
    return localise(op, function);
  }

  // The local counterpart of `value` in `function`; an argument if it comes from outside.
  FailureOr<Value> local(Value value, LocalFunction& function) {
    const auto known = function.values.find(value);
    if (known != function.values.end()) {
      return known->second;
    }
    FailureOr<Layout> layout = layoutOf(value);
    if (failed(layout)) {
      return failure();
    }
    LocalProgram& program = programOf(function);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      const Argument named = argumentAt(step_, argument.getArgNumber());
      held_.insert({named.name, function.block});
      return function.values[value] =
                 program.argument(function, localType(value, *layout), named.name, named.kind, value.getLoc());
    }
    if (program.whereDefined(value) == nullptr && failed(bring(value, function, localType(value, *layout)))) {
      return failure();
    }
    const auto brought = function.values.find(value);
    if (brought != function.values.end()) {
      return brought->second;
    }
    return function.values[value] = program.crossing(function, value, localType(value, *layout));
  }

  // Makes a value of another block known in the block of `reader`. What depends on nothing is computed again.
  LogicalResult bring(Value value, LocalFunction& reader, RankedTensorType type) {
    Operation* producer = value.getDefiningOp();
    if (producer->getNumOperands() == 0) {
      return localise(producer, reader);
    }
    LocalProgram& home = *programs_[blockOf(producer)];
    LocalProgram& there = programOf(reader);
    LocalFunction* made = home.whereDefined(value);
    LocalFunction* receiver = made == nullptr ? nullptr : receiverOf(*made, reader, there);
    if (receiver == nullptr) {
      return producer->emitError() << labelOf(producer) << " of stage " << stageOf(producer) << " is read on stage "
                                   << reader.stage << " in the " << kindOf(reader.function)
                                   << " pass: the stages would wait for each other; move it to stage " << reader.stage;
    }
    LocalFunction& sender = home.function(kindOf(receiver->function), made->stage);
    FailureOr<Value> sent = local(value, sender);
    if (failed(sent)) {
      return failure();
    }
    const int64_t channel = channels_++;
    const std::string reason = sourceLabel(value) + " of stage " + std::to_string(made->stage) + " is read in the " +
                               kindOf(reader.function).str() + " pass of block " + std::to_string(there.block());
    home.send(sender, *sent, {channel, there.block(), value, reason});
    there.define(*receiver, value, there.receive(*receiver, type, {channel, home.block(), value, reason}));
    return success();
  }

  // The function of the reader's block that receives what `made` makes: of the same kind, on the reader's stage. What a
  // later stage makes in its forward pass reaches earlier ones in the backward pass. Null if the stages would wait for
  // each other.
  static LocalFunction* receiverOf(const LocalFunction& made, const LocalFunction& reader, LocalProgram& there) {
    const StringRef kind = kindOf(made.function);
    if (!isPerPiece(kind)) {
      return &there.function(kind, 0);
    }
    const bool inPieces = isPerPiece(kindOf(reader.function));
    const auto before = [&](int64_t stage) { return kind == "forward" ? made.stage < stage : made.stage > stage; };
    const auto possible = llvm::find_if(there.stages(), before);
    const int64_t stage = inPieces                           ? reader.stage
                          : possible != there.stages().end() ? *possible
                                                             : there.stages().front();
    if (before(stage)) {
      return &there.function(kind, stage);
    }
    const bool later = kind == "forward" && (!inPieces || kindOf(reader.function) == "backward");
    return later ? &there.function("backward", stage) : nullptr;
  }

  LogicalResult localise(Operation* op, LocalFunction& function) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> value = local(operand, function);
      if (failed(value)) {
        return failure();
      }
      operands.push_back(*value);
    }
    OpBuilder& builder = function.builder;
    if (isa<ir::nn::ConstantOp>(op)) {
      return localiseConstant(op, function);
    }
    // Words for the compiler only: they leave nothing to run.
    if (isa<ir::nn::ConstrainOp, ir::nn::StopGradientOp>(op)) {
      programOf(function).define(function, op->getResult(0), operands[0]);
      return success();
    }
    Operation* clone = builder.clone(*op);
    clone->setOperands(operands);
    for (auto [result, made] : llvm::zip(op->getResults(), clone->getResults())) {
      FailureOr<Layout> layout = layoutOf(result);
      if (failed(layout)) {
        return failure();
      }
      made.setType(localType(result, *layout));
      programOf(function).define(function, result, made);
    }
    return localiseAttributes(op, clone, programOf(function));
  }

  LogicalResult localiseAttributes(Operation* op, Operation* clone, LocalProgram& program) {
    for (const char* name : {"dist.function", kIdAttr, kForwardAttr, kPrologueAttr, kStrategyAttr, kGradientOfAttr,
                             kStageAttr, kUserStageAttr, kUserRecomputeAttr, kRecomputeAttr, kKeepAttr}) {
      clone->removeAttr(name);
    }
    if (auto interface = dyn_cast<ir::OperatorInterface>(clone)) {
      interface.localizeAttributes();
    }
    SmallVector<Attribute> scalars;
    if (auto mask = dyn_cast<ir::dist::MaskPadOp>(op)) {
      for (const int64_t dim : mask.getDims()) {
        if (failed(addOrigin(op->getOperand(0), dim, scalars, program))) {
          return failure();
        }
      }
    } else if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
      for (const ir::OriginRequest& request : interface.getOriginRequests()) {
        Value value = request.isResult ? Value(op->getResult(request.index)) : op->getOperand(request.index);
        if (failed(addOrigin(value, request.dim, scalars, program))) {
          return failure();
        }
      }
      if (interface.needsGlobalShape()) {
        clone->setAttr("global_shape", builder_.getDenseI64ArrayAttr(ir::shapeOf(op->getResult(0))));
      }
    }
    if (!scalars.empty()) {
      clone->setAttr("dist.scalars", builder_.getArrayAttr(scalars));
    }
    return success();
  }

  LogicalResult addOrigin(Value value, int64_t dim, SmallVector<Attribute>& scalars, LocalProgram& program) {
    FailureOr<Layout> layout = layoutOf(value);
    if (failed(layout)) {
      return failure();
    }
    const Shape shape = ir::shapeOf(value);
    // The pieces of a step are cut inside each rank's rows of the inputs; gathered over other ranks such rows are not
    // contiguous any more, and have no one origin.
    if (dim == timeDim(*layout) && spaceAxes(layout->dim(dim)) != batchAxes()) {
      return emitError(value.getLoc())
             << "an operator here needs the place of its rows in the batch, but inside a micro-batch they "
                "were gathered or split further than the inputs are; use micro = 1 or keep the batch "
                "split as the inputs are";
    }
    std::vector<int64_t> offsets;
    for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      offsets.push_back(layout->slice(shape, mesh_, rank, 0).offset[dim]);
    }
    int64_t perPiece = 0;
    if (mesh_.pieces() > 1) {
      perPiece = layout->slice(shape, mesh_, 0, 1).offset[dim] - offsets[0];
    }
    scalars.push_back(program.scalar(offsets, perPiece));
    return success();
  }

  static std::vector<Axis> spaceAxes(std::vector<Axis> axes) {
    llvm::erase_if(axes, isTime);
    return axes;
  }

  // The axes over which the inputs' batch is split.
  std::vector<Axis> batchAxes() {
    for (const Argument& argument : argumentsOf(step_)) {
      auto dim = step_.getArgAttrOfType<IntegerAttr>(argument.index, "nn.batch_dim");
      FailureOr<Layout> layout = layoutOf(step_.getArgument(argument.index));
      const int64_t d = dim ? dim.getInt() : 0;
      if (argument.kind == "input" && succeeded(layout) && d >= 0 && d < static_cast<int64_t>(layout->dimensions())) {
        return layout->dim(d);
      }
    }
    return {};
  }

  // A constant is the same everywhere: each rank takes its part of the whole.
  LogicalResult localiseConstant(Operation* op, LocalFunction& function) {
    Value result = op->getResult(0);
    FailureOr<Layout> layout = layoutOf(result);
    if (failed(layout)) {
      return failure();
    }
    if (layout->hasPad()) {
      return op->emitError("a constant would need a pad here; fill the tensor or split another dimension");
    }
    Operation* whole = function.builder.clone(*op);
    whole->removeAttr("dist.function");
    whole->removeAttr(kIdAttr);
    whole->removeAttr(kStageAttr);
    whole->removeAttr(kUserStageAttr);
    whole->removeAttr(kUserRecomputeAttr);
    whole->removeAttr(kRecomputeAttr);
    auto tensor = cast<RankedTensorType>(result.getType());
    whole->getResult(0).setType(RankedTensorType::get(tensor.getShape(), tensor.getElementType()));
    Value value = whole->getResult(0);
    if (localType(result, *layout) != value.getType()) {
      SmallVector<Attribute> starts;
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
        if (failed(addOrigin(result, dim, starts, programOf(function)))) {
          return failure();
        }
      }
      value = programOf(function).dynamicSlice(function, value, localType(result, *layout), starts, op->getLoc());
    }
    programOf(function).define(function, result, value);
    return success();
  }

  LogicalResult lowerReshard(ir::dist::ReshardOp op, LocalFunction& function) {
    Value source = op->getOperand(0);
    Value target = op->getResult(0);
    FailureOr<Value> value = local(source, function);
    FailureOr<Layout> from = layoutOf(source);
    FailureOr<Layout> to = layoutOf(target);
    if (failed(value) || failed(from) || failed(to)) {
      return failure();
    }
    if (pendingOverTime(*from) && !pendingOverTime(*to)) {
      programOf(function).accumulate(function, target, *value, op->getLoc(), labelOf(source.getDefiningOp()));
      return success();
    }
    if (timeDim(*to) >= 0 && timeDim(*from) < 0) {
      programOf(function).define(function, target, slicePiece(function, *value, target, *to));
      return success();
    }
    const Shape piece = pieceShape(ir::shapeOf(source), *from, mesh_);
    const DType type = LocalProgram::elementType(source);
    absl::StatusOr<ReshardPlan> plan = planner_.plan(piece, type, withoutTime(*from), withoutTime(*to));
    if (!plan.ok()) {
      return op.emitError(std::string(plan.status().message()));
    }
    Layout current = withoutTime(*from);
    for (const ReshardStep& step : plan->steps) {
      value = programOf(function).step(function, *value, step, current, op);
      current = step.layout;
    }
    programOf(function).define(function, target, *value);
    return success();
  }

  Value slicePiece(LocalFunction& function, Value value, Value target, const Layout& layout) {
    RankedTensorType type = localType(target, layout);
    SmallVector<Attribute> starts;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      const std::vector<int64_t> zeros(mesh_.ranks(), 0);
      starts.push_back(programOf(function).scalar(zeros, d == timeDim(layout) ? type.getDimSize(d) : 0));
    }
    return programOf(function).dynamicSlice(function, value, type, starts, target.getLoc());
  }

  // An output leaves the block that makes it; what replaces an argument goes to every block that holds the argument.
  LogicalResult finishResult(unsigned index) {
    Value value = returned(step_, index);
    const std::string name = resultText(step_, index, kNameAttr);
    if (resultText(step_, index, kKindAttr) != "updated") {
      const int64_t home = value.getDefiningOp() == nullptr ? 0 : blockOf(value.getDefiningOp());
      return finishIn(value, programs_[home]->functionOf(value), "out." + name, "output");
    }
    const Argument argument = argumentAt(step_, step_.getResultAttrOfType<IntegerAttr>(index, kUpdatesAttr).getInt());
    for (const auto& program : programs_) {
      LocalFunction& update = program->function("update", 0);
      const bool holds = programs_.size() == 1 || held_.count({argument.name, update.block}) > 0;
      LocalFunction& where = program->functionOf(value);
      if (holds && failed(finishIn(value, where, name, argument.kind))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult finishIn(Value value, LocalFunction& function, const std::string& name, const std::string& memory) {
    FailureOr<Value> made = local(value, function);
    if (failed(made)) {
      return failure();
    }
    programOf(function).returnValue(function, *made, name, memory);
    return success();
  }

  LogicalResult describeTensors(func::FuncOp step) {
    for (const Argument& argument : argumentsOf(step)) {
      for (const auto& program : programs_) {
        const bool holds = programs_.size() == 1 || held_.count({argument.name, program->block()}) > 0;
        Value value = step.getArgument(argument.index);
        if (holds && failed(describe(*program, value, {argument.name, argument.kind, argument.name}))) {
          return failure();
        }
        if (holds) {
          program->lastTensorAttribute(step.getArgAttr(argument.index, "nn.file_shape"));
        }
      }
    }
    for (unsigned i = 0; i < step.getNumResults(); ++i) {
      const std::string kind = resultText(step, i, kKindAttr);
      const std::string name = resultText(step, i, kNameAttr);
      Value value = returned(step, i);
      const int64_t home = value.getDefiningOp() == nullptr ? 0 : blockOf(value.getDefiningOp());
      if (kind != "updated" && failed(describe(*programs_[home], value, {name, "output", "out." + name}))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult describe(LocalProgram& program, Value value, const TensorNames& names) {
    FailureOr<Layout> layout = layoutOf(value);
    if (failed(layout)) {
      return failure();
    }
    program.addTensor(value, *layout, names);
    return success();
  }

  Mesh mesh_;
  ReshardPlanner planner_;
  std::vector<int64_t> blocks_;                          // by stage
  std::vector<std::unique_ptr<LocalProgram>> programs_;  // by block
  std::set<std::pair<std::string, int64_t>> held_;       // arguments and the blocks that read them
  int64_t channels_ = 0;
  Builder builder_;
  func::FuncOp step_;
  llvm::DenseMap<Attribute, Layout> layouts_;
};

class LocalizePass : public PassWrapper<LocalizePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LocalizePass)
  StringRef getArgument() const override { return "weft-localize"; }
  StringRef getDescription() const override { return "Cut the step into functions of one rank's local computation"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Mesh> mesh = meshOf(module);
    func::FuncOp step = stepFunction(module);
    func::FuncOp init = initFunction(module);
    if (failed(mesh) || !step) {
      return signalPassFailure();
    }
    // The old functions keep their names while the new ones are built.
    step.setName("annotated_step");
    if (init) {
      init.setName("annotated_init");
    }
    std::vector<int64_t> blocks = {0};
    if (auto given = module->getAttrOfType<DenseI64ArrayAttr>(kBlocksAttr)) {
      blocks.assign(given.asArrayRef().begin(), given.asArrayRef().end());
    }
    Localiser localiser(module, *mesh, blocks);
    if (failed(localiser.runStep(step)) || (init && failed(localiser.runInit(init))) ||
        failed(localiser.finish(step))) {
      return signalPassFailure();
    }
    step.erase();
    if (init) {
      init.erase();
    }
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "local"));
  }
};

}  // namespace

std::unique_ptr<Pass> createLocalizePass() {
  return std::make_unique<LocalizePass>();
}

}  // namespace weft
