// A plan in the words of the public API: options, and what `shard`, stage scopes, `recomputed` and layouts say, so that
// the program with these words, in mode semi and without a record, is planned just so.
//
// Few words are looked for. Most of a plan follows from a part of it (planner/derive/): so the program is derived with
// the options alone, and as long as the result differs from the plan, the first operators that differ, in the order of
// the program, say how they are split; layers that differ alike all at once.
//
//   absl::StatusOr<PlanWords> words = wordsOf(graphs, request, decisions);
//   const ProgramGraph said = withWords(*words, *graph);        // the program, as if the user had written them
//   planProgram(graphForAll(said), words->options, {});         // makes the same decisions
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/decisions.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/block_program.h"

namespace weft {

// What is to be said of one operator of the program, beside what the user says.
struct OperatorWords {
  int64_t id = 0;
  std::optional<UserStrategy> strategy = {};  // by axis names; instead of the user's
  std::optional<int64_t> stage = {};
  bool recomputed = false;  // Tensor::recomputed
};

// InputOptions::layout.
struct InputWords {
  unsigned argument = 0;
  std::string layout;
};

struct PlanWords {
  CompileOptions options;                // that leaves nothing open, in mode semi
  std::vector<OperatorWords> operators;  // in program order
  std::vector<InputWords> inputs;
  std::vector<std::string> unsaid;  // what differs all the same: for people; empty: the words say the whole plan
};

// The words for the decisions about a program. `request`: what was asked for; it keeps its machine, memory limit,
// layouts and whatever the plan does not answer. Errors: decisions about another program; what the request or the words
// cannot be.
absl::StatusOr<PlanWords> wordsOf(const GraphFor& graphs, const CompileOptions& request, const Decisions& decisions);

// The program with the words on its operators and inputs.
ProgramGraph withWords(const PlanWords& words, const ProgramGraph& graph);

}  // namespace weft
