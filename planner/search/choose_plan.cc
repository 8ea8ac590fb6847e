#include "planner/search/choose_plan.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/check_request.h"
#include "planner/search/change_splits.h"
#include "planner/search/finalists.h"
#include "planner/search/free_batch_axes.h"
#include "planner/search/mix_zero.h"
#include "planner/search/neighbor_plans.h"
#include "planner/search/pipeline_shape.h"
#include "planner/search/plan_predictions.h"
#include "planner/search/recorded_plan.h"
#include "planner/search/refine_stages.h"
#include "planner/search/sketches.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr size_t kMostNamed = 8;
// Neighbors of the best plan that are predicted: a part of all questions before, or a few. Where memory is short
// sketches are further from what is predicted.
constexpr int64_t kNeighborPart = 10;
constexpr int64_t kNeighborPartOfLimited = 4;
constexpr int64_t kFewestNeighbors = 6;
// Finalists whose stages are cut anew, beside those with splits under a price of memory.
constexpr size_t kMostCutAnew = 6;
// The parts of a rank's memory that a bucket of gathers may have; the first that makes the step shorter is taken.
constexpr int64_t kGatherBucketParts[] = {32, 128};
constexpr char kFound[] = "found ";

// Why there is no plan. No plan at all may be left where not one was refused.
absl::Status refused(const absl::Status& first) {
  return first.ok() ? absl::InvalidArgumentError(
                          "mode auto: nothing that the request leaves open makes a plan; take a word of it back "
                          "(mesh, stages, micro-batches, schedule)")
                    : first;
}

std::string wordsOf(const Sketch& sketch) {
  const StageGrid& grid = sketch.grid;
  std::string words = grid.submeshes > 1 ? absl::StrCat(grid.submeshes, " x ") : "";
  absl::StrAppend(&words, grid.mesh.empty() ? sketch.request.stageMeshes : grid.mesh);
  if (grid.virtualStages > 1) {
    absl::StrAppend(&words, " with ", grid.virtualStages, " stages each");
  }
  absl::StrAppend(&words, ", micro ", sketch.request.microBatches(), ", zero ", sketch.request.zeroLevel(),
                  sketch.request.regather ? " regather" : "");
  return words;
}

bool arePipelinesAlike(const Sketch& a, const Sketch& b) {
  return a.grid == b.grid && a.request.stageMeshes == b.request.stageMeshes &&
         a.request.microBatches() == b.request.microBatches() && a.bytePrice == b.bytePrice;
}

std::string figuresOf(const Attempt& attempt) {
  return absl::StrFormat("%.4g ms, %d bytes%s", 1e3 * inSeconds(attempt.time), attempt.peakBytes,
                         attempt.fits ? "" : " (more than the limit)");
}

// What the saved record comes to that a search begins with.
struct RecordStart {
  std::optional<ClosedRequest> plan;  // none: nothing of it is kept
  bool isWhole = false;               // it is the record as it is
  bool isLong = false;                // of a long program
  std::vector<std::string> notes;
};

class PlanChooser {
 public:
  PlanChooser(const CompileOptions& request, Sketches& sketches, const Predict& predict, const SearchKnowledge& known)
      : request_(request), sketches_(sketches), predict_(predict), known_(known), plans_(sketches, predict, known) {}

  absl::StatusOr<ClosedRequest> run() {
    WEFT_RETURN_IF_ERROR(beginWithRecord());
    const absl::Status refusal = predictSketches();
    lookFurther();
    if (finalists_.empty() && !record_.plan) {
      return refused(refusal.ok() ? sketches_.refusal() : refusal);
    }
    WEFT_ASSIGN_OR_RETURN(ClosedRequest chosen, bestOfAll());
    std::vector<std::string>& notes = chosen.attempt.decisions.notes;
    std::ranges::move(std::exchange(chosen.notes, {}), std::back_inserter(notes));
    notes.insert(notes.end(), record_.notes.begin(), record_.notes.end());
    chosen.ticks += sketches_.ticks() + plans_.asked() + others_;
    return chosen;
  }

 private:
  // What the saved record comes to is a finalist before all others.
  absl::Status beginWithRecord() {
    if (known_.record == nullptr) {
      return absl::OkStatus();
    }
    RecordedPlan before(*known_.record, request_);
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(known_.record->mesh.microBatches()));
    WEFT_RETURN_IF_ERROR(before.read(*program));
    record_.notes = before.notes();
    if (!before.request()) {
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(program, sketches_.programFor(before.request()->microBatches()));
    ++others_;
    if (const absl::Status status = before.predict(*program, predict_); !status.ok()) {
      record_.notes.push_back(absl::StrCat(kDropped, "all of it; ", std::string(status.message())));
      return absl::OkStatus();
    }
    record_.plan = before.plan();
    record_.isWhole = before.isWhole();
    record_.isLong = program->isLong();
    return absl::OkStatus();
  }

  const Finalist& bestFinalist() const { return *std::min_element(finalists_.begin(), finalists_.end(), isBetterPlan); }
  void sortFinalists() { std::stable_sort(finalists_.begin(), finalists_.end(), isBetterPlan); }
  FinalistPicker::Best best() const {
    const Attempt* found = finalists_.empty() ? nullptr : &bestFinalist().plan.attempt;
    const Attempt* recorded = record_.plan ? &record_.plan->attempt : nullptr;
    const bool isRecord = recorded != nullptr && (found == nullptr || !isBetter(*found, *recorded));
    return {isRecord ? recorded : found, isRecord};
  }
  // What is expected to take longer is not asked about while a record that fits is the best.
  double mostOfRecord() const { return farOffFrom(record_.isLong) * static_cast<double>(record_.plan->attempt.time); }

  // In the order of the sketches, without those that cannot be better than the best so far. Answers the first refusal.
  absl::Status predictSketches() {
    FinalistPicker picker(request_);
    if (record_.plan && record_.plan->attempt.fits) {
      picker.beginWith(record_.plan->attempt.time);
    }
    absl::Status refusal;
    for (;;) {
      FinalistPicker::Best best = this->best();
      best.isRecord = best.isRecord && best.attempt->fits;
      const std::optional<Sketch> sketch = sketches_.next(best.isRecord ? mostOfRecord() : kNoneTooLong);
      const FinalistPicker::Answer answer =
          sketch ? picker.next(*sketch, sketches_.isLong(*sketch), best) : FinalistPicker::Answer::kEnough;
      if (answer == FinalistPicker::Answer::kEnough) {
        break;
      }
      if (answer == FinalistPicker::Answer::kSkip) {
        continue;
      }
      const bool isBounded = best.attempt != nullptr && best.attempt->fits;
      absl::StatusOr<ClosedRequest> closed = plans_.of(*sketch, isBounded ? best.attempt->time : kAnyThatFits);
      if (closed.ok()) {
        picker.learn(*sketch, *closed);
        finalists_.push_back({*sketch, *std::move(closed)});
      } else {
        refusal = refusal.ok() ? closed.status() : refusal;
      }
    }
    return refusal;
  }

  // Where nothing fits, all is tried of what was given up: what is found may fit, or says how near the limit is.
  void lookFurther() {
    for (Finalist& each : finalists_) {
      const FinalistPicker::Best best = this->best();
      if (best.attempt->fits) {
        return;
      }
      if (absl::StatusOr<ClosedRequest> made = plans_.of(each.sketch, kAnyTime); made.ok()) {
        each.plan = *std::move(made);
      }
    }
  }

  // The best finalist, with what is tried of the best alone; or what the record comes to. Of the record itself that has
  // been tried.
  absl::StatusOr<ClosedRequest> bestOfAll() {
    std::optional<ClosedRequest> chosen;
    if (best().isRecord && record_.isWhole) {
      chosen = *record_.plan;
      chosen->notes.push_back(noteOf("kept the plan of the record, "));
    } else if (!finalists_.empty()) {
      WEFT_ASSIGN_OR_RETURN(chosen, refinedFinalist());
    }
    if (record_.plan && (!chosen || isBetter(record_.plan->attempt, chosen->attempt))) {
      ClosedRequest kept = *record_.plan;
      kept.notes.push_back(noteOf("kept what the record leaves, "));
      WEFT_ASSIGN_OR_RETURN(chosen, withMixedZero(std::move(kept)));
    }
    return *std::move(chosen);
  }

  // A sketch of a long program says its schedule. Where the best one takes longer than was expected of it, more is
  // recomputed than was expected, and a schedule that holds fewer micro-batches, as 1F1B, may be shorter on the same
  // stages.
  void addOtherSchedules() {
    const Finalist best = bestFinalist();
    const StageGrid& grid = best.sketch.grid;
    const bool isLonger =
        static_cast<double>(best.plan.attempt.time) > kPromises * static_cast<double>(best.sketch.cut.time);
    if (request_.schedule != "auto" || grid.stages() == 1 || !isLonger || !sketches_.isLong(best.sketch)) {
      return;
    }
    for (const schedule::Kind kind : kindsFor(request_, grid.virtualStages)) {
      Sketch other = best.sketch;
      other.request.schedule = schedule::kindName(kind);
      if (other.request.schedule == best.sketch.request.schedule) {
        continue;
      }
      const Picoseconds useless = uselessBeside(best.plan.attempt);
      if (absl::StatusOr<ClosedRequest> made = plans_.of(other, useless); made.ok()) {
        finalists_.push_back({std::move(other), *std::move(made)});
      }
    }
  }

  // The best against those one decision away, as long as one of them is better (neighbor_plans.h). Was one?
  bool addNeighbors() {
    if (sketches_.isLong(bestFinalist().sketch)) {
      return false;
    }
    bool found = false;
    const int64_t asked = plans_.asked();
    const int64_t part = bestFinalist().sketch.cut.limited ? kNeighborPartOfLimited : kNeighborPart;
    const int64_t most = asked + std::max(kFewestNeighbors, (sketches_.ticks() + asked) / part);
    while (plans_.asked() < most && addBetterNeighbor(most)) {
      found = true;
    }
    return found;
  }

  bool addBetterNeighbor(int64_t most) {
    const Finalist now = bestFinalist();
    for (Sketch& neighbor : neighborsOf(now.sketch, *now.plan.graph, request_)) {
      if (plans_.asked() >= most) {
        return false;
      }
      absl::StatusOr<ClosedRequest> made = predictNeighbor(neighbor, now);
      if (made.ok() && isBetter(made->attempt, now.plan.attempt)) {
        finalists_.push_back({std::move(neighbor), *std::move(made)});
        return true;
      }
    }
    return false;
  }

  // On the stages of `now`, which may have been cut anew, where both are of one program.
  absl::StatusOr<ClosedRequest> predictNeighbor(const Sketch& neighbor, const Finalist& now) {
    const Picoseconds useless = uselessBeside(now.plan.attempt);
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(neighbor.request.microBatches()));
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* before, sketches_.programFor(now.sketch.request.microBatches()));
    if (program != before) {
      return plans_.of(neighbor, useless);
    }
    ClosedRequest made = now.plan;
    made.request = neighbor.request;
    made.request.virtualStages = now.plan.request.virtualStages;
    WEFT_ASSIGN_OR_RETURN(made.attempt, plans_.ofChanged(made.graph, made.request, made.bytePrice, useless));
    return made;
  }

  // The best finalist, neighbors included, with its stages cut anew, the batch's axes free, and levels of ZeRO of
  // single classes of weights. For a neighbor other stages may be better, and beside these another neighbor.
  absl::StatusOr<ClosedRequest> refinedFinalist() {
    addOtherSchedules();
    addNeighbors();
    if (!sketches_.isLong(bestFinalist().sketch)) {
      addPriced();
      WEFT_RETURN_IF_ERROR(cutStagesAnew(pipelinesThatMayWin()));
    }
    while (bestFinalist().sketch.grid.stages() > 1 && addNeighbors()) {
      sortFinalists();
      WEFT_RETURN_IF_ERROR(cutStagesAnew({&finalists_.front()}));
    }
    sortFinalists();
    ClosedRequest refined = finalists_.front().plan;
    if (!sketches_.isLong(finalists_.front().sketch)) {
      refined = withBatchAxesFree(std::move(refined), finalists_, request_, plans_);
    }
    WEFT_ASSIGN_OR_RETURN(ClosedRequest chosen, withMixedZero(std::move(refined)));
    WEFT_RETURN_IF_ERROR(joinGathers(chosen));
    chosen = changeSplits(std::move(chosen), request_, predict_);
    chosen.notes.push_back(noteOf(kFound));
    return chosen;
  }

  // Splits are decided by the sum of all times. What a step of a pipeline takes is another: work that runs where a
  // submesh would have waited takes no time, so splits that take longer in sum may be better. Of each pipeline whose
  // stages will be cut anew those under a price of memory are tried.
  void addPriced() {
    if (!request_.may(Freedom::kMemoryPrices)) {
      return;
    }
    const Picoseconds useless = uselessBeside(bestFinalist().plan.attempt);
    std::vector<Finalist> better;
    for (const Finalist* each : pipelinesThatMayWin()) {
      if (each->sketch.grid.stages() == 1) {
        continue;
      }
      const Attempt& now = each->plan.attempt;
      Sketch priced = each->sketch;
      priced.bytePrice = memoryPrice(now.time, now.peakBytes);
      absl::StatusOr<ClosedRequest> made = plans_.of(priced, useless);
      if (made.ok() && isBetter(made->attempt, now)) {
        better.push_back({std::move(priced), *std::move(made)});
      }
    }
    std::ranges::move(better, std::back_inserter(finalists_));
  }

  // The best finalist, and other pipelines that take little longer: of each grid and number of micro-batches one, and
  // one with splits under a price of memory.
  std::vector<Finalist*> pipelinesThatMayWin() {
    sortFinalists();
    const double most = farOffFrom(false) * static_cast<double>(finalists_.front().plan.attempt.time);
    std::vector<Finalist*> chosen;
    size_t unpriced = 0;
    for (Finalist& each : finalists_) {
      const bool mayWin = each.sketch.grid.stages() > 1 && static_cast<double>(each.plan.attempt.time) < most;
      const bool isKnown = std::any_of(chosen.begin(), chosen.end(), [&](const Finalist* other) {
        return arePipelinesAlike(other->sketch, each.sketch);
      });
      const bool isPriced = each.sketch.bytePrice.has_value();
      if (chosen.empty() || (mayWin && !isKnown && (isPriced || unpriced < kMostCutAnew))) {
        chosen.push_back(&each);
        unpriced += isPriced ? 0 : 1;
      }
    }
    return chosen;
  }

  // With their stages cut anew: one that took longer, or did not fit, may be the best then.
  absl::Status cutStagesAnew(const std::vector<Finalist*>& chosen) {
    std::vector<RefinedPlan> plans;
    for (const Finalist* each : chosen) {
      WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(each->sketch.request.microBatches()));
      plans.push_back({each->sketch, *program, each->plan});
    }
    const PredictOnStages predict = [&](const ClosedRequest& plan, const BlockProgram& program, std::vector<int> stages,
                                        Picoseconds useless) {
      return plans_.onStages(plan, program, std::move(stages), useless);
    };
    std::vector<ClosedRequest> refined = refineStages(std::move(plans), predict, known_.memo);
    for (size_t i = 0; i < chosen.size(); ++i) {
      others_ += std::exchange(refined[i].ticks, 0);
      chosen[i]->plan = std::move(refined[i]);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ClosedRequest> withMixedZero(ClosedRequest plan) {
    const int64_t asked = plans_.asked();
    const std::shared_ptr<const ProgramGraph> staged = plan.graph;
    const Predict predictMixed = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double> price,
                                     Picoseconds useless) { return plans_.ofChanged(staged, closed, price, useless); };
    absl::StatusOr<ClosedRequest> mixed = mixZero(std::move(plan), request_, predictMixed);
    others_ -= plans_.asked() - asked;  // it has counted them
    return mixed;
  }

  // Parameters that are gathered in each call take less time in fewer, larger gathers over many ranks, and more room.
  absl::Status joinGathers(ClosedRequest& plan) {
    const std::vector<ArgumentDecision>& arguments = plan.attempt.decisions.arguments;
    const bool gathers = std::any_of(arguments.begin(), arguments.end(), [](const ArgumentDecision& argument) {
      return argument.gather == GatherPolicy::kEachCall;
    });
    WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(request_));
    if (!gathers || limits.least() == 0 || request_.gatherBucket > 0 || !request_.may(Freedom::kGathers)) {
      return absl::OkStatus();
    }
    for (const int64_t part : kGatherBucketParts) {
      ClosedRequest joined = plan;
      joined.request.gatherBucket = limits.least() / part;
      const Picoseconds useless = uselessBeside(plan.attempt);
      absl::StatusOr<Attempt> made = plans_.ofChanged(plan.graph, joined.request, plan.bytePrice, useless);
      if (made.ok() && isBetter(*made, plan.attempt)) {
        joined.attempt = *std::move(made);
        plan = std::move(joined);
        break;
      }
    }
    return absl::OkStatus();
  }

  // `how`: the first of the finalists was found, or the record is kept beside all of them.
  std::string noteOf(const std::string& how) const {
    std::vector<std::string> lines;
    if (how != kFound) {
      lines.push_back(figuresOf(record_.plan->attempt));
    }
    for (size_t i = 0; i < std::min(finalists_.size(), kMostNamed + 1); ++i) {
      lines.push_back(absl::StrCat(wordsOf(finalists_[i].sketch), ": ", figuresOf(finalists_[i].plan.attempt)));
    }
    return absl::StrCat(kSearchNote, how, lines.front(), " predicted for a step of a rank; others: ",
                        lines.size() > 1 ? absl::StrJoin(lines.begin() + 1, lines.end(), "; ") : "none",
                        "; estimated: ", sketches_.count(), " plans, refused: ", sketches_.refused());
  }

  const CompileOptions& request_;
  Sketches& sketches_;
  const Predict& predict_;
  SearchKnowledge known_;
  PlanPredictions plans_;
  RecordStart record_;
  std::vector<Finalist> finalists_;  // what the sketches that were predicted came to
  int64_t others_ = 0;               // predictions that plans_ does not count, less those that are counted elsewhere
};

}  // namespace

absl::StatusOr<ClosedRequest> choosePlan(const GraphFor& graphs, const CompileOptions& request, const Predict& predict,
                                         const SearchKnowledge& known) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Sketches> sketches, Sketches::create(graphs, request, known));
  return PlanChooser(request, *sketches, predict, known).run();
}

}  // namespace weft
