#include "planner/search/departures.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/check_request.h"
#include "planner/derive/placement.h"
#include "planner/search/plan.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Sets of words that are all planned.
constexpr int64_t kMostSets = 64;
// Of more, so many of each size are planned with one word more.
constexpr size_t kExtended = 3;

using WordSet = std::vector<size_t>;  // ascending

// Sets of at most `most` of `words` words, without the empty one; hardly counted beyond kMostSets.
int64_t countSets(int64_t words, int64_t most) {
  int64_t sum = 0;
  int64_t ofSize = 1;
  for (int64_t size = 1; size <= most && sum <= kMostSets; ++size) {
    ofSize = ofSize * (words - size + 1) / size;
    sum += ofSize;
  }
  return sum;
}

// Of a request that has no plan, as far as it says so: the ranks of its mesh on each of the user's stages.
absl::StatusOr<int64_t> ranksOf(const CompileOptions& request, const ProgramGraph& graph) {
  int64_t ranks = 0;
  if (!request.stageMeshes.empty()) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, parseStageMeshes(request.stageMeshes, 1));
    for (const Mesh& mesh : meshes) {
      ranks += mesh.ranks();
    }
    return ranks;
  }
  if (request.devices > 1 || request.mesh.empty()) {
    return request.devices;
  }
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, meshOf(request));
  WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(GraphView(graph), request.stages));
  return mesh.ofRanks().ranks() * std::max<int64_t>(1, stages.count / std::max<int64_t>(1, request.virtualStages));
}

class Departures {
 public:
  Departures(const GraphFor& graphs, const CompileOptions& request, const Correction& correction, SearchMemory* memory)
      : question_{graphs, request},
        correction_(correction),
        memory_(memory),
        most_(static_cast<size_t>(request.departures)) {
    question_.request.departures = 0;
  }

  absl::StatusOr<DepartedPlan> run() {
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph,
                          question_.graphs(question_.request.microBatches()));
    absl::StatusOr<ClosedRequest> own = closeRequest(question_.graphs, question_.request, correction_, memory_);
    WEFT_ASSIGN_OR_RETURN(const int64_t ranks, own.ok()
                                                   ? absl::StatusOr<int64_t>(own->attempt.decisions.meshes().ranks())
                                                   : ranksOf(question_.request, *graph));
    words_ = userWords(question_.request, *graph, ranks);
    most_ = std::min(most_, words_.size());
    made_.refusal = own.status();
    ++made_.planned;
    if (own.ok()) {
      made_.own = own->attempt;
      offer({}, *std::move(own));
    }
    planAll();
    return best_ ? finish() : absl::StatusOr<DepartedPlan>(made_.refusal);
  }

 private:
  struct Planned {
    WordSet words;
    Attempt attempt;
  };

  static bool isBetterSet(const Planned& a, const Planned& b) {
    const bool better = isBetter(a.attempt, b.attempt);
    const bool worse = isBetter(b.attempt, a.attempt);
    return better != worse ? better : std::pair(a.words.size(), a.words) < std::pair(b.words.size(), b.words);
  }

  // A round for each number of words: each set of the round before with each word more, or those of its best.
  void planAll() {
    made_.exact =
        most_ <= 1 || countSets(static_cast<int64_t>(words_.size()), static_cast<int64_t>(most_)) <= kMostSets;
    std::vector<WordSet> last = {{}};
    for (size_t size = 1; size <= most_; ++size) {
      std::vector<Planned> round;
      std::vector<WordSet> sets = extended(last);
      for (const WordSet& set : sets) {
        plan(set, round);
      }
      std::sort(round.begin(), round.end(), isBetterSet);
      last.clear();
      // A set that has no plan may be a part of one that has.
      if (made_.exact || round.empty()) {
        last = std::move(sets);
        continue;
      }
      for (size_t i = 0; i < std::min(round.size(), kExtended); ++i) {
        last.push_back(round[i].words);
      }
    }
  }

  std::vector<WordSet> extended(const std::vector<WordSet>& sets) const {
    std::set<WordSet> larger;
    for (const WordSet& set : sets) {
      for (size_t word = 0; word < words_.size(); ++word) {
        if (std::find(set.begin(), set.end(), word) == set.end()) {
          WordSet more = set;
          more.insert(std::upper_bound(more.begin(), more.end(), word), word);
          larger.insert(std::move(more));
        }
      }
    }
    return {larger.begin(), larger.end()};
  }

  PlanQuestion questionWithout(const WordSet& set) const {
    std::vector<UserWord> dropped;
    std::transform(set.begin(), set.end(), std::back_inserter(dropped), [&](size_t word) { return words_[word]; });
    return without(dropped, question_);
  }

  void plan(const WordSet& set, std::vector<Planned>& round) {
    const PlanQuestion asked = questionWithout(set);
    ++made_.planned;
    if (!checkRequest(Request{asked.request, std::nullopt}).ok()) {
      return;
    }
    absl::StatusOr<ClosedRequest> closed = closeRequest(asked.graphs, asked.request, correction_, memory_);
    if (!closed.ok()) {
      return;
    }
    if (set.size() == 1) {
      made_.alone.emplace_back(set[0], closed->attempt);
    }
    round.push_back({set, closed->attempt});
    offer(set, *std::move(closed));
  }

  void offer(const WordSet& set, ClosedRequest closed) {
    ticks_ += closed.ticks;
    Planned mine = {set, closed.attempt};
    if (!best_ || isBetterSet(mine, *best_)) {
      best_ = std::move(mine);
      made_.plan = std::move(closed);
    }
  }

  DepartedPlan finish() {
    for (const UserWord& word : words_) {
      made_.words.push_back(word.text);
    }
    made_.from = best_->words;
    made_.question = questionWithout(best_->words);
    made_.plan.ticks = ticks_;
    made_.plan.attempt.decisions.notes.push_back(note());
    return std::move(made_);
  }

  std::string note() const {
    if (words_.empty()) {
      return "departures: nothing is said that a plan could depart from; all is searched";
    }
    std::vector<std::string> names;
    for (const size_t word : made_.from) {
      names.push_back(made_.words[word]);
    }
    const std::string own =
        made_.own ? absl::StrFormat("%.4g ms, %d bytes%s with all words kept", 1e3 * inSeconds(made_.own->time),
                                    made_.own->peakBytes, made_.own->fits ? "" : " (more than the limit)")
                  : absl::StrCat("no plan with all words kept: ", made_.refusal.message());
    return absl::StrCat("departures: ", names.empty() ? "none" : absl::StrJoin(names, ", "), ", of ", words_.size(),
                        words_.size() == 1 ? " word; " : " words; ", own, "; ", made_.planned, " sets of words planned",
                        made_.exact ? ", all there are" : ", not all there are");
  }

  PlanQuestion question_;
  const Correction& correction_;
  SearchMemory* memory_;
  size_t most_;
  std::vector<UserWord> words_;
  std::optional<Planned> best_;
  int64_t ticks_ = 0;
  DepartedPlan made_;
};

}  // namespace

absl::StatusOr<DepartedPlan> departedPlan(const GraphFor& graphs, const CompileOptions& request,
                                          const Correction& correction, SearchMemory* memory) {
  return Departures(graphs, request, correction, memory).run();
}

}  // namespace weft
