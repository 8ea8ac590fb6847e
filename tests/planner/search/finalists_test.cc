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

// One that has predicted a sketch of a long program, or of another, that was expected to take 1000.
class Picker {
 public:
  explicit Picker(Picoseconds took, bool isLong = true) : plan_(planOf(took, 8000)), isLong_(isLong) {
    const Sketch first = sketchOf("dp=16,tp=8", "dualpipe_v", 1000);
    EXPECT_EQ(picker_.next(first, isLong, {}), Answer::kPredict);
    picker_.learn(first, plan_);
  }

  Answer next(const Sketch& sketch) { return picker_.next(sketch, isLong_, {&plan_.attempt, false}); }
  Answer next(const std::string& mesh, Picoseconds time) { return next(sketchOf(mesh, "zb_h1", time)); }

 private:
  const CompileOptions request_;
  FinalistPicker picker_{request_};
  ClosedRequest plan_;
  bool isLong_;
};

// What others with its mesh took longer than was expected a sketch of a long program is expected to take longer, too:
// one such is predicted, and those that promise still have their places.
TEST(FinalistPicker, LearnsOfAMeshHowFarOffItsSketchesAre) {
  for (const bool isLong : {true, false}) {
    Picker picker(1050, isLong);
    EXPECT_EQ(picker.next("dp=16,tp=8", 1010), Answer::kPredict);
    EXPECT_EQ(picker.next("dp=16,tp=8", 1015), isLong ? Answer::kSkip : Answer::kPredict);
    EXPECT_EQ(picker.next("dp=8,tp=16", 1020), isLong ? Answer::kPredict : Answer::kEnough);
  }
}

// Where a plan takes what was expected the others of its mesh are as good as any.
TEST(FinalistPicker, ThoseOfAMeshAreNotDoubtedWithoutReason) {
  Picker picker(1000);
  EXPECT_EQ(picker.next("dp=16,tp=8", 995), Answer::kPredict);
  EXPECT_EQ(picker.next("dp=16,tp=8", 996), Answer::kPredict);
  EXPECT_EQ(picker.next("dp=16,tp=8", 1020), Answer::kEnough) << "too far off";
}

// The best took 980: others that are expected to take as long as it was may take less, too, also those of its mesh.
TEST(FinalistPicker, WhereTheBestTakesLessThanWasExpectedTheNextMayToo) {
  Picker picker(980);
  EXPECT_EQ(picker.next("dp=8,tp=16", 1005), Answer::kPredict);
  EXPECT_EQ(picker.next("dp=16,tp=8", 1006), Answer::kPredict) << "not in doubt";
  EXPECT_EQ(picker.next("dp=32,tp=4", 1007), Answer::kEnough) << "three were predicted";
  EXPECT_EQ(Picker(980).next("dp=8,tp=16", 1015), Answer::kEnough) << "too far off";
}

// Those with another order of the mesh's axes are predicted beside the others, two of a long program, also where the
// mesh is in doubt.
TEST(FinalistPicker, OtherOrdersOfADoubtfulMeshHaveTheirOwnPlaces) {
  Picker picker(1050);
  EXPECT_EQ(picker.next("dp=16,tp=8", 1010), Answer::kPredict);
  EXPECT_EQ(picker.next("dp=16,tp=8", 1010), Answer::kSkip);
  Sketch reordered = sketchOf("dp=16,tp=8", "zb_h1", 1010);
  reordered.grid.isReordered = true;
  EXPECT_EQ(picker.next(reordered), Answer::kPredict);
  EXPECT_EQ(picker.next(reordered), Answer::kPredict);
  EXPECT_EQ(picker.next(reordered), Answer::kSkip);
}

}  // namespace
}  // namespace weft
