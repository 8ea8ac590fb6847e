// Which sketches are predicted in full.
//
// In the order of what is expected of them, as many as there is time for. Sketches with unlike meshes or another order
// of axes are predicted beside the others, so that none of these is left out for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "planner/request.h"
#include "planner/search/choose_open.h"
#include "planner/search/sketches.h"

namespace weft {

struct Finalist {
  Sketch sketch;
  ClosedRequest plan;  // what it came to
};
bool isBetterPlan(const Finalist& a, const Finalist& b);

// Sketches that are expected to take so many times as long as the best prediction are not predicted; those of long
// programs (block_program.h) are closer.
double farOffFrom(bool isLong);
// So many times less is worth more questions.
inline constexpr double kPromises = 1.03;

class FinalistPicker {
 public:
  enum class Answer : uint8_t { kPredict, kSkip, kEnough };
  // The best plan so far; none: nothing was predicted. `isRecord`: it is what a saved record comes to.
  struct Best {
    const Attempt* attempt = nullptr;
    bool isRecord = false;
  };

  explicit FinalistPicker(const CompileOptions& request);

  // What a saved record comes to, where that fits, counts as a prediction of a usual sketch.
  void beginWith(Picoseconds time) { usual_ = {true, time, time}; }
  Answer next(const Sketch& sketch, bool isLong, const Best& best);
  void learn(const Sketch& sketch, const ClosedRequest& made);

 private:
  // The best prediction of a sketch with one mesh in the usual order. How many of these are predicted follows from it
  // alone, so that what is predicted beside them takes the place of none.
  struct Usual {
    bool fits = false;
    Picoseconds time = 0;
    Picoseconds expected = 0;  // of its sketch
  };

  using Key = std::tuple<std::string, int64_t, int64_t>;  // mesh, submeshes and micro-batches
  static Key keyOf(const Sketch& sketch);
  // By how many times a step took longer than its sketch, of those with the same key.
  double longer(const Sketch& sketch) const;
  bool isBeside(const Sketch& sketch) const;
  size_t mostTried(const Sketch& next, bool isRecordBest) const;

  const CompileOptions& request_;
  Usual usual_;
  size_t most_;
  size_t tried_ = 0;
  size_t beside_ = 0;
  size_t doubtful_ = 0;
  std::map<Key, double> longer_;
};

}  // namespace weft
