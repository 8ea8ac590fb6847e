#include "planner/advise/advise_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/advise/advise_zero.h"
#include "planner/advise/step_memory.h"
#include "planner/advise/step_model.h"
#include "planner/schedule/generate.h"
#include "planner/stage_table.h"
#include "planner/step/step_program.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {
namespace {

using advise::Op;
using advise::ScheduleConfig;
using advise::StageModel;
using advise::StepNeeds;
using advise::SubmeshModel;
using Words = std::set<std::string>;

constexpr size_t kRecomputeLines = 6;
// Bounds on what is tried, far above any model: operators of one list, actions of a schedule.
constexpr size_t kMostOperators = 20'000;
constexpr int64_t kMostActions = int64_t{1} << 22;
// Operators behind a value that are recomputed with it.
constexpr int kLongestChain = 1000;
constexpr char kRegions[] = "regions as large as what is alive at once in them";

class Adviser {
 public:
  Adviser(const plan::Plan& plan, const Machine& machine) : plan_(plan), machine_(machine) {}

  absl::StatusOr<std::vector<MemoryAdvice>> run() {
    WEFT_ASSIGN_OR_RETURN(decisions_, parseDecisions(plan_.decisions()));
    bool backward = false;
    for (const plan::Plan* submesh : submeshesOf(plan_)) {
      submeshes_.push_back(advise::readSubmesh(*submesh, machine_));
      for (const StageModel& stage : submeshes_.back().stages) {
        backward |= !stage.backward.empty();
      }
    }
    if (!backward) {
      return std::move(advice_);
    }
    WEFT_RETURN_IF_ERROR(checkStages());
    WEFT_RETURN_IF_ERROR(checkSize());
    config_ = {decisions_.schedule, plan_.micro_batches(), 1};
    WEFT_ASSIGN_OR_RETURN(now_, advise::needsOf(submeshes_, config_, machine_));
    adviseRecompute();
    adviseSchedule();
    adviseMicro();
    adviseZero();
    return std::move(advice_);
  }

 private:
  // Do the decisions speak of the plan's submeshes and stages?
  absl::Status checkStages() const {
    const std::vector<const plan::Plan*> plans = submeshesOf(plan_);
    const std::vector<int64_t>& submeshes = decisions_.schedule.submeshes;
    std::set<int64_t> found;
    for (size_t b = 0; b < plans.size(); ++b) {
      for (const plan::Function& function : plans[b]->functions()) {
        const int64_t stage = function.stage();
        const bool known = stage >= 0 && stage < static_cast<int64_t>(submeshes.size());
        if (isPerMicroBatch(function.kind()) && (!known || submeshes[stage] != static_cast<int64_t>(b))) {
          return absl::DataLossError(absl::StrCat("@", function.name(), " of submesh ", b, " is of stage ", stage,
                                                  ", which the plan's decisions do not give to that submesh; compile "
                                                  "the plan again"));
        }
        if (isPerMicroBatch(function.kind())) {
          found.insert(stage);
        }
      }
    }
    return found.size() == submeshes.size()
               ? absl::OkStatus()
               : absl::DataLossError(absl::StrCat("the plan has functions of ", found.size(), " stages, its decisions ",
                                                  "have ", submeshes.size(), "; compile the plan again"));
  }

  absl::Status checkSize() const {
    size_t most = 0;
    for (const SubmeshModel& submesh : submeshes_) {
      for (const StageModel& stage : submesh.stages) {
        most = std::max({most, stage.forward.size(), stage.backward.size()});
      }
    }
    const int64_t actions = static_cast<int64_t>(decisions_.schedule.submeshes.size()) * plan_.micro_batches();
    if (most > kMostOperators || actions > kMostActions) {
      return absl::InvalidArgumentError(absl::StrCat(
          "advice is for functions of up to ", kMostOperators, " operators and up to ", kMostActions,
          " stages x micro-batches; the plan has ", most, " and ", actions, "; see weft stats for its memory"));
    }
    return absl::OkStatus();
  }

  // The peak over all ranks, if each submesh's memory changes by what the model says.
  int64_t peakWith(const StepNeeds& needs, const std::vector<int64_t>& freed = {}) const {
    const std::vector<const plan::Plan*> plans = submeshesOf(plan_);
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
    std::vector<SubmeshModel> submeshes;
    for (const SubmeshModel& submesh : submeshes_) {
      submeshes.push_back(advise::recomputed(submesh, {words.begin(), words.end()}));
    }
    return advise::needsOf(submeshes, config_, machine_);
  }

  // What to recompute so that a kept value need not be kept: its operator alone, and its operators back to values that
  // are kept anyway.
  void addCandidates(const SubmeshModel& submesh, const StageModel& stage, std::set<Words>& candidates) const {
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
        collect(submesh, stage, value, {makers, kept, viewed, advise::readOutside(submesh, stage), seen}, one, chain);
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

  void collect(const SubmeshModel& submesh, const StageModel& stage, int value, const Known& known, Words& one,
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
        chain.insert(advise::kViewOperator);
      }
      one = first ? chain : one;
    } else if (!op.source->has_collective()) {
      return;
    }
    for (const int input : op.inputs) {
      if (known.makers.count(input) > 0 && known.kept.count(input) == 0 && input != value) {
        collect(submesh, stage, input, known, one, chain);
      }
    }
  }

  void adviseRecompute() {
    std::set<Words> candidates;
    for (const SubmeshModel& submesh : submeshes_) {
      for (const StageModel& stage : submesh.stages) {
        addCandidates(submesh, stage, candidates);
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
    if (decisions_.schedule.submeshes.size() < 2) {
      return;
    }
    for (const schedule::Kind kind : schedule::allKinds()) {
      ScheduleConfig other = config_;
      other.schedule.kind = schedule::kindName(kind);
      const absl::StatusOr<schedule::Table> table = stageTable(other.schedule, other.microBatches, true);
      const bool runs = table.ok() && kind != schedule::Kind::kSeq1F1B && other.schedule.kind != config_.schedule.kind;
      if (!runs || !std::equal(table->stageToRank.begin(), table->stageToRank.end(), config_.schedule.submeshes.begin(),
                               config_.schedule.submeshes.end())) {
        continue;
      }
      if (const absl::StatusOr<StepNeeds> needs = advise::needsOf(submeshes_, other, machine_); needs.ok()) {
        add("schedule", "--schedule " + other.schedule.kind, peakWith(*needs), needs->seconds, kRegions);
      }
    }
  }

  // --- Smaller micro-batches.

  // Rows of one micro-batch on one rank: the least among the inputs.
  int64_t rowsOfMicroBatch() const {
    int64_t rows = 0;
    for (const plan::Plan* submesh : submeshesOf(plan_)) {
      for (const plan::NamedTensor& tensor : submesh->tensors()) {
        const plan::Buffer& buffer = submesh->buffers(static_cast<int>(tensor.buffer()));
        if (tensor.kind() == plan::TENSOR_INPUT && buffer.shape_size() > 0 && buffer.shape(0) > 1) {
          const int64_t own = buffer.shape(0) / plan_.micro_batches();
          rows = rows == 0 ? own : std::min(rows, own);
        }
      }
    }
    return rows;
  }

  void adviseMicro() {
    const int64_t rows = rowsOfMicroBatch();
    for (const int64_t parts : {2, 4}) {
      if (rows % parts != 0 || rows == 0 || config_.schedule.kind == "table") {
        continue;
      }
      const ScheduleConfig smaller = {config_.schedule, config_.microBatches * parts, parts};
      if (const absl::StatusOr<StepNeeds> needs = advise::needsOf(submeshes_, smaller, machine_); needs.ok()) {
        add("micro", absl::StrCat("--micro ", smaller.microBatches), peakWith(*needs), needs->seconds,
            absl::StrCat(kRegions,
                         "; what follows from the inputs shrinks with the micro-batch, the rest stays; scratch "
                         "memory of kernels as now"));
      }
    }
  }

  // --- Division over the data axes.

  void adviseZero() {
    for (int64_t level = decisions_.zero + 1; level <= 3; ++level) {
      std::vector<SubmeshModel> submeshes;
      std::vector<int64_t> freed;
      double seconds = 0;
      for (const SubmeshModel& submesh : submeshes_) {
        advise::ZeroChange change = advise::withZero(submesh, decisions_, level, machine_);
        freed.push_back(change.freedBytes);
        seconds = submeshes.empty() ? change.seconds : std::max(seconds, change.seconds);
        submeshes.push_back(std::move(change.submesh));
      }
      if (const absl::StatusOr<StepNeeds> needs = advise::needsOf(submeshes, config_, machine_); needs.ok()) {
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
  std::vector<SubmeshModel> submeshes_;
  ScheduleConfig config_;
  StepNeeds now_;
  std::vector<MemoryAdvice> advice_;
};

}  // namespace

absl::StatusOr<std::vector<MemoryAdvice>> adviseMemory(const plan::Plan& plan, const Machine& machine) {
  return Adviser(plan, machine).run();
}

}  // namespace weft
