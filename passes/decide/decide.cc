// Writes the decisions record: the user's words, propagation, defaults, ZeRO.

#include <numeric>

#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "mlir/IR/Builders.h"
#include "passes/decide/expand.h"
#include "passes/decide/gathers.h"
#include "passes/decide/passes.h"
#include "passes/decide/propagate.h"
#include "passes/stage/assign_stages.h"
#include "passes/stage/recompute.h"
#include "passes/stage/stage_table.h"
#include "passes/support/decisions.h"
#include "passes/support/program.h"
#include "planner/check_request.h"
#include "planner/stage_mesh_text.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

// Rewrites leave operators that nothing reads any more.
void eraseUnused(func::FuncOp step) {
  Operation* op = step.getBody().front().getTerminator()->getPrevNode();
  while (op != nullptr) {
    Operation* before = op->getPrevNode();
    if (op->use_empty()) {
      op->erase();
    }
    op = before;
  }
}

class Decider {
 public:
  Decider(ModuleOp module, const ir::OperatorRegistry& registry) : module_(module), registry_(registry) {}

  LogicalResult run() {
    step_ = stepFunction(module_);
    FailureOr<Mesh> mesh = meshOf(module_);
    if (!step_ || failed(mesh)) {
      return failure();
    }
    record_.mesh = *mesh;
    if (failed(readStageMeshes())) {
      return failure();
    }
    record_.zero = integerOption(module_, "zero", 0);
    record_.regather = textOption(module_, "regather", "keep") == "regather";
    // Each round either expands operators and starts again, or ends.
    for (;;) {
      expanded_ = false;
      if (failed(round())) {
        return failure();
      }
      if (!expanded_) {
        return success();
      }
    }
  }

  const Decisions& record() const { return record_; }

 private:
  // The meshes the user gave the blocks; which block has which stages is known after the schedule.
  LogicalResult readStageMeshes() {
    auto text = module_->getAttrOfType<StringAttr>(kStageMeshesAttr);
    if (!text) {
      return success();
    }
    absl::StatusOr<std::vector<Mesh>> given = parseStageMeshes(text.getValue().str(), record_.mesh.pieces());
    if (!given.ok()) {
      return module_.emitError(std::string(given.status().message()));
    }
    given_ = *std::move(given);
    return success();
  }

  // One mesh for each block; nothing is recorded where all are equal.
  LogicalResult placeStages() {
    const int64_t count = *llvm::max_element(record_.schedule.blocks) + 1;
    if (!given_.empty() && static_cast<int64_t>(given_.size()) != count) {
      return module_.emitError() << "there are " << given_.size() << " stage meshes (" << printStageMeshes(given_)
                                 << ") for " << count << " blocks of ranks: " << record_.schedule.blocks.size()
                                 << " stages, " << record_.schedule.virtualStages
                                 << " on each block; give one mesh for each block";
    }
    const bool differ = llvm::any_of(given_, [&](const Mesh& mesh) { return !(mesh == given_[0]); });
    record_.stageMeshes = differ ? given_ : std::vector<Mesh>();
    record_.mesh = given_.empty() ? record_.mesh : given_[0];
    meshes_ = record_.meshes();
    return success();
  }

  // Data axes the batch takes by default; none where the user asked for replication.
  std::vector<Axis> defaultAxes(const Mesh& mesh) const {
    const bool none = textOption(module_, "default", "data_parallel") == "replicate";
    return none ? std::vector<Axis>() : dataParallelAxes(mesh);
  }

  // With splits written by numbers on an unnamed mesh the batch is the user's; it is not padded beforehand.
  int64_t paddingParts(const Mesh& mesh) const {
    bool strategies = false;
    step_->walk([&](Operation* op) { strategies |= op->hasAttr(kStrategyAttr); });
    return strategies && mesh.axes().empty() ? 1 : partsOf(defaultAxes(mesh));
  }

  // What the batch divides by: parts on each mesh, each cut into the pieces.
  int64_t paddedRows() const {
    int64_t parts = 1;
    for (const Mesh& mesh : meshes_.ofBlock) {
      parts = std::lcm(parts, paddingParts(mesh));
    }
    return parts * record_.mesh.pieces();
  }

  LogicalResult round() {
    FailureOr<PieceAnalysis> pieces = settlePieces();
    if (failed(pieces)) {
      return failure();
    }
    FailureOr<StoredShapes> stored = storedShapes();
    if (failed(stored)) {
      return failure();
    }
    Propagation propagation(step_, meshes_, registry_, *pieces, *stored);
    if (failed(propagation.readUser())) {
      return failure();
    }
    propagation.run();
    if (!propagation.expansions().empty()) {
      return expand(propagation);
    }
    propagation.seedInputs([&](const Mesh& mesh) { return defaultAxes(mesh); });
    propagation.run();
    if (!propagation.expansions().empty()) {
      return expand(propagation);
    }
    propagation.closeArguments();
    if (failed(alignInputs(propagation, *pieces, *stored)) || failed(countSegments(propagation, *pieces, *stored))) {
      return failure();
    }
    shardState(propagation, *stored);
    propagation.runUpdate();
    propagation.closeOperators();
    eraseUnused(step_);
    return write(propagation, *pieces, *stored);
  }

  FailureOr<StoredShapes> storedShapes() {
    FailureOr<llvm::DenseMap<unsigned, Shape>> padded = paddedArguments(step_, meshes_, paddedRows());
    if (failed(padded)) {
      return failure();
    }
    FailureOr<StoredShapes> stored = spreadPads(step_, *padded);
    if (failed(stored) || record_.zero == 0) {
      return stored;
    }
    for (const auto& [argument, shape] : zeroPads(step_, dataParts())) {
      ScopedDiagnosticHandler quiet(module_.getContext(), [](Diagnostic&) { return success(); });
      (*padded)[argument] = shape;
      FailureOr<StoredShapes> more = spreadPads(step_, *padded);
      if (succeeded(more)) {
        stored = std::move(more);
      } else {
        padded->erase(argument);
      }
    }
    return stored;
  }

  // Parts into which ZeRO cuts a parameter, on every mesh.
  int64_t dataParts() const {
    int64_t parts = 1;
    for (const Mesh& mesh : meshes_.ofBlock) {
      parts = std::lcm(parts, partsOf(dataParallelAxes(mesh)));
    }
    return parts;
  }

  LogicalResult chooseSchedule(int64_t stages) {
    ScheduleRequest request = {textOption(module_, "schedule", "1f1b"),
                               integerOption(module_, "virtual", 0),
                               stages,
                               record_.mesh.pieces(),
                               trains(),
                               textOption(module_, "schedule_table", "")};
    if (request.kind == "auto") {
      // Only a forward program comes here without a choice.
      request.kind = request.virtualStages > 1 ? "interleaved" : "1f1b";
    }
    absl::StatusOr<ScheduleDecision> schedule = decideSchedule(request);
    if (!schedule.ok()) {
      return module_.emitError(std::string(schedule.status().message()));
    }
    record_.schedule = *std::move(schedule);
    record_.schedule.considered = textOption(module_, "considered", "");
    return success();
  }

  FailureOr<PieceAnalysis> settlePieces() {
    for (;;) {
      // Rewrites make operators that have no stage yet.
      FailureOr<int64_t> stages = assignStages(step_);
      if (failed(stages) || failed(chooseSchedule(*stages)) || failed(placeStages())) {
        return failure();
      }
      FailureOr<PieceAnalysis> pieces = analysePieces(step_, record_.mesh.pieces());
      if (failed(pieces) || pieces->needed.empty()) {
        return pieces;
      }
      record_.rewrites.push_back(pieces->needed.front());
      if (failed(hoistToPrologue(step_, pieces->needed.front()))) {
        return failure();
      }
    }
  }

  // Calls visit(argument, dimension of the batch) for each input that is cut into pieces and lies on the mesh.
  template <typename Visit>
  LogicalResult eachInput(const Propagation& propagation, const PieceAnalysis& pieces, int64_t mesh, Visit visit) {
    for (const Argument& argument : argumentsOf(step_)) {
      const auto dim = pieces.batchDim.find(step_.getArgument(argument.index));
      if (argument.kind == "input" && dim != pieces.batchDim.end() && record_.mesh.pieces() > 1 &&
          llvm::is_contained(propagation.meshesOf(argument.index), mesh) && failed(visit(argument, dim->second))) {
        return failure();
      }
    }
    return success();
  }

  // Piece p of every input must be the same rows, and pieces are cut inside a rank's rows: on one mesh all inputs'
  // batches are split over the axes that all begin with. What an operator splits further is a slice inside the piece.
  LogicalResult alignInputs(Propagation& propagation, const PieceAnalysis& pieces, const StoredShapes& stored) {
    for (size_t mesh = 0; mesh < meshes_.ofBlock.size(); ++mesh) {
      if (failed(alignInputsOn(static_cast<int64_t>(mesh), propagation, pieces, stored))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult alignInputsOn(int64_t number, Propagation& propagation, const PieceAnalysis& pieces,
                              const StoredShapes& stored) {
    const Mesh& mesh = meshes_.withNumber(number);
    std::optional<std::vector<Axis>> common;
    (void)eachInput(propagation, pieces, number, [&](const Argument& argument, int dim) {
      const std::vector<Axis>& axes = propagation.argument(argument.index, number)->dim(dim);
      common = common ? commonPrefix(*common, axes) : axes;
      return success();
    });
    return eachInput(propagation, pieces, number, [&](const Argument& argument, int dim) -> LogicalResult {
      Layout& layout = *propagation.argument(argument.index, number);
      if (layout.dim(dim) == *common) {
        return success();
      }
      std::string& origin = propagation.argumentOrigin(argument.index, number);
      if (origin == "user" || stored.padded(step_.getArgument(argument.index))) {
        return emitError(step_.getArgument(argument.index).getLoc())
               << "with " << mesh.pieces() << " micro-batches the inputs' batch must be split alike: '" << argument.name
               << "' as " << layout.print(mesh) << ", another input only over " << Layout({*common}).print(mesh)
               << "; give all the same layout";
      }
      layout.setDim(dim, *common);
      origin += "; batch split as that of the other inputs, for the micro-batches";
      return success();
    });
  }

  // Where meshes differ, the batch is segments, in each of which the pieces are cut: so many that every input's part
  // and every mesh's data-parallel part is whole segments.
  LogicalResult countSegments(Propagation& propagation, const PieceAnalysis& pieces, const StoredShapes& stored) {
    if (meshes_.same()) {
      return success();
    }
    record_.segments = 1;
    for (size_t mesh = 0; mesh < meshes_.ofBlock.size(); ++mesh) {
      const auto number = static_cast<int64_t>(mesh);
      record_.segments = std::lcm(record_.segments, partsOf(defaultAxes(meshes_.withNumber(number))));
      (void)eachInput(propagation, pieces, number, [&](const Argument& argument, int dim) {
        record_.segments = std::lcm(record_.segments, propagation.argument(argument.index, number)->parts(dim));
        return success();
      });
    }
    for (size_t mesh = 0; mesh < meshes_.ofBlock.size(); ++mesh) {
      const auto number = static_cast<int64_t>(mesh);
      if (failed(eachInput(propagation, pieces, number,
                           [&](const Argument& argument, int dim) { return checkRows(argument, dim, stored); }))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult checkRows(const Argument& argument, int dim, const StoredShapes& stored) {
    const int64_t cuts = record_.segments * record_.mesh.pieces();
    const int64_t rows = stored.of(step_.getArgument(argument.index))[dim];
    if (rows % cuts == 0) {
      return success();
    }
    return emitError(step_.getArgument(argument.index).getLoc())
           << "the batch of '" << argument.name << "' has " << rows << " rows, but the stage meshes "
           << printStageMeshes(record_.stageMeshes) << " and " << record_.mesh.pieces()
           << " micro-batches need a multiple of " << cuts << "; give so many rows";
  }

  static std::vector<Axis> commonPrefix(const std::vector<Axis>& a, const std::vector<Axis>& b) {
    const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    return {a.begin(), end};
  }

  LogicalResult expand(const Propagation& propagation) {
    expanded_ = true;
    for (const int64_t id : propagation.expansions()) {
      record_.rewrites.push_back({Rewrite::kExpand, id, 0});
      if (failed(expandOperator(step_, id, registry_))) {
        return failure();
      }
    }
    return success();
  }

  // ZeRO: the layout of a parameter's optimizer state (and of its accumulated gradient) is the parameter's own, split
  // further over the data axes it leaves free, on the largest dimension that divides.
  Layout stateLayout(const Layout& base, const Shape& stored, const Mesh& mesh) const {
    std::vector<Axis> extra;
    for (const Axis& axis : dataParallelAxes(mesh)) {
      if (!base.uses(axis) && compatibleWith(base, axis)) {
        extra.push_back(axis);
      }
    }
    int64_t best = -1;
    for (size_t d = 0; d < stored.size(); ++d) {
      const bool divides = stored[d] % (base.parts(d) * partsOf(extra)) == 0;
      if (divides && (best < 0 || stored[d] / base.parts(d) > stored[best] / base.parts(best))) {
        best = static_cast<int64_t>(d);
      }
    }
    Layout layout = base;
    if (record_.zero > 0 && !extra.empty() && best >= 0) {
      std::vector<Axis> axes = base.dim(best);
      axes.insert(axes.end(), extra.begin(), extra.end());
      layout.setDim(best, axes);
    }
    return layout;
  }

  static bool compatibleWith(const Layout& layout, const Axis& axis) {
    return llvm::all_of(layout.dims(), [&](const std::vector<Axis>& axes) {
      return llvm::all_of(axes, [&](const Axis& other) { return compatible(other, axis); });
    });
  }

  // The state's layout is that on the parameter's home mesh; with ZeRO-3 the parameter is split on every mesh.
  void shardState(Propagation& propagation, const StoredShapes& stored) {
    std::map<std::string, Layout> layouts;
    for (const Argument& argument : argumentsOf(step_)) {
      const int64_t home = meshes_.number(propagation.homeStage(argument.index));
      for (const int64_t number : propagation.meshesOf(argument.index)) {
        if (argument.kind != "parameter") {
          continue;
        }
        std::optional<Layout>& base = propagation.argument(argument.index, number);
        const Shape& shape = stored.of(step_.getArgument(argument.index));
        const Layout layout = stateLayout(*base, shape, meshes_.withNumber(number));
        if (number == home) {
          layouts[argument.name] = layout;
        }
        if (record_.zero >= 3 && !(layout == *base)) {
          base = layout;
          propagation.argumentOrigin(argument.index, number) += "; ZeRO-3";
        }
      }
    }
    for (Operation& op : step_.getBody().front().without_terminator()) {
      auto gradient = op.getAttrOfType<StringAttr>(kGradientOfAttr);
      if (gradient) {
        propagation.fix(&op, layouts[gradient.getValue().str()], "optimizer state of the parameter");
      }
      auto owner = op.getNumOperands() > 0 ? dyn_cast<BlockArgument>(op.getOperand(0)) : BlockArgument();
      auto phase = op.getAttrOfType<StringAttr>(kPhaseAttr);
      if (!owner || !phase || phase.getValue() != "update") {
        continue;
      }
      const Argument named = argumentAt(step_, owner.getArgNumber());
      if (named.kind == "parameter" && op.getNumResults() > 1) {
        shardOptimizer(propagation, &op, layouts[named.name]);
      }
    }
  }

  // The update operator of one parameter and the state it reads.
  void shardOptimizer(Propagation& propagation, Operation* op, const Layout& layout) {
    propagation.fix(op, layout, "optimizer state of the parameter");
    const int64_t mesh = meshes_.number(op);
    for (Value operand : op->getOperands()) {
      auto state = dyn_cast<BlockArgument>(operand);
      if (state && argumentAt(step_, state.getArgNumber()).kind == "state" &&
          ir::shapeOf(state).size() == layout.dimensions()) {
        propagation.argument(state.getArgNumber(), mesh) = layout;
        propagation.argumentOrigin(state.getArgNumber(), mesh) =
            "optimizer state, ZeRO " + std::to_string(record_.zero);
      }
    }
  }

  bool trains() {
    bool backward = false;
    step_->walk([&](Operation* op) {
      auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
      backward |= phase && phase.getValue() == "backward";
    });
    return backward;
  }

  LogicalResult markRecomputed() {
    const std::string recompute = textOption(module_, "recompute", "");
    const absl::Status known = trains() ? checkRecompute(recompute, recomputableNames(step_)) : absl::OkStatus();
    if (!known.ok()) {
      return module_.emitError(std::string(known.message()));
    }
    const std::vector<std::string> patterns = recomputePatterns(recompute);
    size_t next = 0;
    for (Operation& op : step_.getBody().front().without_terminator()) {
      record_.operators[next++].recompute = isRecomputed(&op, patterns);
    }
    return success();
  }

  LogicalResult write(Propagation& propagation, const PieceAnalysis& pieces, const StoredShapes& stored) {
    for (const Argument& argument : argumentsOf(step_)) {
      const int64_t stage = propagation.homeStage(argument.index);
      const int64_t home = meshes_.number(stage);
      const auto layoutOn = [&](int64_t number) {
        Layout layout = *propagation.argument(argument.index, number);
        const Shape logical = ir::shapeOf(step_.getArgument(argument.index));
        const Shape& shape = stored.of(step_.getArgument(argument.index));
        for (size_t d = 0; d < shape.size(); ++d) {
          layout.setPad(d, shape[d] == logical[d] ? 0 : shape[d]);
        }
        return layout;
      };
      ArgumentDecision decision = {argument.name, layoutOn(home), "", propagation.argumentOrigin(argument.index, home)};
      decision.stage = meshes_.same() ? 0 : stage;
      for (const int64_t number : propagation.meshesOf(argument.index)) {
        if (number != home) {
          decision.elsewhere[number] = layoutOn(number);
        }
      }
      record_.arguments.push_back(std::move(decision));
    }
    const int64_t budget = record_.regather ? 0 : integerOption(module_, "gather_bytes", -1);
    chooseGathers(parameterGathers(step_, propagation, meshes_, stored), record_.mesh.pieces(), budget,
                  record_.arguments);
    for (Operation& op : step_.getBody().front().without_terminator()) {
      record_.operators.push_back(decisionOf(&op, propagation.of(&op), pieces.operators.find(&op)->second));
    }
    record_.conflicts = propagation.conflicts();
    return markRecomputed();
  }

  static OperatorDecision decisionOf(Operation* op, const OperatorSharding& sharding, const OperatorPieces& pieces) {
    OperatorDecision decision;
    decision.id = idOf(op);
    decision.label = labelOf(op);
    decision.stage = stageOf(op);
    decision.runsIn = runsIn(op, pieces);
    decision.perPiece = pieces.perPiece;
    decision.batch = pieces.batch >= 0 ? sharding.rule->factors()[pieces.batch].name : "";
    for (size_t f = 0; f < sharding.axes.size(); ++f) {
      if (sharding.axes[f] && !sharding.axes[f]->empty()) {
        decision.axes[sharding.rule->factors()[f].name] = *sharding.axes[f];
      }
    }
    decision.results = sharding.wanted;
    decision.origin = sharding.origin;
    return decision;
  }

  ModuleOp module_;
  const ir::OperatorRegistry& registry_;
  func::FuncOp step_;
  Decisions record_;
  std::vector<Mesh> given_;  // the user's meshes of the blocks
  StageMeshes meshes_;
  bool expanded_ = false;
};

class DecidePass : public PassWrapper<DecidePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DecidePass)
  DecidePass(const ir::OperatorRegistry& registry, std::string given) : registry_(registry), given_(std::move(given)) {}

  StringRef getArgument() const override { return "weft-decide"; }
  StringRef getDescription() const override { return "Write the decisions record of @step"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string text = given_;
    if (text.empty()) {
      Decider decider(module, registry_);
      if (failed(decider.run())) {
        return signalPassFailure();
      }
      text = printDecisions(decider.record());
    } else if (failed(applyGiven(module))) {
      return signalPassFailure();
    }
    module->setAttr(kDecisionsAttr, StringAttr::get(&getContext(), text));
  }

 private:
  // A given record also says which operators were expanded and hoisted: they must be again.
  LogicalResult applyGiven(ModuleOp module) {
    absl::StatusOr<Decisions> record = parseDecisions(given_);
    if (!record.ok()) {
      return module.emitError(std::string(record.status().message()));
    }
    func::FuncOp step = stepFunction(module);
    for (const Rewrite& rewrite : record->rewrites) {
      const LogicalResult done = rewrite.kind == Rewrite::kExpand ? expandOperator(step, rewrite.id, registry_)
                                                                  : hoistToPrologue(step, rewrite);
      if (failed(done)) {
        return failure();
      }
    }
    eraseUnused(step);
    return success();
  }

  const ir::OperatorRegistry& registry_;
  std::string given_;
};

}  // namespace

std::unique_ptr<Pass> createDecidePass(const ir::OperatorRegistry& registry, std::string given) {
  return std::make_unique<DecidePass>(registry, std::move(given));
}

}  // namespace weft
