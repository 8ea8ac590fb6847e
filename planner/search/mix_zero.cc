#include "planner/search/mix_zero.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/layout/reshard.h"
#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/graph/name_classes.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr int kLowered = 1;  // no collective in a micro-batch
// A part of the step: what gains less is not worth a level of its own.
constexpr double kLeastGain = 0.002;
// The part of a step that recomputation must take for classes to be raised: below, they gain next to nothing.
constexpr double kLeastRecomputed = 0.03;
constexpr size_t kAsked = 4;  // predictions

// The weights of one class, and what lies between two of their levels: time of a step, which the lower saves, and
// bytes of a rank, which the higher does.
struct LeveledClass {
  std::string pattern;
  Picoseconds time = 0;
  int64_t bytes = 0;  // of all submeshes
};

class Mixer {
 public:
  Mixer(ClosedRequest plan, const CompileOptions& request, const Machine& machine, const Predict& predict)
      : plan_(std::move(plan)), request_(request), machine_(machine), predict_(predict), best_(plan_) {}

  absl::StatusOr<ClosedRequest> run() {
    WEFT_ASSIGN_OR_RETURN(const int64_t limit, memoryLimitOf(request_));
    const Attempt& attempt = plan_.attempt;
    const int level = plan_.request.zeroLevel();
    const bool isShort = !attempt.fits || !attempt.decisions.recomputeSummary.empty();
    if (level > kLowered && attempt.fits) {
      lower();
    } else if (isShort && limit > 0) {
      raise(std::max(level, kLowered) + 1);
    }
    if (best_.request.zeroOf != plan_.request.zeroOf) {
      best_.notes.push_back(absl::StrFormat("ZeRO by class of weights: level %d, but %s: %.4g ms instead of %.4g ms",
                                            level, printZeroOf(best_.request.zeroOf),
                                            1e3 * inSeconds(best_.attempt.time), 1e3 * inSeconds(attempt.time)));
    }
    return std::move(best_);
  }

 private:
  // The classes whose level may change, with what lies between the two levels.
  std::vector<LeveledClass> classesBetween(int lower, int higher) const {
    std::map<std::string, LeveledClass> classes;
    std::vector<std::string> order;
    std::set<std::string> left;  // patterns that match more than their class, or what the user speaks of
    for (const GraphArgument& argument : plan_.graph->arguments) {
      if (argument.kind != ArgumentKind::kParameter) {
        continue;
      }
      const std::string pattern = layerPattern(argument.name);
      const ArgumentDecision* decision = decisionOf(argument.name);
      const bool isSaid = zeroLevelOf(request_.zeroOf, argument.name, kFindZero) != kFindZero;
      if (isSaid || decision == nullptr) {
        left.insert(pattern);
        continue;
      }
      if (classes.emplace(pattern, LeveledClass{pattern}).second) {
        order.push_back(pattern);
      }
      add(argument, *decision, lower, higher, classes.at(pattern));
    }
    std::vector<LeveledClass> found;
    for (const std::string& pattern : order) {
      if (left.count(pattern) == 0 && isOwn(pattern) && classes.at(pattern).bytes > 0) {
        found.push_back(classes.at(pattern));
      }
    }
    return found;
  }

  const ArgumentDecision* decisionOf(const std::string& name) const {
    const std::vector<ArgumentDecision>& arguments = plan_.attempt.decisions.arguments;
    const auto found = std::find_if(arguments.begin(), arguments.end(),
                                    [&](const ArgumentDecision& each) { return each.name == name; });
    return found == arguments.end() ? nullptr : &*found;
  }

  bool isOwn(const std::string& pattern) const {
    return std::all_of(plan_.graph->arguments.begin(), plan_.graph->arguments.end(), [&](const GraphArgument& each) {
      return each.kind != ArgumentKind::kParameter || !globMatches(pattern, each.name) ||
             layerPattern(each.name) == pattern;
    });
  }

  // What the parameter adds to the figures of its class.
  void add(const GraphArgument& argument, const ArgumentDecision& decision, int lower, int higher,
           LeveledClass& mine) const {
    const Decisions& record = plan_.attempt.decisions;
    const Mesh mesh = record.meshes().ofStage(decision.stage);
    const AxisList axes = dataParallelAxes(mesh);
    const int64_t parts = partsOf(axes);
    const int64_t stored = TensorType{decision.layout.localShape(argument.type.shape), argument.type.type}.bytes();
    const bool isSplit = std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return decision.layout.uses(a); });
    const int64_t whole = isSplit ? stored * parts : stored;
    const int64_t shard = whole / parts;
    const GroupSpan span = spanOf(machine_, mesh.ranks(), axes);
    const int64_t micro = mesh.microBatches();
    if (lower < 2 && higher >= 2 && micro > 1) {
      mine.bytes += whole - shard;
      mine.time += (micro - 1) * collectiveCost(machine_, CollectiveKind::kReduceScatter, span, whole - shard);
    }
    if (higher >= 3 && decision.gather != GatherPolicy::kOncePerStep) {
      mine.bytes += whole - shard;
      mine.time += (2 * micro - 1) * collectiveCost(machine_, CollectiveKind::kAllGather, span, whole - shard);
    }
  }

  bool isMuch(Picoseconds time) const {
    return static_cast<double>(time) > kLeastGain * static_cast<double>(plan_.attempt.time);
  }

  // One class after the other, each on top of those before it, while that pays.
  void climb(const std::vector<LeveledClass>& classes, int level) {
    size_t asked = 0;
    while (asked < std::min(classes.size(), kAsked) && ask(classes[asked], level)) {
      ++asked;
    }
  }

  // Those first that save most time.
  void lower() {
    std::vector<LeveledClass> classes = classesBetween(kLowered, plan_.request.zeroLevel());
    std::erase_if(classes, [&](const LeveledClass& each) { return !isMuch(each.time); });
    std::stable_sort(classes.begin(), classes.end(),
                     [](const LeveledClass& a, const LeveledClass& b) { return a.time > b.time; });
    climb(classes, kLowered);
  }

  // Those first that free most bytes.
  void raise(int level) {
    const double recomputed = static_cast<double>(recomputation());
    if (plan_.attempt.fits && recomputed < kLeastRecomputed * static_cast<double>(plan_.attempt.time)) {
      return;
    }
    std::vector<LeveledClass> classes = classesBetween(plan_.request.zeroLevel(), level);
    std::erase_if(classes, [](const LeveledClass& each) { return each.bytes == 0; });
    std::stable_sort(classes.begin(), classes.end(),
                     [](const LeveledClass& a, const LeveledClass& b) { return a.bytes > b.bytes; });
    climb(classes, level);
  }

  // In a step, if all of it is on one path.
  Picoseconds recomputation() const {
    const Decisions& record = plan_.attempt.decisions;
    Picoseconds time = 0;
    for (const OperatorDecision& op : record.operators) {
      time += op.recompute ? op.recomputePrice.time : 0;
    }
    return time * record.mesh.microBatches();
  }

  // Keeps what is worth a level of its own.
  bool ask(const LeveledClass& added, int level) {
    CompileOptions changed = best_.request;
    changed.zeroOf.emplace_back(added.pattern, level);
    ++best_.ticks;
    absl::StatusOr<Attempt> made = predict_(*plan_.graph, changed, plan_.bytePrice, uselessBeside(best_.attempt));
    const Attempt& before = best_.attempt;
    const bool pays = made.ok() && isBetter(*made, before) && (!before.fits || isMuch(before.time - made->time));
    if (pays) {
      best_.request = std::move(changed);
      best_.attempt = *std::move(made);
    }
    return pays;
  }

  const ClosedRequest plan_;
  const CompileOptions& request_;
  const Machine& machine_;
  const Predict& predict_;
  ClosedRequest best_;
};

}  // namespace

absl::StatusOr<ClosedRequest> mixZero(ClosedRequest plan, const CompileOptions& request, const Predict& predict) {
  const bool isOpen = request.zeroLevel() == kFindZero && request.may(Freedom::kZero) &&
                      request.may(Freedom::kZeroClasses) && plan.graph->trains();
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  return isOpen ? Mixer(std::move(plan), request, machine, predict).run() : std::move(plan);
}

}  // namespace weft
