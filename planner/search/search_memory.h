// What searches found of one program, for those that come after.
//
// A search that is asked again with one word changed asks most of the same: what blocks need on a mesh with so many
// micro-batches, and what a request that leaves nothing open takes. An answer is taken from before only where all that
// it depends on is the same: the program itself (by identity: the graph is kept, so that no other can take its place),
// and every word of the closed request that counts. Words that only say which requests are considered (a pin, the
// memory limit of blocks, the number of stages) are no part of the question, so a pin finds what was asked without it.
//
// Where splits may be a little above the least (kSlackOfSketches), which of them are chosen depends on the reshards
// that the search has met: an answer from before is as good as the one that a search alone would find, and of the same
// request the same.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/bound.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/choose_open.h"
#include "planner/search/known_choices.h"
#include "planner/search/pipeline_shape.h"
#include "planner/search/planning_memo.h"
#include "planner/search/segment_costs.h"

namespace weft {

// Of a request that leaves nothing open but schedule and recomputation.
struct SearchQuestion {
  std::shared_ptr<const ProgramGraph> graph;  // as the user has it
  CompileOptions closed;
  double bytePrice = -1;         // of memory; negative: none is given
  bool uncut = false;            // of blocks: as one stage
  int programZero = 0;           // of blocks: the level beside which zeroOf tells parameters apart
  std::vector<int> stages = {};  // of a plan: of each operator (BlockProgram::stagesOf)
  // Of a plan: what does not fit may have been given up as it takes so long (Predict).
  Picoseconds useless = kAnyTime;
};

template <typename Answer>
class KnownAnswers {
 public:
  // Nothing where it was not asked.
  const absl::StatusOr<Answer>* find(const SearchQuestion& question) const {
    for (const auto& [asked, answer] : known_) {
      if (isSame(asked, question) && (asked.useless >= question.useless || isFinal(answer))) {
        return &answer;
      }
    }
    return nullptr;
  }
  size_t size() const { return known_.size(); }
  const absl::StatusOr<Answer>& keep(SearchQuestion question, absl::StatusOr<Answer> answer) {
    return known_.emplace_back(std::move(question), std::move(answer)).second;
  }

 private:
  static bool isSame(const SearchQuestion& a, const SearchQuestion& b);
  // Is it the same whatever is useless?
  static bool isFinal(const absl::StatusOr<Answer>& answer);

  std::deque<std::pair<SearchQuestion, absl::StatusOr<Answer>>> known_;
};

// Bounds on plans, by all that they depend on.
class KnownBounds {
 public:
  // As leastTime.
  absl::StatusOr<Picoseconds> of(const std::shared_ptr<const ProgramGraph>& graph, const Machine& machine,
                                 const BoundedPlans& plans);

 private:
  struct Known {
    std::shared_ptr<const ProgramGraph> graph;
    std::string machine;
    BoundedPlans plans;
    Picoseconds least = 0;
  };

  std::vector<Known> known_;
};

// Of searches with no correction, one after the other.
struct SearchMemory {
  KnownAnswers<SegmentCosts> blocks;
  KnownAnswers<ClosedRequest> plans;  // with their predictions
  KnownShapes shapes;
  KnownBounds bounds;
  KnownChoices choices;
};

// Do two requests say the same?
bool areSame(const CompileOptions& a, const CompileOptions& b);

// What a search knows: of its machine since it began, what those before it found, and the saved record that it begins
// from, if there is one.
struct SearchKnowledge {
  PlanningMemo& memo;
  SearchMemory& before;
  const Decisions* record = nullptr;
};

}  // namespace weft
