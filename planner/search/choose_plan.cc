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

class PlanChooser {
 public:
  PlanChooser(const CompileOptions& request, Sketches& sketches, const Predict& predict, const SearchKnowledge& known)
      : request_(request), sketches_(sketches), predict_(predict), known_(known) {}

  // In the order of the sketches, without those that cannot be better than the best so far.
  absl::StatusOr<ClosedRequest> run() {
    std::vector<Finalist> finalists;
    const Attempt* best = nullptr;
    size_t tried = 0;
    size_t beside = 0;
    Usual usual;
    absl::Status refusal;
    size_t most = kMostFinalists;
    for (;;) {
      const std::optional<Sketch> sketch = sketches_.next();
      if (!sketch || tried >= mostTried(most, usual, *sketch)) {
        break;
      }
      const bool isLong = sketches_.isLong(*sketch);
      const bool isUnlike = sketch->grid.mesh.empty() && request_.stageMeshes.empty();
      const bool isBeside = isUnlike || sketch->grid.isReordered;
      const double farOff = isLong ? kFarOffOfLong : kFarOff;
      const bool isFarOff =
          usual.fits && static_cast<double>(sketch->cut.time) > farOff * static_cast<double>(usual.time);
      if (isFarOff && !isBeside) {
        break;
      }
      ++(isBeside ? beside : tried);
      if (isBeside && (isFarOff || beside > (isLong ? kMostBesideOfLong : kMostBeside))) {
        continue;
      }
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
        usual = {true, usual.fits ? std::min(usual.time, made.time) : made.time};
      }
      finalists.push_back({*sketch, *std::move(closed)});
      best = &std::min_element(finalists.begin(), finalists.end(), isBetterPlan)->plan.attempt;
    }
    if (finalists.empty()) {
      return refused(refusal.ok() ? sketches_.refusal() : refusal);
    }
    const size_t scheduled = addOtherSchedules(finalists);
    std::stable_sort(finalists.begin(), finalists.end(), isBetterPlan);
    const Sketch& sketch = finalists.front().sketch;
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(sketch.request.microBatches()));
    ClosedRequest refined = refineStages({sketch, finalists.front().plan}, *program, predict_, known_.reshards);
    const std::shared_ptr<const ProgramGraph> staged = refined.graph;
    const Predict predictMixed = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double> price) {
      return mixed(staged, closed, price);
    };
    WEFT_ASSIGN_OR_RETURN(ClosedRequest chosen, mixZero(std::move(refined), request_, predictMixed));
    chosen.attempt.decisions.notes.push_back(noteOf(finalists));
    chosen.ticks += sketches_.ticks() + static_cast<int64_t>(tried + beside + scheduled) - remembered_;
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

  static size_t mostTried(size_t most, const Usual& usual, const Sketch& next) {
    if (!usual.fits) {
      return 2 * most;
    }
    const bool promises = kPromises * static_cast<double>(next.cut.time) < static_cast<double>(usual.time);
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

  // The best first.
  std::string noteOf(const std::vector<Finalist>& finalists) const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < std::min(finalists.size(), kMostNamed + 1); ++i) {
      const Attempt& attempt = finalists[i].plan.attempt;
      lines.push_back(absl::StrFormat("%s: %.4g ms, %d bytes%s", wordsOf(finalists[i].sketch),
                                      1e3 * inSeconds(attempt.time), attempt.peakBytes,
                                      attempt.fits ? "" : " (more than the limit)"));
    }
    return absl::StrCat("mode auto: found ", lines.front(), " predicted for a step of a rank; others: ",
                        lines.size() > 1 ? absl::StrJoin(lines.begin() + 1, lines.end(), "; ") : "none",
                        "; estimated: ", sketches_.count(), " plans, refused: ", sketches_.refused());
  }

  const CompileOptions& request_;
  Sketches& sketches_;
  const Predict& predict_;
  SearchKnowledge known_;
  int64_t remembered_ = 0;  // predictions that were known from before
};

}  // namespace

absl::StatusOr<ClosedRequest> choosePlan(const GraphFor& graphs, const CompileOptions& request, const Predict& predict,
                                         const SearchKnowledge& known) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Sketches> sketches, Sketches::create(graphs, request, known));
  return PlanChooser(request, *sketches, predict, known).run();
}

}  // namespace weft
