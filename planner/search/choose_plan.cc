#include "planner/search/choose_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/derive/placement.h"
#include "planner/graph/segments.h"
#include "planner/search/cut_stages.h"
#include "planner/search/plan_space.h"
#include "planner/search/segment_costs.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Estimates that are predicted in full; while none fits, more are.
constexpr size_t kFinalists = 8;
constexpr size_t kMostFinalists = 16;
// By how many times its time an estimate counts as longer for each time the limit that it exceeds the limit by.
constexpr double kExcess = 8;
constexpr size_t kMostNamed = 8;

// The forward pass in blocks that a stage may begin with: where the user names stages, these; else the segments that
// repeat, and of the others what lies between one operator that reads a parameter and the next.
struct Blocks {
  std::vector<int> of;  // of each operator; -1 for what works on no parameter and goes where its readers are
  int count = 0;
  bool areStages = false;
};

class BlockFinder {
 public:
  explicit BlockFinder(const GraphView& view) : view_(view), segments_(segmentsOf(view)), works_(view.values()) {
    std::map<int, int> repeats;
    for (const int each : segments_.classOf) {
      ++repeats[each];
    }
    for (const int each : segments_.classOf) {
      repeats_.push_back(repeats[each] > 1);
    }
  }

  Blocks run() {
    Blocks blocks;
    blocks.of.resize(view_.operators(), -1);
    for (int op = 0; op < view_.operators(); ++op) {
      const bool reads = readsParameter(op);
      if (!note(op, reads) || segments_.of[op] == Segments::kNone) {
        continue;
      }
      const bool isNew = segments_.of[op] != segment_ || (reads && !repeats_[segments_.of[op]]);
      segment_ = segments_.of[op];
      blocks.count += isNew ? 1 : 0;
      blocks.of[op] = blocks.count - 1;
    }
    blocks.count = std::max(blocks.count, 1);
    return blocks;
  }

 private:
  bool readsParameter(int op) const {
    for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
      const int value = view_.operandOf(op, i);
      if (!view_.producerOf(value) && view_.graph().arguments[value].kind == ArgumentKind::kParameter) {
        return true;
      }
    }
    return false;
  }

  // Does it work on parameters, itself or through its operands?
  bool note(int op, bool reads) {
    bool works = reads;
    for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
      works = works || works_[view_.operandOf(op, i)];
    }
    for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
      works_[view_.resultOf(op, r)] = works;
    }
    return works;
  }

  const GraphView& view_;
  const Segments segments_;
  std::vector<bool> repeats_;  // of each segment: are there others of its class?
  std::vector<bool> works_;    // of each value
  int segment_ = Segments::kNone;
};

Blocks blocksOf(const GraphView& view, int64_t userStages) {
  if (userStages > 1) {
    return {{}, static_cast<int>(userStages), true};
  }
  return BlockFinder(view).run();
}

// The program with its blocks on stages, of which each begins with a block.
ProgramGraph onStages(const ProgramGraph& graph, const Blocks& blocks, const std::vector<int>& first) {
  ProgramGraph staged = graph;
  for (size_t op = 0; op < blocks.of.size() && first.size() > 1; ++op) {
    if (blocks.of[op] >= 0) {
      const auto next = std::upper_bound(first.begin(), first.end(), blocks.of[op]);
      staged.operators[op].userStage = next - first.begin() - 1;
    }
  }
  return staged;
}

// 0, 1, ..., count - 1.
std::vector<int> upTo(int count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// A program for a number of micro-batches, cut into blocks.
struct BlockProgram {
  std::shared_ptr<const ProgramGraph> graph;
  Blocks blocks;
  ProgramGraph staged;  // each block a stage
};

struct Sketch {
  CompileOptions request;  // closed but for what is chosen when it is predicted
  StageGrid grid;
  StageCut cut;
};

class PlanChooser {
 public:
  PlanChooser(const GraphFor& graphs, const CompileOptions& request, const Predict& predict)
      : graphs_(graphs), request_(request), predict_(predict) {}

  absl::StatusOr<ClosedRequest> run() {
    WEFT_ASSIGN_OR_RETURN(limit_, memoryLimitOf(request_));
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, programFor(request_.microBatches()));
    WEFT_ASSIGN_OR_RETURN(const std::vector<StageGrid> grids,
                          stageGrids(*program->graph, request_, program->blocks.areStages ? program->blocks.count : 1,
                                     program->blocks.count));
    for (const StageGrid& grid : grids) {
      sketchOn(*program->graph, grid);
    }
    if (sketches_.empty()) {
      return refusal_;
    }
    sortSketches();
    sketchBestOfZero();
    sortSketches();
    return predictBest();
  }

 private:
  bool isBefore(const Sketch& a, const Sketch& b) const {
    const auto rank = [&](const Sketch& s) { return std::tuple(expected(s.cut), s.cut.peakBytes); };
    return rank(a) < rank(b);
  }

  // The estimate of memory leaves out that parts of a segment can be recomputed: a plan that exceeds the limit by a
  // little may fit, at a price.
  double expected(const StageCut& cut) const {
    const double excess = cut.fits ? 0 : static_cast<double>(cut.peakBytes) / static_cast<double>(limit_) - 1;
    return static_cast<double>(cut.time) * (1 + kExcess * std::max(excess, 0.0));
  }

  void sortSketches() {
    std::stable_sort(sketches_.begin(), sketches_.end(),
                     [&](const Sketch& a, const Sketch& b) { return isBefore(a, b); });
    sketches_.erase(std::unique(sketches_.begin(), sketches_.end(), isAlike), sketches_.end());
  }

  // Meshes over which the same is split under other names give plans that are the same.
  static bool isAlike(const Sketch& a, const Sketch& b) {
    const auto figures = [](const Sketch& s) {
      return std::tuple(s.cut.time, s.cut.peakBytes, s.cut.first, s.request.microBatches(), s.grid.submeshes);
    };
    return figures(a) == figures(b);
  }

  absl::StatusOr<const BlockProgram*> programFor(int64_t microBatches) {
    WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramGraph> graph, graphs_(microBatches));
    const auto [it, isNew] = programs_.try_emplace(graph.get());
    if (isNew) {
      const GraphView view(*graph);
      WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(view, request_.stages));
      it->second.blocks = blocksOf(view, stages.count);
      it->second.staged = onStages(*graph, it->second.blocks, upTo(it->second.blocks.count));
      it->second.graph = std::move(graph);
    }
    return &it->second;
  }

  void refuse(const absl::Status& status) { refusal_ = refused_++ == 0 ? status : refusal_; }

  void sketchOn(const ProgramGraph& graph, const StageGrid& grid) {
    const absl::StatusOr<Mesh> mesh = Mesh::parse(grid.mesh);
    const int64_t parts = grid.mesh.empty() || !mesh.ok() ? 1 : partsOf(defaultAxes(*mesh, request_.fill));
    for (const int64_t micro : microBatchCounts(graph, request_, parts)) {
      const absl::StatusOr<const BlockProgram*> program = programFor(micro);
      if (!program.ok()) {
        refuse(program.status());
        continue;
      }
      CompileOptions closed = request_;
      closed.mode = Mode::kLayouts;
      closed.mesh = grid.mesh;
      closed.devices = 1;
      closed.micro = micro;
      closed.zero = request_.zeroLevel();
      sketchZero(**program, grid, closed, parts);
    }
  }

  // Levels above the first save memory and hardly any time: they are estimated where memory asks for them, and for the
  // best of the others (sketchBestOfZero).
  void sketchZero(const BlockProgram& program, const StageGrid& grid, const CompileOptions& closed, int64_t parts) {
    bool limited = true;
    for (const CompileOptions& each : withZero(closed, program.graph->trains() && parts > 1)) {
      if (isFurtherZero(each) && !limited) {
        return;
      }
      if (const Sketch* made = add(program, grid, each)) {
        limited = made->cut.limited;
      }
    }
  }

  bool isFurtherZero(const CompileOptions& closed) const {
    return request_.zeroLevel() == kFindZero && closed.zeroLevel() > 1;
  }

  void sketchBestOfZero() {
    for (size_t i = 0, count = std::min(sketches_.size(), kFinalists); i < count; ++i) {
      const StageGrid grid = sketches_[i].grid;
      CompileOptions closed = sketches_[i].request;
      const absl::StatusOr<const BlockProgram*> program = programFor(closed.microBatches());
      if (!program.ok() || closed.zeroLevel() != 1 || sketches_[i].cut.limited) {
        continue;
      }
      closed.zero = request_.zeroLevel();
      for (const CompileOptions& each : withZero(closed, true)) {
        if (isFurtherZero(each)) {
          add(**program, grid, each);
        }
      }
    }
  }

  // Null where the plan cannot be.
  const Sketch* add(const BlockProgram& program, const StageGrid& grid, const CompileOptions& closed) {
    const absl::StatusOr<StageCut> cut = sketch(program, grid, closed, 0);
    if (!cut.ok()) {
      refuse(cut.status());
      return nullptr;
    }
    sketches_.push_back({closed, grid, *cut});
    if (cut->limited) {
      sketchPriced(program, grid, sketches_.back());
    }
    return &sketches_.back();
  }

  // With splits that save memory. The prediction in full finds their price anew.
  void sketchPriced(const BlockProgram& program, const StageGrid& grid, Sketch& sketched) {
    const double price = memoryPrice(sketched.cut.time, limit_);
    for (const double factor : kMemoryPrices) {
      absl::StatusOr<StageCut> cut = sketch(program, grid, sketched.request, factor * price);
      if (cut.ok() && isBefore({sketched.request, grid, *cut}, sketched)) {
        sketched.cut = *std::move(cut);
      }
    }
  }

  absl::StatusOr<StageCut> sketch(const BlockProgram& program, const StageGrid& grid, const CompileOptions& closed,
                                  double bytePrice) {
    // Submeshes of one mesh and of several have different meshes: cut or not, there is one answer.
    const auto key = std::tuple(grid.mesh, closed.microBatches(), closed.zeroLevel(), closed.regather, bytePrice);
    auto it = costs_.find(key);
    if (it == costs_.end()) {
      ++ticks_;
      const bool uncut = grid.stages() == 1;
      it = costs_.emplace(key, segmentCosts(uncut ? *program.graph : program.staged, closed, bytePrice)).first;
    }
    WEFT_RETURN_IF_ERROR(it->second.status());
    const PipelineShape shape = {grid.stages(), grid.virtualStages, closed.microBatches()};
    const bool isCut = program.blocks.areStages || grid.stages() == 1;
    return isCut ? withStages(*it->second, shape, limit_, upTo(static_cast<int>(grid.stages())))
                 : cutStages(*it->second, shape, limit_);
  }

  using Finalist = std::pair<std::string, ClosedRequest>;  // in words, and what it came to
  static bool isBetterPlan(const Finalist& a, const Finalist& b) {
    return isBetter(a.second.attempt, b.second.attempt);
  }

  // In the order of their estimates, without those that cannot be better than the best so far.
  absl::StatusOr<ClosedRequest> predictBest() {
    std::vector<Finalist> finalists;
    const Attempt* best = nullptr;
    size_t tried = 0;
    for (const Sketch& sketch : sketches_) {
      const bool fits = best != nullptr && best->fits;
      if (tried >= (fits ? kFinalists : kMostFinalists)) {
        break;
      }
      if (fits && sketch.cut.bound >= best->time) {
        continue;
      }
      ++tried;
      absl::StatusOr<ClosedRequest> closed = predicted(sketch);
      if (!closed.ok()) {
        refuse(closed.status());
        continue;
      }
      finalists.emplace_back(wordsOf(sketch), *std::move(closed));
      best = &std::min_element(finalists.begin(), finalists.end(), isBetterPlan)->second.attempt;
    }
    if (finalists.empty()) {
      return refusal_;
    }
    std::stable_sort(finalists.begin(), finalists.end(), isBetterPlan);
    ClosedRequest chosen = finalists.front().second;
    chosen.attempt.decisions.notes.push_back(noteOf(finalists));
    chosen.ticks = ticks_ + static_cast<int64_t>(tried);
    return chosen;
  }

  absl::StatusOr<ClosedRequest> predicted(const Sketch& sketch) {
    WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, programFor(sketch.request.microBatches()));
    CompileOptions closed = sketch.request;
    closed.virtualStages = sketch.grid.submeshes > 1 ? sketch.grid.virtualStages : 0;
    auto staged = std::make_shared<const ProgramGraph>(onStages(*program->graph, program->blocks, sketch.cut.first));
    WEFT_ASSIGN_OR_RETURN(Attempt attempt, predict_(*staged, closed));
    return ClosedRequest{std::move(closed), std::move(staged), std::move(attempt)};
  }

  static std::string wordsOf(const Sketch& sketch) {
    const StageGrid& grid = sketch.grid;
    std::string words = grid.submeshes > 1 ? absl::StrCat(grid.submeshes, " x ") : "";
    absl::StrAppend(&words, grid.mesh.empty() ? sketch.request.stageMeshes : grid.mesh);
    if (grid.virtualStages > 1) {
      absl::StrAppend(&words, " with ", grid.virtualStages, " stages each");
    }
    absl::StrAppend(&words, ", micro ", sketch.request.microBatches(), ", zero ", sketch.request.zeroLevel(),
                    sketch.request.regather ? " regather" : "");
    return words;
  }

  // The best first.
  std::string noteOf(const std::vector<Finalist>& finalists) const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < std::min(finalists.size(), kMostNamed + 1); ++i) {
      const Attempt& attempt = finalists[i].second.attempt;
      lines.push_back(absl::StrFormat("%s: %.4g ms, %d bytes%s", finalists[i].first, 1e3 * inSeconds(attempt.time),
                                      attempt.peakBytes, attempt.fits ? "" : " (more than the limit)"));
    }
    return absl::StrCat("mode auto: found ", lines.front(), " predicted for a step of a rank; others: ",
                        lines.size() > 1 ? absl::StrJoin(lines.begin() + 1, lines.end(), "; ") : "none",
                        "; estimated: ", sketches_.size(), " plans, refused: ", refused_);
  }

  const GraphFor& graphs_;
  const CompileOptions& request_;
  const Predict& predict_;
  int64_t limit_ = 0;
  std::map<const ProgramGraph*, BlockProgram> programs_;
  std::map<std::tuple<std::string, int64_t, int, bool, double>, absl::StatusOr<SegmentCosts>> costs_;
  std::vector<Sketch> sketches_;
  size_t refused_ = 0;
  int64_t ticks_ = 0;  // estimates made
  absl::Status refusal_;
};

}  // namespace

absl::StatusOr<ClosedRequest> choosePlan(const GraphFor& graphs, const CompileOptions& request,
                                         const Predict& predict) {
  return PlanChooser(graphs, request, predict).run();
}

}  // namespace weft
