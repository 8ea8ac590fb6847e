// Which sketches are predicted in full.
#include "planner/search/finalists.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Answer = FinalistPicker::Answer;

Sketch sketchOf(const std::string& mesh, const std::string& schedule, Picoseconds time) {
  Sketch sketch;
  sketch.request.schedule = schedule;
  sketch.grid = {8, 1, mesh};
  sketch.cut.time = time;
  sketch.cut.fits = true;
  return sketch;
}

// A plan of a program of so many operators.
ClosedRequest planOf(Picoseconds time, size_t operators) {
  ProgramGraph graph;
  graph.operators.resize(operators);
  ClosedRequest made;
  made.graph = std::make_shared<const ProgramGraph>(std::move(graph));
  made.attempt.time = time;
  made.attempt.fits = true;
  return made;
}

// What others with its mesh took longer than was expected a sketch of a long program is expected to take longer, too:
// one such is predicted, and those that promise still have their places.
TEST(FinalistPicker, LearnsOfAMeshHowFarOffItsSketchesAre) {
  const CompileOptions request;
  for (const bool isLong : {true, false}) {
    FinalistPicker picker(request);
    const Sketch first = sketchOf("dp=16,tp=8", "dualpipe_v", 1000);
    EXPECT_EQ(picker.next(first, isLong, {}), Answer::kPredict);
    const ClosedRequest plan = planOf(1050, 8000);
    picker.learn(first, plan);
    const FinalistPicker::Best best = {&plan.attempt, false};
    EXPECT_EQ(picker.next(sketchOf("dp=16,tp=8", "v_half", 1010), isLong, best), Answer::kPredict);
    EXPECT_EQ(picker.next(sketchOf("dp=16,tp=8", "zb_h1", 1015), isLong, best),
              isLong ? Answer::kSkip : Answer::kPredict);
    EXPECT_EQ(picker.next(sketchOf("dp=8,tp=16", "dualpipe_v", 1020), isLong, best),
              isLong ? Answer::kPredict : Answer::kEnough);
  }
}

// Where a plan takes what was expected the others of its mesh are as good as any.
TEST(FinalistPicker, ThoseOfAMeshAreNotDoubtedWithoutReason) {
  const CompileOptions request;
  FinalistPicker picker(request);
  const Sketch first = sketchOf("dp=16,tp=8", "dualpipe_v", 1000);
  EXPECT_EQ(picker.next(first, true, {}), Answer::kPredict);
  const ClosedRequest plan = planOf(1000, 8000);
  picker.learn(first, plan);
  const FinalistPicker::Best best = {&plan.attempt, false};
  EXPECT_EQ(picker.next(sketchOf("dp=16,tp=8", "v_half", 995), true, best), Answer::kPredict);
  EXPECT_EQ(picker.next(sketchOf("dp=16,tp=8", "zb_h1", 996), true, best), Answer::kPredict);
  EXPECT_EQ(picker.next(sketchOf("dp=16,tp=8", "zb_h2", 1020), true, best), Answer::kEnough) << "too far off";
}

}  // namespace
}  // namespace weft
