#include "planner/derive/derive.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/derive/even_pads.h"
#include "planner/derive/gathers.h"
#include "planner/derive/notes.h"
#include "planner/derive/propagation.h"
#include "planner/derive/recompute_scopes.h"
#include "planner/derive/reduction_groups.h"
#include "planner/derive/settle_conflicts.h"
#include "planner/derive/strategies.h"
#include "planner/derive/zero.h"
#include "planner/graph/rewrites.h"
#include "planner/graph/sums.h"
#include "planner/stage_table.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

class Deriver {
 public:
  Deriver(ProgramGraph& graph, const CompileOptions& request, const OpenChoices& choices)
      : graph_(graph), request_(request), choices_(choices), layouts_(graph, request.layouts) {}

  absl::StatusOr<Derivation> run() {
    WEFT_ASSIGN_OR_RETURN(record_.mesh, meshOf(request_));
    WEFT_ASSIGN_OR_RETURN(machine_, machineOf(request_));
    if (!request_.stageMeshes.empty()) {
      WEFT_ASSIGN_OR_RETURN(given_, parseStageMeshes(request_.stageMeshes, record_.mesh.microBatches()));
    }
    record_.zero = commonZeroLevel();
    record_.overlap = request_.overlap && machine_.queues > 1;
    record_.gatherBucket = request_.gatherBucket;
    record_.offload = request_.offload == Offload::kState ? Offload::kState : Offload::kNone;
    eraseUnused(graph_);
    WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> expansions, mustBeExpanded());
    for (;;) {
      WEFT_RETURN_IF_ERROR(expand(expansions));
      WEFT_ASSIGN_OR_RETURN(expansions, round());
      if (expansions.empty()) {
        return Derivation{std::move(record_), std::move(evenPads_), std::move(gathers_), hadChoice_};
      }
    }
  }

 private:
  // That of all parameters, else of those that no pattern of the request matches.
  int64_t commonZeroLevel() const {
    std::set<int64_t> levels;
    for (const GraphArgument& argument : graph_.arguments) {
      if (argument.kind == ArgumentKind::kParameter) {
        levels.insert(zeroLevelOf(request_.zeroOf, argument.name, request_.zeroLevel()));
      }
    }
    return levels.size() == 1 ? *levels.begin() : request_.zeroLevel();
  }

  // The operators that exist only to be expanded, in program order: those that read others are written with what these
  // have become.
  absl::StatusOr<std::vector<int64_t>> mustBeExpanded() const {
    std::vector<int64_t> ids;
    for (const GraphOperator& op : graph_.operators) {
      if (!op.facts.mustExpand) {
        continue;
      }
      if (op.alternatives.empty()) {
        return errorAt(op.line, absl::StrCat(op.label(), " (", op.facts.kind,
                                             ") exists only to be expanded, and has no expansion in this program; "
                                             "register one"));
      }
      ids.push_back(op.id);
    }
    return ids;
  }

  absl::Status expand(const std::vector<int64_t>& ids) {
    for (const int64_t id : ids) {
      const auto replaced = std::find_if(graph_.operators.begin(), graph_.operators.end(),
                                         [&](const GraphOperator& op) { return op.id == id; });
      record_.rewrites.push_back({Rewrite::kExpand, id, 0, {}, replaced->facts.kind});
      WEFT_RETURN_IF_ERROR(takeAlternative(graph_, id));
    }
    eraseUnused(graph_);
    return absl::OkStatus();
  }

  // One round: the operators whose alternative is to be taken, or none and the record is written.
  absl::StatusOr<std::vector<int64_t>> round() {
    Placement placement;
    WEFT_ASSIGN_OR_RETURN(MicroBatchAnalysis microBatches, settleMicroBatches(placement));
    const GraphView view(graph_);
    WEFT_ASSIGN_OR_RETURN(StoredShapes stored, storedShapes(view, placement));
    const SettledGraph settled{view,
                               std::move(placement),
                               std::move(microBatches),
                               std::move(stored),
                               zeroLevels(graph_, request_),
                               request_.regather};
    WEFT_ASSIGN_OR_RETURN(Shardings shardings, openShardings(settled));
    Propagation propagation(settled, shardings);
    const auto spread = [&](Phase phase) {
      propagation.run(phase);
      return shardings.expansions.empty();
    };
    for (std::optional<int64_t> priority = 0; priority;) {
      WEFT_ASSIGN_OR_RETURN(priority, readUserWords(settled, layouts_, *priority, shardings));
      if (!spread(Phase::kForward)) {
        return shardings.expansions;
      }
    }
    seedBatches(settled, request_.fill, shardings);
    if (!spread(Phase::kForward)) {
      return shardings.expansions;
    }
    propagation.hearParameters();
    if (!spread(Phase::kForward)) {
      return shardings.expansions;
    }
    seedInputs(settled, request_.fill, shardings);
    if (!spread(Phase::kForward)) {
      return shardings.expansions;
    }
    const Candidates candidates =
        request_.mode == Mode::kSemi
            ? candidatesOf(settled, shardings)
            : allCandidatesOf(settled, shardings, Considered{request_.fill, choices_.batchAxes});
    hadChoice_ = hadChoice_ || std::any_of(candidates.of.begin(), candidates.of.end(),
                                           [](const std::vector<FactorAxes>& of) { return of.size() > 1; });
    WEFT_RETURN_IF_ERROR(settleConflicts(
        settled,
        {machine_, choices_.bytePrice, memo(), choices_.slack, choices_.batchAxes, &minimized_, choices_.begin},
        candidates, shardings));
    if (!shardings.expansions.empty()) {
      return shardings.expansions;
    }
    seedInputs(settled, request_.fill, shardings);
    if (choices_.batchAxes) {
      layInputsAsPriced(settled, shardings);
    }
    if (!spread(Phase::kBackward)) {
      return shardings.expansions;
    }
    WEFT_ASSIGN_OR_RETURN(const bool changed, regroup(settled, propagation));
    if (changed) {
      return round();
    }
    closeArguments(settled, shardings);
    WEFT_RETURN_IF_ERROR(alignInputs(settled, shardings));
    WEFT_ASSIGN_OR_RETURN(record_.stripes, countStripes(settled, request_.fill, shardings));
    shardState(settled, shardings);
    propagation.run(Phase::kUpdate);
    closeStates(settled, shardings);
    closeOperators(shardings);
    WEFT_RETURN_IF_ERROR(write(settled, shardings));
    record_.notes = notesOf(settled, shardings, candidates.refused, choices_.pads);
    if (request_.overlap && !record_.overlap) {
      record_.notes.push_back(absl::StrCat("overlap: machine '", machine_.name,
                                           "' has 1 queue, so collectives and kernels take turns; its file may say "
                                           "queues = 2"));
    }
    evenPads_ = evenPads(settled, shardings, paddedFor(candidates.refused));
    return std::vector<int64_t>();
  }

  // What does not divide and may be padded for.
  std::vector<RefusedSplit> paddedFor(std::vector<RefusedSplit> refused) const {
    if (!request_.may(Freedom::kPads)) {
      std::erase_if(refused, [](const RefusedSplit& split) { return !split.isAsked; });
    }
    return refused;
  }

  ReshardMemo& memo() { return choices_.memo != nullptr ? *choices_.memo : memo_; }

  // Where contributions to a gradient that are partial alike are not added to each other first, the order in which they
  // are; each sum is regrouped once. Is any?
  absl::StatusOr<bool> regroup(const SettledGraph& settled, const Propagation& propagation) {
    std::vector<Rewrite> rewrites;
    for (int op = 0; op < settled.view.operators(); ++op) {
      const std::vector<std::vector<unsigned>> groups = reductionGroups(settled, propagation, op);
      if (!groups.empty() && regrouped_.insert(settled.view.op(op).id).second) {
        rewrites.push_back({Rewrite::kRegroup, settled.view.op(op).id, 0, groups});
      }
    }
    for (const Rewrite& rewrite : rewrites) {
      WEFT_RETURN_IF_ERROR(regroupSum(graph_, rewrite));
      record_.rewrites.push_back(rewrite);
    }
    return !rewrites.empty();
  }

  // Moves operands into the prologue until no operator mixes micro-batches.
  absl::StatusOr<MicroBatchAnalysis> settleMicroBatches(Placement& placement) {
    for (;;) {
      const GraphView view(graph_);
      WEFT_ASSIGN_OR_RETURN(Stages stages, assignStages(view, request_.stages));
      if (stages.count != scheduled_) {  // no hoisting and no expansion changes it otherwise
        WEFT_ASSIGN_OR_RETURN(record_.schedule,
                              scheduleFor(request_, choices_.schedule, stages.count, graph_.trains()));
        scheduled_ = stages.count;
      }
      WEFT_RETURN_IF_ERROR(placeSubmeshes());
      placement = {std::move(stages.ofOperator), record_.meshes()};
      WEFT_ASSIGN_OR_RETURN(MicroBatchAnalysis microBatches,
                            analyzeMicroBatches(view, placement.stages, record_.mesh.microBatches()));
      if (microBatches.needed.empty()) {
        return microBatches;
      }
      record_.rewrites.push_back(microBatches.needed.front());
      WEFT_RETURN_IF_ERROR(hoistToPrologue(graph_, microBatches.needed.front()));
      eraseUnused(graph_);
    }
  }

  // One mesh for each submesh; nothing is recorded where all are equal.
  absl::Status placeSubmeshes() {
    const std::vector<int64_t>& submeshes = record_.schedule.submeshes;
    const int64_t count = submeshCount(submeshes);
    if (!given_.empty() && static_cast<int64_t>(given_.size()) != count) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are ", given_.size(), " stage meshes (", printStageMeshes(given_), ") for ", count,
                       " submeshes: ", submeshes.size(), " stages, ", record_.schedule.virtualStages,
                       " on each submesh; give one mesh for each submesh"));
    }
    const bool differ = std::any_of(given_.begin(), given_.end(), [&](const Mesh& m) { return !(m == given_[0]); });
    record_.stageMeshes = differ ? given_ : std::vector<Mesh>();
    record_.mesh = given_.empty() ? record_.mesh : given_[0];
    const int64_t ranks = record_.meshes().ranks();
    if (machine_.devices() > 0 && ranks > machine_.devices()) {
      return absl::InvalidArgumentError(absl::StrCat("the program takes ", ranks, " devices, machine '", machine_.name,
                                                     "' has ", machine_.devices(), " (", nodesText(),
                                                     "); give fewer ranks or more nodes"));
    }
    return absl::OkStatus();
  }

  // "2 nodes of 8", "2 nodes of 8 (fast) and 1 nodes of 4 (slow)"
  std::string nodesText() const {
    const auto nodes = [](const Machine& machine) {
      return absl::StrCat(machine.nodes, " nodes of ", machine.devicesPerNode);
    };
    const auto ofKind = [&](std::string* out, const Machine& kind) {
      absl::StrAppend(out, nodes(kind), " '", kind.name, "'");
    };
    return machine_.kinds.empty() ? nodes(machine_) : absl::StrJoin(machine_.kinds, " and ", ofKind);
  }

  // A batch that is the user's is not padded beforehand.
  int64_t paddingParts(const Mesh& mesh) const {
    return batchIsUsers(graph_, mesh) ? 1 : partsOf(defaultAxes(mesh, request_.fill));
  }

  // Least common multiple over the meshes.
  template <typename PartsOf>
  static int64_t commonParts(const StageMeshes& meshes, const PartsOf& parts) {
    int64_t common = 1;
    for (const Mesh& mesh : meshes.ofSubmesh) {
      common = std::lcm(common, parts(mesh));
    }
    return common;
  }

  absl::StatusOr<StoredShapes> storedShapes(const GraphView& view, const Placement& placement) const {
    // What the batch divides by: parts on each mesh, each cut into the micro-batches.
    const int64_t rows = record_.mesh.microBatches() *
                         commonParts(placement.meshes, [&](const Mesh& mesh) { return paddingParts(mesh); });
    WEFT_ASSIGN_OR_RETURN(PaddedArguments padded, paddedArguments(view, placement, rows, layouts_));
    WEFT_ASSIGN_OR_RETURN(StoredShapes stored, spreadPads(view, padded.stored));
    const auto keepsNamed = [&](const StoredShapes& more) {
      return std::all_of(padded.named.begin(), padded.named.end(), [&](unsigned argument) {
        return more.of(static_cast<int>(argument)) == stored.of(static_cast<int>(argument));
      });
    };
    const auto padMore = [&](unsigned argument, const Shape& shape) {
      const bool isNew = padded.stored.emplace(argument, shape).second;
      absl::StatusOr<StoredShapes> more = spreadPads(view, padded.stored);
      if (isNew && more.ok() && keepsNamed(*more)) {
        stored = *std::move(more);
      } else if (isNew) {
        padded.stored.erase(argument);
      }
    };
    for (const auto& [argument, shape] : strategyPads(view, placement)) {
      padMore(argument, shape);
    }
    for (const auto& [argument, shape] : choices_.pads) {
      padMore(argument, shape);
    }
    if (request_.mostZeroLevel() > 0) {
      const auto shardsOf = [](const Mesh& mesh) { return partsOf(dataParallelAxes(mesh)); };
      const int64_t shards = commonParts(placement.meshes, shardsOf);
      const int64_t others =
          commonParts(placement.meshes, [&](const Mesh& mesh) { return mesh.ranks() / shardsOf(mesh); });
      for (const auto& [argument, shape] : zeroPads(graph_, request_, shards, others, layouts_)) {
        padMore(argument, shape);
      }
    }
    return stored;
  }

  absl::Status write(const SettledGraph& settled, const Shardings& shardings) {
    for (unsigned i = 0; i < graph_.arguments.size(); ++i) {
      const int64_t level = settled.zeroLevelOf(static_cast<int>(i));
      record_.arguments.push_back(decisionOf(settled, shardings, i));
      if (graph_.arguments[i].kind == ArgumentKind::kParameter && level != record_.zero) {
        record_.arguments.back().zero = level;
      }
    }
    gathers_ = parameterGathers(settled, shardings, machine_.of(0, record_.meshes().ranks()));
    chooseGathers(gathers_, record_.mesh.microBatches(), request_.regather ? 0 : choices_.gatherBytes,
                  record_.arguments);
    if (graph_.trains()) {
      WEFT_RETURN_IF_ERROR(checkRecompute(request_.recompute, recomputableNames(settled.view)));
    }
    const std::vector<bool> recomputed = recomputedOps(settled.view, settled.placement.stages, request_.recompute);
    for (int op = 0; op < settled.view.operators(); ++op) {
      record_.operators.push_back(decisionOf(settled, shardings.operators[op], op));
      record_.operators.back().recompute = recomputed[op];
    }
    record_.conflicts = shardings.conflicts;
    if (request_.regather) {
      regather();
    }
    return absl::OkStatus();
  }

  // Whatever is gathered for the forward pass is gathered again for the backward pass.
  void regather() {
    for (ArgumentDecision& argument : record_.arguments) {
      if (argument.gather == GatherPolicy::kNone) {
        argument.gather = GatherPolicy::kEachCall;
      }
    }
    for (OperatorDecision& op : record_.operators) {
      if (op.runsIn == RunsIn::kForward) {
        op.gather = GatherPolicy::kEachCall;
      }
    }
  }

  // Stages after `stage` whose forward pass reads the argument.
  static std::vector<int64_t> laterReaders(const SettledGraph& settled, int argument, int64_t stage) {
    std::set<int64_t> later;
    for (const GraphView::Use& use : settled.view.usesOf(argument)) {
      if (use.op != GraphView::kStep && settled.view.op(use.op).phase == Phase::kForward &&
          settled.placement.stages[use.op] > stage) {
        later.insert(settled.placement.stages[use.op]);
      }
    }
    return {later.begin(), later.end()};
  }

  static ArgumentDecision decisionOf(const SettledGraph& settled, const Shardings& shardings, unsigned index) {
    const GraphArgument& argument = settled.view.graph().arguments[index];
    const StageMeshes& meshes = settled.placement.meshes;
    const int64_t stage = shardings.ownerStages[index];
    const int64_t owner = meshes.number(stage);
    ArgumentDecision decision;
    decision.name = argument.name;
    decision.stage = stage;
    if (argument.kind == ArgumentKind::kParameter) {
      decision.laterStages = laterReaders(settled, static_cast<int>(index), stage);
    }
    for (const auto& [number, sharding] : shardings.arguments[index]) {
      Layout layout = *sharding.layout;
      const Shape& stored = settled.stored.of(static_cast<int>(index));
      for (size_t d = 0; d < stored.size(); ++d) {
        layout.setPad(d, stored[d] == argument.type.shape[d] ? 0 : stored[d]);
      }
      if (number == owner) {
        decision.layout = layout;
        decision.origin = sharding.origin;
      } else {
        decision.elsewhere[number] = layout;
      }
    }
    return decision;
  }

  static OperatorDecision decisionOf(const SettledGraph& settled, const OperatorSharding& sharding, int op) {
    const OperatorMicroBatches& microBatches = settled.microBatches.operators[op];
    OperatorDecision decision;
    decision.id = settled.view.op(op).id;
    decision.label = settled.view.op(op).label();
    decision.stage = settled.placement.stages[op];
    decision.runsIn = runsIn(settled.view.op(op), microBatches);
    decision.perMicroBatch = microBatches.perMicroBatch;
    decision.batch = microBatches.batch >= 0 ? sharding.rule.factors()[microBatches.batch].name : "";
    for (size_t f = 0; f < sharding.axes.size(); ++f) {
      if (sharding.axes[f] && !sharding.axes[f]->empty()) {
        decision.axes[sharding.rule.factors()[f].name] = *sharding.axes[f];
      }
    }
    for (const auto& [index, layout] : sharding.wanted) {
      const int value = settled.view.resultOf(op, index);
      decision.results[index] = withPads(layout, settled.view.typeOf(value).shape, settled.stored.of(value));
    }
    decision.origin = sharding.origin;
    return decision;
  }

  ProgramGraph& graph_;
  const CompileOptions& request_;
  const OpenChoices& choices_;
  Machine machine_;
  UserLayouts layouts_;
  Decisions record_;
  std::vector<Mesh> given_;      // the user's meshes of the submeshes
  int64_t scheduled_ = 0;        // the stages that the schedule of the record is for; 0: none yet
  std::set<int64_t> regrouped_;  // the ends of sums
  std::map<unsigned, Shape> evenPads_;
  bool hadChoice_ = false;
  std::vector<ParameterGather> gathers_;
  ReshardMemo memo_;
  EliminationMemo minimized_;  // an alternative changes little of the program
};

}  // namespace

absl::StatusOr<ScheduleDecision> scheduleFor(const CompileOptions& request, const std::optional<ScheduleChoice>& choice,
                                             int64_t stages, bool trains) {
  ScheduleRequest wanted = {request.schedule, request.virtualStages, stages, request.microBatches(),
                            trains,           request.scheduleTable};
  if (choice) {
    wanted.kind = choice->kind;
    wanted.virtualStages = choice->virtualStages;
  } else if (wanted.kind == "auto") {
    wanted.kind = wanted.virtualStages > 1 ? "interleaved" : "1f1b";
  }
  WEFT_ASSIGN_OR_RETURN(ScheduleDecision schedule, decideSchedule(wanted));
  schedule.considered = choice ? choice->considered : "";
  return schedule;
}

absl::StatusOr<Derivation> deriveDecisions(ProgramGraph& graph, const CompileOptions& request,
                                           const OpenChoices& choices) {
  return Deriver(graph, request, choices).run();
}

}  // namespace weft
