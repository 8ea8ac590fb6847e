#include "planner/step/value_layouts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/layout/linear_sets.h"
#include "planner/graph/sums.h"
#include "planner/step/time_layouts.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

bool contains(const std::vector<Partial>& sums, const Partial& sum) {
  return std::find(sums.begin(), sums.end(), sum) != sums.end();
}

class LayoutAssigner {
 public:
  LayoutAssigner(const GraphView& view, const Decisions& decisions, StoredShapes stored)
      : view_(view),
        decisions_(decisions),
        meshes_(decisions.meshes()),
        byId_(decisionsById(decisions)),
        layouts_{std::move(stored), {}, {}, {}} {}

  absl::StatusOr<StepLayouts> run() {
    for (const ArgumentDecision& argument : decisions_.arguments) {
      layouts_.values.push_back(argument.layout.canonical());
      layouts_.seen.push_back(argument.layout);
      meshOf_.push_back(meshes_.number(argument.stage));
    }
    for (int op = 0; op < view_.operators(); ++op) {
      const auto decision = byId_.find(view_.op(op).id);
      if (decision == byId_.end()) {
        return errorAt(view_.op(op).line, absl::StrCat(view_.op(op).label(), " is not in the decisions"));
      }
      WEFT_RETURN_IF_ERROR(visit(op, *decision->second));
    }
    for (Layout& layout : layouts_.seen) {
      layout = layout.canonical();
    }
    return std::move(layouts_);
  }

 private:
  absl::Status visit(int op, const OperatorDecision& decision) {
    WEFT_ASSIGN_OR_RETURN(Rule rule, ruleOf(view_, layouts_.stored, op));
    const FactorAxes axes = factorAxes(rule, decision, meshes_.ofStage(decision.stage));
    layouts_.operators.push_back({{decision.runsIn, decision.stage}, std::move(rule), axes, {}});
    const std::vector<Partial> passed = passedSums(op);
    for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
      Layout wanted = padded(layouts_.operators[op].rule.operandLayout(i, axes), view_.operandOf(op, i));
      std::vector<Partial> kept = partialAt(op, i);
      std::erase_if(kept, [&](const Partial& sum) { return !contains(passed, sum); });
      wanted.setPartial(std::move(kept));
      layouts_.operators[op].reads.push_back(wanted.canonical());
    }
    leaveResults(op, passed, decision);
    return absl::OkStatus();
  }

  // `layout` with the pads of `value`.
  Layout padded(Layout layout, int value) const {
    return withPads(std::move(layout), view_.typeOf(value).shape, layouts_.stored.of(value));
  }

  const Place& placeOf(int op) const { return layouts_.operators[op].place; }

  // Does the operator read the operand from the mesh of another stage?
  bool isElsewhere(int op, unsigned operand) const {
    return meshOf_[view_.operandOf(op, operand)] != meshes_.number(placeOf(op).stage);
  }

  // The sums over which an operand is partial where `op` reads it: what comes from another mesh is whole.
  std::vector<Partial> partialAt(int op, unsigned operand) const {
    return isElsewhere(op, operand) ? std::vector<Partial>() : layouts_.seen[view_.operandOf(op, operand)].partial();
  }

  // Partial sums that pass through `op`: those of operands in which it is linear together. What else an operand is
  // partial over is reduced first.
  std::vector<Partial> passedSums(int op) const {
    std::vector<Partial> passed;
    std::vector<unsigned> holders;  // of the sums that pass: the same operands for all
    if (!view_.op(op).gradientOf.empty()) {
      return passed;
    }
    for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
      for (const Partial& sum : partialAt(op, i)) {
        const bool beside = std::all_of(passed.begin(), passed.end(),
                                        [&](const Partial& other) { return compatible(other.axis, sum.axis); });
        const std::vector<unsigned> mine = holdersOf(op, sum);
        if (beside && (passed.empty() || mine == holders) && passes(op, i, sum)) {
          passed.push_back(sum);
          holders = mine;
        }
      }
    }
    return passed;
  }

  std::vector<unsigned> holdersOf(int op, const Partial& sum) const {
    std::vector<unsigned> holders;
    for (unsigned k = 0; k < view_.op(op).operands.size(); ++k) {
      if (contains(partialAt(op, k), sum)) {
        holders.push_back(k);
      }
    }
    return holders;
  }

  bool passes(int op, unsigned operand, const Partial& sum) const {
    std::vector<bool> partial;
    for (unsigned k = 0; k < view_.op(op).operands.size(); ++k) {
      const std::vector<Partial> sums = partialAt(op, k);
      partial.push_back(
          std::any_of(sums.begin(), sums.end(), [&](const Partial& other) { return overlap(other.axis, sum.axis); }));
      if (partial.back() && !contains(sums, sum)) {
        return false;
      }
    }
    // What runs after the micro-batches reads whole sums over them.
    const bool early = !isTime(sum.axis) || placeOf(op).where != RunsIn::kUpdate;
    return early && sum.kind == ReduceKind::kSum && linearIn(view_.op(op).facts.linear, operand, partial) &&
           fitsBeside(layouts_.operators[op].axes, sum.axis) && isWorthPassing(op, operand, sum);
  }

  bool isWorthPassing(int op, unsigned operand, const Partial& sum) const {
    if (!view_.op(op).facts.passesSums) {
      return !isTime(sum.axis) &&
             productsPass(view_, view_.operandOf(op, operand), sum.axis, [&](int other) { return ownSums(other); });
    }
    return isTime(sum.axis) || passesOn(view_, op, holdersOf(op, sum));
  }

  AxisList ownSums(int op) const {
    const auto decision = byId_.find(view_.op(op).id);
    const absl::StatusOr<Rule> rule = ruleOf(view_, layouts_.stored, op);
    if (decision == byId_.end() || !rule.ok()) {
      return {};  // visit() has the error
    }
    return ownSumsOf(*rule, factorAxes(*rule, *decision->second, meshes_.ofStage(decision->second->stage)),
                     view_.op(op).facts.reduceOf(0));
  }

  void leaveResults(int op, const std::vector<Partial>& passed, const OperatorDecision& decision) {
    const OperatorLayouts& made = layouts_.operators[op];
    for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
      Layout layout =
          padded(made.rule.resultLayout(r, made.axes, view_.op(op).facts.reduceOf(r)), view_.resultOf(op, r));
      std::vector<Partial> partial = layout.partial();
      partial.insert(partial.end(), passed.begin(), passed.end());
      layout.setPartial(std::move(partial));
      layout.setPartial(sumsCutAtNames(layout, meshes_.ofStage(decision.stage)));
      const auto asked = decision.results.find(r);
      layouts_.values.push_back(layout.canonical());
      layouts_.seen.push_back(asked == decision.results.end()
                                  ? layout
                                  : askedLayout(asked->second, layout, meshes_.ofStage(decision.stage)));
      meshOf_.push_back(meshes_.number(decision.stage));
    }
  }

  const GraphView& view_;
  const Decisions& decisions_;
  const StageMeshes meshes_;
  const std::map<int64_t, const OperatorDecision*> byId_;
  StepLayouts layouts_;          // `seen` not joined: operators pass sums on one by one
  std::vector<int64_t> meshOf_;  // number of the mesh of each value
};

}  // namespace

absl::StatusOr<StepLayouts> layoutsOf(const GraphView& view, const Decisions& decisions) {
  const std::vector<GraphArgument>& arguments = view.graph().arguments;
  if (decisions.arguments.size() != arguments.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the decisions know ", decisions.arguments.size(),
                                                   " arguments, the step has ", arguments.size(),
                                                   "; they were made for another program"));
  }
  std::map<unsigned, Shape> padded;
  for (unsigned i = 0; i < arguments.size(); ++i) {
    padded[i] = decisions.arguments[i].layout.storedShape(arguments[i].type.shape);
  }
  WEFT_ASSIGN_OR_RETURN(StoredShapes stored, spreadPads(view, padded));
  return LayoutAssigner(view, decisions, std::move(stored)).run();
}

FactorAxes factorAxes(const Rule& rule, const OperatorDecision& decision, const Mesh& mesh) {
  FactorAxes axes(rule.factors().size());
  for (size_t f = 0; f < axes.size(); ++f) {
    const Factor& factor = rule.factors()[f];
    const auto it = decision.axes.find(factor.name);
    if (it != decision.axes.end()) {
      axes[f] = it->second;
    }
    const bool carriesBatch = factor.name == decision.batch || (factor.microBatches && !decision.batch.empty());
    if (decision.perMicroBatch && carriesBatch && mesh.microBatches() > 1) {
      axes[f].push_back(timeAxis(mesh));
    }
  }
  return axes;
}

Layout askedLayout(Layout asked, const Layout& left, const Mesh& mesh) {
  for (size_t d = 0; d < asked.dimensions(); ++d) {
    asked.setPad(d, left.pad(d));
  }
  return sliceTime(asked, left, mesh).value_or(asked);
}

}  // namespace weft
