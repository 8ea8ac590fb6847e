#include "planner/search/refine_stages.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/check_request.h"
#include "planner/graph/graph_view.h"

namespace weft {
namespace {

constexpr size_t kMostMoves = 40;  // predictions with a border moved

// Forward operators on no stage that work on an input.
std::vector<size_t> worksOnInputsAlone(const ProgramGraph& graph) {
  const GraphView view(graph);
  std::vector<bool> works(view.values(), false);
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    works[i] = graph.arguments[i].kind == ArgumentKind::kInput;
  }
  std::vector<size_t> found;
  for (int op = 0; op < view.operators(); ++op) {
    const GraphOperator& node = view.op(op);
    bool isOnInput = false;
    for (unsigned i = 0; i < node.operands.size(); ++i) {
      isOnInput = isOnInput || works[view.operandOf(op, i)];
    }
    if (isOnInput && !node.userStage && node.phase == Phase::kForward && !node.prologueOf) {
      found.push_back(op);
      for (unsigned r = 0; r < node.results.size(); ++r) {
        works[view.resultOf(op, r)] = true;
      }
    }
  }
  return found;
}

class Refiner {
 public:
  Refiner(RefinedPlan found, const BlockProgram& program, const Predict& predict)
      : sketch_(found.sketch),
        best_(std::move(found.plan)),
        first_(found.sketch.cut.first),
        program_(&program),
        predict_(predict) {}

  // The best cut between operators that read parameters.
  void cutFiner(const BlockProgram& finer, ReshardMemo& memo) {
    const absl::StatusOr<int64_t> limit = memoryLimitOf(sketch_.request);
    const absl::StatusOr<SegmentCosts> costs = finer.costs(sketch_.request, false, sketch_.bytePrice.value_or(0), memo);
    ++best_.ticks;
    if (!limit.ok() || !costs.ok()) {
      return;
    }
    KnownShapes shapes;
    CutChooser cuts(sketch_.request, {*limit, finer.graph().trains(), false}, shapes);
    const std::optional<ChosenCut> chosen = cuts.best({{*costs, sketch_.bytePrice.value_or(0)}},
                                                      cuts.shapesOf(sketch_.grid, sketch_.request.microBatches()));
    if (chosen && predictOn(finer, chosen->cut.first)) {
      program_ = &finer;
    }
  }

  void moveBorders() {
    size_t unmoved = 0;  // borders one after another that could not be moved
    for (size_t border = 1; unmoved + 1 < first_.size(); border = border + 1 < first_.size() ? border + 1 : 1) {
      bool moved = false;
      for (const int by : {1, -1}) {
        while (move(border, by)) {
          moved = true;
        }
      }
      unmoved = moved ? 0 : unmoved + 1;
    }
  }

  // With what works on inputs alone in the first stage instead of where it is read, if that is better: it may be most
  // of what a later stage has to do, or to hold.
  void placeInputsFirst() {
    if (worksOnInputsAlone(*best_.graph).empty()) {
      return;
    }
    inputsFirst_ = true;
    inputsFirst_ = predictOn(*program_, first_);
    if (inputsFirst_) {
      moveBorders();
    }
  }

  ClosedRequest take() { return std::move(best_); }

 private:
  // Keeps what is better.
  bool predictOn(const BlockProgram& program, std::vector<int> first) {
    ++best_.ticks;
    auto made = std::make_shared<ProgramGraph>(program.onStages(first));
    for (const size_t op : inputsFirst_ ? worksOnInputsAlone(*made) : std::vector<size_t>()) {
      made->operators[op].userStage = 0;
    }
    std::shared_ptr<const ProgramGraph> staged = std::move(made);
    absl::StatusOr<Attempt> attempt = predict_(*staged, best_.request, best_.bytePrice);
    if (!attempt.ok() || !isBetter(*attempt, best_.attempt)) {
      return false;
    }
    best_.attempt = *std::move(attempt);
    best_.graph = std::move(staged);
    first_ = std::move(first);
    return true;
  }

  bool move(size_t border, int by) {
    std::vector<int> moved = first_;
    moved[border] += by;
    const int end = border + 1 < moved.size() ? moved[border + 1] : program_->blocks();
    const bool leavesBlocks = moved[border] > moved[border - 1] && moved[border] < end;
    return leavesBlocks && moves_++ < kMostMoves && predictOn(*program_, std::move(moved));
  }

  const Sketch& sketch_;
  ClosedRequest best_;
  std::vector<int> first_;  // blocks of program_
  const BlockProgram* program_;
  const Predict& predict_;
  size_t moves_ = 0;
  bool inputsFirst_ = false;
};

// The program in finer blocks. Nothing where blocks need different things on different stages, as these are of unlike
// meshes or kinds of devices, and where no block is finer.
std::optional<BlockProgram> finerOf(const Sketch& sketch, const BlockProgram& program) {
  const absl::StatusOr<Machine> machine = machineOf(sketch.request);
  if (sketch.grid.mesh.empty() || !machine.ok() || !machine->kinds.empty()) {
    return std::nullopt;
  }
  absl::StatusOr<BlockProgram> finer = program.finer(sketch.request);
  return finer.ok() && finer->blocks() > program.blocks() ? std::optional(*std::move(finer)) : std::nullopt;
}

}  // namespace

ClosedRequest refineStages(RefinedPlan found, const BlockProgram& program, const Predict& predict, ReshardMemo& memo) {
  const Sketch& sketch = found.sketch;
  const bool isOpen = !program.areStages() && sketch.request.may(Freedom::kUnevenStages);
  if (!isOpen || sketch.grid.stages() == 1 || program.isLong()) {
    return std::move(found.plan);
  }
  Refiner refiner(std::move(found), program, predict);
  const std::optional<BlockProgram> finer = finerOf(sketch, program);
  if (finer) {
    refiner.cutFiner(*finer, memo);
  }
  refiner.moveBorders();
  refiner.placeInputsFirst();
  return refiner.take();
}

}  // namespace weft
