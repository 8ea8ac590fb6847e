// Writes the decisions record: the user's words, propagation, defaults, ZeRO.

#include <numeric>

#include "ir/dist/dist.h"
#include "ir/layout/stage_mesh_text.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/decide/assign_stages.h"
#include "passes/decide/expand.h"
#include "passes/decide/gathers.h"
#include "passes/decide/passes.h"
#include "passes/decide/propagate.h"
#include "passes/decide/recompute_scopes.h"
#include "passes/logical/request_attributes.h"
#include "planner/check_request.h"
#include "planner/decisions.h"
#include "planner/stage_table.h"

namespace weft {

#define GEN_PASS_DEF_DECIDEPASS
#include "passes/generated/passes.h.inc"

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
  Decider(ModuleOp module, const ir::OperatorRegistry& registry, const CompileOptions& request,
          const DecideOptions& options)
      : module_(module), registry_(registry), request_(request), options_(options) {}

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
    layouts_.emplace(step_, request_.layouts);
    record_.zero = request_.zero;
    record_.regather = request_.regather;
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
  // The meshes the user gave the submeshes; which submesh has which stages is known after the schedule.
  LogicalResult readStageMeshes() {
    auto text = module_->getAttrOfType<StringAttr>(kStageMeshesAttr);
    if (!text) {
      return success();
    }
    absl::StatusOr<std::vector<Mesh>> given = parseStageMeshes(text.getValue().str(), record_.mesh.microBatches());
    if (!given.ok()) {
      return module_.emitError(std::string(given.status().message()));
    }
    given_ = *std::move(given);
    return success();
  }

  // One mesh for each submesh; nothing is recorded where all are equal.
  LogicalResult placeStages() {
    const int64_t count = *llvm::max_element(record_.schedule.submeshes) + 1;
    if (!given_.empty() && static_cast<int64_t>(given_.size()) != count) {
      return module_.emitError() << "there are " << given_.size() << " stage meshes (" << printStageMeshes(given_)
                                 << ") for " << count << " submeshes: " << record_.schedule.submeshes.size()
                                 << " stages, " << record_.schedule.virtualStages
                                 << " on each submesh; give one mesh for each submesh";
    }
    const bool differ = llvm::any_of(given_, [&](const Mesh& mesh) { return !(mesh == given_[0]); });
    record_.stageMeshes = differ ? given_ : std::vector<Mesh>();
    record_.mesh = given_.empty() ? record_.mesh : given_[0];
    meshes_ = record_.meshes();
    return success();
  }

  // Data axes the batch takes by default; none where the user asked for replication.
  std::vector<Axis> defaultAxes(const Mesh& mesh) const {
    return request_.fill == Fill::kReplicate ? std::vector<Axis>() : dataParallelAxes(mesh);
  }

  // With splits written by numbers on an unnamed mesh the batch is the user's; it is not padded beforehand.
  int64_t paddingParts(const Mesh& mesh) const {
    bool strategies = false;
    step_->walk([&](Operation* op) { strategies |= op->hasAttr(kStrategyAttr); });
    return strategies && mesh.axes().empty() ? 1 : partsOf(defaultAxes(mesh));
  }

  // What the batch divides by: parts on each mesh, each cut into the micro-batches.
  int64_t paddedRows() const {
    int64_t parts = 1;
    for (const Mesh& mesh : meshes_.ofSubmesh) {
      parts = std::lcm(parts, paddingParts(mesh));
    }
    return parts * record_.mesh.microBatches();
  }

  LogicalResult round() {
    FailureOr<MicroBatchAnalysis> microBatches = settleMicroBatches();
    if (failed(microBatches)) {
      return failure();
    }
    FailureOr<StoredShapes> stored = storedShapes();
    if (failed(stored)) {
      return failure();
    }
    Propagation propagation(step_, meshes_, registry_, *microBatches, *stored);
    if (failed(propagation.readUser(*layouts_))) {
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
    if (failed(alignInputs(propagation, *microBatches, *stored)) ||
        failed(countStripes(propagation, *microBatches, *stored))) {
      return failure();
    }
    shardState(propagation, *stored);
    propagation.runUpdate();
    propagation.closeOperators();
    eraseUnused(step_);
    return write(propagation, *microBatches, *stored);
  }

  FailureOr<StoredShapes> storedShapes() {
    FailureOr<llvm::DenseMap<unsigned, Shape>> padded = paddedArguments(step_, meshes_, paddedRows(), *layouts_);
    if (failed(padded)) {
      return failure();
    }
    FailureOr<StoredShapes> stored = spreadPads(step_, *padded);
    if (failed(stored) || record_.zero == 0) {
      return stored;
    }
    for (const auto& [argument, shape] : zeroPads(step_, dataParts(), *layouts_)) {
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
    for (const Mesh& mesh : meshes_.ofSubmesh) {
      parts = std::lcm(parts, partsOf(dataParallelAxes(mesh)));
    }
    return parts;
  }

  LogicalResult chooseSchedule(int64_t stages) {
    ScheduleRequest request = {request_.schedule, request_.virtualStages, stages, record_.mesh.microBatches(),
                               trains(),          request_.scheduleTable};
    if (options_.schedule) {
      request.kind = options_.schedule->kind;
      request.virtualStages = options_.schedule->virtualStages;
    } else if (request.kind == "auto") {
      // Nobody searched: a forward program, one stage, or this pass alone.
      request.kind = request.virtualStages > 1 ? "interleaved" : "1f1b";
    }
    absl::StatusOr<ScheduleDecision> schedule = decideSchedule(request);
    if (!schedule.ok()) {
      return module_.emitError(std::string(schedule.status().message()));
    }
    record_.schedule = *std::move(schedule);
    record_.schedule.considered = options_.schedule ? options_.schedule->considered : "";
    return success();
  }

  FailureOr<MicroBatchAnalysis> settleMicroBatches() {
    for (;;) {
      // Rewrites make operators that have no stage yet.
      FailureOr<int64_t> stages = assignStages(step_);
      if (failed(stages) || failed(chooseSchedule(*stages)) || failed(placeStages())) {
        return failure();
      }
      FailureOr<MicroBatchAnalysis> microBatches = analyzeMicroBatches(step_, record_.mesh.microBatches());
      if (failed(microBatches) || microBatches->needed.empty()) {
        return microBatches;
      }
      record_.rewrites.push_back(microBatches->needed.front());
      if (failed(hoistToPrologue(step_, microBatches->needed.front()))) {
        return failure();
      }
    }
  }

  // Calls visit(argument, dimension of the batch) for each input that is cut into micro-batches and lies on the mesh.
  template <typename Visit>
  LogicalResult eachInput(const Propagation& propagation, const MicroBatchAnalysis& microBatches, int64_t mesh,
                          Visit visit) {
    for (const Argument& argument : argumentsOf(step_)) {
      const auto dim = microBatches.batchDim.find(step_.getArgument(argument.index));
      if (argument.kind == "input" && dim != microBatches.batchDim.end() && record_.mesh.microBatches() > 1 &&
          llvm::is_contained(propagation.meshesOf(argument.index), mesh) && failed(visit(argument, dim->second))) {
        return failure();
      }
    }
    return success();
  }

  // Micro-batch p of every input must be the same rows, and micro-batches are cut inside a rank's rows: on one mesh all
  // inputs' batches are split over the axes that all begin with. What an operator splits further is a slice inside the
  // micro-batch.
  LogicalResult alignInputs(Propagation& propagation, const MicroBatchAnalysis& microBatches,
                            const StoredShapes& stored) {
    for (size_t mesh = 0; mesh < meshes_.ofSubmesh.size(); ++mesh) {
      if (failed(alignInputsOn(static_cast<int64_t>(mesh), propagation, microBatches, stored))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult alignInputsOn(int64_t number, Propagation& propagation, const MicroBatchAnalysis& microBatches,
                              const StoredShapes& stored) {
    const Mesh& mesh = meshes_.withNumber(number);
    std::optional<std::vector<Axis>> common;
    (void)eachInput(propagation, microBatches, number, [&](const Argument& argument, int dim) {
      const std::vector<Axis>& axes = propagation.argument(argument.index, number)->dim(dim);
      common = common ? commonPrefix(*common, axes) : axes;
      return success();
    });
    return eachInput(propagation, microBatches, number, [&](const Argument& argument, int dim) -> LogicalResult {
      Layout& layout = *propagation.argument(argument.index, number);
      if (layout.dim(dim) == *common) {
        return success();
      }
      std::string& origin = propagation.argumentOrigin(argument.index, number);
      if (origin == "user" || stored.padded(step_.getArgument(argument.index))) {
        return emitError(step_.getArgument(argument.index).getLoc())
               << "with " << mesh.microBatches() << " micro-batches the inputs' batch must be split alike: '"
               << argument.name << "' as " << layout.print(mesh) << ", another input only over "
               << Layout({*common}).print(mesh) << "; give all the same layout";
      }
      layout.setDim(dim, *common);
      origin += "; batch split as that of the other inputs, for the micro-batches";
      return success();
    });
  }

  // Where meshes differ, the batch is stripes, in each of which the micro-batches are cut: so many that every input's
  // part and every mesh's data-parallel part is whole stripes.
  LogicalResult countStripes(Propagation& propagation, const MicroBatchAnalysis& microBatches,
                             const StoredShapes& stored) {
    if (meshes_.same()) {
      return success();
    }
    record_.stripes = 1;
    for (size_t mesh = 0; mesh < meshes_.ofSubmesh.size(); ++mesh) {
      const auto number = static_cast<int64_t>(mesh);
      record_.stripes = std::lcm(record_.stripes, partsOf(defaultAxes(meshes_.withNumber(number))));
      (void)eachInput(propagation, microBatches, number, [&](const Argument& argument, int dim) {
        record_.stripes = std::lcm(record_.stripes, propagation.argument(argument.index, number)->parts(dim));
        return success();
      });
    }
    for (size_t mesh = 0; mesh < meshes_.ofSubmesh.size(); ++mesh) {
      const auto number = static_cast<int64_t>(mesh);
      if (failed(eachInput(propagation, microBatches, number,
                           [&](const Argument& argument, int dim) { return checkRows(argument, dim, stored); }))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult checkRows(const Argument& argument, int dim, const StoredShapes& stored) {
    const int64_t cuts = record_.stripes * record_.mesh.microBatches();
    const int64_t rows = stored.of(step_.getArgument(argument.index))[dim];
    if (rows % cuts == 0) {
      return success();
    }
    return emitError(step_.getArgument(argument.index).getLoc())
           << "the batch of '" << argument.name << "' has " << rows << " rows, but the stage meshes "
           << printStageMeshes(record_.stageMeshes) << " and " << record_.mesh.microBatches()
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

  // The state's layout is that on the mesh of the parameter's owner stage; with ZeRO-3 the parameter is split on every
  // mesh.
  void shardState(Propagation& propagation, const StoredShapes& stored) {
    std::map<std::string, Layout> layouts;
    for (const Argument& argument : argumentsOf(step_)) {
      const int64_t owner = meshes_.number(propagation.ownerStage(argument.index));
      for (const int64_t number : propagation.meshesOf(argument.index)) {
        if (argument.kind != "parameter") {
          continue;
        }
        std::optional<Layout>& base = propagation.argument(argument.index, number);
        const Shape& shape = stored.of(step_.getArgument(argument.index));
        const Layout layout = stateLayout(*base, shape, meshes_.withNumber(number));
        if (number == owner) {
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
    const absl::Status known =
        trains() ? checkRecompute(request_.recompute, recomputableNames(step_)) : absl::OkStatus();
    if (!known.ok()) {
      return module_.emitError(std::string(known.message()));
    }
    const std::vector<std::string> patterns = recomputePatterns(request_.recompute);
    size_t next = 0;
    for (Operation& op : step_.getBody().front().without_terminator()) {
      record_.operators[next++].recompute = isRecomputed(&op, patterns);
    }
    return success();
  }

  LogicalResult write(Propagation& propagation, const MicroBatchAnalysis& microBatches, const StoredShapes& stored) {
    for (const Argument& argument : argumentsOf(step_)) {
      const int64_t stage = propagation.ownerStage(argument.index);
      const int64_t owner = meshes_.number(stage);
      const auto layoutOn = [&](int64_t number) {
        Layout layout = *propagation.argument(argument.index, number);
        const Shape logical = ir::shapeOf(step_.getArgument(argument.index));
        const Shape& shape = stored.of(step_.getArgument(argument.index));
        for (size_t d = 0; d < shape.size(); ++d) {
          layout.setPad(d, shape[d] == logical[d] ? 0 : shape[d]);
        }
        return layout;
      };
      ArgumentDecision decision = {argument.name, layoutOn(owner), "",
                                   propagation.argumentOrigin(argument.index, owner)};
      decision.stage = meshes_.same() ? 0 : stage;
      for (const int64_t number : propagation.meshesOf(argument.index)) {
        if (number != owner) {
          decision.elsewhere[number] = layoutOn(number);
        }
      }
      record_.arguments.push_back(std::move(decision));
    }
    const int64_t budget = record_.regather ? 0 : options_.gatherBytes;
    chooseGathers(parameterGathers(step_, propagation, meshes_, stored), record_.mesh.microBatches(), budget,
                  record_.arguments);
    for (Operation& op : step_.getBody().front().without_terminator()) {
      record_.operators.push_back(decisionOf(&op, propagation.of(&op), microBatches.operators.find(&op)->second));
    }
    record_.conflicts = propagation.conflicts();
    return markRecomputed();
  }

  static OperatorDecision decisionOf(Operation* op, const OperatorSharding& sharding,
                                     const OperatorMicroBatches& microBatches) {
    OperatorDecision decision;
    decision.id = idOf(op);
    decision.label = labelOf(op);
    decision.stage = stageOf(op);
    decision.runsIn = runsIn(op, microBatches);
    decision.perMicroBatch = microBatches.perMicroBatch;
    decision.batch = microBatches.batch >= 0 ? sharding.rule->factors()[microBatches.batch].name : "";
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
  const CompileOptions& request_;
  const DecideOptions& options_;
  func::FuncOp step_;
  std::optional<UserLayouts> layouts_;
  Decisions record_;
  std::vector<Mesh> given_;  // the user's meshes of the submeshes
  ModuleMeshes meshes_;
  bool expanded_ = false;
};

class DecidePass : public impl::DecidePassBase<DecidePass> {
 public:
  DecidePass(const ir::OperatorRegistry& registry, DecideOptions options)
      : registry_(registry), options_(std::move(options)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string text = options_.record;
    if (text.empty()) {
      const FailureOr<Request> request = readRequest(module);
      if (failed(request)) {
        return signalPassFailure();
      }
      Decider decider(module, registry_, request->options, options_);
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
    absl::StatusOr<Decisions> record = parseDecisions(options_.record);
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

  ir::OperatorRegistry registry_;
  DecideOptions options_;
};

}  // namespace

std::unique_ptr<Pass> createDecidePass(const ir::OperatorRegistry& registry, DecideOptions options) {
  return std::make_unique<DecidePass>(registry, std::move(options));
}

}  // namespace weft
