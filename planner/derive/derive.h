// Deriving: from the user's few words to the decisions about every operator and argument.
//
// What exists only to be expanded is. Then in rounds: stages and micro-batches settle (what must be known first is
// copied into the prologue), pads spread, the user's words are read, axes propagate. Where a split reaches a factor
// that an operator needs whole, or one is chosen by price (modes kLayouts and kAuto), its alternative takes its place
// and the round starts again. The round that changes nothing gives the decisions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/decisions.h"
#include "planner/derive/gathers.h"
#include "planner/derive/reshard_prices.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"

namespace weft {

// The schedule that was searched for schedule = "auto".
struct ScheduleChoice {
  std::string kind;
  int64_t virtualStages = 1;
  std::string considered;  // JSON: what it chose among; for people
};

// What the request leaves open and nothing follows from.
struct OpenChoices {
  std::optional<ScheduleChoice> schedule;  // none: as the request says; for "auto" a schedule that always serves
  int64_t gatherBytes = -1;                // that parameters gathered once per step may take; negative: no bound
  double bytePrice = 0;                    // of memory, where splits are decided by price (settle_conflicts.h)
  std::map<unsigned, Shape> pads = {};     // stored shapes of arguments, so that splits divide; those that can be are
  ReshardMemo* memo = nullptr;             // of the machine; none: nothing is known
  double slack = 0;                        // that splits decided by price may cost more than the least, a part of it
  bool batchAxes = false;                  // may the batch's axes split other factors, where all splits are considered?
  const Decisions* begin = nullptr;        // splits that are known to be good (PricedMachine::begin)
};

struct Derivation {
  Decisions decisions;
  std::map<unsigned, Shape> evenPads;         // with which splits would divide that are dropped now
  std::vector<ParameterGather> gathers = {};  // among which OpenChoices::gatherBytes chooses (chooseGathers)
  bool hadChoice = false;                     // between splits: with other prices others may be chosen
};

// The schedule of the request for so many stages; `choice` stands for "auto". Errors: numbers that the kind does not
// serve.
absl::StatusOr<ScheduleDecision> scheduleFor(const CompileOptions& request, const std::optional<ScheduleChoice>& choice,
                                             int64_t stages, bool trains);

// The decisions for a graph, and `graph` as they rewrite it. Errors: what the request asks of the program cannot be,
// at the user's lines (sourcePlaceOf).
absl::StatusOr<Derivation> deriveDecisions(ProgramGraph& graph, const CompileOptions& request,
                                           const OpenChoices& choices);

}  // namespace weft
