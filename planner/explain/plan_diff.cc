#include "planner/explain/plan_diff.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

using Unit = DiffLine::Unit;

class Comparison {
 public:
  Comparison(const ComparedPlan& a, const ComparedPlan& b) : a_(a), b_(b) {}

  std::vector<DiffLine> run() && {
    addChoices();
    addStages();
    addWeights();
    addTime();
    addMemory();
    addCollectives();
    return std::move(lines_);
  }

 private:
  void add(const std::string& what, std::string a, std::string b) {
    lines_.push_back({what, Unit::kText, {std::move(a)}, {std::move(b)}});
  }
  void add(const std::string& what, Unit unit, double a, double b) { lines_.push_back({what, unit, {"", a}, {"", b}}); }
  template <typename NumberOf>
  void addCount(const std::string& what, const NumberOf& numberOf) {
    add(what, Unit::kNumber, static_cast<double>(numberOf(a_.summary)), static_cast<double>(numberOf(b_.summary)));
  }

  void addChoices() {
    addCount("stages", [](const PlanSummary& plan) { return plan.stages.size(); });
    addCount("micro-batches", [](const PlanSummary& plan) { return plan.microBatches; });
    add("schedule", a_.summary.schedule, b_.summary.schedule);
    addCount("stages on each submesh", [](const PlanSummary& plan) { return plan.virtualStages; });
    if (a_.summary.zeroOf.empty() && b_.summary.zeroOf.empty()) {
      addCount("ZeRO level", [](const PlanSummary& plan) { return plan.zero; });
    } else {
      add("ZeRO level", a_.summary.zeroText, b_.summary.zeroText);
    }
    add("recomputed", a_.summary.recompute, b_.summary.recompute);
    if (a_.summary.overlap || b_.summary.overlap) {
      add("overlap", a_.summary.overlap ? "yes" : "no", b_.summary.overlap ? "yes" : "no");
    }
    if (a_.summary.offload != b_.summary.offload || a_.summary.offload != Offload::kNone) {
      add("offload", offloadName(a_.summary.offload), offloadName(b_.summary.offload));
    }
    if (a_.summary.gatherBucket != b_.summary.gatherBucket) {
      add("bucket of gathers", Unit::kBytes, static_cast<double>(a_.summary.gatherBucket),
          static_cast<double>(b_.summary.gatherBucket));
    }
  }

  // "h0 ... h5 (6)".
  static std::string layersOf(const PlanSummary& plan, size_t stage) {
    constexpr size_t kMostNamed = 3;
    if (stage >= plan.stages.size()) {
      return "none";
    }
    const std::vector<std::string>& layers = plan.stages[stage].layers;
    return layers.size() <= kMostNamed ? absl::StrJoin(layers, " ")
                                       : absl::StrCat(layers.front(), " ... ", layers.back(), " (", layers.size(), ")");
  }

  static std::string meshOf(const PlanSummary& plan, size_t stage) {
    return stage >= plan.stages.size() ? "none" : plan.stages[stage].mesh;
  }

  // One line where all stages of each plan have the same mesh.
  void addStages() {
    const auto isUniform = [](const PlanSummary& plan) {
      return std::all_of(plan.stages.begin(), plan.stages.end(),
                         [&](const StageSummary& stage) { return stage.mesh == plan.stages.front().mesh; });
    };
    const size_t stages = std::max(a_.summary.stages.size(), b_.summary.stages.size());
    const bool uniform = isUniform(a_.summary) && isUniform(b_.summary);
    for (size_t s = 0; s < (uniform ? 1 : stages); ++s) {
      add(uniform ? "mesh" : absl::StrCat("mesh of stage ", s), meshOf(a_.summary, s), meshOf(b_.summary, s));
    }
    for (size_t s = 0; s < stages && stages > 1; ++s) {
      add(absl::StrCat("layers of stage ", s), layersOf(a_.summary, s), layersOf(b_.summary, s));
    }
  }

  // The layouts of a class, "[{},{tp}] 11 x, [{tp},{}] 1 x".
  static std::map<std::string, std::string> layoutsByClass(const PlanSummary& plan) {
    std::map<std::string, std::string> layouts;
    for (const WeightClass& each : plan.weights) {
      std::string& text = layouts[each.name];
      absl::StrAppend(&text, text.empty() ? "" : ", ", each.layout,
                      each.count > 1 ? absl::StrCat(" ", each.count, " x") : "");
    }
    return layouts;
  }

  void addWeights() {
    const std::map<std::string, std::string> ofA = layoutsByClass(a_.summary);
    const std::map<std::string, std::string> ofB = layoutsByClass(b_.summary);
    std::set<std::string> added;
    for (const PlanSummary* plan : {&a_.summary, &b_.summary}) {
      for (const WeightClass& each : plan->weights) {
        if (added.insert(each.name).second) {
          const auto in = [&](const std::map<std::string, std::string>& layouts) {
            const auto found = layouts.find(each.name);
            return found == layouts.end() ? "none" : found->second;
          };
          add(absl::StrCat("weights ", each.name), in(ofA), in(ofB));
        }
      }
    }
  }

  void addTime() {
    if (a_.summary.stepSeconds > 0 && b_.summary.stepSeconds > 0) {
      add("time of a step", Unit::kSeconds, a_.summary.stepSeconds, b_.summary.stepSeconds);
    }
    if (a_.compiled && b_.compiled) {
      add("operations of a rank", Unit::kNumber, static_cast<double>(a_.statistics.flops),
          static_cast<double>(b_.statistics.flops));
    }
  }

  void addMemory() {
    if (a_.summary.memory.peakBytes > 0 && b_.summary.memory.peakBytes > 0) {
      add("memory: peak", Unit::kBytes, static_cast<double>(a_.summary.memory.peakBytes),
          static_cast<double>(b_.summary.memory.peakBytes));
    }
    if (!a_.compiled || !b_.compiled) {
      return;
    }
    std::map<std::string, int64_t> ofA = a_.summary.memory.byClass;
    std::map<std::string, int64_t> ofB = b_.summary.memory.byClass;
    std::set<std::string> names;
    for (const auto* classes : {&ofA, &ofB}) {
      for (const auto& [name, bytes] : *classes) {
        names.insert(name);
      }
    }
    for (const std::string& name : names) {
      if (ofA[name] > 0 || ofB[name] > 0) {
        add(absl::StrCat("memory: ", name), Unit::kBytes, static_cast<double>(ofA[name]),
            static_cast<double>(ofB[name]));
      }
    }
  }

  void addCollectives() {
    if (!a_.compiled || !b_.compiled) {
      return;
    }
    std::map<std::string, CollectiveCount> ofA = a_.statistics.collectives;
    std::map<std::string, CollectiveCount> ofB = b_.statistics.collectives;
    std::set<std::string> kinds;
    for (const auto* collectives : {&ofA, &ofB}) {
      for (const auto& [kind, count] : *collectives) {
        kinds.insert(kind);
      }
    }
    for (const std::string& kind : kinds) {
      const CollectiveCount& a = ofA[kind];
      const CollectiveCount& b = ofB[kind];
      add(absl::StrCat(kind, ": calls"), Unit::kNumber, static_cast<double>(a.calls), static_cast<double>(b.calls));
      add(absl::StrCat(kind, ": received by a rank"), Unit::kBytes, static_cast<double>(a.bytesReceived),
          static_cast<double>(b.bytesReceived));
      add(absl::StrCat(kind, ": time"), Unit::kSeconds, a.seconds, b.seconds);
    }
  }

  const ComparedPlan& a_;
  const ComparedPlan& b_;
  std::vector<DiffLine> lines_;
};

}  // namespace

std::vector<DiffLine> compare(const ComparedPlan& a, const ComparedPlan& b) {
  return Comparison(a, b).run();
}

}  // namespace weft
