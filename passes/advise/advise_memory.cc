#include "passes/advise/advise_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/advise/advise_zero.h"
#include "passes/advise/step_memory.h"
#include "passes/advise/step_model.h"
#include "passes/schedule/generate.h"
#include "passes/stage/stage_table.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {
namespace {

using advise::BlockModel;
using advise::Op;
using advise::Running;
using advise::StageModel;
using advise::StepNeeds;
using Words = std::set<std::string>;

constexpr size_t kRecomputeLines = 6;
// Of what is tried, much more than any model has: operators of one list, and actions of a schedule.
constexpr size_t kMostOperators = 20'000;
constexpr int64_t kMostActions = int64_t{1} << 22;
// Operators behind a value that are computed again with it.
constexpr int kLongestChain = 1000;
constexpr char kRegions[] = "regions as large as what is alive at once in them";

class Adviser {
 public:
  Adviser(const plan::Plan& plan, const Machine& machine) : plan_(plan), machine_(machine) {}

  absl::StatusOr<std::vector<MemoryAdvice>> run() {
    WEFT_ASSIGN_OR_RETURN(decisions_, parseDecisions(plan_.decisions()));
    bool backward = false;
    for (const plan::Plan* block : blocksOf(plan_)) {
      blocks_.push_back(advise::readBlock(*block, machine_));
      for (const StageModel& stage : blocks_.back().stages) {
        backward |= !stage.backward.empty();
      }
    }
    if (!backward) {
      return std::move(advice_);
    }
    WEFT_RETURN_IF_ERROR(checkStages());
    WEFT_RETURN_IF_ERROR(checkSize());
    running_ = {decisions_.schedule, plan_.pieces(), 1};
    WEFT_ASSIGN_OR_RETURN(now_, advise::needsOf(blocks_, running_, machine_));
    adviseRecompute();
    adviseSchedule();
    adviseMicro();
    adviseZero();
    return std::move(advice_);
  }

 private:
  // Do the decisions speak of the plan's blocks and stages?
  absl::Status checkStages() const {
    const std::vector<const plan::Plan*> plans = blocksOf(plan_);
    const std::vector<int64_t>& blocks = decisions_.schedule.blocks;
    std::set<int64_t> found;
    for (size_t b = 0; b < plans.size(); ++b) {
      for (const plan::Function& function : plans[b]->functions()) {
        const int64_t stage = function.stage();
        const bool known = stage >= 0 && stage < static_cast<int64_t>(blocks.size());
        if (advise::isPerPiece(function.kind()) && (!known || blocks[stage] != static_cast<int64_t>(b))) {
          return absl::DataLossError(absl::StrCat("@", function.name(), " of block ", b, " is of stage ", stage,
                                                  ", which the plan's decisions do not give to that block; compile "
                                                  "the plan again"));
        }
        if (advise::isPerPiece(function.kind())) {
          found.insert(stage);
        }
      }
    }
    return found.size() == blocks.size()
               ? absl::OkStatus()
               : absl::DataLossError(absl::StrCat("the plan has functions of ", found.size(), " stages, its decisions ",
                                                  "have ", blocks.size(), "; compile the plan again"));
  }

  absl::Status checkSize() const {
    size_t most = 0;
    for (const BlockModel& block : blocks_) {
      for (const StageModel& stage : block.stages) {
        most = std::max({most, stage.forward.size(), stage.backward.size()});
      }
    }
    const int64_t actions = static_cast<int64_t>(decisions_.schedule.blocks.size()) * plan_.pieces();
    if (most > kMostOperators || actions > kMostActions) {
      return absl::InvalidArgumentError(absl::StrCat(
          "advice is for functions of up to ", kMostOperators, " operators and up to ", kMostActions,
          " stages x micro-batches; the plan has ", most, " and ", actions, "; see weft stats for its memory"));
    }
    return absl::OkStatus();
  }

  // The fullest rank if every block needs as much more or less than now as the model says.
  int64_t peakWith(const StepNeeds& needs, const std::vector<int64_t>& freed = {}) const {
    const std::vector<const plan::Plan*> plans = blocksOf(plan_);
    int64_t peak = 0;
    for (size_t b = 0; b < plans.size(); ++b) {
      const int64_t change = needs.bytes[b] - now_.bytes[b] - (freed.empty() ? 0 : freed[b]);
      peak = std::max(peak, plans[b]->memory().peak_bytes() + change);
    }
    return peak;
  }

  void add(const std::string& kind, const std::string& set, int64_t peak, double seconds, const std::string& basis) {
    const int64_t saved = plan_.memory().peak_bytes() - peak;
    if (saved > 0) {
      advice_.push_back({kind, set, peak, saved, seconds / now_.seconds, basis});
    }
  }

  // --- Recomputation: greedily, the most bytes of the peak for a second more.

  static std::string join(const Words& words) { return absl::StrJoin(words, ","); }

  absl::StatusOr<StepNeeds> needsWith(const Words& words) const {
    std::vector<BlockModel> blocks;
    for (const BlockModel& block : blocks_) {
      blocks.push_back(advise::recomputed(block, {words.begin(), words.end()}));
    }
    return advise::needsOf(blocks, running_, machine_);
  }

  // What to recompute so that a kept value need not be kept: its operator alone, and its operators back to values that
  // are kept anyway.
  void addCandidates(const BlockModel& block, const StageModel& stage, std::set<Words>& candidates) const {
    std::map<int, const Op*> makers;
    for (const Op& op : stage.forward) {
      for (const int value : op.outputs) {
        makers[value] = &op;
      }
    }
    std::set<int> kept;
    std::set<int> viewed;
    for (const Op& op : stage.backward) {
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        kept.insert(op.inputs[i]);
        if (op.views[i]) {
          viewed.insert(op.inputs[i]);
        }
      }
    }
    for (const int value : kept) {
      if (makers.count(value) > 0) {
        Words one;
        Words chain;
        std::set<int> seen;
        collect(block, stage, value, {makers, kept, viewed, advise::readOutside(block, stage), seen}, one, chain);
        if (!chain.empty()) {
          candidates.insert(one);
          candidates.insert(chain);
        }
      }
    }
  }

  struct Known {
    const std::map<int, const Op*>& makers;
    const std::set<int>& kept;
    const std::set<int>& viewed;
    const std::set<int>& outside;
    std::set<int>& seen;  // values that were collected
  };

  void collect(const BlockModel& block, const StageModel& stage, int value, const Known& known, Words& one,
               Words& chain) const {
    if (!known.seen.insert(value).second || known.seen.size() > kLongestChain) {
      return;
    }
    const Op& op = *known.makers.at(value);
    const std::string word = advise::recomputeWord(op, known.outside);
    const bool first = chain.empty();
    if (!word.empty()) {
      chain.insert(word);
      if (known.viewed.count(value) > 0) {
        chain.insert("reshape");
      }
      one = first ? chain : one;
    } else if (!op.source->has_collective()) {
      return;
    }
    for (const int input : op.inputs) {
      if (known.makers.count(input) > 0 && known.kept.count(input) == 0 && input != value) {
        collect(block, stage, input, known, one, chain);
      }
    }
  }

  void adviseRecompute() {
    std::set<Words> candidates;
    for (const BlockModel& block : blocks_) {
      for (const StageModel& stage : block.stages) {
        addCandidates(block, stage, candidates);
      }
    }
    Words chosen;
    int64_t peak = plan_.memory().peak_bytes();
    double seconds = now_.seconds;
    for (size_t line = 0; line < kRecomputeLines; ++line) {
      double best = 0;
      Words words;
      StepNeeds needs;
      for (const Words& candidate : candidates) {
        Words tried = chosen;
        tried.insert(candidate.begin(), candidate.end());
        absl::StatusOr<StepNeeds> result = tried == chosen ? now_ : needsWith(tried);
        const auto gain = result.ok() ? static_cast<double>(peak - peakWith(*result)) : 0;
        // Below a nanosecond a second more or less is no difference.
        const double rate = gain > 0 ? gain / std::max(result->seconds - seconds, 1e-9) : 0;
        if (rate > best) {
          best = rate;
          words = std::move(tried);
          needs = *std::move(result);
        }
      }
      if (best <= 0) {
        return;
      }
      chosen = std::move(words);
      peak = peakWith(needs);
      seconds = needs.seconds;
      add("recompute", "--recompute " + join(chosen), peak, seconds,
          absl::StrCat(kRegions, "; beside what is recomputed already"));
    }
  }

  // --- Other kinds on the same placement of stages.

  void adviseSchedule() {
    if (decisions_.schedule.blocks.size() < 2) {
      return;
    }
    for (const schedule::Kind kind : schedule::allKinds()) {
      Running other = running_;
      other.schedule.kind = schedule::kindName(kind);
      const absl::StatusOr<schedule::Table> table = stageTable(other.schedule, other.pieces, true);
      const bool runs = table.ok() && kind != schedule::Kind::kSeq1F1B && other.schedule.kind != running_.schedule.kind;
      if (!runs || !std::equal(table->stageToRank.begin(), table->stageToRank.end(), running_.schedule.blocks.begin(),
                               running_.schedule.blocks.end())) {
        continue;
      }
      if (const absl::StatusOr<StepNeeds> needs = advise::needsOf(blocks_, other, machine_); needs.ok()) {
        add("schedule", "--schedule " + other.schedule.kind, peakWith(*needs), needs->seconds, kRegions);
      }
    }
  }

  // --- Smaller pieces.

  // Rows of one piece on one rank: the least among the inputs.
  int64_t rowsOfPiece() const {
    int64_t rows = 0;
    for (const plan::Plan* block : blocksOf(plan_)) {
      for (const plan::NamedTensor& tensor : block->tensors()) {
        const plan::Buffer& buffer = block->buffers(static_cast<int>(tensor.buffer()));
        if (tensor.kind() == plan::TENSOR_INPUT && buffer.shape_size() > 0 && buffer.shape(0) > 1) {
          const int64_t own = buffer.shape(0) / plan_.pieces();
          rows = rows == 0 ? own : std::min(rows, own);
        }
      }
    }
    return rows;
  }

  void adviseMicro() {
    const int64_t rows = rowsOfPiece();
    for (const int64_t parts : {2, 4}) {
      if (rows % parts != 0 || rows == 0 || running_.schedule.kind == "table") {
        continue;
      }
      const Running smaller = {running_.schedule, running_.pieces * parts, parts};
      if (const absl::StatusOr<StepNeeds> needs = advise::needsOf(blocks_, smaller, machine_); needs.ok()) {
        add("micro", absl::StrCat("--micro ", smaller.pieces), peakWith(*needs), needs->seconds,
            absl::StrCat(kRegions,
                         "; what follows from the inputs shrinks with the piece, the rest stays; scratch "
                         "memory of kernels as now"));
      }
    }
  }

  // --- Division over the data axes.

  void adviseZero() {
    for (int64_t level = decisions_.zero + 1; level <= 3; ++level) {
      std::vector<BlockModel> blocks;
      std::vector<int64_t> freed;
      double seconds = 0;
      for (const BlockModel& block : blocks_) {
        advise::ZeroChange change = advise::withZero(block, decisions_, level, machine_);
        freed.push_back(change.freedBytes);
        seconds = blocks.empty() ? change.seconds : std::max(seconds, change.seconds);
        blocks.push_back(std::move(change.block));
      }
      if (const absl::StatusOr<StepNeeds> needs = advise::needsOf(blocks, running_, machine_); needs.ok()) {
        add("zero", absl::StrCat("--zero ", level, level == 3 ? " --regather" : ""), peakWith(*needs, freed),
            needs->seconds + seconds,
            absl::StrCat(kRegions,
                         "; collectives one per parameter, not joined in buckets, and nothing hidden behind "
                         "them; transients of the update as now"));
      }
    }
  }

  const plan::Plan& plan_;
  const Machine& machine_;
  Decisions decisions_;
  std::vector<BlockModel> blocks_;
  Running running_;
  StepNeeds now_;
  std::vector<MemoryAdvice> advice_;
};

}  // namespace

absl::StatusOr<std::vector<MemoryAdvice>> adviseMemory(const plan::Plan& plan, const Machine& machine) {
  return Adviser(plan, machine).run();
}

}  // namespace weft
