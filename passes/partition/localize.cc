// annotated -> local: what one rank computes.
//
// Each submesh owns some pipeline stages and gets a program of its own, in a module @submesh<n> where there are
// several. A value read in another submesh than its own is sent there once per call, on a channel.
//
// Submeshes may have meshes of their own: a dist.transfer is a channel whose boxes say which rank sends what to whom.
//
// Every op goes into the function the annotated state names (dist.function). A value read in another function than its
// own crosses: it is returned under a unique name there and taken as an argument of that name here. Reshards become the
// planner's collectives, global shapes local ones; what differs between ranks (origins, starts of slices, sources of
// permutes) becomes columns of the rank table.

#include <map>
#include <memory>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/layout/across.h"
#include "ir/layout/reshard.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/logical/request_attributes.h"
#include "passes/partition/local_program.h"
#include "passes/partition/micro_batch_rows.h"
#include "passes/partition/passes.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

class Localizer {
 public:
  Localizer(ModuleOp module, ModuleMeshes meshes, const Machine& machine)
      : builder_(module.getContext()), meshes_(std::move(meshes)) {
    for (const Mesh& mesh : meshes_.ofSubmesh) {
      planners_.push_back(std::make_unique<ReshardPlanner>(mesh, machine));
    }
    const int64_t count = *llvm::max_element(meshes_.submeshes) + 1;
    for (int64_t submesh = 0; submesh < count; ++submesh) {
      std::vector<int64_t> stages;
      for (size_t stage = 0; stage < meshes_.submeshes.size(); ++stage) {
        if (meshes_.submeshes[stage] == submesh) {
          stages.push_back(static_cast<int64_t>(stage));
        }
      }
      const Mesh& mesh = meshOfSubmesh(submesh);
      programs_.push_back(std::make_unique<LocalProgram>(count == 1 ? module : submeshModule(module, submesh, mesh),
                                                         mesh, submesh, stages));
    }
  }

  LogicalResult runStep(func::FuncOp step) {
    step_ = step;
    stripes_ = countStripes();
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

  // First values of what each submesh holds; after runStep, which finds that out. Generators depend on nothing.
  LogicalResult runInit(func::FuncOp init) {
    for (const auto& program : programs_) {
      LocalFunction& function = program->function("init", 0);
      for (unsigned i = 0; i < init.getNumResults(); ++i) {
        const std::string name = resultText(init, i, kNameAttr);
        Value value = returned(init, i);
        if (programs_.size() > 1 &&
            (held_.count({name, function.submesh}) == 0 || !onMeshOf(value, function.submesh))) {
          continue;
        }
        if (failed(localize(value.getDefiningOp(), function))) {
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
  static ModuleOp submeshModule(ModuleOp module, int64_t submesh, const Mesh& mesh) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto made = builder.create<ModuleOp>(module.getLoc(), "submesh" + std::to_string(submesh));
    made->setAttr(kMeshAttr, ir::dist::MeshAttr::get(module.getContext(), mesh.print()));
    return made;
  }

  int64_t submeshOf(Operation* op) const { return meshes_.submeshes[stageOf(op)]; }
  const Mesh& meshOfSubmesh(int64_t submesh) const { return meshes_.withNumber(meshes_.numberOfSubmesh(submesh)); }
  bool onMeshOf(Value value, int64_t submesh) const {
    return meshes_.number(value) == meshes_.numberOfSubmesh(submesh);
  }
  int64_t microBatches() const { return meshes_.ofSubmesh[0].microBatches(); }

  LocalProgram& programOf(const LocalFunction& function) { return *programs_[function.submesh]; }

  FailureOr<Layout> layoutOf(Value value) {
    auto attr = dyn_cast_or_null<ir::dist::LayoutAttr>(cast<RankedTensorType>(value.getType()).getEncoding());
    if (!attr) {
      return emitError(value.getLoc(), "value has no layout; run --weft-insert-reshards first"), failure();
    }
    const auto key = std::make_pair(Attribute(attr), meshes_.number(value));
    const auto known = layouts_.find(key);
    if (known != layouts_.end()) {
      return known->second;
    }
    absl::StatusOr<Layout> layout = Layout::parse(attr.getText().str(), meshes_.of(value));
    if (!layout.ok()) {
      return emitError(value.getLoc(), std::string(layout.status().message())), failure();
    }
    return layouts_[key] = *layout;
  }

  RankedTensorType localType(Value value, const Layout& layout) {
    auto tensor = cast<RankedTensorType>(value.getType());
    return RankedTensorType::get(layout.localShape(ir::shapeOf(value)), tensor.getElementType());
  }

  LogicalResult visit(Operation* op) {
    auto where = op->getAttrOfType<StringAttr>(kRunsInAttr);
    if (!where) {
      return op->emitError("has no dist.function; run --weft-insert-reshards first");
    }
    LocalFunction& function = programs_[submeshOf(op)]->function(where.getValue(), stageOf(op));
    if (auto reshard = dyn_cast<ir::dist::ReshardOp>(op)) {
      return lowerReshard(reshard, function);
    }
    if (isa<ir::dist::TransferOp>(op)) {
      return lowerTransfer(op, function);
    }
    return localize(op, function);
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
    if (auto argument = argumentBehind(value)) {
      const Argument named = argumentAt(step_, argument.getArgNumber());
      held_[{named.name, function.submesh}] = value;
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

  // The argument that a value is, on its own mesh or through a transfer on another; null for other values.
  static BlockArgument argumentBehind(Value value) {
    if (auto transfer = value.getDefiningOp<ir::dist::TransferOp>()) {
      value = transfer->getOperand(0);
    }
    return dyn_cast<BlockArgument>(value);
  }

  // Makes a value of another submesh of the same mesh known in the submesh of `reader`. What depends on nothing is
  // recomputed.
  LogicalResult bring(Value value, LocalFunction& reader, RankedTensorType type) {
    Operation* producer = value.getDefiningOp();
    if (producer->getNumOperands() == 0) {
      return localize(producer, reader);
    }
    return connect({value, value, type, {}, ""}, reader);
  }

  // A value of another mesh. An argument is held on both.
  LogicalResult lowerTransfer(Operation* op, LocalFunction& reader) {
    Value source = op->getOperand(0);
    Value target = op->getResult(0);
    FailureOr<Layout> from = layoutOf(source);
    FailureOr<Layout> to = layoutOf(target);
    if (failed(from) || failed(to) || isa<BlockArgument>(source)) {
      return success(succeeded(from) && succeeded(to));
    }
    const Mesh& there = meshes_.of(source);
    const Mesh& here = meshes_.of(target);
    const Layout cut = withoutTime(*from);
    const Layout wanted = withoutTime(*to);
    const std::vector<TransferBox> boxes =
        boxesAcross(microBatchShape(ir::shapeOf(source), *from, microBatches()), {cut, there}, {wanted, here});
    const std::string why =
        ": " + from->print(there) + " on " + there.print() + " -> " + to->print(here) + " on " + here.print();
    return connect({source, target, localType(target, *to), flatBoxes(boxes), why}, reader);
  }

  // A value that crosses between submeshes.
  struct Crossing {
    Value value;            // as it is made
    Value target;           // as it is read; the same between equal meshes
    RankedTensorType type;  // that the reader receives
    std::vector<int64_t> boxes;
    std::string why;
  };

  LogicalResult connect(const Crossing& crossing, LocalFunction& reader) {
    Value value = crossing.value;
    Operation* producer = value.getDefiningOp();
    LocalProgram& owner = *programs_[submeshOf(producer)];
    LocalProgram& there = programOf(reader);
    LocalFunction* made = owner.whereDefined(value);
    LocalFunction* receiver = made == nullptr ? nullptr : receiverOf(*made, reader, there);
    if (receiver == nullptr) {
      return producer->emitError() << labelOf(producer) << " of stage " << stageOf(producer) << " is read on stage "
                                   << reader.stage << " in the " << kindOf(reader.function)
                                   << " pass: the stages would wait for each other; move it to stage " << reader.stage;
    }
    LocalFunction& sender = owner.function(kindOf(receiver->function), made->stage);
    FailureOr<Value> sent = local(value, sender);
    if (failed(sent)) {
      return failure();
    }
    const int64_t channel = channels_++;
    const std::string reason = sourceLabel(value) + " of stage " + std::to_string(made->stage) + " is read in the " +
                               kindOf(reader.function).str() + " pass of submesh " + std::to_string(there.submesh()) +
                               crossing.why;
    owner.send(sender, *sent, {channel, there.submesh(), value, reason, {}});
    const ChannelEnd end = {channel, owner.submesh(), value, reason, crossing.boxes};
    there.define(*receiver, crossing.target, there.receive(*receiver, crossing.type, end));
    return success();
  }

  // The function of the reader's submesh that receives what `made` makes: of the same kind, on the reader's stage. What
  // a later stage makes in its forward pass reaches earlier ones in the backward pass. Null if the stages would wait
  // for each other.
  static LocalFunction* receiverOf(const LocalFunction& made, const LocalFunction& reader, LocalProgram& there) {
    const StringRef kind = kindOf(made.function);
    if (!isPerMicroBatch(kind)) {
      return &there.function(kind, 0);
    }
    const bool inMicroBatches = isPerMicroBatch(kindOf(reader.function));
    const auto before = [&](int64_t stage) { return kind == "forward" ? made.stage < stage : made.stage > stage; };
    const auto possible = llvm::find_if(there.stages(), before);
    const int64_t stage = inMicroBatches                     ? reader.stage
                          : possible != there.stages().end() ? *possible
                                                             : there.stages().front();
    if (before(stage)) {
      return &there.function(kind, stage);
    }
    const bool later = kind == "forward" && (!inMicroBatches || kindOf(reader.function) == "backward");
    return later ? &there.function("backward", stage) : nullptr;
  }

  LogicalResult localize(Operation* op, LocalFunction& function) {
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
      return localizeConstant(op, function);
    }
    // Annotations for the compiler: they lower to their operand.
    if (ir::viewKindOf(op) == ir::ViewKind::kAnnotation) {
      programOf(function).define(function, op->getResult(0), operands[0]);
      return success();
    }
    if (inStripes(op)) {
      return localizeInStripes(op, operands, function);
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
    return localizeAttributes(op, clone, programOf(function));
  }

  // What earlier phases said of an operator.
  static void removeMarks(Operation* clone) {
    for (const char* name : {kRunsInAttr, kIdAttr, kForwardAttr, kPrologueAttr, kStrategyAttr, kGradientOfAttr,
                             kStageAttr, kUserStageAttr, kUserRecomputeAttr, kRecomputeAttr, kKeepAttr}) {
      clone->removeAttr(name);
    }
    if (auto interface = dyn_cast<ir::OperatorInterface>(clone)) {
      interface.localizeAttributes();
    }
  }

  LogicalResult localizeAttributes(Operation* op, Operation* clone, LocalProgram& program) {
    removeMarks(clone);
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
      clone->setAttr(kScalarsAttr, builder_.getArrayAttr(scalars));
    }
    return success();
  }

  LogicalResult addOrigin(Value value, int64_t dim, SmallVector<Attribute>& scalars, LocalProgram& program) {
    FailureOr<Layout> layout = layoutOf(value);
    if (failed(layout)) {
      return failure();
    }
    if (dim == timeDim(*layout)) {
      return addRowOrigin(value, *layout, scalars, program);
    }
    std::vector<int64_t> offsets;
    const Mesh& mesh = meshOfSubmesh(program.submesh());
    for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      offsets.push_back(layout->slice(ir::shapeOf(value), mesh, rank, 0).offset[dim]);
    }
    scalars.push_back(program.scalar(offsets, 0));
    return success();
  }

  MicroBatchRows rowsOf(Value value, const Layout& layout) {
    return microBatchRows(ir::shapeOf(value), {layout, meshes_.of(value)}, stripes_);
  }

  // The place in the batch of a rank's rows of a micro-batch, which they have if they lie in one stripe.
  LogicalResult addRowOrigin(Value value, const Layout& layout, SmallVector<Attribute>& scalars,
                             LocalProgram& program) {
    const MicroBatchRows rows = rowsOf(value, layout);
    if (!rows.oneRun()) {
      return emitError(value.getLoc())
             << "an operator here needs the place of its rows in the batch, but inside a micro-batch they are "
             << rows.local << " rows of several of the batch's " << rows.stripes
             << " stripes, gathered or on a mesh that splits "
             << "the batch less than another; use micro = 1, keep the batch split as the inputs are, or give a batch "
             << "that needs no pad";
    }
    scalars.push_back(program.scalar(rows.origins(), rows.part));
    return success();
  }

  // Does an operator that numbers all elements (dropout) work on whole stripes of rows, several of them?
  bool inStripes(Operation* op) {
    auto interface = dyn_cast<ir::OperatorInterface>(op);
    if (!interface || !interface.needsGlobalShape() || microBatches() == 1) {
      return false;
    }
    FailureOr<Layout> layout = layoutOf(op->getResult(0));
    if (failed(layout) || timeDim(*layout) < 0) {
      return false;
    }
    // A pad changes the numbers of elements unless the batch is the first dimension.
    const MicroBatchRows rows = rowsOf(op->getResult(0), *layout);
    const bool padded = rows.batch != ir::shapeOf(op->getResult(0))[timeDim(*layout)];
    return rows.localStripes() > 1 && (!padded || timeDim(*layout) == 0);
  }

  // Such an operator sees its rows as [stripes, rows of one]: in [D, B / D] the elements of the batch have the same
  // numbers.
  LogicalResult localizeInStripes(Operation* op, ArrayRef<Value> operands, LocalFunction& function) {
    Value result = op->getResult(0);
    LocalProgram& program = programOf(function);
    FailureOr<Layout> layout = layoutOf(result);
    const RankedTensorType type = localType(result, *layout);
    const MicroBatchRows rows = rowsOf(result, *layout);
    const int dim = timeDim(*layout);
    const auto seen =
        RankedTensorType::get(rowsSeenAs(type.getShape(), dim, rows.localStripes(), rows.part), type.getElementType());
    SmallVector<Value> views;
    for (Value operand : operands) {
      views.push_back(operand.getType() == type ? view(function.builder, operand, seen) : operand);
    }
    Operation* clone = function.builder.clone(*op);
    clone->setOperands(views);
    clone->getResult(0).setType(seen);
    removeMarks(clone);
    SmallVector<Attribute> scalars;
    for (int d = 0; d < type.getRank(); ++d) {
      if (d == dim) {
        scalars.push_back(program.scalar(rows.firstStripes(), 0));
        scalars.push_back(program.scalar(std::vector<int64_t>(rows.first.size(), 0), rows.part));
      } else if (failed(addOrigin(result, d, scalars, program))) {
        return failure();
      }
    }
    clone->setAttr(kScalarsAttr, builder_.getArrayAttr(scalars));
    const Shape shape = rowsSeenAs(ir::shapeOf(result), dim, rows.stripes, rows.batch / rows.stripes);
    clone->setAttr("global_shape", builder_.getDenseI64ArrayAttr(shape));
    program.define(function, result, view(function.builder, clone->getResult(0), type));
    return success();
  }

  static Value view(OpBuilder& builder, Value value, RankedTensorType type) {
    OperationState state(value.getLoc(), ir::nn::ReshapeOp::getOperationName());
    state.addOperands(value);
    state.addTypes(type);
    return builder.create(state)->getResult(0);
  }

  // Number of stripes of the batch: the ways in which the inputs split it, or dist.stripes where stage meshes differ.
  int64_t countStripes() {
    if (auto given = step_->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(kStripesAttr)) {
      return std::max<int64_t>(given.getInt(), 1);
    }
    for (const Argument& argument : argumentsOf(step_)) {
      auto dim = step_.getArgAttrOfType<IntegerAttr>(argument.index, kBatchDimAttr);
      FailureOr<Layout> layout = layoutOf(step_.getArgument(argument.index));
      const Shape shape = ir::shapeOf(step_.getArgument(argument.index));
      const int64_t d = dim ? dim.getInt() : 0;
      const bool inside = d >= 0 && d < static_cast<int64_t>(shape.size());
      if (argument.kind == "input" && succeeded(layout) && inside && shape[d] > 1) {
        return layout->parts(d);
      }
    }
    return 1;
  }

  // A constant is the same everywhere: each rank takes its part of the whole.
  LogicalResult localizeConstant(Operation* op, LocalFunction& function) {
    Value result = op->getResult(0);
    FailureOr<Layout> layout = layoutOf(result);
    if (failed(layout)) {
      return failure();
    }
    if (layout->hasPad()) {
      return op->emitError("a constant would need a pad here; fill the tensor or split another dimension");
    }
    Operation* whole = function.builder.clone(*op);
    whole->removeAttr(kRunsInAttr);
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
    if (partialOverTime(*from) && !partialOverTime(*to)) {
      programOf(function).accumulate(function, target, *value, op->getLoc(), labelOf(source.getDefiningOp()));
      return success();
    }
    if (timeDim(*to) >= 0 && timeDim(*from) < 0) {
      return sliceMicroBatch(function, *value, target, *to);
    }
    const Shape microBatch = microBatchShape(ir::shapeOf(source), *from, microBatches());
    const DType type = LocalProgram::elementType(source);
    absl::StatusOr<ReshardPlan> plan =
        planners_[meshes_.number(source)]->plan(microBatch, type, withoutTime(*from), withoutTime(*to));
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

  // A micro-batch of the rows this rank has: the same part of each of its stripes of the batch.
  LogicalResult sliceMicroBatch(LocalFunction& function, Value value, Value target, const Layout& layout) {
    LocalProgram& program = programOf(function);
    const RankedTensorType type = localType(target, layout);
    const int dim = timeDim(layout);
    const MicroBatchRows rows = rowsOf(target, layout);
    const int64_t stripes = rows.localStripes();
    if (stripes == 0) {
      return emitError(value.getLoc()) << "a rank has " << rows.local * microBatches() << " of " << rows.batch
                                       << " rows, which are no whole stripes of the batch (" << rows.stripes
                                       << "), each cut into " << microBatches()
                                       << " micro-batches; split the batch as the inputs are";
    }
    Shape cut = type.getShape();
    int along = dim;
    if (stripes > 1) {
      cut = rowsSeenAs(rowsSeenAs(cut, dim, stripes, rows.part), dim, stripes, microBatches());
      value = view(function.builder, value, RankedTensorType::get(cut, type.getElementType()));
      along = dim + 1;
      cut[along] = 1;
    }
    SmallVector<Attribute> starts;
    const std::vector<int64_t> zeros(meshOfSubmesh(program.submesh()).ranks(), 0);
    for (size_t d = 0; d < cut.size(); ++d) {
      starts.push_back(program.scalar(zeros, static_cast<int>(d) == along ? cut[d] : 0));
    }
    const auto cutType = RankedTensorType::get(cut, type.getElementType());
    Value microBatch = program.dynamicSlice(function, value, cutType, starts, target.getLoc());
    program.define(function, target, stripes > 1 ? view(function.builder, microBatch, type) : microBatch);
    return success();
  }

  // An output leaves the submesh that makes it; what replaces an argument goes to every submesh that holds the
  // argument.
  LogicalResult finishResult(unsigned index) {
    Value value = returned(step_, index);
    const std::string name = resultText(step_, index, kNameAttr);
    if (resultText(step_, index, kKindAttr) != "updated") {
      const int64_t owner = meshes_.submeshes[stageOfValue(value)];
      return finishIn(value, programs_[owner]->functionOf(value), "out." + name, "output");
    }
    const Argument argument = argumentAt(step_, step_.getResultAttrOfType<IntegerAttr>(index, kUpdatesAttr).getInt());
    // What was sent to a submesh of another mesh is that submesh's alone.
    auto stage = step_.getResultAttrOfType<IntegerAttr>(index, kStageAttr);
    for (const auto& program : programs_) {
      LocalFunction& update = program->function("update", 0);
      const bool here = stage ? meshes_.submeshes[stage.getInt()] == update.submesh : onMeshOf(value, update.submesh);
      const bool holds = programs_.size() == 1 || (here && held_.count({argument.name, update.submesh}) > 0);
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
        const auto held = held_.find({argument.name, program->submesh()});
        const bool holds = programs_.size() == 1 || held != held_.end();
        Value value = held != held_.end() ? held->second : step.getArgument(argument.index);
        if (holds && failed(describe(*program, value, {argument.name, argument.kind, argument.name}))) {
          return failure();
        }
        if (holds) {
          program->lastTensorAttribute(step.getArgAttr(argument.index, kFileShapeAttr));
        }
      }
    }
    for (unsigned i = 0; i < step.getNumResults(); ++i) {
      const std::string kind = resultText(step, i, kKindAttr);
      const std::string name = resultText(step, i, kNameAttr);
      Value value = returned(step, i);
      const int64_t owner = meshes_.submeshes[stageOfValue(value)];
      if (kind != "updated" && failed(describe(*programs_[owner], value, {name, "output", "out." + name}))) {
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

  Builder builder_;
  ModuleMeshes meshes_;
  std::vector<std::unique_ptr<ReshardPlanner>> planners_;  // by number of the mesh
  std::vector<std::unique_ptr<LocalProgram>> programs_;    // by submesh
  std::map<std::pair<std::string, int64_t>, Value> held_;  // arguments and the submeshes that read them, as they do
  int64_t channels_ = 0;
  int64_t stripes_ = 1;  // of the batch
  func::FuncOp step_;
  llvm::DenseMap<std::pair<Attribute, int64_t>, Layout> layouts_;
};

class LocalizePass : public PassWrapper<LocalizePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LocalizePass)
  StringRef getArgument() const override { return "weft-localize"; }
  StringRef getDescription() const override { return "Cut the step into functions of one rank's local computation"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<ModuleMeshes> meshes = stageMeshesOf(module);
    const FailureOr<Machine> machine = machineOf(module);
    func::FuncOp step = stepFunction(module);
    func::FuncOp init = initFunction(module);
    if (failed(meshes) || failed(machine) || !step) {
      return signalPassFailure();
    }
    // The old functions keep their names while the new ones are built.
    step.setName("annotated_step");
    if (init) {
      init.setName("annotated_init");
    }
    Localizer localizer(module, *std::move(meshes), *machine);
    if (failed(localizer.runStep(step)) || (init && failed(localizer.runInit(init))) ||
        failed(localizer.finish(step))) {
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
