#include "planner/advise/advise_memory.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/check_request.h"
#include "planner/derive/derive.h"
#include "planner/graph/name_classes.h"
#include "planner/schedule/generate.h"
#include "planner/search/forward_graphs.h"
#include "planner/search/plan.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr int kRecomputeLines = 6;

// What the words of one choice keep and cost, by the graphs on which recomputation is chosen.
class WordPrices {
 public:
  WordPrices(const GraphView& view, const AnnotatedStep& step, std::vector<ForwardGraph> stages)
      : stages_(std::move(stages)) {
    for (const ForwardGraph& stage : stages_) {
      std::vector<std::string>& words = words_.emplace_back();
      for (size_t i = 0; i < stage.ops.size(); ++i) {
        const AnnotatedOp& op = step.ops[stage.ops[i]];
        const recompute::Operator& node = stage.graph.operators[i];
        const bool may = op.kind == AnnotatedOp::Kind::kOperator && node.mayRepeat && node.mayKeep;
        words.push_back(may ? layerPattern(view.op(op.op).label()) : "");
      }
    }
  }

  std::vector<std::string> words() const {
    std::vector<std::string> all;
    for (const std::vector<std::string>& stage : words_) {
      all.insert(all.end(), stage.begin(), stage.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::erase(all, "");
    return all;
  }

  // Bytes kept and seconds run again, of one micro-batch of all stages, if `chosen` run again.
  std::pair<double, double> of(const std::vector<std::string>& chosen) const {
    std::pair<double, double> sum;
    for (size_t s = 0; s < stages_.size(); ++s) {
      std::vector<bool> keep;
      for (size_t i = 0; i < words_[s].size(); ++i) {
        // A reshard runs again where what it changes does.
        const std::vector<int>& inputs = stages_[s].graph.operators[i].inputs;
        const int maker = inputs.empty() ? -1 : stages_[s].graph.values[inputs[0]].op;
        const bool named = std::find(chosen.begin(), chosen.end(), words_[s][i]) != chosen.end();
        const bool follows =
            words_[s][i].empty() && stages_[s].graph.operators[i].mayRepeat && maker >= 0 && !keep[maker];
        keep.push_back(!named && !follows);
      }
      const recompute::Outcome outcome = outcomeOf(stages_[s].graph, keep);
      sum.first += static_cast<double>(outcome.bytes);
      sum.second += inSeconds(outcome.time);
    }
    return sum;
  }

 private:
  std::vector<ForwardGraph> stages_;
  std::vector<std::vector<std::string>> words_;  // of each operator of each stage; "" where the user can name none
};

class Adviser {
 public:
  explicit Adviser(ClosedRequest closed)
      : graph_(*closed.graph), request_(std::move(closed.request)), now_(std::move(closed.attempt)) {}

  absl::StatusOr<MemoryAdvice> run() {
    advice_.peakBytes = now_.peakBytes;
    WEFT_RETURN_IF_ERROR(adviseRecompute());
    adviseSchedule();
    adviseMicro();
    adviseZero();
    return std::move(advice_);
  }

 private:
  // Words one after another: the one that saves most bytes for its time beside those before it.
  absl::Status adviseRecompute() {
    ProgramGraph graph = graph_;
    WEFT_ASSIGN_OR_RETURN(Derivation derived, deriveDecisions(graph, request_, {}));
    WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request_));
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model,
                          StepModel::create(std::move(graph), std::move(derived.decisions), machine, {}));
    WEFT_ASSIGN_OR_RETURN(std::vector<ForwardGraph> graphs, forwardGraphs(model->record(), *model));
    const WordPrices prices(model->view(), model->step(), std::move(graphs));
    std::vector<std::string> open = prices.words();
    std::vector<std::string> chosen;
    for (int line = 0; line < kRecomputeLines && takeBest(prices, open, chosen);) {
      CompileOptions changed = request_;
      const std::vector<std::string> before = recomputePatterns(request_.recompute);
      changed.recompute = absl::StrJoin(before, ",");
      absl::StrAppend(&changed.recompute, before.empty() ? "" : ",", absl::StrJoin(chosen, ","));
      line += add("recompute", "--recompute " + changed.recompute, changed) ? 1 : 0;
    }
    return absl::OkStatus();
  }

  // Moves the best of the open words to the chosen ones; false if none saves anything.
  static bool takeBest(const WordPrices& prices, std::vector<std::string>& open, std::vector<std::string>& chosen) {
    const auto [bytes, seconds] = prices.of(chosen);
    size_t best = open.size();
    double most = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      std::vector<std::string> with = chosen;
      with.push_back(open[i]);
      const auto [kept, again] = prices.of(with);
      const double saved = (bytes - kept) / std::max(again - seconds, std::numeric_limits<double>::min());
      if (kept < bytes && saved > most) {
        best = i;
        most = saved;
      }
    }
    if (best == open.size()) {
      return false;
    }
    chosen.push_back(open[best]);
    open.erase(open.begin() + static_cast<int64_t>(best));
    return true;
  }

  // Every kind that puts as many stages on each submesh.
  void adviseSchedule() {
    const ScheduleDecision& now = now_.decisions.schedule;
    for (const schedule::Kind kind : schedule::allKinds()) {
      CompileOptions changed = request_;
      changed.schedule = schedule::kindName(kind);
      changed.virtualStages = now.virtualStages > 1 ? now.virtualStages : 0;
      if (now.submeshes.size() > 1 && changed.schedule != now.kind && executableKind(changed.schedule).ok()) {
        add("schedule", "--schedule " + changed.schedule, changed);
      }
    }
  }

  // Two and four times as many, where the rows divide.
  void adviseMicro() {
    const int64_t parts = partsOf(dataParallelAxes(now_.decisions.mesh));
    for (const int64_t factor : {2, 4}) {
      CompileOptions changed = request_;
      changed.micro = request_.microBatches() * factor;
      const bool divides = std::all_of(graph_.arguments.begin(), graph_.arguments.end(), [&](const GraphArgument& a) {
        return !a.hasBatch() || a.type.shape[a.batchDim] % (*changed.micro * parts) == 0;
      });
      if (divides) {
        add("micro", absl::StrCat("--micro ", *changed.micro), changed);
      }
    }
  }

  void adviseZero() {
    for (int level = request_.zeroLevel() + 1; level <= 3; ++level) {
      for (const bool regather : {false, true}) {
        CompileOptions changed = request_;
        changed.zero = level;
        changed.regather = request_.regather || regather;
        if (level == 3 || changed.regather == request_.regather) {
          add("zero", absl::StrCat("--zero ", level, regather ? " --regather" : ""), changed);
        }
      }
    }
  }

  // Whatever the changed request cannot be is no advice.
  bool add(const std::string& kind, const std::string& set, const CompileOptions& changed) {
    const bool sound = checkRequest(Request{changed, std::nullopt}).ok();
    const absl::StatusOr<Attempt> made = sound ? predictProgram(graph_, changed, {}) : absl::InvalidArgumentError("");
    const int64_t least =
        kind == "recompute" && !advice_.lines.empty() ? advice_.lines.back().peakBytes : now_.peakBytes;
    if (!made.ok() || made->peakBytes >= least) {
      return false;
    }
    advice_.lines.push_back({kind, set, made->peakBytes, now_.peakBytes - made->peakBytes,
                             static_cast<double>(made->time) / static_cast<double>(now_.time)});
    return true;
  }

  ProgramGraph graph_;
  CompileOptions request_;  // leaves nothing open
  Attempt now_;
  MemoryAdvice advice_;
};

}  // namespace

absl::StatusOr<MemoryAdvice> adviseMemory(const GraphFor& graphs, const CompileOptions& request) {
  WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, closeRequest(graphs, request, {}));
  return closed.graph->trains() ? Adviser(std::move(closed)).run() : MemoryAdvice();
}

}  // namespace weft
