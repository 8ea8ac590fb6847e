#include "planner/search/choose_plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/search/mix_zero.h"
#include "planner/search/neighbor_plans.h"
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
// Neighbors of the best plan that are predicted: a part of all questions before, or a few. Where memory is short
// sketches are further from what is predicted.
constexpr int64_t kNeighborPart = 10;
constexpr int64_t kNeighborPartOfLimited = 4;
constexpr int64_t kFewestNeighbors = 6;
// So many of the best plans are asked about with the batch's axes free to split other factors, of these on near meshes.
constexpr size_t kMostFreed = 3;
constexpr size_t kNearFreed = 1;

// What plans take, asked once each.
class PlanPredictions {
 public:
  PlanPredictions(Sketches& sketches, const Predict& predict, const SearchKnowledge& known)
      : sketches_(sketches), predict_(predict), known_(known) {}

  // How many were asked about, but for what was known from before.
  int64_t asked() const { return asked_; }

  absl::StatusOr<ClosedRequest> of(const Sketch& sketch) {
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(sketch.request.microBatches()));
    CompileOptions closed = sketch.request;
    closed.virtualStages = sketch.grid.submeshes > 1 ? sketch.grid.virtualStages : 0;
    SearchQuestion question = {program->sharedGraph(), closed, sketch.bytePrice.value_or(-1)};
    question.first = sketch.cut.first;
    if (const absl::StatusOr<ClosedRequest>* known = known_.before.plans.find(question)) {
      return *known;
    }
    auto staged = std::make_shared<const ProgramGraph>(program->onStages(sketch.cut.first));
    return ask(std::move(question), std::move(staged), sketch.bytePrice);
  }

  // Of a plan that was chosen, with levels of ZeRO of its own.
  absl::StatusOr<Attempt> mixed(const std::shared_ptr<const ProgramGraph>& staged, const CompileOptions& closed,
                                std::optional<double> bytePrice) {
    SearchQuestion question = {staged, closed, bytePrice.value_or(-1)};
    const absl::StatusOr<ClosedRequest>* known = known_.before.plans.find(question);
    if (known == nullptr) {
      known = &ask(std::move(question), staged, bytePrice);
    }
    return known->ok() ? absl::StatusOr<Attempt>((*known)->attempt) : known->status();
  }

 private:
  // What the question's request takes on these stages, for the searches to come.
  const absl::StatusOr<ClosedRequest>& ask(SearchQuestion question, std::shared_ptr<const ProgramGraph> staged,
                                           std::optional<double> bytePrice) {
    ++asked_;
    absl::StatusOr<ClosedRequest> made = ClosedRequest{question.closed, std::move(staged), {}, bytePrice};
    absl::StatusOr<Attempt> attempt = predict_(*made->graph, made->request, bytePrice);
    if (attempt.ok()) {
      made->attempt = *std::move(attempt);
    } else {
      made = attempt.status();
    }
    return known_.before.plans.keep(std::move(question), std::move(made));
  }

  Sketches& sketches_;
  const Predict& predict_;
  SearchKnowledge known_;
  int64_t asked_ = 0;
};

struct Finalist {
  Sketch sketch;
  ClosedRequest plan;  // what it came to
};
bool isBetterPlan(const Finalist& a, const Finalist& b) {
  return isBetter(a.plan.attempt, b.plan.attempt);
}

// Which sketches are predicted, in their order.
class FinalistPicker {
 public:
  enum class Answer : uint8_t { kPredict, kSkip, kEnough };

  explicit FinalistPicker(const CompileOptions& request) : request_(request) {}

  // `best`: of those predicted; none: nothing was.
  Answer next(const Sketch& sketch, bool isLong, const Attempt* best) {
    if (tried_ >= mostTried(sketch)) {
      return Answer::kEnough;
    }
    const double farOff = isLong ? kFarOffOfLong : kFarOff;
    const bool isFarOff =
        usual_.fits && static_cast<double>(sketch.cut.time) > farOff * static_cast<double>(usual_.time);
    const bool isBeside = this->isBeside(sketch);
    if (isFarOff && !isBeside) {
      return Answer::kEnough;
    }
    ++(isBeside ? beside_ : tried_);
    const bool isLeftOut = isBeside && (isFarOff || beside_ > (isLong ? kMostBesideOfLong : kMostBeside));
    const bool isHopeless = best != nullptr && best->fits && sketch.cut.bound >= best->time;
    return isLeftOut || isHopeless ? Answer::kSkip : Answer::kPredict;
  }

  void learn(const Sketch& sketch, const ClosedRequest& made) {
    most_ = std::clamp(kPredictedOperators / made.graph->operators.size(), kFewestFinalists, kMostFinalists);
    if (!isBeside(sketch) && made.attempt.fits) {
      usual_ = {true, usual_.fits ? std::min(usual_.time, made.attempt.time) : made.attempt.time};
    }
  }

 private:
  // The best prediction of a sketch with one mesh in the usual order. How many of these are predicted follows from it
  // alone, so that what is predicted beside them takes the place of none.
  struct Usual {
    bool fits = false;
    Picoseconds time = 0;
  };

  bool isBeside(const Sketch& sketch) const {
    return sketch.grid.isReordered || (sketch.grid.mesh.empty() && request_.stageMeshes.empty());
  }

  size_t mostTried(const Sketch& next) const {
    if (!usual_.fits) {
      return 2 * most_;
    }
    const bool promises = kPromises * static_cast<double>(next.cut.time) < static_cast<double>(usual_.time);
    return promises ? kMoreTried * most_ : most_;
  }

  const CompileOptions& request_;
  Usual usual_;
  size_t most_ = kMostFinalists;
  size_t tried_ = 0;
  size_t beside_ = 0;
};

class PlanChooser {
 public:
  PlanChooser(const CompileOptions& request, Sketches& sketches, const Predict& predict, const SearchKnowledge& known)
      : request_(request), sketches_(sketches), predict_(predict), known_(known), plans_(sketches, predict, known) {}

  absl::StatusOr<ClosedRequest> run() {
    const absl::Status refusal = predictSketches();
    if (finalists_.empty()) {
      return refused(refusal.ok() ? sketches_.refusal() : refusal);
    }
    addOtherSchedules();
    addNeighbors();
    std::stable_sort(finalists_.begin(), finalists_.end(), isBetterPlan);
    return refined();
  }

 private:
  const Finalist& best() const { return *std::min_element(finalists_.begin(), finalists_.end(), isBetterPlan); }

  // In the order of the sketches, without those that cannot be better than the best so far. Answers the first refusal.
  absl::Status predictSketches() {
    FinalistPicker picker(request_);
    absl::Status refusal;
    while (const std::optional<Sketch> sketch = sketches_.next()) {
      const Attempt* best = finalists_.empty() ? nullptr : &this->best().plan.attempt;
      const FinalistPicker::Answer answer = picker.next(*sketch, sketches_.isLong(*sketch), best);
      if (answer == FinalistPicker::Answer::kEnough) {
        break;
      }
      if (answer == FinalistPicker::Answer::kSkip) {
        continue;
      }
      absl::StatusOr<ClosedRequest> closed = plans_.of(*sketch);
      if (closed.ok()) {
        picker.learn(*sketch, *closed);
        finalists_.push_back({*sketch, *std::move(closed)});
      } else {
        refusal = refusal.ok() ? closed.status() : refusal;
      }
    }
    return refusal;
  }

  // A sketch of a long program says its schedule. Where the best one takes longer than was expected of it, more is
  // recomputed than was expected, and a schedule that holds fewer micro-batches, as 1F1B, may be shorter on the same
  // stages.
  void addOtherSchedules() {
    const Finalist best = this->best();
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
      if (absl::StatusOr<ClosedRequest> made = plans_.of(other); made.ok()) {
        finalists_.push_back({std::move(other), *std::move(made)});
      }
    }
  }

  // The best against those one decision away, as long as one of them is better (neighbor_plans.h).
  void addNeighbors() {
    if (sketches_.isLong(best().sketch)) {
      return;
    }
    const int64_t asked = plans_.asked();
    const int64_t part = best().sketch.cut.limited ? kNeighborPartOfLimited : kNeighborPart;
    const int64_t most = asked + std::max(kFewestNeighbors, (sketches_.ticks() + asked) / part);
    while (plans_.asked() < most && addBetterNeighbor(most)) {
    }
  }

  bool addBetterNeighbor(int64_t most) {
    const Finalist now = best();
    for (Sketch& neighbor : neighborsOf(now.sketch, *now.plan.graph, request_)) {
      if (plans_.asked() >= most) {
        return false;
      }
      if (addIfBetter(std::move(neighbor), now.plan.attempt)) {
        return true;
      }
    }
    return false;
  }

  bool addIfBetter(Sketch sketch, const Attempt& than) {
    absl::StatusOr<ClosedRequest> made = plans_.of(sketch);
    const bool isAdded = made.ok() && isBetter(made->attempt, than);
    if (isAdded) {
      finalists_.push_back({std::move(sketch), *std::move(made)});
    }
    return isAdded;
  }

  // The first finalist with its stages cut anew, the batch's axes free, and levels of ZeRO of single classes of
  // weights.
  absl::StatusOr<ClosedRequest> refined() {
    const Sketch& sketch = finalists_.front().sketch;
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(sketch.request.microBatches()));
    ClosedRequest refined = refineStages({sketch, finalists_.front().plan}, *program, predict_, known_.reshards);
    if (!program->isLong()) {
      refined = withBatchAxesFree(std::move(refined));
    }
    const int64_t asked = plans_.asked();  // mixZero counts its own
    const std::shared_ptr<const ProgramGraph> staged = refined.graph;
    const Predict predictMixed = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double> price) {
      return plans_.mixed(staged, closed, price);
    };
    WEFT_ASSIGN_OR_RETURN(ClosedRequest chosen, mixZero(std::move(refined), request_, predictMixed));
    chosen.attempt.decisions.notes.push_back(noteOf());
    chosen.ticks += sketches_.ticks() + asked;
    return chosen;
  }

  // The best of it, of the same on near meshes, and of other finalists that are hardly worse, where the batch's axes
  // may split other factors than the batch. Such predictions take longer, so few are asked for.
  ClosedRequest withBatchAxesFree(ClosedRequest plan) {
    if (!request_.may(Freedom::kBatchAxes) || plan.request.mode == Mode::kSemi) {
      return plan;
    }
    const Picoseconds before = plan.attempt.time;
    for (ClosedRequest& other : plansToFree(plan)) {
      other.request.without.erase(Freedom::kBatchAxes);
      keepBetter(std::move(other), plan);
    }
    const ClosedRequest best = plan;
    for (CompileOptions& level : atOtherLevels(best.request, *best.graph, request_)) {
      level.without.erase(Freedom::kBatchAxes);
      ClosedRequest other = best;
      other.request = std::move(level);
      keepBetter(std::move(other), plan);
    }
    if (plan.request.may(Freedom::kBatchAxes)) {
      plan.attempt.decisions.notes.push_back(
          absl::StrFormat("axes of the batch split more than the batch: mesh %s, %.4g ms instead of %.4g ms",
                          plan.request.mesh.empty() ? plan.request.stageMeshes : plan.request.mesh,
                          1e3 * inSeconds(plan.attempt.time), 1e3 * inSeconds(before)));
    }
    return plan;
  }

  void keepBetter(ClosedRequest other, ClosedRequest& plan) {
    absl::StatusOr<Attempt> made = plans_.mixed(other.graph, other.request, other.bytePrice);
    if (made.ok() && isBetter(*made, plan.attempt)) {
      other.attempt = *std::move(made);
      other.ticks = plan.ticks;
      plan = std::move(other);
    }
  }

  // Meshes of many small axes first: on them one factor may have all axes, or several factors one each. Of finalists
  // the first of each number of submeshes and mesh.
  std::vector<ClosedRequest> plansToFree(const ClosedRequest& plan) const {
    std::vector<ClosedRequest> found = {plan};
    const Sketch& sketch = finalists_.front().sketch;
    std::vector<Sketch> near = neighborsOf(sketch, *plan.graph, request_);
    std::erase_if(near, [&](const Sketch& each) {
      return each.grid.mesh == sketch.grid.mesh || each.request.micro != sketch.request.micro;
    });
    std::stable_sort(near.begin(), near.end(), [](const Sketch& a, const Sketch& b) {
      return largestAxis(a.grid.mesh) < largestAxis(b.grid.mesh);
    });
    near.resize(std::min(near.size(), kNearFreed));
    std::set<std::pair<int64_t, std::string>> grids = {{sketch.grid.submeshes, sketch.grid.mesh}};
    for (const Sketch& each : near) {
      grids.emplace(each.grid.submeshes, each.grid.mesh);
      found.push_back(plan);
      found.back().request = each.request;
      found.back().request.virtualStages = plan.request.virtualStages;
    }
    for (size_t i = 1; i < finalists_.size() && found.size() < kMostFreed; ++i) {
      const Attempt& attempt = finalists_[i].plan.attempt;
      const StageGrid& grid = finalists_[i].sketch.grid;
      if (attempt.fits == plan.attempt.fits && grids.emplace(grid.submeshes, grid.mesh).second &&
          static_cast<double>(attempt.time) < kFarOff * static_cast<double>(plan.attempt.time)) {
        found.push_back(finalists_[i].plan);
      }
    }
    return found;
  }

  static int64_t largestAxis(const std::string& text) {
    int64_t largest = 1;
    const absl::StatusOr<Mesh> mesh = Mesh::parse(text);
    for (const NamedAxis& named : mesh.ok() ? mesh->axes() : std::vector<NamedAxis>()) {
      largest = std::max(largest, named.axis.size);
    }
    return largest;
  }

  // Why there is no plan. No plan at all may be left where not one was refused.
  static absl::Status refused(const absl::Status& first) {
    return first.ok() ? absl::InvalidArgumentError(
                            "mode auto: nothing that the request leaves open makes a plan; take a word of it back "
                            "(mesh, stages, micro-batches, schedule)")
                      : first;
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
  std::string noteOf() const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < std::min(finalists_.size(), kMostNamed + 1); ++i) {
      const Attempt& attempt = finalists_[i].plan.attempt;
      lines.push_back(absl::StrFormat("%s: %.4g ms, %d bytes%s", wordsOf(finalists_[i].sketch),
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
  PlanPredictions plans_;
  std::vector<Finalist> finalists_;
};

}  // namespace

absl::StatusOr<ClosedRequest> choosePlan(const GraphFor& graphs, const CompileOptions& request, const Predict& predict,
                                         const SearchKnowledge& known) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Sketches> sketches, Sketches::create(graphs, request, known));
  return PlanChooser(request, *sketches, predict, known).run();
}

}  // namespace weft
