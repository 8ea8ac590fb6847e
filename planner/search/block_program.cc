#include "planner/search/block_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "planner/derive/recompute_scopes.h"
#include "planner/derive/strategies.h"
#include "planner/derive/zero.h"
#include "planner/graph/segments.h"
#include "planner/graph/shorten.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr int kNoBlock = -1;

struct Blocks {
  std::vector<int> of;         // of each operator
  std::vector<int> segmentOf;  // of each block
};

class BlockFinder {
 public:
  // `keepsRepeated`: is a segment that repeats one block?
  BlockFinder(const GraphView& view, const Segments& segments, bool keepsRepeated)
      : view_(view), segments_(segments), works_(view.values()) {
    std::map<int, int> repeats;
    for (const int each : segments_.classOf) {
      ++repeats[each];
    }
    for (const int each : segments_.classOf) {
      isOne_.push_back(keepsRepeated && repeats[each] > 1);
    }
  }

  Blocks run() {
    Blocks blocks;
    blocks.of.resize(view_.operators(), kNoBlock);
    for (int op = 0; op < view_.operators(); ++op) {
      const bool reads = readsParameter(op);
      if (!note(op, reads) || segments_.of[op] == Segments::kNone) {
        continue;
      }
      const bool isNew = segments_.of[op] != segment_ || (reads && !isOne_[segments_.of[op]]);
      segment_ = segments_.of[op];
      if (isNew) {
        blocks.segmentOf.push_back(segment_);
      }
      blocks.of[op] = static_cast<int>(blocks.segmentOf.size()) - 1;
    }
    if (blocks.segmentOf.empty()) {
      blocks.segmentOf.push_back(0);
    }
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
  const Segments& segments_;
  std::vector<bool> isOne_;  // of each segment: is it one block?
  std::vector<bool> works_;  // of each value
  int segment_ = Segments::kNone;
};

// Is the same asked of operators and arguments of different layers?
SaidAlike saidAlike(const GraphView& view, const CompileOptions& request) {
  const UserLayouts layouts(view.graph(), request.layouts);
  const std::vector<int64_t> levels = zeroLevels(view.graph(), request);
  const std::vector<bool> recomputed =
      recomputedOps(view, std::vector<int64_t>(view.operators(), 0), request.recompute);
  return {[recomputed](int a, int b) { return recomputed[a] == recomputed[b]; },
          [layouts, levels](int a, int b) { return layouts.of(a, 0) == layouts.of(b, 0) && levels[a] == levels[b]; }};
}

// The stage of each block, ascending; empty where a block lies on several, or a stage has none.
std::vector<int> wholeStages(const std::vector<int>& blockOf, int blocks, const Stages& stages) {
  std::vector<std::set<int64_t>> stagesOf(blocks);
  for (size_t op = 0; op < blockOf.size(); ++op) {
    if (blockOf[op] != kNoBlock) {
      stagesOf[blockOf[op]].insert(stages.ofOperator[op]);
    }
  }
  std::vector<int> stageOf;
  for (const std::set<int64_t>& mine : stagesOf) {
    const int last = stageOf.empty() ? -1 : stageOf.back();
    const bool follows = mine.size() == 1 && (*mine.begin() == last || *mine.begin() == last + 1);
    if (!follows) {
      return {};
    }
    stageOf.push_back(static_cast<int>(*mine.begin()));
  }
  return stageOf.back() + 1 == stages.count ? stageOf : std::vector<int>();
}

}  // namespace

absl::StatusOr<BlockProgram> BlockProgram::create(std::shared_ptr<const ProgramGraph> graph,
                                                  const CompileOptions& request, Grain grain) {
  WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(GraphView(*graph), request.stages));
  return stages.count > 1 ? ofUserStages(std::move(graph), request, stages) : cut(std::move(graph), request, grain);
}

BlockProgram BlockProgram::cut(std::shared_ptr<const ProgramGraph> graph, const CompileOptions& request, Grain grain) {
  const GraphView view(*graph);
  BlockProgram made;
  const Segments segments = segmentsOf(view);
  Blocks blocks = BlockFinder(view, segments, grain == Grain::kSegments).run();
  made.blocks_ = static_cast<int>(blocks.segmentOf.size());
  const std::optional<Shortened> shorter = shortened(view, segments, saidAlike(view, request));
  const auto standsFor = [&](int segment) { return shorter ? shorter->standsFor[segment] : segment; };
  std::map<int, std::vector<int>> stagesOf;  // of each segment: its blocks' stages
  int stage = 0;
  for (int b = 0; b < made.blocks_; ++b) {
    const int segment = blocks.segmentOf[b];
    const size_t number = stagesOf[segment].size();  // alike segments have as many blocks
    made.gone_.push_back(standsFor(segment) != segment);
    made.standsFor_.push_back(made.gone_.back() ? stagesOf.at(standsFor(segment)).at(number) : stage++);
    stagesOf[segment].push_back(made.standsFor_.back());
  }
  made.asked_ = shorter ? shorter->graph : *graph;
  made.staged_ = made.asked_;
  for (GraphOperator& op : made.staged_.operators) {
    const int block = blocks.of[*view.find(op.id)];
    if (block != kNoBlock) {
      op.userStage = made.standsFor_[block];
    }
  }
  made.of_ = std::move(blocks.of);
  made.graph_ = std::move(graph);
  return made;
}

// Where a few of the program's layers stand for all, stages that are whole blocks of the program without them need what
// these need together. Others are asked about as they are, all of the program.
BlockProgram BlockProgram::ofUserStages(std::shared_ptr<const ProgramGraph> graph, const CompileOptions& request,
                                        const Stages& stages) {
  BlockProgram made;
  if (request.stages.empty() && request.stageMeshes.empty()) {  // these are no words about blocks
    const auto open = std::make_shared<ProgramGraph>(*graph);
    for (GraphOperator& op : open->operators) {
      op.userStage.reset();
    }
    for (const Grain grain : {Grain::kSegments, Grain::kParameters}) {
      if (made.stageOf_.empty()) {
        made = cut(open, request, grain);
        made.stageOf_ = made.isShort() ? wholeStages(made.of_, made.blocks_, stages) : std::vector<int>();
      }
    }
  }
  if (made.stageOf_.empty()) {
    made.asked_ = made.staged_ = *graph;
    made.standsFor_.resize(stages.count);
    std::iota(made.standsFor_.begin(), made.standsFor_.end(), 0);
    made.gone_.assign(stages.count, false);
    made.stageOf_ = made.standsFor_;
  }
  made.areStages_ = true;
  made.blocks_ = static_cast<int>(stages.count);
  made.of_.clear();
  made.graph_ = std::move(graph);
  return made;
}

bool BlockProgram::isShort() const {
  return std::any_of(gone_.begin(), gone_.end(), [](bool gone) { return gone; });
}

bool BlockProgram::isLong() const {
  return graph_->operators.size() > kOperatorsOfLong;
}

std::vector<int> BlockProgram::stagesOf(const std::vector<int>& first) const {
  if (first.size() < 2) {
    return {};
  }
  std::vector<int> stages;
  for (const int block : of_) {
    const auto next = std::upper_bound(first.begin(), first.end(), block);
    stages.push_back(block == kNoBlock ? kNoStage : static_cast<int>(next - first.begin()) - 1);
  }
  return stages;
}

ProgramGraph BlockProgram::withStages(const std::vector<int>& stages) const {
  ProgramGraph staged = *graph_;
  for (size_t op = 0; op < stages.size(); ++op) {
    if (stages[op] != kNoStage) {
      staged.operators[op].userStage = stages[op];
    }
  }
  return staged;
}

ProgramGraph BlockProgram::onStagesOf(const std::map<int64_t, int64_t>& stageOf) const {
  ProgramGraph staged = *graph_;
  for (GraphOperator& op : staged.operators) {
    const auto stage = stageOf.find(op.id);
    if (!areStages_ && op.phase == Phase::kForward && !op.prologueOf && stage != stageOf.end()) {
      op.userStage = stage->second;
    }
  }
  return staged;
}

std::vector<int> BlockProgram::firstIn(const BlockProgram& finer, const std::vector<int>& first) const {
  std::vector<int> found;
  for (const int block : first) {
    const auto begin = std::ranges::find(of_, block) - of_.begin();
    const int inner = begin < std::ssize(of_) ? finer.of_[begin] : -1;
    if (inner < 0 || std::ranges::find(finer.of_, inner) - finer.of_.begin() != begin) {
      return {};
    }
    found.push_back(inner);
  }
  return found;
}

absl::StatusOr<SegmentCosts> BlockProgram::costs(const CompileOptions& closed, bool uncut, double bytePrice,
                                                 PlanningMemo& memo) const {
  SegmentCosts costs;
  if (uncut) {
    WEFT_ASSIGN_OR_RETURN(costs, segmentCosts(asked_, closed, bytePrice, memo));
    if (!isShort()) {
      return costs;
    }
  }
  WEFT_ASSIGN_OR_RETURN(const SegmentCosts staged, segmentCosts(staged_, closed, bytePrice, memo));
  SegmentCosts blocks = {{}, {}, staged.transfer};
  for (size_t b = 0; b < standsFor_.size(); ++b) {
    add(staged.segments, b, blocks.segments);
    add(staged.cutSegments, b, blocks.cutSegments);
    add(staged.gatheringSegments, b, blocks.gatheringSegments);
    if (!costs.segments.empty() && gone_[b]) {
      costs.segments[0] += blocks.segments.back();
    }
  }
  return uncut ? costs : blocks;
}

// What block `b` needs, of what is needed where it is asked about, as one more or with others of its stage.
void BlockProgram::add(const std::vector<SegmentCost>& staged, size_t b, std::vector<SegmentCost>& made) const {
  if (staged.empty()) {
    return;
  }
  const SegmentCost& mine = staged[standsFor_[b]];
  if (!stageOf_.empty() && stageOf_[b] < static_cast<int>(made.size())) {
    made.back() += mine;
  } else {
    made.push_back(mine);
  }
}

}  // namespace weft
