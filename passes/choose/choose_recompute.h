// The option recompute = "auto": what the backward pass recomputes, so that the plan fits in memory in the least
// time.
//
//   1. Compile without recomputation. If that fits the limit, stop.
//   2. Cut the stages into intervals, find the equal ones, enumerate each class's choices (planner/recompute/).
//   3. For each submesh a knapsack: the least extra time within a budget of kept bytes. A byte kept of one
//      micro-batch costs as many bytes as the schedule has micro-batches in flight there (the plan's slots).
//   4. Compile with the choice and measure the planner's peak; correct the budget by what it is above or below the
//      limit, until it fits and nothing cheaper does, or kRounds compilations are spent.
// Submeshes do not share memory, and no step is shortened by a longer stage: each is solved by itself, all are
// measured in one compilation. The result is a decisions record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "planner/decisions.h"
#include "planner/machine/machine.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// The compiler's two halves: to the annotated state (layouts decided, nothing recomputed), and on to the plan.
struct CompilerHalves {
  std::function<absl::Status(mlir::ModuleOp)> annotate;
  std::function<absl::StatusOr<plan::Plan>(mlir::ModuleOp)> finish;
  Machine machine;  // on which plans are timed
};

// One compilation, as far as choosing between compilations goes.
struct Attempt {
  Decisions decisions;
  int64_t peakBytes = 0;  // of the rank that needs most
  double seconds = 0;     // of a step, simulated
  bool fits = false;
};

// No choice of a program without stages fits: `least` is what the best of them needs.
absl::Status nothingFits(int64_t least, int64_t limit);

class RecomputeSearch {
 public:
  static constexpr int kRounds = 8;

  // Compiles a copy of `module` without recomputation beyond what the user asked for. Errors: those of the compiler.
  static absl::StatusOr<std::unique_ptr<RecomputeSearch>> create(mlir::ModuleOp module, const CompilerHalves& halves);
  ~RecomputeSearch();

  const Attempt& base() const;

  // The shortest that fits in `limit` bytes per rank; where none does, that with the least peak of all tried.
  absl::StatusOr<Attempt> under(int64_t limit);

 private:
  struct Impl;
  explicit RecomputeSearch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
