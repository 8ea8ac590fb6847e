#include "planner/explain/prices.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/check_request.h"
#include "planner/explain/plan_summary.h"
#include "planner/open_mesh.h"
#include "planner/schedule/generate.h"
#include "planner/search/user_words.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;
// Counts of devices that are tried one after another until one has a plan.
constexpr int64_t kMostDeviceCounts = 8;
// Of what the user says.
constexpr size_t kMostPricedWords = 24;

// The plan whose prices are asked for, and the planner that is asked about others.
class Asker {
 public:
  Asker(const GraphFor& graphs, const CompileOptions& request, const ClosedRequest& plan, SearchMemory& memory)
      : memory_(memory), graphs_(graphs), request_(request), plan_(plan), record_(plan.attempt.decisions) {}

  const GraphFor& graphs() const { return graphs_; }
  const CompileOptions& request() const { return request_; }
  const ClosedRequest& plan() const { return plan_; }
  const Decisions& record() const { return record_; }
  int64_t asked() const { return asked_; }
  bool isStaged() const { return record_.schedule.submeshes.size() > 1; }

  PricedPlan lineOf(const std::string& what, std::string chosen, std::string other, const Attempt& attempt) const {
    PricedPlan line = pricedBeside(inSeconds(plan_.attempt.time), what, attempt);
    line.chosen = std::move(chosen);
    line.other = std::move(other);
    return line;
  }

  // What the plan's request comes to with one thing changed. Of a long program under the plan's price of memory, and no
  // recomputation is looked for that takes as long as `best`, another answer: all prices of memory take long.
  absl::StatusOr<Attempt> predict(const CompileOptions& changed, const Attempt* best) {
    ++asked_;
    WEFT_RETURN_IF_ERROR(checkRequest(Request{changed, std::nullopt}));
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, onStages(changed.microBatches()));
    const bool isBounded = plan_.bytePrice && best != nullptr && best->fits;
    return predictProgram(*graph, changed, {}, &memo_, plan_.bytePrice, isBounded ? best->time : kAnyTime);
  }

  // The open request with one thing changed: the best plan of it.
  std::optional<ClosedRequest> search(const CompileOptions& changed) { return search(graphs_, changed); }
  std::optional<ClosedRequest> search(const GraphFor& graphs, const CompileOptions& changed) {
    ++asked_;
    if (!checkRequest(Request{changed, std::nullopt}).ok()) {
      return std::nullopt;
    }
    absl::StatusOr<ClosedRequest> closed = closeRequest(graphs, changed, {}, &memory_);
    return closed.ok() ? std::optional<ClosedRequest>(*std::move(closed)) : std::nullopt;
  }

 private:
  // The program on the stages of the plan, for another number of micro-batches.
  absl::StatusOr<std::shared_ptr<const ProgramGraph>> onStages(int64_t microBatches) const {
    if (microBatches == record_.mesh.microBatches()) {
      return plan_.graph;
    }
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, graphs_(microBatches));
    if (graph->operators.size() != plan_.graph->operators.size()) {
      return absl::FailedPreconditionError("other operators");
    }
    auto staged = std::make_shared<ProgramGraph>(*graph);
    for (size_t op = 0; op < staged->operators.size(); ++op) {
      staged->operators[op].userStage = plan_.graph->operators[op].userStage;
    }
    return std::shared_ptr<const ProgramGraph>(std::move(staged));
  }

  SearchMemory& memory_;
  const GraphFor& graphs_;
  const CompileOptions& request_;
  const ClosedRequest& plan_;
  const Decisions& record_;
  PlanningMemo memo_;  // of the machine of the plan
  int64_t asked_ = 0;
};

// Keeps the best of the alternatives to one decision.
class RunnerUp {
 public:
  void offer(std::string other, Attempt attempt) {
    if (!best_ || isBetter(attempt, best_->second)) {
      best_.emplace(std::move(other), std::move(attempt));
    }
  }
  const std::optional<std::pair<std::string, Attempt>>& best() const { return best_; }

 private:
  std::optional<std::pair<std::string, Attempt>> best_;
};

// The next best answer to each decision.
class RunnerUps {
 public:
  explicit RunnerUps(Asker& ask) : ask_(ask), request_(ask.request()), plan_(ask.plan()), record_(ask.record()) {}

  std::vector<PricedPlan> run() && {
    priceMesh();
    priceStages();
    priceVirtualStages();
    priceMicro();
    priceOverlap();
    priceOffload();
    priceGatherBucket();
    priceZero();
    priceSchedule();
    priceRecompute();
    return std::move(lines_);
  }

 private:
  void offer(const std::string& other, const CompileOptions& changed, RunnerUp& runnerUp) {
    absl::StatusOr<Attempt> attempt = ask_.predict(changed, runnerUp.best() ? &runnerUp.best()->second : nullptr);
    if (attempt.ok()) {
      runnerUp.offer(other, *std::move(attempt));
    }
  }

  void add(const std::string& what, const std::string& chosen, const RunnerUp& runnerUp) {
    if (runnerUp.best()) {
      lines_.push_back(ask_.lineOf(what, chosen, runnerUp.best()->first, runnerUp.best()->second));
    }
  }

  // Other sizes of the same axes.
  void priceMesh() {
    const CompileOptions& closed = plan_.request;
    if (closed.mesh.empty() || record_.mesh.ranks() == 1) {
      return;
    }
    const Mesh mesh = record_.mesh.ofRanks();
    std::string open;
    for (const NamedAxis& axis : mesh.axes()) {
      absl::StrAppend(&open, open.empty() ? "" : ",", axis.name, "=?");
    }
    const absl::StatusOr<std::vector<std::string>> meshes = closedMeshes(open, mesh.ranks());
    RunnerUp runnerUp;
    for (const std::string& other : meshes.ok() ? *meshes : std::vector<std::string>()) {
      const absl::StatusOr<Mesh> parsed = Mesh::parse(other);
      if (parsed.ok() && !(*parsed == mesh)) {
        CompileOptions changed = closed;
        changed.mesh = other;
        offer(other, changed, runnerUp);
      }
    }
    add("mesh", mesh.print(), runnerUp);
  }

  // Fewer of them; as many as the plan has submeshes, on more or fewer ranks, is for the mesh.
  void priceStages() {
    const auto stages = static_cast<int64_t>(record_.schedule.submeshes.size());
    if (request_.mode != Mode::kAuto || !ask_.isStaged()) {
      return;
    }
    CompileOptions changed = request_;
    changed.maxStages = stages - 1;
    RunnerUp runnerUp;
    if (std::optional<ClosedRequest> fewer = ask_.search(changed)) {
      const auto count = static_cast<int64_t>(fewer->attempt.decisions.schedule.submeshes.size());
      if (count < stages) {
        runnerUp.offer(planText(fewer->attempt.decisions), std::move(fewer->attempt));
      }
    }
    add("stages", absl::StrCat(stages), runnerUp);
  }

  // One, or two as the search considers them; all else but the cut as it is.
  void priceVirtualStages() {
    const int64_t each = record_.schedule.virtualStages;
    if (request_.mode != Mode::kAuto || !ask_.isStaged() || !record_.stageMeshes.empty()) {
      return;
    }
    CompileOptions changed = request_;
    changed.mesh = plan_.request.mesh;
    changed.devices = record_.meshes().ranks();
    changed.micro = record_.mesh.microBatches();
    changed.zero = plan_.request.zero;
    changed.zeroOf = plan_.request.zeroOf;
    changed.regather = plan_.request.regather;
    changed.virtualStages = each == 1 ? 2 : 1;
    RunnerUp runnerUp;
    if (std::optional<ClosedRequest> other = ask_.search(changed)) {
      runnerUp.offer(planText(other->attempt.decisions), std::move(other->attempt));
    }
    add("stages on each submesh", absl::StrCat(each), runnerUp);
  }

  void priceOverlap() {
    if (record_.overlap) {
      CompileOptions changed = plan_.request;
      changed.overlap = false;
      RunnerUp runnerUp;
      offer("none", changed, runnerUp);
      add("overlap", "of communication with computation", runnerUp);
    }
  }

  void priceOffload() {
    if (request_.offload != Offload::kNone) {
      CompileOptions changed = plan_.request;
      changed.offload = record_.offload == Offload::kNone ? Offload::kState : Offload::kNone;
      RunnerUp runnerUp;
      offer(offloadName(changed.offload), changed, runnerUp);
      add("offload", offloadName(record_.offload), runnerUp);
    }
  }

  void priceGatherBucket() {
    if (record_.gatherBucket > 0) {
      CompileOptions changed = plan_.request;
      changed.gatherBucket = 0;
      RunnerUp runnerUp;
      offer("the largest parameter", changed, runnerUp);
      add("bucket of gathers", absl::StrCat(record_.gatherBucket, " bytes"), runnerUp);
    }
  }

  void priceMicro() {
    RunnerUp runnerUp;
    const int64_t micro = record_.mesh.microBatches();
    for (const int64_t other : {micro / 2, micro * 2}) {
      CompileOptions changed = plan_.request;
      changed.micro = other;
      if (other > 0 && (other > micro || micro % 2 == 0)) {
        offer(absl::StrCat(other), changed, runnerUp);
      }
    }
    add("micro-batches", absl::StrCat(micro), runnerUp);
  }

  void priceZero() {
    if (!plan_.graph->trains()) {
      return;
    }
    const auto textOf = [](const CompileOptions& options) {
      return absl::StrCat(options.zeroLevel(),
                          options.zeroOf.empty() ? "" : absl::StrCat(" with ", printZeroOf(options.zeroOf)),
                          options.regather ? " with gathers in each call" : "");
    };
    CompileOptions open = plan_.request;
    open.zero = kFindZero;
    open.zeroOf = request_.zeroOf;
    open.regather = false;
    RunnerUp runnerUp;
    for (const CompileOptions& changed : withZero(open, true)) {
      if (changed.zero != plan_.request.zero || changed.zeroOf != plan_.request.zeroOf ||
          changed.regather != plan_.request.regather) {
        offer(textOf(changed), changed, runnerUp);
      }
    }
    add("ZeRO level", textOf(plan_.request), runnerUp);
  }

  // Of the kinds that put as many stages on each submesh.
  void priceSchedule() {
    if (!ask_.isStaged() || !plan_.graph->trains()) {
      return;
    }
    RunnerUp runnerUp;
    for (const schedule::Kind kind : schedule::allKinds()) {
      CompileOptions changed = plan_.request;
      changed.schedule = schedule::kindName(kind);
      changed.virtualStages = record_.schedule.virtualStages;
      if (changed.schedule != record_.schedule.kind && executableKind(changed.schedule).ok()) {
        offer(changed.schedule, changed, runnerUp);
      }
    }
    add("schedule", record_.schedule.kind, runnerUp);
  }

  void priceRecompute() {
    if (!plan_.graph->trains()) {
      return;
    }
    const std::string chosen = summaryOf(record_, {}).recompute;
    RunnerUp runnerUp;
    for (const std::string other : {"none", "full"}) {
      CompileOptions changed = plan_.request;
      changed.recompute = other;
      if (other != chosen) {
        offer(other, changed, runnerUp);
      }
    }
    add("recomputation", chosen, runnerUp);
  }

  Asker& ask_;
  const CompileOptions& request_;
  const ClosedRequest& plan_;
  const Decisions& record_;
  std::vector<PricedPlan> lines_;
};

// What each of the user's words costs.
std::vector<PricedPlan> pinsOf(Asker& ask) {
  std::vector<PricedPlan> lines;
  const int64_t ranks = ask.record().meshes().ranks();
  const PlanQuestion open = openQuestion({ask.graphs(), ask.request()}, ranks);
  const absl::StatusOr<std::shared_ptr<const ProgramGraph>> graph = ask.graphs()(ask.record().mesh.microBatches());
  const std::vector<UserWord> words = graph.ok() ? userWords(open.request, **graph, ranks) : std::vector<UserWord>();
  for (size_t i = 0; i < std::min(words.size(), kMostPricedWords); ++i) {
    const PlanQuestion changed = without({words[i]}, open);
    if (const std::optional<ClosedRequest> found = ask.search(changed.graphs, changed.request)) {
      lines.push_back(ask.lineOf(words[i].text, "", planText(found->attempt.decisions), found->attempt));
    }
  }
  return lines;
}

// What a little more of what is scarce would bring.
absl::StatusOr<std::vector<PricedPlan>> marginsOf(Asker& ask) {
  const CompileOptions& request = ask.request();
  std::vector<PricedPlan> lines;
  const auto addMargin = [&](const std::string& what, const CompileOptions& changed) {
    if (const std::optional<ClosedRequest> found = ask.search(changed)) {
      lines.push_back(ask.lineOf(what, "", planText(found->attempt.decisions), found->attempt));
    }
  };
  WEFT_ASSIGN_OR_RETURN(const int64_t limit, memoryLimitOf(request));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  if (limit > 0) {
    CompileOptions changed = request;
    const int64_t asked = machine.kinds.empty() ? limit : request.memoryLimit;
    changed.memoryLimit = asked > 0 ? asked + kGigabyte : 0;
    changed.machine = machine.kinds.empty() ? request.machine : machine.withMemory(kGigabyte).print();
    addMargin("1 GB more of memory", changed);
  }
  if (machine.networkBandwidth > 0) {
    CompileOptions changed = request;
    changed.machine = machine.withNetwork(2).print();
    addMargin("twice the network", changed);
  }
  const bool counts = request.mode == Mode::kAuto && (request.mesh.empty() || isOpenMesh(request.mesh));
  for (int64_t more = 1; counts && more <= kMostDeviceCounts; ++more) {
    CompileOptions changed = request;
    changed.devices = request.devices + more;
    if (const std::optional<ClosedRequest> found = ask.search(changed); found && found->attempt.fits) {
      lines.push_back(ask.lineOf(absl::StrCat(more, more == 1 ? " device more" : " devices more"), "",
                                 planText(found->attempt.decisions), found->attempt));
      break;
    }
  }
  return lines;
}

}  // namespace

PricedPlan pricedBeside(double seconds, std::string what, const Attempt& other) {
  const double mine = inSeconds(other.time);
  return {std::move(what), "", planText(other.decisions), mine, other.peakBytes, other.fits, mine - seconds};
}

absl::StatusOr<PlanPrices> pricesOf(const GraphFor& graphs, const CompileOptions& request, const ClosedRequest& plan,
                                    SearchMemory& memory) {
  Asker ask(graphs, request, plan, memory);
  PlanPrices prices;
  prices.runnerUps = RunnerUps(ask).run();
  prices.pins = pinsOf(ask);
  WEFT_ASSIGN_OR_RETURN(prices.margins, marginsOf(ask));
  prices.asked = ask.asked();
  return prices;
}

}  // namespace weft
