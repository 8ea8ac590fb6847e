#include "planner/search/plan.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/check_request.h"
#include "planner/derive/derive.h"
#include "planner/derive/placement.h"
#include "planner/search/block_program.h"
#include "planner/search/bounded_plans.h"
#include "planner/search/choose_recompute.h"
#include "planner/search/choose_schedule.h"
#include "planner/search/departures.h"
#include "planner/search/gradient_gathers.h"
#include "planner/search/plan_space.h"
#include "planner/search/segment_costs.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Pads = std::map<unsigned, Shape>;

// What a plan is expected to take with recomputation may be too much by this part: what is useless is longer. Of long
// programs, where one operator is little, it is closer.
constexpr Picoseconds kErrs = 30;
constexpr Picoseconds kErrsOfLong = 200;

// What is derived anew for each of its values: gathers, a price of memory that decides between splits, and pads with
// which splits divide.
struct Choice {
  int64_t gatherBytes = -1;
  double bytePrice = 0;
  Pads pads = {};
  double slack = 0;                                  // of the splits (OpenChoices)
  bool batchAxes = false;                            // likewise: may they split other factors?
  std::shared_ptr<const Decisions> begin = nullptr;  // likewise
};

// What is predicted: a request that leaves nothing open, within limits.
struct Predicted {
  const ProgramGraph& graph;
  const CompileOptions& request;
  const MemoryLimits& limits;
  const Correction& correction;
  PlanningMemo& memo;
};

// The models of one choice: one for each way in which schedules place stages on submeshes.
class Models {
 public:
  // `alike`: of a choice that differs in its gathers alone; none where nothing is known of one.
  Models(const Predicted& predicted, const Choice& choice, const Models* alike = nullptr)
      : predicted_(predicted), choice_(choice), alike_(alike) {}

  const MemoryLimits& limits() const { return predicted_.limits; }
  recompute::KnownFronts& fronts() const { return predicted_.memo.fronts; }

  absl::StatusOr<ScheduledModel> under(const std::optional<ScheduleChoice>& choice) {
    const Models* known = !models_.empty() || alike_ == nullptr ? this : alike_;
    if (!known->models_.empty()) {
      const Decisions& first = known->models_.front().model->record();
      const auto stages = static_cast<int64_t>(first.schedule.submeshes.size());
      WEFT_ASSIGN_OR_RETURN(ScheduleDecision schedule,
                            scheduleFor(predicted_.request, choice, stages, predicted_.graph.trains()));
      const Derived* mine = on(schedule.submeshes);
      if (mine == nullptr) {
        WEFT_ASSIGN_OR_RETURN(mine, withKnownSplits(schedule));
      }
      if (mine != nullptr) {
        Decisions record = mine->model->record();
        record.schedule = std::move(schedule);
        return ScheduledModel{std::move(record), mine->model.get()};
      }
    }
    ProgramGraph graph = predicted_.graph;
    WEFT_ASSIGN_OR_RETURN(Derivation derived, deriveDecisions(graph, predicted_.request,
                                                              {choice, choice_.gatherBytes, choice_.bytePrice,
                                                               choice_.pads, &predicted_.memo.reshards, choice_.slack,
                                                               choice_.batchAxes, choice_.begin.get()}));
    WEFT_ASSIGN_OR_RETURN(const Derived* made, keep(std::move(graph), derived.decisions, std::move(derived.gathers)));
    evenPads_ = std::move(derived.evenPads);
    hadChoice_ = derived.hadChoice;
    return ScheduledModel{std::move(derived.decisions), made->model.get()};
  }

  const Pads& evenPads() const { return evenPads_; }
  bool hadChoice() const { return hadChoice_; }  // between splits

 private:
  struct Derived {
    std::unique_ptr<StepModel> model;
    std::vector<ParameterGather> gathers;

    // Has the program the same splits under that schedule, too? Where all submeshes have the same mesh, of one kind of
    // devices, none depends on which stages are on which.
    bool splitsAlike(const ScheduleDecision& schedule) const {
      const Decisions& record = model->record();
      return record.meshes().same() && model->prices().machines().areAlike() &&
             submeshCount(schedule.submeshes) == submeshCount(record.schedule.submeshes);
    }
  };

  const Derived* on(const std::vector<int64_t>& submeshes) const {
    const auto found = std::find_if(models_.begin(), models_.end(), [&](const Derived& each) {
      return each.model->record().schedule.submeshes == submeshes;
    });
    return found == models_.end() ? nullptr : &*found;
  }

  absl::StatusOr<const Derived*> keep(ProgramGraph graph, const Decisions& record,
                                      std::vector<ParameterGather> gathers) {
    WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(predicted_.request));
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<StepModel> model,
                          StepModel::create(std::move(graph), record, machine, predicted_.correction));
    return &models_.emplace_back(Derived{std::move(model), std::move(gathers)});
  }

  // One with the splits that the program has under that schedule.
  const Derived* splitAlike(const ScheduleDecision& schedule) const {
    const Derived* same = on(schedule.submeshes);
    return same != nullptr || models_.empty() || !models_.front().splitsAlike(schedule) ? same : &models_.front();
  }

  // One for a schedule under which splits are known; null: they are not. No split depends on when parameters are
  // gathered.
  absl::StatusOr<const Derived*> withKnownSplits(const ScheduleDecision& schedule) {
    const Derived* mine = splitAlike(schedule);
    const Derived* alike = mine == nullptr && alike_ != nullptr ? alike_->splitAlike(schedule) : nullptr;
    const Derived* known = mine != nullptr ? mine : alike;
    if (known == nullptr) {
      return nullptr;
    }
    Decisions record = known->model->record();
    record.schedule = schedule;
    if (known == alike) {
      chooseGathers(known->gathers, record.mesh.microBatches(), choice_.gatherBytes, record.arguments);
    }
    return keep(known->model->view().graph(), record, known->gathers);
  }

  const Predicted& predicted_;
  const Choice choice_;
  const Models* alike_;
  Pads evenPads_;
  bool hadChoice_ = false;
  std::deque<Derived> models_;
};

struct Best {
  Attempt attempt;
  Pads evenPads;
  // What one stage was expected to take with the recomputation that it needs (Recomputation::expected); kAnyTime too
  // where that was not asked.
  Picoseconds expected = kAnyTime;
};

// The best schedule of a choice, with the recomputation that it needs if `recompute`, unless that makes a step
// `useless` or longer. `known`: what it comes to without, of one schedule.
absl::StatusOr<Best> bestOf(Models& models, const CompileOptions& request, bool recompute, Picoseconds useless,
                            const Attempt* known = nullptr) {
  WEFT_ASSIGN_OR_RETURN(const ScheduledModel first, models.under(std::nullopt));
  if (request.schedule == "auto" && first.record.schedule.submeshes.size() > 1) {
    WEFT_ASSIGN_OR_RETURN(Attempt made,
                          chooseSchedule(
                              request, models.limits(), models.fronts(), recompute,
                              [&](const ScheduleChoice& schedule) { return models.under(schedule); }, useless));
    return Best{std::move(made), models.evenPads()};
  }
  WEFT_ASSIGN_OR_RETURN(Attempt made, known != nullptr ? *known : asItIs(models.limits(), first.record, *first.model));
  Picoseconds expected = kAnyTime;
  if (recompute && !made.fits) {
    WEFT_ASSIGN_OR_RETURN(const RecomputeStarts starts,
                          RecomputeStarts::of(models.limits(), std::move(made), *first.model, models.fronts()));
    expected = starts.expected();
    WEFT_ASSIGN_OR_RETURN(made, starts.run(useless));
  }
  return Best{std::move(made), models.evenPads(), expected};
}

// Does the request leave anything to be searched? Stages are the user's: they stand in the graph as it is.
absl::StatusOr<bool> isOpen(const ProgramGraph& graph, const CompileOptions& request) {
  WEFT_ASSIGN_OR_RETURN(const int64_t memoryLimit, memoryLimitOf(request));
  if (!graph.trains() || memoryLimit > 0) {
    return graph.trains();
  }
  WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(GraphView(graph), request.stages));
  return request.schedule == "auto" && stages.count > 1;
}

}  // namespace

GraphFor graphForAll(const ProgramGraph& graph) {
  return [shared = std::make_shared<const ProgramGraph>(graph)](int64_t) { return shared; };
}

namespace {

// What mode kAuto begins with.
struct Known {
  SearchMemory& memory;
  std::optional<Decisions> record;
};

absl::StatusOr<ClosedRequest> close(const GraphFor& graphs, const CompileOptions& request, const Correction& correction,
                                    const Known& known) {
  PlanningMemo memo;
  const Predict predict = [&](const ProgramGraph& graph, const CompileOptions& closed, std::optional<double> price,
                              Picoseconds useless) {
    return predictProgram(graph, closed, correction, &memo, price, useless);
  };
  if (request.mode == Mode::kAuto) {
    return choosePlan(graphs, request, predict, {memo, known.memory, known.record ? &*known.record : nullptr});
  }
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, graphs(request.microBatches()));
  return chooseOpen(graph, request, predict);
}

// Where nothing fits with overlap, a plan without it.
absl::StatusOr<ClosedRequest> closeOverlapped(const GraphFor& graphs, const CompileOptions& request,
                                              const Correction& correction, const Known& known) {
  WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, close(graphs, request, correction, known));
  if (request.overlap && !closed.attempt.fits) {
    CompileOptions alone = request;
    alone.overlap = false;
    WEFT_ASSIGN_OR_RETURN(closed, close(graphs, alone, correction, known));
    closed.attempt.decisions.notes.emplace_back("overlap: what is under way needs memory, and no plan with it fits");
  }
  return closed;
}

// The best of the plans that offload nothing and, where memory has a limit, of those that offload.
absl::StatusOr<ClosedRequest> closeOffloaded(const GraphFor& graphs, const CompileOptions& request,
                                             const Correction& correction, const Known& known) {
  if (request.offload != Offload::kAuto) {
    return closeOverlapped(graphs, request, correction, known);
  }
  CompileOptions changed = request;
  changed.offload = Offload::kNone;
  WEFT_ASSIGN_OR_RETURN(ClosedRequest best, closeOverlapped(graphs, changed, correction, known));
  WEFT_ASSIGN_OR_RETURN(const int64_t limit, memoryLimitOf(request));
  if (limit == 0 || !best.graph->trains()) {
    return best;  // to offload takes time, and nothing is short
  }
  changed.offload = Offload::kState;
  WEFT_ASSIGN_OR_RETURN(ClosedRequest offloaded, closeOverlapped(graphs, changed, correction, known));
  const bool isOffloaded = isBetter(offloaded.attempt, best.attempt);
  if (isOffloaded) {
    std::swap(best, offloaded);
  }
  best.ticks += offloaded.ticks;
  const Attempt& other = offloaded.attempt;
  best.attempt.decisions.notes.push_back(absl::StrFormat("offload: %s; the best plan %s it takes %.4g ms, %d bytes%s",
                                                         isOffloaded ? "state" : "none",
                                                         isOffloaded ? "without" : "with", 1e3 * inSeconds(other.time),
                                                         other.peakBytes, other.fits ? "" : " (more than the limit)"));
  return best;
}

// Bytes.
constexpr int64_t kMoreThanAny = int64_t{1} << 50;

// With the mesh of the shortest step without stages, micro-batches, ZeRO, recomputation and a limit, and splits that
// take the least time: what a search finds that decides about layouts before all else. A mesh of the user's stays, and
// where nothing is found the mesh is open.
CompileOptions withLayoutsFirst(const GraphFor& graphs, const CompileOptions& request, const Correction& correction,
                                const Known& known) {
  CompileOptions made = request;
  made.without.insert(Freedom::kMemoryPrices);
  if (!request.mesh.empty() || !request.stageMeshes.empty()) {
    return made;
  }
  CompileOptions alone = made;
  alone.without.insert({Freedom::kPipeline, Freedom::kZero, Freedom::kRecompute});
  alone.micro = alone.micro.value_or(1);
  alone.memoryLimit = kMoreThanAny;
  const absl::StatusOr<ClosedRequest> first = closeOffloaded(graphs, withFreedomsPinned(alone), correction, known);
  made.mesh = first.ok() ? first->request.mesh : "";
  return made;
}

absl::StatusOr<Decisions> recordOf(const std::string& from) {
  absl::StatusOr<Decisions> record = parseDecisions(from);
  return record.ok() ? std::move(record)
                     : absl::Status(record.status().code(), absl::StrCat("from: ", record.status().message()));
}

absl::StatusOr<ClosedRequest> closeTogether(const GraphFor& graphs, const CompileOptions& request,
                                            const Correction& correction, const Known& known) {
  return closeOffloaded(graphs,
                        request.may(Freedom::kTogether)
                            ? request
                            : withLayoutsFirst(graphs, request, correction, {known.memory, std::nullopt}),
                        correction, known);
}

// Nothing is searched where a search before chose what obeys the request, too. A record may lead to another plan.
absl::StatusOr<ClosedRequest> closeOrRemember(const GraphFor& graphs, const CompileOptions& request,
                                              const Correction& correction, const Known& known) {
  const bool isSearch = request.mode == Mode::kAuto && !known.record && correction.bytes.empty();
  if (std::optional<ClosedRequest> chosen = isSearch ? known.memory.choices.find(graphs, request) : std::nullopt) {
    return *std::move(chosen);
  }
  WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, closeTogether(graphs, request, correction, known));
  if (isSearch && closed.attempt.fits) {
    ClosedRequest unasked = closed;
    unasked.ticks = 0;
    known.memory.choices.keep(graphs, request, std::move(unasked));
  }
  return closed;
}

}  // namespace

absl::StatusOr<ClosedRequest> closeRequest(const GraphFor& graphs, const CompileOptions& asked,
                                           const Correction& correction, SearchMemory* memory) {
  if (asked.departures > 0) {
    WEFT_ASSIGN_OR_RETURN(DepartedPlan departed, departedPlan(graphs, asked, correction, memory));
    return std::move(departed.plan);
  }
  CompileOptions request = withFreedomsPinned(asked);
  SearchMemory own;
  Known known = {memory != nullptr && correction.bytes.empty() ? *memory : own, std::nullopt};
  if (!request.from.empty() && correction.bytes.empty()) {  // else the model has erred about it
    WEFT_ASSIGN_OR_RETURN(known.record, recordOf(request.from));
  }
  request.from.clear();  // it is no word of any plan
  WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, closeOrRemember(graphs, request, correction, known));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> program,
                        graphs(closed.attempt.decisions.mesh.microBatches()));
  WEFT_ASSIGN_OR_RETURN(const BoundedPlans plans, boundedPlans(program, request, closed, correction));
  WEFT_ASSIGN_OR_RETURN(closed.attempt.decisions.prediction->bound,
                        known.memory.bounds.of(closed.graph, machine.fastest(), plans));
  return closed;
}

namespace {

bool haveSameLayouts(const Decisions& a, const Decisions& b) {
  const auto operators = [](const OperatorDecision& x, const OperatorDecision& y) {
    return x.id == y.id && x.axes == y.axes && x.results == y.results && x.runsIn == y.runsIn;
  };
  const auto arguments = [](const ArgumentDecision& x, const ArgumentDecision& y) {
    return x.layout == y.layout && x.elsewhere == y.elsewhere && x.gather == y.gather;
  };
  return std::equal(a.operators.begin(), a.operators.end(), b.operators.begin(), b.operators.end(), operators) &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(), arguments);
}

// Predicts a request that leaves nothing open under one choice after another, and keeps the best.
class Predictor {
 public:
  Predictor(const Predicted& predicted, Picoseconds useless)
      : predicted_(predicted),
        request_(predicted.request),
        useless_(useless < kAnyThatFits ? useless + useless / (isLong() ? kErrsOfLong : kErrs) : useless) {}

  // With splits decided under that price of memory, where one is given and something fits with it, or another plan is
  // known that does and takes no longer than this does without fitting; else under all. Of a long program none of the
  // others is tried where recomputation is expected to make it longer than the plan that is known, and of its pipelines
  // one.
  absl::StatusOr<Attempt> run(std::optional<double> bytePrice) {
    if (bytePrice) {
      WEFT_RETURN_IF_ERROR(tryAsSketched(*bytePrice));
    }
    const bool takesLonger = isLong() && expected_ < kAnyTime && expected_ >= useless_;
    const bool promises = best_ && best_->time < useless_ && !isLongPipeline() && !takesLonger;
    if (!best_ || (!best_->fits && (!isKnown() || promises))) {
      known_.clear();
      WEFT_RETURN_IF_ERROR(tryAll());
    }
    const bool open = request_.memoryLimit > 0 && request_.mostZeroLevel() >= 3 && !request_.regather &&
                      request_.may(Freedom::kGathers);
    if (open && isShort()) {
      WEFT_RETURN_IF_ERROR(tryGathers());
    }
    return std::move(*best_);
  }

 private:
  // A choice without recomputation.
  struct Plain {
    Choice choice;
    std::shared_ptr<Models> models;
    Best best;
  };

  bool isKnown() const { return useless_ < kAnyThatFits; }  // a plan that fits
  bool isLongPipeline() const { return best_ && isLong() && best_->stageTimes.size() > 1; }
  bool isLong() const { return predicted_.graph.operators.size() > kOperatorsOfLong; }
  bool mayRecompute() const { return request_.memoryLimit > 0 && request_.recompute == "auto"; }
  bool isShort() const {
    return request_.memoryLimit > 0 && (!best_->fits || !best_->decisions.recomputeSummary.empty());
  }

  absl::StatusOr<Plain> plain(const Choice& choice) {
    Plain made = {choice, nullptr, {}};
    made.models = std::make_shared<Models>(predicted_, choice);
    WEFT_ASSIGN_OR_RETURN(const ScheduledModel first, made.models->under(std::nullopt));
    const auto isSame = [&](const Decisions& known) { return haveSameLayouts(known, first.record); };
    if (std::any_of(known_.begin(), known_.end(), isSame)) {
      return absl::AlreadyExistsError("another choice comes to the same");
    }
    known_.push_back(first.record);
    WEFT_ASSIGN_OR_RETURN(made.best, bestOf(*made.models, request_, false, kAnyTime));
    return made;
  }

  absl::Status tryAsSketched(double bytePrice) {
    WEFT_ASSIGN_OR_RETURN(const Picoseconds fastest, tryPrice(bytePrice));
    // Recomputation was expected to make it fit, and did not: splits that take more bytes may leave it more to save.
    const bool isOff = best_ && !best_->fits && !best_->decisions.recomputeSummary.empty();
    if (isOff && isKnown() && isLongPipeline() && fastest < useless_) {
      return tryPrice(bytePrice > 0 ? 0 : kMemoryPrices[0] * memoryPrice(fastest, request_.memoryLimit)).status();
    }
    return absl::OkStatus();
  }

  // How long a step takes without recomputation; kAnyTime: there are no such splits.
  absl::StatusOr<Picoseconds> tryPrice(double bytePrice) {
    std::vector<Plain> one;
    addIfPossible({.bytePrice = bytePrice, .slack = kSlackOfSketches}, one);
    addPadded(0, one);
    WEFT_RETURN_IF_ERROR(tryThese(one));
    Picoseconds fastest = kAnyTime;
    for (const Plain& each : one) {
      fastest = std::min(fastest, each.best.attempt.fastest);
    }
    return fastest;
  }

  // Without recomputation all prices of memory and pads, with splits of the batch alone over its axes and with others,
  // then what does not fit with it.
  absl::Status tryAll() {
    std::vector<Plain> all;
    WEFT_ASSIGN_OR_RETURN(Plain first, plain({}));
    std::optional<Plain> free;
    if (request_.mode != Mode::kSemi && request_.may(Freedom::kBatchAxes) && !isLong()) {
      auto begin = std::make_shared<const Decisions>(first.best.attempt.decisions);
      absl::StatusOr<Plain> made = plain({.batchAxes = true, .begin = std::move(begin)});
      if (made.ok() && promises(made->best.attempt, first.best.attempt)) {
        free = *std::move(made);
      }
    }
    addVariants(std::move(first), all);
    if (free) {
      addVariants(*std::move(free), all);
    }
    return tryThese(all);
  }

  // May a choice, or one of its variants, be better than those of another by more than a trace? What memory costs the
  // other beside a plan that is known it costs in proportion to the bytes that are too many.
  bool promises(const Attempt& choice, const Attempt& other) const {
    constexpr double kTrace = 1e-4;
    const auto excess = static_cast<double>(other.peakBytes - request_.memoryLimit);
    const auto saved = static_cast<double>(other.peakBytes - choice.peakBytes);
    auto gain = static_cast<double>(other.fastest - choice.fastest);
    if (!other.fits && request_.memoryLimit > 0 && excess > 0 && saved > 0) {
      const Picoseconds known = isKnown() ? useless_ : 2 * other.fastest;
      gain += static_cast<double>(std::max<Picoseconds>(known - other.fastest, 0)) * std::min(1.0, saved / excess);
    }
    return gain > kTrace * static_cast<double>(other.fastest);
  }

  // It, padded, and with prices of memory where that is short.
  void addVariants(Plain first, std::vector<Plain>& all) {
    // Where memory keeps the fastest schedule out, too, splits that need less may let it in.
    const Attempt& unpriced = first.best.attempt;
    const bool isLimited = !unpriced.fits || unpriced.fastest < unpriced.time;
    const Picoseconds time = unpriced.time;
    Choice choice = first.choice;
    const Picoseconds fastest = unpriced.fastest;
    const bool mayDiffer = first.models->hadChoice();
    const size_t number = all.size();
    all.push_back(std::move(first));
    addPadded(number, all);
    const bool isPadded = all.size() > number + 1 && all.back().best.attempt.fastest < fastest;
    choice.pads = isPadded ? all.back().choice.pads : Pads();
    if (request_.mode != Mode::kSemi && isLimited && (mayDiffer || isPadded) && request_.may(Freedom::kMemoryPrices)) {
      for (const double factor : kMemoryPrices) {
        choice.bytePrice = factor * memoryPrice(time, request_.memoryLimit);
        addIfPossible(choice, all);
      }
    }
  }

  absl::Status tryThese(std::vector<Plain>& all) {
    for (Plain& each : all) {
      keepBetter(each.best.attempt, each);
    }
    return mayRecompute() && !all.empty() ? recompute(all) : absl::OkStatus();
  }

  // Those that would be faster than the best if they fitted.
  absl::Status recompute(std::vector<Plain>& all) {
    std::stable_sort(all.begin(), all.end(), [](const Plain& a, const Plain& b) {
      return std::tie(a.best.attempt.fastest, a.best.attempt.peakBytes) <
             std::tie(b.best.attempt.fastest, b.best.attempt.peakBytes);
    });
    for (size_t i = 0; i < all.size(); ++i) {
      const Attempt& attempt = all[i].best.attempt;
      // The peak is that of the schedule it was predicted with: of another kind it says nothing.
      const bool isDominated = std::any_of(all.begin(), all.begin() + static_cast<int64_t>(i), [&](const Plain& other) {
        return other.best.attempt.decisions.schedule.kind == attempt.decisions.schedule.kind &&
               attempt.time == attempt.fastest && other.best.attempt.peakBytes <= attempt.peakBytes;
      });
      const Picoseconds least = std::min(useless_, uselessBeside(*best_));
      if (!isDominated && attempt.fastest < least) {
        const Picoseconds useless = i + 1 < all.size() ? std::min(least, kAnyThatFits) : least;
        WEFT_ASSIGN_OR_RETURN(Best with, bestOf(*all[i].models, request_, true, useless, &attempt));
        expected_ = std::min(expected_, with.expected);
        keepBetter(std::move(with.attempt), all[i]);
      }
    }
    return absl::OkStatus();
  }

  // One of all with the pads with which its splits divide.
  void addPadded(size_t number, std::vector<Plain>& all) {
    if (number < all.size() && !all[number].best.evenPads.empty()) {
      Choice padded = all[number].choice;
      padded.pads = all[number].best.evenPads;
      addIfPossible(padded, all);
    }
  }

  void addIfPossible(const Choice& choice, std::vector<Plain>& all) {
    absl::StatusOr<Plain> made = plain(choice);
    if (made.ok()) {
      all.push_back(*std::move(made));
    }
  }

  // When parameters are gathered: in each call, and as many once as there is room for.
  absl::Status tryGathers() {
    Choice choice = choice_;
    choice.gatherBytes = 0;
    WEFT_ASSIGN_OR_RETURN(Best none, withRecomputation(choice));
    const int64_t room = leftOf(none.attempt);
    const bool more = none.attempt.fits && room > 0;
    keepBetter(std::move(none.attempt), choice);
    if (more) {
      choice.gatherBytes = room;
      WEFT_ASSIGN_OR_RETURN(Best some, withRecomputation(choice));
      keepBetter(std::move(some.attempt), choice);
    }
    return absl::OkStatus();
  }

  // Bytes that every rank has beyond what it needs.
  int64_t leftOf(const Attempt& attempt) const {
    const std::vector<int64_t> limits = predicted_.limits.ofSubmeshes(attempt.decisions.meshes());
    int64_t left = std::numeric_limits<int64_t>::max();
    for (size_t s = 0; s < attempt.submeshes.size(); ++s) {
      left = limits[s] > 0 ? std::min(left, limits[s] - attempt.submeshes[s].peakBytes) : left;
    }
    return left;
  }

  absl::StatusOr<Best> withRecomputation(const Choice& choice) {
    Models models(predicted_, choice, models_.get());
    return bestOf(models, request_, mayRecompute(), useless_);
  }

  void keepBetter(Attempt attempt, const Plain& of) {
    if (!best_ || isBetter(attempt, *best_)) {
      models_ = of.models;
    }
    keepBetter(std::move(attempt), of.choice);
  }
  void keepBetter(Attempt attempt, const Choice& choice) {
    if (!best_ || isBetter(attempt, *best_)) {
      best_ = std::move(attempt);
      choice_ = choice;
    }
  }

  const Predicted& predicted_;
  const CompileOptions& request_;
  const Picoseconds useless_;
  std::vector<Decisions> known_;  // of the choices so far, before anything is recomputed
  std::optional<Attempt> best_;
  Picoseconds expected_ = kAnyTime;  // of all that was recomputed, the least (Best)
  Choice choice_;
  std::shared_ptr<const Models> models_;  // that the best was predicted with, but for its gathers
};

}  // namespace

absl::StatusOr<Attempt> predictProgram(const ProgramGraph& graph, const CompileOptions& asked,
                                       const Correction& correction, PlanningMemo* memo,
                                       std::optional<double> bytePrice, Picoseconds useless) {
  CompileOptions request = asked;
  WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(asked));
  request.memoryLimit = limits.least();
  PlanningMemo own;
  return Predictor({graph, request, limits, correction, memo != nullptr ? *memo : own}, useless).run(bytePrice);
}

absl::StatusOr<Decisions> planProgram(const GraphFor& graphs, const CompileOptions& request,
                                      const Correction& correction) {
  if (leavesOpen(request)) {
    WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, closeRequest(graphs, request, correction));
    return std::move(closed.attempt.decisions);
  }
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, graphs(request.microBatches()));
  WEFT_ASSIGN_OR_RETURN(const bool open, isOpen(*graph, request));
  if (!open) {
    ProgramGraph copy = *graph;
    WEFT_ASSIGN_OR_RETURN(Derivation derived, deriveDecisions(copy, request, {}));
    if (derived.evenPads.empty()) {
      return std::move(derived.decisions);
    }
  }
  WEFT_ASSIGN_OR_RETURN(Attempt best, predictProgram(*graph, request, correction));
  return std::move(best.decisions);
}

}  // namespace weft
