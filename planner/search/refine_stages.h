// The stages of a plan that was found, cut again where blocks are finer and sums of what they need are not enough.
//
//   1. Sketches cut a program between repeated layers. Where every operator that reads a parameter may begin a stage,
//      few layers on many stages, or a language model's head beside them, make stages that are more alike.
//   2. A cut is found by sums of what blocks need alone (cut_stages.h). A prediction knows more: what is passed from
//      stage to stage, how unlike stages idle under the schedule, how memory is packed. So each border in turn is moved
//      by a block forwards, then backwards, as long as the plan gets better; of a tiny program by a finer block. Not
//      of the best plan alone, but of what takes about as long, and of a tiny program of all: with its borders moved
//      another one may be shorter.
//   3. What works on inputs alone has no block: it runs where it is read. Also tried are all of it in the first stage,
//      and each operator where what stands before it in the program runs.
//
// Only of programs that are not long: those are quick to predict. Of long ones a stage has many layers, so less is to
// be gained, and sums over fine blocks, which count what passes between them, are off by more than that.
#pragma once

#include <functional>
#include <vector>

#include "planner/search/block_program.h"
#include "planner/search/choose_open.h"
#include "planner/search/sketches.h"

namespace weft {

struct RefinedPlan {
  const Sketch& sketch;
  const BlockProgram& program;  // on whose blocks the sketch is cut
  ClosedRequest plan;           // that it came to
};

// What a plan takes on other stages of its program (PlanPredictions::onStages); `useless` as for Predict.
using PredictOnStages = std::function<absl::StatusOr<ClosedRequest>(
    const ClosedRequest& plan, const BlockProgram& program, std::vector<int> stages, Picoseconds useless)>;

// The plans in their order, at least one: all of them cut anew, and the borders moved of what is then the best, of what
// takes about as long, and in a tiny program of all of them. A plan stays as it is where its stages are the user's, or
// may not be unlike, or its program is a long one. `memo`: of the request's machine.
std::vector<ClosedRequest> refineStages(std::vector<RefinedPlan> plans, const PredictOnStages& predict,
                                        PlanningMemo& memo);

}  // namespace weft
