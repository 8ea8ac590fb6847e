// The best plan within a few departures from the user's own: up to `request.departures` of his words (user_words.h) are
// left open for mode kAuto to search, all others are kept.
//
//   absl::StatusOr<DepartedPlan> departed = departedPlan(graphs, request, {});
//   departed->plan                               // as closeRequest gives it
//   departed->words[departed->from[0]]           // "micro-batches 4"
//
// Every set of words is planned where there are few of them (kMostSets): then no other set is better. Else each word
// alone is, and as long as more departures are allowed, the best few sets of the last round are, each with one word
// more: `exact` says which. Of plans that take the same time in the same memory that with the fewest departures is
// taken, so what the user said is kept where it costs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/search/choose_open.h"
#include "planner/search/search_memory.h"
#include "planner/search/user_words.h"

namespace weft {

struct DepartedPlan {
  ClosedRequest plan;              // its ticks are those of all that were planned
  PlanQuestion question;           // that it answers
  std::vector<size_t> from;        // the words that it departs from, ascending; none: the user's own plan is the best
  std::vector<std::string> words;  // all of the user's
  std::optional<Attempt> own;      // what comes of all words
  absl::Status refusal;            // why nothing does; OK where `own` is there
  std::vector<std::pair<size_t, Attempt>> alone;  // what comes of each word left open alone, as far as that can be
  bool exact = true;
  int64_t planned = 0;  // sets of words, none of them among them
};

// `request` in mode kAuto. Errors: no set of departures has a plan; that of all words kept.
// `memory`: as of closeRequest.
absl::StatusOr<DepartedPlan> departedPlan(const GraphFor& graphs, const CompileOptions& request,
                                          const Correction& correction, SearchMemory* memory = nullptr);

}  // namespace weft
