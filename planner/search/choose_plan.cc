#include "planner/search/choose_plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/search/mix_zero.h"
#include "planner/search/pipeline_shape.h"
#include "planner/search/recorded_plan.h"
#include "planner/search/refine_stages.h"
#include "planner/search/sketches.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Sketches that are predicted in full: as many as have so many operators together, within these bounds. Predictions of
// long programs take longer, and their estimates are closer. While none fits, twice as many are.
constexpr size_t kPredictedOperators = 24000;
constexpr size_t kFewestFinalists = 3;
constexpr size_t kMostFinalists = 40;
// So many times as many while the next is expected to take so much less than the best prediction: where predictions
// take longer than was expected of them, the order of the sketches says little.
constexpr size_t kMoreTried = 3;
constexpr double kPromises = 1.03;
constexpr size_t kMostNamed = 8;
// Sketches with unlike meshes or another order of axes are predicted beside the others, so that none of these is left
// out for them: as many at most, and of long programs.
constexpr size_t kMostBeside = 8;
constexpr size_t kMostBesideOfLong = 2;
// Sketches that are expected to take so many times as long as the best prediction are not predicted; those of long
// programs are closer.
constexpr double kFarOff = 1.15;
constexpr double kFarOffOfLong = 1.01;
constexpr char kFound[] = "found ";

class PlanChooser {
 public:
  PlanChooser(const CompileOptions& request, Sketches& sketches, const Predict& predict, const SearchKnowledge& known)
      : request_(request), sketches_(sketches), predict_(predict), known_(known) {}

  // In the order of the sketches, without those that cannot be better than the best so far.
  absl::StatusOr<ClosedRequest> run() {
    WEFT_RETURN_IF_ERROR(beginWithRecord());
    absl::Status refusal;
    size_t most = kMostFinalists;
    for (;;) {
      const bool isRecordBest = this->isRecordBest();
      const std::optional<Sketch> sketch = sketches_.next(isRecordBest ? mostOfRecord() : kNoneTooLong);
      if (!sketch || tried_ >= mostTried(isRecordBest ? kFewestFinalists : most, *sketch)) {
        break;
      }
      const bool isLong = sketches_.isLong(*sketch);
      const bool isUnlike = sketch->grid.mesh.empty() && request_.stageMeshes.empty();
      const bool isBeside = isUnlike || sketch->grid.isReordered;
      const double farOff = isLong ? kFarOffOfLong : kFarOff;
      const bool isFarOff =
          usual_.fits && static_cast<double>(sketch->cut.time) > farOff * static_cast<double>(usual_.time);
      if (isFarOff && !isBeside) {
        break;
      }
      ++(isBeside ? beside_ : tried_);
      if (isBeside && (isFarOff || beside_ > (isLong ? kMostBesideOfLong : kMostBeside))) {
        continue;
      }
      const Attempt* best = this->best();
      if (best != nullptr && best->fits && sketch->cut.bound >= best->time) {
        continue;
      }
      absl::StatusOr<ClosedRequest> closed = predicted(*sketch);
      if (!closed.ok()) {
        refusal = refusal.ok() ? closed.status() : refusal;
        continue;
      }
      most = std::clamp(kPredictedOperators / closed->graph->operators.size(), kFewestFinalists, kMostFinalists);
      const Attempt& made = closed->attempt;
      if (!isBeside && made.fits) {
        usual_ = {true, usual_.fits ? std::min(usual_.time, made.time) : made.time};
      }
      finalists_.push_back({*sketch, *std::move(closed)});
    }
    if (finalists_.empty() && !record_) {
      return refused(refusal.ok() ? sketches_.refusal() : refusal);
    }
    WEFT_ASSIGN_OR_RETURN(ClosedRequest chosen, bestOfAll());
    std::vector<std::string>& notes = chosen.attempt.decisions.notes;
    notes.insert(notes.end(), recordNotes_.begin(), recordNotes_.end());
    chosen.ticks += sketches_.ticks() + static_cast<int64_t>(tried_ + beside_) + others_ - remembered_;
    return chosen;
  }

 private:
  struct Finalist {
    Sketch sketch;
    ClosedRequest plan;  // what it came to
  };
  static bool isBetterPlan(const Finalist& a, const Finalist& b) { return isBetter(a.plan.attempt, b.plan.attempt); }

  // The best prediction of a sketch with one mesh in the usual order. How many of these are predicted follows from it
  // alone, so that what is predicted beside them takes the place of none.
  struct Usual {
    bool fits = false;
    Picoseconds time = 0;
  };

  // What the saved record comes to is a finalist before all others.
  absl::Status beginWithRecord() {
    if (known_.record == nullptr) {
      return absl::OkStatus();
    }
    RecordedPlan before(*known_.record, request_);
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(known_.record->mesh.microBatches()));
    WEFT_RETURN_IF_ERROR(before.read(*program));
    recordNotes_ = before.notes();
    if (!before.request()) {
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(program, sketches_.programFor(before.request()->microBatches()));
    ++others_;
    if (const absl::Status status = before.predict(*program, predict_); !status.ok()) {
      recordNotes_.push_back(absl::StrCat(kDropped, "all of it; ", std::string(status.message())));
      return absl::OkStatus();
    }
    record_ = before.plan();
    isRecordWhole_ = before.isWhole();
    isRecordLong_ = program->isLong();
    if (record_->attempt.fits) {
      usual_ = {true, record_->attempt.time};
    }
    return absl::OkStatus();
  }

  const Attempt* best() const {
    const Attempt* best = record_ ? &record_->attempt : nullptr;
    for (const Finalist& each : finalists_) {
      best = best == nullptr || isBetter(each.plan.attempt, *best) ? &each.plan.attempt : best;
    }
    return best;
  }
  bool isRecordBest() const { return record_ && record_->attempt.fits && best() == &record_->attempt; }
  // What is expected to take longer is not asked about while the record is the best.
  double mostOfRecord() const {
    const double farOff = isRecordLong_ ? kFarOffOfLong : kFarOff;
    return farOff * static_cast<double>(record_->attempt.time);
  }

  // The best finalist, with what is tried of the best alone; or what the record comes to. Of the record itself that has
  // been tried.
  absl::StatusOr<ClosedRequest> bestOfAll() {
    const bool isRecordBest = record_ && best() == &record_->attempt;
    std::optional<ClosedRequest> chosen;
    if (isRecordBest && isRecordWhole_) {
      chosen = *record_;
      chosen->attempt.decisions.notes.push_back(noteOf("kept the plan of the record, "));
    } else if (!finalists_.empty()) {
      WEFT_ASSIGN_OR_RETURN(chosen, refinedFinalist());
    }
    if (record_ && (!chosen || isBetter(record_->attempt, chosen->attempt))) {
      ClosedRequest kept = *record_;
      kept.attempt.decisions.notes.push_back(noteOf("kept what the record leaves, "));
      WEFT_ASSIGN_OR_RETURN(chosen, withMixedZero(std::move(kept)));
    }
    return *std::move(chosen);
  }

  absl::StatusOr<ClosedRequest> refinedFinalist() {
    others_ += static_cast<int64_t>(addOtherSchedules(finalists_));
    std::stable_sort(finalists_.begin(), finalists_.end(), isBetterPlan);
    const Sketch& sketch = finalists_.front().sketch;
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(sketch.request.microBatches()));
    WEFT_ASSIGN_OR_RETURN(ClosedRequest chosen, withMixedZero(refineStages({sketch, finalists_.front().plan}, *program,
                                                                           predict_, known_.reshards)));
    chosen.attempt.decisions.notes.push_back(noteOf(kFound));
    return chosen;
  }

  absl::StatusOr<ClosedRequest> withMixedZero(ClosedRequest plan) {
    const std::shared_ptr<const ProgramGraph> staged = plan.graph;
    const Predict predictMixed = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double> price) {
      return mixed(staged, closed, price);
    };
    return mixZero(std::move(plan), request_, predictMixed);
  }

  size_t mostTried(size_t most, const Sketch& next) const {
    if (!usual_.fits) {
      return 2 * most;
    }
    const bool promises = kPromises * static_cast<double>(next.cut.time) < static_cast<double>(usual_.time);
    return promises ? kMoreTried * most : most;
  }

  // A sketch of a long program says its schedule. Where the best one takes longer than was expected of it, more is
  // recomputed than was expected, and a schedule that holds fewer micro-batches, as 1F1B, may be shorter on the same
  // stages. Answers how many were predicted.
  size_t addOtherSchedules(std::vector<Finalist>& finalists) {
    const Finalist best = *std::min_element(finalists.begin(), finalists.end(), isBetterPlan);
    const StageGrid& grid = best.sketch.grid;
    const bool isLonger =
        static_cast<double>(best.plan.attempt.time) > kPromises * static_cast<double>(best.sketch.cut.time);
    size_t predictions = 0;
    if (request_.schedule != "auto" || grid.stages() == 1 || !isLonger || !sketches_.isLong(best.sketch)) {
      return predictions;
    }
    for (const schedule::Kind kind : kindsFor(request_, grid.virtualStages)) {
      Sketch other = best.sketch;
      other.request.schedule = schedule::kindName(kind);
      if (other.request.schedule == best.sketch.request.schedule) {
        continue;
      }
      ++predictions;
      if (absl::StatusOr<ClosedRequest> made = predicted(other); made.ok()) {
        finalists.push_back({std::move(other), *std::move(made)});
      }
    }
    return predictions;
  }

  // Why there is no plan. No plan at all may be left where not one was refused.
  static absl::Status refused(const absl::Status& first) {
    return first.ok() ? absl::InvalidArgumentError(
                            "mode auto: nothing that the request leaves open makes a plan; take a word of it back "
                            "(mesh, stages, micro-batches, schedule)")
                      : first;
  }

  absl::StatusOr<ClosedRequest> predicted(const Sketch& sketch) {
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(sketch.request.microBatches()));
    CompileOptions closed = sketch.request;
    closed.virtualStages = sketch.grid.submeshes > 1 ? sketch.grid.virtualStages : 0;
    SearchQuestion question = {program->sharedGraph(), closed, sketch.bytePrice.value_or(-1)};
    question.first = sketch.cut.first;
    if (const absl::StatusOr<ClosedRequest>* known = known_.before.plans.find(question)) {
      ++remembered_;
      return *known;
    }
    auto staged = std::make_shared<const ProgramGraph>(program->onStages(sketch.cut.first));
    return predictAndKeep(std::move(question), std::move(staged), sketch.bytePrice);
  }

  // Of a plan that was chosen, with levels of ZeRO of its own.
  absl::StatusOr<Attempt> mixed(const std::shared_ptr<const ProgramGraph>& staged, const CompileOptions& closed,
                                std::optional<double> bytePrice) {
    SearchQuestion question = {staged, closed, bytePrice.value_or(-1)};
    const absl::StatusOr<ClosedRequest>* known = known_.before.plans.find(question);
    if (known == nullptr) {
      known = &predictAndKeep(std::move(question), staged, bytePrice);
    }
    return known->ok() ? absl::StatusOr<Attempt>((*known)->attempt) : known->status();
  }

  // What the question's request takes on these stages, for the searches to come.
  const absl::StatusOr<ClosedRequest>& predictAndKeep(SearchQuestion question,
                                                      std::shared_ptr<const ProgramGraph> staged,
                                                      std::optional<double> bytePrice) {
    absl::StatusOr<ClosedRequest> made = ClosedRequest{question.closed, std::move(staged), {}, bytePrice};
    absl::StatusOr<Attempt> attempt = predict_(*made->graph, made->request, bytePrice);
    if (attempt.ok()) {
      made->attempt = *std::move(attempt);
    } else {
      made = attempt.status();
    }
    return known_.before.plans.keep(std::move(question), std::move(made));
  }

  static std::string wordsOf(const Sketch& sketch) {
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

  static std::string figuresOf(const Attempt& attempt) {
    return absl::StrFormat("%.4g ms, %d bytes%s", 1e3 * inSeconds(attempt.time), attempt.peakBytes,
                           attempt.fits ? "" : " (more than the limit)");
  }

  // `how`: the first of the finalists was found, or the record is kept beside all of them.
  std::string noteOf(const std::string& how) const {
    std::vector<std::string> lines;
    if (how != kFound) {
      lines.push_back(figuresOf(record_->attempt));
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
  std::optional<ClosedRequest> record_;  // what the saved record comes to
  bool isRecordWhole_ = false;
  bool isRecordLong_ = false;  // of a long program
  std::vector<std::string> recordNotes_;
  std::vector<Finalist> finalists_;  // what the sketches that were predicted came to
  Usual usual_;
  size_t tried_ = 0;        // sketches
  size_t beside_ = 0;       // sketches with unlike meshes or another order of axes
  int64_t others_ = 0;      // predictions of other plans
  int64_t remembered_ = 0;  // predictions that were known from before
};

}  // namespace

absl::StatusOr<ClosedRequest> choosePlan(const GraphFor& graphs, const CompileOptions& request, const Predict& predict,
                                         const SearchKnowledge& known) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Sketches> sketches, Sketches::create(graphs, request, known));
  return PlanChooser(request, *sketches, predict, known).run();
}

}  // namespace weft
