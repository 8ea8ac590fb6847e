#include "planner/search/refine_stages.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/check_request.h"
#include "planner/graph/graph_view.h"

namespace weft {
namespace {

constexpr size_t kMostMoves = 40;  // predictions with a border moved, of one plan
constexpr double kNear = 1.01;     // borders are moved of what takes no longer than so many times the best

// Forward operators on none of these stages that work on an input.
std::vector<size_t> worksOnInputsAlone(const ProgramGraph& graph, const std::vector<int>& stages) {
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
    const bool isOnNone = stages[op] == kNoStage && !node.userStage;
    if (isOnInput && isOnNone && node.phase == Phase::kForward && !node.prologueOf) {
      found.push_back(op);
      for (unsigned r = 0; r < node.results.size(); ++r) {
        works[view.resultOf(op, r)] = true;
      }
    }
  }
  return found;
}

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

// Where what works on inputs alone runs.
enum class InputWork : uint8_t {
  kAtReaders,
  kInFirstStage,
  kInOrder,  // with what stands before it in the program
};

// Puts these operators on stages, too.
void place(InputWork where, const std::vector<size_t>& operators, std::vector<int>& stages) {
  if (where == InputWork::kAtReaders) {
    return;
  }
  int stage = 0;
  auto next = operators.begin();
  for (size_t op = 0; op < stages.size() && next != operators.end(); ++op) {
    if (op == *next) {
      stages[op] = where == InputWork::kInOrder ? stage : 0;
      ++next;
    } else {
      stage = stages[op] == kNoStage ? stage : stages[op];
    }
  }
}

// A plan on some stages.
struct Staged {
  const BlockProgram* program = nullptr;
  std::vector<int> first;  // of each stage: its first block
  InputWork inputWork = InputWork::kAtReaders;
  std::shared_ptr<const ProgramGraph> graph;
  Attempt attempt;
};

class Refiner {
 public:
  Refiner(RefinedPlan found, const PredictOnStages& predict)
      : sketch_(found.sketch),
        plan_(std::move(found.plan)),
        best_{&found.program, sketch_.cut.first, InputWork::kAtReaders, plan_.graph, plan_.attempt},
        predict_(predict),
        isOpen_(!found.program.areStages() && sketch_.request.may(Freedom::kUnevenStages) &&
                sketch_.grid.stages() > 1 && !found.program.isLong()) {}

  const Attempt& attempt() const { return best_.attempt; }
  bool isTiny() const { return weft::isTiny(*best_.graph); }

  // The best cut between operators that read parameters. What takes `useless` is not looked for.
  void cutAnew(PlanningMemo& memo, Picoseconds useless) {
    if (!isOpen_) {
      return;
    }
    finer_ = finerOf(sketch_, *best_.program);
    if (finer_) {
      cutFiner(memo, useless);
    }
    for (Staged& other : placedElsewhere(useless)) {
      keepBetter(std::move(other));
    }
  }

  // Moves its borders, also with what works on inputs alone elsewhere.
  void moveBorders() {
    if (!isOpen_) {
      return;
    }
    moveByFinerBlocks();
    best_ = withBordersMoved(std::move(best_));
    for (Staged& other : placedElsewhere(kAnyTime)) {  // it may be better with its borders moved
      keepBetter(withBordersMoved(std::move(other)));
    }
  }

  ClosedRequest take() {
    plan_.graph = std::move(best_.graph);
    plan_.attempt = std::move(best_.attempt);
    return std::move(plan_);
  }

 private:
  void keepBetter(std::optional<Staged> other) {
    if (other && isBetter(other->attempt, best_.attempt)) {
      best_ = *std::move(other);
    }
  }

  void cutFiner(PlanningMemo& memo, Picoseconds useless) {
    const absl::StatusOr<int64_t> limit = memoryLimitOf(sketch_.request);
    const absl::StatusOr<Machine> machine = machineOf(sketch_.request);
    const double bytePrice = sketch_.bytePrice.value_or(0);
    const absl::StatusOr<SegmentCosts> costs = finer_->costs(sketch_.request, false, bytePrice, memo);
    ++plan_.ticks;
    if (!limit.ok() || !machine.ok() || !costs.ok()) {
      return;
    }
    KnownShapes shapes;
    CutChooser cuts(sketch_.request, {*limit, finer_->graph().trains(), false, *machine}, shapes);
    const std::optional<ChosenCut> chosen =
        cuts.best({{*costs, bytePrice}}, cuts.shapesOf(sketch_.grid, sketch_.request.microBatches()));
    if (chosen) {
      keepBetter(predicted({&*finer_, chosen->cut.first, best_.inputWork, {}, {}}, useless));
    }
  }

  // Borders of a tiny program move by its finer blocks, if it is cut between those.
  void moveByFinerBlocks() {
    if (!finer_ || best_.program == &*finer_ || !isTiny()) {
      return;
    }
    std::vector<int> first = best_.program->firstIn(*finer_, best_.first);
    if (!first.empty()) {
      best_.program = &*finer_;
      best_.first = std::move(first);
    }
  }

  // The best with what works on inputs alone elsewhere: it may be most of what a stage has to do, or to hold.
  std::vector<Staged> placedElsewhere(Picoseconds useless) {
    std::vector<Staged> found;
    if (worksOnInputsAlone(best_.program->graph(), best_.program->stagesOf(best_.first)).empty()) {
      return found;
    }
    for (const InputWork where : {InputWork::kAtReaders, InputWork::kInFirstStage, InputWork::kInOrder}) {
      if (where != best_.inputWork) {
        if (std::optional<Staged> made = predicted({best_.program, best_.first, where, {}, {}}, useless)) {
          found.push_back(*std::move(made));
        }
      }
    }
    return found;
  }

  // Fills in graph and attempt. Nothing: it cannot be.
  std::optional<Staged> predicted(Staged staged, Picoseconds useless) {
    std::vector<int> stages = staged.program->stagesOf(staged.first);
    place(staged.inputWork, worksOnInputsAlone(staged.program->graph(), stages), stages);
    absl::StatusOr<ClosedRequest> made = predict_(plan_, *staged.program, std::move(stages), useless);
    if (!made.ok()) {
      return std::nullopt;
    }
    staged.graph = std::move(made->graph);
    staged.attempt = std::move(made->attempt);
    return staged;
  }

  Staged withBordersMoved(Staged now) {
    size_t unmoved = 0;  // borders one after another that could not be moved
    for (size_t border = 1; unmoved + 1 < now.first.size(); border = border + 1 < now.first.size() ? border + 1 : 1) {
      bool moved = false;
      for (const int by : {1, -1}) {
        while (move(border, by, now)) {
          moved = true;
        }
      }
      unmoved = moved ? 0 : unmoved + 1;
    }
    return now;
  }

  // False: it is not better so.
  bool move(size_t border, int by, Staged& now) {
    std::vector<int> first = now.first;
    first[border] += by;
    const int end = border + 1 < first.size() ? first[border + 1] : now.program->blocks();
    const bool leavesBlocks = first[border] > first[border - 1] && first[border] < end;
    if (!leavesBlocks || moves_++ >= kMostMoves) {
      return false;
    }
    std::optional<Staged> moved =
        predicted({now.program, std::move(first), now.inputWork, {}, {}}, uselessBeside(now.attempt));
    const bool isKept = moved && isBetter(moved->attempt, now.attempt);
    if (isKept) {
      now = *std::move(moved);
    }
    return isKept;
  }

  const Sketch& sketch_;
  ClosedRequest plan_;
  Staged best_;
  std::optional<BlockProgram> finer_;
  const PredictOnStages& predict_;
  const bool isOpen_;  // may its stages be cut anew?
  size_t moves_ = 0;
};

}  // namespace

std::vector<ClosedRequest> refineStages(std::vector<RefinedPlan> plans, const PredictOnStages& predict,
                                        PlanningMemo& memo) {
  const auto isBetterRefined = [](const Refiner& a, const Refiner& b) { return isBetter(a.attempt(), b.attempt()); };
  std::deque<Refiner> refiners;
  for (RefinedPlan& each : plans) {
    refiners.emplace_back(std::move(each), predict);
  }
  for (Refiner& each : refiners) {
    const Refiner& best = *std::min_element(refiners.begin(), refiners.end(), isBetterRefined);
    each.cutAnew(memo, uselessBeside(best.attempt()));
  }
  const Picoseconds least = std::min_element(refiners.begin(), refiners.end(), isBetterRefined)->attempt().time;
  for (Refiner& each : refiners) {
    if (each.isTiny() || static_cast<double>(each.attempt().time) <= kNear * static_cast<double>(least)) {
      each.moveBorders();
    }
  }
  std::vector<ClosedRequest> refined;
  for (Refiner& each : refiners) {
    refined.push_back(each.take());
  }
  return refined;
}

}  // namespace weft
