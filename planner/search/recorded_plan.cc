#include "planner/search/recorded_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/check_request.h"
#include "planner/cost/step_model.h"
#include "planner/derive/derive.h"
#include "planner/derive/placement.h"
#include "planner/derive/recompute_scopes.h"
#include "planner/derive/zero_words.h"
#include "planner/graph/rewrites.h"
#include "planner/search/cut_stages.h"
#include "planner/search/segment_costs.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

absl::Status ofAnotherProgram(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("from: the record is of another program: ", what,
                                                 "; give a record of this program, or none to begin from"));
}

absl::Status checkArguments(const ProgramGraph& graph, const Decisions& record) {
  for (size_t i = 0; i < std::max(graph.arguments.size(), record.arguments.size()); ++i) {
    const std::string mine = i < graph.arguments.size() ? absl::StrCat("'", graph.arguments[i].name, "'") : "no other";
    const std::string theirs =
        i < record.arguments.size() ? absl::StrCat("'", record.arguments[i].name, "'") : "no other";
    if (mine != theirs) {
      return ofAnotherProgram(absl::StrCat("argument ", i, " is ", theirs, " in the record and ", mine, " here"));
    }
  }
  return absl::OkStatus();
}

absl::Status checkOperators(const ProgramGraph& graph, const Decisions& record) {
  const absl::StatusOr<ProgramGraph> made = withRewrites(graph, record.rewrites);
  if (!made.ok()) {
    return ofAnotherProgram(std::string(made.status().message()));
  }
  const std::map<int64_t, const OperatorDecision*> decided = decisionsById(record);
  for (const GraphOperator& op : made->operators) {
    const auto found = decided.find(op.id);
    if (found == decided.end() || found->second->label != op.label()) {
      return ofAnotherProgram(absl::StrCat(
          "operator ", op.id, " is ",
          found == decided.end() ? "not in the record" : absl::StrCat("'", found->second->label, "' in the record"),
          " and '", op.label(), "' here"));
    }
  }
  return made->operators.size() == decided.size()
             ? absl::OkStatus()
             : ofAnotherProgram(absl::StrCat("it has ", decided.size(), " operators, and there are ",
                                             made->operators.size(), " here"));
}

// The same mesh may be written in several ways.
std::string printed(const std::string& text) {
  const absl::StatusOr<Mesh> mesh = Mesh::parse(text);
  return mesh.ok() ? mesh->print() : text;
}

std::string meshesOf(const CompileOptions& closed) {
  return closed.mesh.empty() ? closed.stageMeshes : printed(closed.mesh);
}

std::string gridText(int64_t submeshes, const std::string& meshes) {
  return absl::StrCat(submeshes > 1 ? absl::StrCat(submeshes, " x ") : "", meshes);
}

// Axes of one name and size.
size_t axesAlike(const Mesh& a, const Mesh& b) {
  return std::count_if(a.axes().begin(), a.axes().end(), [&](const NamedAxis& axis) {
    return std::any_of(b.axes().begin(), b.axes().end(), [&](const NamedAxis& other) {
      return axis.name == other.name && axis.axis.size == other.axis.size;
    });
  });
}

bool haveSame(const OperatorDecision& a, const OperatorDecision& b) {
  return a.axes == b.axes && a.results == b.results;
}

}  // namespace

CompileOptions requestOf(const Decisions& record, const CompileOptions& request, Mode mode) {
  CompileOptions closed = request;
  closed.mode = mode;
  closed.devices = 1;
  closed.mesh = record.stageMeshes.empty() ? record.mesh.ofRanks().print() : "";
  closed.stageMeshes = printStageMeshes(record.stageMeshes);
  closed.micro = record.mesh.microBatches();
  closed.zero = static_cast<int>(record.zero);
  closed.offload = record.offload;
  closed.zeroOf = zeroWords(record);
  closed.maxStages = 0;
  closed.departures = 0;
  closed.without.clear();
  const bool staged = record.schedule.submeshes.size() > 1;
  closed.schedule = staged ? record.schedule.kind : "auto";
  closed.scheduleTable = record.schedule.table;
  closed.virtualStages = staged ? record.schedule.virtualStages : 0;
  closed.regather = std::any_of(record.operators.begin(), record.operators.end(),
                                [](const OperatorDecision& op) { return op.gather == GatherPolicy::kEachCall; });
  closed.gatherBucket = record.gatherBucket;
  closed.from.clear();
  closed.decisions.clear();
  closed.dumpDir.clear();
  return closed;
}

void RecordedPlan::drop(const std::string& what, const std::string& why) {
  notes_.push_back(absl::StrCat(kDropped, what, "; ", why));
}

absl::Status RecordedPlan::read(const BlockProgram& program) {
  WEFT_RETURN_IF_ERROR(checkArguments(program.graph(), record_));
  WEFT_RETURN_IF_ERROR(checkOperators(program.graph(), record_));
  closed_ = requestOf(record_, request_, request_.may(Freedom::kTensorSplits) ? Mode::kLayouts : Mode::kSemi);
  closed_->without = request_.without;
  if (program.isLong()) {
    closed_->without.insert(Freedom::kBatchAxes);  // as of its sketches
  }
  WEFT_RETURN_IF_ERROR(keepMesh(program));
  if (!closed_) {
    return absl::OkStatus();
  }
  keepMicro(program);
  keepZero();
  keepSchedule();
  if (request_.offload != closed_->offload) {
    drop(absl::StrCat("offload ", offloadName(closed_->offload)),
         absl::StrCat("this search asks for ", offloadName(request_.offload)));
    closed_->offload = request_.offload;
  }
  if (request_.overlap != record_.overlap) {
    drop(absl::StrCat(record_.overlap ? "" : "no ", "overlap"), "the request says otherwise");
  }
  const absl::StatusOr<int64_t> limit = memoryLimitOf(request_);
  if (limit.ok() && *limit > 0 && record_.prediction && record_.prediction->most() > *limit) {
    drop("what is recomputed",
         absl::StrCat("it needs ", record_.prediction->most(), " bytes, and the limit is ", *limit));
  }
  return absl::OkStatus();
}

// Of the record, if the request allows it; else of the meshes for as many stages the one that is most alike.
absl::Status RecordedPlan::keepMesh(const BlockProgram& program) {
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<StageGrid> grids,
      stageGrids(program.graph(), request_, program.areStages() ? program.blocks() : 1, program.blocks()));
  const StageMeshes meshes = record_.meshes();
  const std::vector<int64_t>& ofStage = record_.schedule.submeshes;
  const int64_t submeshes = submeshCount(ofStage);
  const std::string mine = meshesOf(*closed_);
  const bool isFree = request_.mesh.empty() && request_.stageMeshes.empty() && request_.may(Freedom::kAxisOrder) &&
                      request_.devices == meshes.ranks() && (meshes.same() || mayHaveUnlikeMeshes(request_));
  const StageGrid* alike = nullptr;
  size_t mostAlike = 0;
  for (const StageGrid& grid : grids) {
    if (grid.submeshes != submeshes || grid.virtualStages != record_.schedule.virtualStages) {
      continue;
    }
    const std::string theirs = grid.mesh.empty() ? request_.stageMeshes : grid.mesh;
    if (isFree || printed(theirs) == mine) {
      closed_->mesh = isFree ? closed_->mesh : grid.mesh;
      return absl::OkStatus();
    }
    const absl::StatusOr<Mesh> mesh = Mesh::parse(grid.mesh);
    const size_t axes = !grid.mesh.empty() && mesh.ok() ? axesAlike(*mesh, meshes.ofStage(0)) : 0;
    if (alike == nullptr || axes > mostAlike) {
      alike = &grid;
      mostAlike = axes;
    }
  }
  isMeshKept_ = false;
  const std::string was = gridText(meshes.same() ? submeshes : 1, mine);
  if (alike == nullptr) {
    drop(was, "the request has no plan with as many stages, so nothing of the record is kept");
    closed_.reset();
    return absl::OkStatus();
  }
  closed_->mesh = alike->mesh;
  closed_->stageMeshes = alike->mesh.empty() ? request_.stageMeshes : "";
  drop(was, absl::StrCat("instead ", gridText(submeshes, meshesOf(*closed_)), ", as the request has it"));
  return absl::OkStatus();
}

// With other meshes the largest number that is no larger.
void RecordedPlan::keepMicro(const BlockProgram& program) {
  const int64_t was = record_.mesh.microBatches();
  int64_t micro = request_.micro.value_or(was);
  if (!request_.micro && !isMeshKept_) {
    micro = microBatchesWithin(program.graph(), request_, batchParts(closed_->mesh, request_.fill), was);
  }
  if (micro != was) {
    drop(absl::StrCat("micro-batches ", was), absl::StrCat("instead ", micro));
  }
  closed_->micro = micro;
}

void RecordedPlan::keepZero() {
  const bool isOpen = request_.zeroLevel() == kFindZero;
  const ZeroPatterns ofRecord = closed_->zeroOf;
  closed_->zero = isOpen ? static_cast<int>(record_.zero) : request_.zeroLevel();
  closed_->zeroOf = request_.zeroOf;
  if (isOpen) {
    closed_->zeroOf.insert(closed_->zeroOf.end(), ofRecord.begin(), ofRecord.end());
  } else {
    closed_->regather = request_.regather;
  }
  closed_->regather = (closed_->regather && request_.may(Freedom::kGathers)) || request_.regather;
  if (request_.gatherBucket > 0 || !request_.may(Freedom::kGathers)) {
    closed_->gatherBucket = request_.gatherBucket;
  }
  const bool isOther =
      std::any_of(record_.arguments.begin(), record_.arguments.end(), [&](const ArgumentDecision& argument) {
        return zeroLevelOf(closed_->zeroOf, argument.name, *closed_->zero) !=
               zeroLevelOf(ofRecord, argument.name, record_.zero);
      });
  if (isOther) {
    drop(absl::StrCat("ZeRO level ", zeroText(record_)),
         absl::StrCat("the request says ", *closed_->zero,
                      request_.zeroOf.empty() ? "" : absl::StrCat(" (", printZeroOf(request_.zeroOf), ")")));
  }
}

void RecordedPlan::keepSchedule() {
  if (record_.schedule.submeshes.size() < 2) {
    return;
  }
  const std::string was = closed_->schedule;
  if (request_.schedule != "auto") {
    closed_->schedule = request_.schedule;
    closed_->scheduleTable = request_.scheduleTable;
  } else {
    const absl::StatusOr<schedule::Kind> kind = schedule::parseKind(was);
    const bool isBarred = !kind.ok() || (!request_.may(Freedom::kZeroBubble) && schedule::cutsBackward(*kind));
    closed_->schedule = isBarred ? "auto" : was;
    closed_->scheduleTable.clear();
  }
  if (closed_->schedule != was) {
    drop(absl::StrCat("schedule ", was), absl::StrCat("the request says ", closed_->schedule));
  }
}

// Does each operator run, and is it recomputed, as the user's words ask for? They are read in the program as the record
// rewrites it: what is derived from words alone knows nothing of the splits that a search chose, which rewrite it, too.
bool RecordedPlan::runsAsAsked(const ProgramGraph& staged) const {
  const absl::StatusOr<ProgramGraph> made = withRewrites(staged, record_.rewrites);
  if (!made.ok()) {
    return false;
  }
  const GraphView view(*made);
  const absl::StatusOr<Stages> stages = assignStages(view, closed_->stages);
  if (!stages.ok()) {
    return false;
  }
  const bool saysRecompute =
      request_.recompute != "auto" || std::any_of(staged.operators.begin(), staged.operators.end(),
                                                  [](const GraphOperator& op) { return op.recomputeScope; });
  const std::vector<bool> recomputed = recomputedOps(view, stages->ofOperator, request_.recompute);
  const std::map<int64_t, const OperatorDecision*> decided = decisionsById(record_);
  for (int op = 0; op < view.operators(); ++op) {
    const OperatorDecision& mine = *decided.at(view.op(op).id);
    if (mine.stage != stages->ofOperator[op] || (saysRecompute && mine.recompute != recomputed[op])) {
      return false;
    }
  }
  return true;
}

// Is the record split as the user's words ask for, where there are any? What is derived from them says so.
bool RecordedPlan::isSplitAsAsked(const ProgramGraph& staged) const {
  const auto isSaid = [](const GraphOperator& op) { return op.strategy || !op.constraint.empty(); };
  const auto maySay = [&](const GraphArgument& argument) {
    return !request_.layouts.empty() || !argument.layout.empty();
  };
  if (std::none_of(staged.operators.begin(), staged.operators.end(), isSaid) &&
      std::none_of(staged.arguments.begin(), staged.arguments.end(), maySay)) {
    return true;
  }
  ProgramGraph copy = staged;
  const absl::StatusOr<Derivation> derived = deriveDecisions(copy, *closed_, {});
  if (!derived.ok()) {
    return false;
  }
  const std::map<int64_t, const OperatorDecision*> ours = decisionsById(record_);
  const std::map<int64_t, const OperatorDecision*> theirs = decisionsById(derived->decisions);
  for (const GraphOperator& op : staged.operators) {
    if (!isSaid(op)) {
      continue;
    }
    const auto mine = ours.find(op.id), other = theirs.find(op.id);
    if (mine == ours.end() || other == theirs.end() || !haveSame(*mine->second, *other->second)) {
      return false;
    }
  }
  for (size_t i = 0; i < record_.arguments.size(); ++i) {
    if (maySay(staged.arguments[i]) && !(record_.arguments[i].layout == derived->decisions.arguments[i].layout)) {
      return false;
    }
  }
  return true;
}

// The record, if the model still says of it what it said when it was made.
absl::StatusOr<Attempt> RecordedPlan::asRecorded(const BlockProgram& program) const {
  WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(request_));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request_));
  WEFT_ASSIGN_OR_RETURN(ProgramGraph made, withRewrites(program.graph(), record_.rewrites));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model,
                        StepModel::create(std::move(made), record_, machine, {}));
  WEFT_ASSIGN_OR_RETURN(Attempt attempt, asItIs(limits, record_, *model));
  const Prediction& now = *attempt.decisions.prediction;
  if (!record_.prediction || record_.prediction->time != now.time || record_.prediction->peakBytes != now.peakBytes) {
    return absl::FailedPreconditionError("the model says something else of the record");
  }
  std::erase_if(attempt.decisions.notes, [](const std::string& note) {
    return note.rfind(kSearchNote, 0) == 0 || note.rfind(kDropped, 0) == 0;
  });
  attempt.decisions.prices.clear();
  return attempt;
}

// With what splits are decided where the program is long: as a sketch of it has it (sketches.h).
std::optional<double> RecordedPlan::bytePrice(const BlockProgram& program) const {
  const absl::StatusOr<int64_t> limit = memoryLimitOf(request_);
  if (!program.isLong() || !limit.ok()) {
    return std::nullopt;
  }
  const bool isShort = *limit > 0 && !record_.recomputeSummary.empty() && request_.may(Freedom::kMemoryPrices);
  return isShort && record_.prediction ? memoryPrice(record_.prediction->time, *limit) : 0;
}

absl::Status RecordedPlan::predict(const BlockProgram& program, const Predict& predict) {
  std::map<int64_t, int64_t> stageOf;
  for (const OperatorDecision& op : record_.operators) {
    stageOf[op.id] = op.stage;
  }
  const auto stages = static_cast<int64_t>(record_.schedule.submeshes.size());
  const bool isEven = !request_.may(Freedom::kUnevenStages) && !program.areStages() && stages > 1;
  ProgramGraph staged = isEven ? program.onStages(evenStages(program.blocks(), stages)) : program.onStagesOf(stageOf);
  // Of splits the record does not say how they were found.
  const bool mayBeWhole =
      notes_.empty() && request_.may(Freedom::kMemoryPrices) && request_.may(Freedom::kTensorSplits);
  if (mayBeWhole && runsAsAsked(staged) && isSplitAsAsked(staged)) {
    absl::StatusOr<Attempt> recorded = asRecorded(program);
    isWhole_ = recorded.ok() && recorded->fits;
    if (isWhole_) {
      plan_ = {*closed_, std::make_shared<const ProgramGraph>(std::move(staged)), *std::move(recorded)};
      return absl::OkStatus();
    }
  }
  const std::optional<double> price = bytePrice(program);
  WEFT_ASSIGN_OR_RETURN(Attempt made, predict(staged, *closed_, price, kAnyTime));
  plan_ = {*closed_, std::make_shared<const ProgramGraph>(std::move(staged)), std::move(made), price};
  return absl::OkStatus();
}

}  // namespace weft
