#include "planner/derive/settle_conflicts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "kernels/describe/kernel_spec.h"
#include "planner/assign/coordinate_descent.h"
#include "planner/assign/least_cost.h"
#include "planner/derive/alike_layers.h"
#include "planner/derive/alternative_prices.h"
#include "planner/derive/operator_time.h"
#include "planner/derive/reshard_prices.h"
#include "planner/derive/reshard_tables.h"
#include "planner/derive/zero.h"
#include "planner/graph/iterations.h"
#include "planner/machine/times.h"
#include "planner/submesh_machines.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Entries of one table of an elimination; where there are larger ones the answer is searched, near the best of all.
constexpr int64_t kMostEntries = 1 << 18;
// By which part of its cost an answer that is searched may be above what the search has with reshards at their least:
// it is no nearer to the least of all.
constexpr double kSlackOfSearched = 1e-4;
// That most optimizers keep of each parameter.
constexpr int kStates = 2;

Layout whole(Layout layout) {
  layout.setPartial({});
  return layout;
}

class Settler {
 public:
  Settler(const SettledGraph& graph, const PricedMachine& machine, const Candidates& candidates, Shardings& shardings)
      : graph_(graph),
        view_(graph.view),
        machines_(machine.machine, graph.placement.meshes),
        bytePrice_(machine.bytePrice),
        slack_(machine.slack),
        begin_(machine.begin),
        minimized_(machine.minimized != nullptr ? *machine.minimized : own_),
        candidates_(candidates),
        shardings_(shardings),
        memo_(machine.memo),
        reshards_(graph, machines_, machine.pricesSlices, machine.memo, problem_),
        alternatives_(graph, machines_, machine.memo),
        trains_(graph.view.graph().trains()),
        updates_(updatesOf(graph.view)) {}

  absl::Status run() {
    findDependents();
    findGradients();
    alike_ = alikeLayers(graph_, candidates_, shardings_, depends_, gradients_);
    for (int op = 0; op < view_.operators(); ++op) {
      const bool decides = alike_.operators[op] > 0;
      problem_.values.push_back(decides ? std::max<int>(1, static_cast<int>(candidates_.of[op].size())) : 1);
      if (decides) {
        WEFT_RETURN_IF_ERROR(addArithmetic(op));
      }
    }
    for (int value = 0; value < view_.values(); ++value) {
      if (alike_.values[value] > 0) {
        WEFT_RETURN_IF_ERROR(addValue(value));
      }
    }
    const auto reshards = reshards_.reshards();
    const CoordinateDescent descent(problem_, view_.operators());
    const std::vector<int> begin = beginning(descent);
    for (const ReshardMemo::Searched& known : memo_.searched()) {
      if (known.problem == problem_ && known.reshards == reshards && known.slack == slack_ && known.begin == begin) {
        apply(known.values);
        return absl::OkStatus();
      }
    }
    return settle(descent, begin);
  }

 private:
  // Takes the assignment of the least cost, all of whose reshards have their price. What the least of reshards made
  // seem better than it is would come back again and again with one change: a descent finds the prices of such changes,
  // which takes less than to ask for all variables together again.
  absl::Status settle(const CoordinateDescent& descent, const std::vector<int>& begin) {
    std::optional<ReshardMemo::Searched> searched;
    std::vector<int> best;
    Picoseconds least = kImpossible;
    const auto price = [&](const std::vector<int>& values) { return reshards_.price(values); };
    for (;;) {
      const Assignment assignment =
          leastCost(problem_, kMostEntries, &minimized_,
                    {.values = searched ? best : begin, .isElimination = searched.has_value()});
      if (assignment.searched && !searched) {
        searched = {problem_, reshards_.reshards(), slack_, begin, {}};
      }
      // Costs were held against the others' with reshards at their least: of what is exact none costs less.
      const double slack = searched ? std::max(slack_, kSlackOfSearched) : slack_;
      const auto isLeast = [&](Picoseconds cost) {
        return static_cast<double>(cost) - static_cast<double>(assignment.cost) <= slack * static_cast<double>(cost);
      };
      std::vector<int> values = assignment.values;
      WEFT_RETURN_IF_ERROR(price(values));
      if (!isLeast(std::min(least, costOf(problem_, values)))) {
        WEFT_RETURN_IF_ERROR(descent.run(price, values));
      }
      const Picoseconds cost = costOf(problem_, values);
      if (best.empty() || cost <= least) {
        best = std::move(values);
        least = cost;
      }
      if (isLeast(least)) {
        break;
      }
    }
    apply(best);
    if (searched) {
      searched->values = std::move(best);
      memo_.searched().push_back(*std::move(searched));
    }
    return absl::OkStatus();
  }

  // What the record says that there is to begin with; what it does not say as propagation has it.
  std::vector<int> beginning(const CoordinateDescent& descent) const {
    if (begin_ == nullptr) {
      return {};
    }
    std::vector<int> values(problem_.values.size(), 0);
    for (int op = 0; op < view_.operators(); ++op) {
      const OperatorDecision* decision = problem_.values[op] > 1 ? begin_->find(view_.op(op).id) : nullptr;
      for (int value = 0; decision != nullptr && value < problem_.values[op]; ++value) {
        values[op] = isSplitAs(*decision, op, candidates_.of[op][value]) ? value : values[op];
      }
    }
    descent.follow(values);
    return values;
  }

  bool isSplitAs(const OperatorDecision& decision, int op, const FactorAxes& axes) const {
    for (size_t f = 0; f < axes.size(); ++f) {
      const auto said = decision.axes.find(ruleOf(op).factors()[f].name);
      if (axes[f] != (said == decision.axes.end() ? AxisList() : said->second)) {
        return false;
      }
    }
    return true;
  }

  const Machine& machineOf(int op) const {
    return machines_.of(graph_.placement.meshes.submeshes[graph_.placement.stages[op]]);
  }
  bool isForward(int op) const { return view_.op(op).phase == Phase::kForward; }
  const Rule& ruleOf(int op) const { return shardings_.operators[op].rule; }

  // The values that depend on a parameter: they have gradients.
  void findDependents() {
    depends_.resize(view_.values());
    for (int value = 0; value < view_.values(); ++value) {
      const std::optional<int> producer = view_.producerOf(value);
      const bool hasGradient = isFloat(view_.typeOf(value).type);
      if (!producer) {
        depends_[value] = hasGradient && view_.graph().arguments[value].kind == ArgumentKind::kParameter;
        continue;
      }
      for (unsigned i = 0; hasGradient && i < view_.op(*producer).operands.size(); ++i) {
        depends_[value] = depends_[value] || depends_[view_.operandOf(*producer, i)];
      }
    }
  }

  // Of each forward operator those of the backward pass that follow it.
  void findGradients() {
    gradients_.resize(view_.operators());
    for (int op = 0; op < view_.operators(); ++op) {
      const std::optional<int64_t>& id = view_.op(op).forward;
      const std::optional<int> forward = id ? view_.find(*id) : std::nullopt;
      if (forward && *forward != op && view_.op(op).gradientOf.empty()) {
        gradients_[*forward].push_back(op);
      }
      if (view_.op(op).facts.kind == kContractKernel) {
        madeByProducts_.insert(view_.op(op).gradientOf);
      }
    }
  }

  absl::Status addArithmetic(int op) {
    if (candidates_.of[op].size() < 2) {
      return absl::OkStatus();
    }
    CostTable table{{op}, {}};
    for (const FactorAxes& axes : candidates_.of[op]) {
      Picoseconds time = accumulation(op, axes) + memoryPrice(op, axes);
      if (needsAlternative(ruleOf(op), axes)) {
        WEFT_ASSIGN_OR_RETURN(const Picoseconds alternative, alternatives_.of(op, ruleOf(op), axes));
        time += alternative;
      } else {
        time += arithmetic(op, axes);
      }
      for (const int gradient : gradients_[op]) {
        time += arithmetic(gradient, inherited(gradient, axes));
      }
      table.costs.push_back(alike_.operators[op] * time);
    }
    problem_.tables.push_back(std::move(table));
    return absl::OkStatus();
  }

  // The variable that decides how an operator is split.
  int variableOf(int op) const { return alike_.decidedBy[op]; }

  bool isParameter(int value) const {
    return !view_.producerOf(value) && view_.graph().arguments[value].kind == ArgumentKind::kParameter;
  }

  // Of the gradients that an operator has for its parameters, over the micro-batches of a step.
  Picoseconds accumulation(int op, const FactorAxes& axes) const {
    const int64_t times = graph_.placement.meshOf(op).microBatches();
    Picoseconds time = 0;
    for (unsigned i = 0; trains_ && times > 1 && i < view_.op(op).operands.size(); ++i) {
      const int value = view_.operandOf(op, i);
      if (isParameter(value)) {
        const Layout gradient = ruleOf(op).operandLayout(i, axes);
        const bool scatters = graph_.zeroLevelOf(value) >= 2;
        const Layout kept = scatters ? stateOf(value, graph_.placement.meshNumber(op), gradient) : gradient;
        const int64_t bytes = localBytes(graph_, value, kept);
        // A sum of two is read and written, or a product added where it is made.
        const bool isFused = machineOf(op).fusedAccumulation != 0 && !scatters &&
                             madeByProducts_.count(view_.graph().arguments[value].name) > 0;
        time += times * (isFused ? readTime(machineOf(op), bytes) : copyTime(machineOf(op), 3 * bytes));
      }
    }
    return time;
  }

  // The axes with which a backward operator starts if its forward operator has these.
  FactorAxes inherited(int op, const FactorAxes& forward) const {
    const std::vector<int>& same = shardings_.operators[op].forwardFactors;
    FactorAxes axes(same.size());
    for (size_t f = 0; f < same.size(); ++f) {
      if (same[f] != kNoFactor) {
        axes[f] = forward[same[f]];
      }
    }
    return axes;
  }

  Picoseconds arithmetic(int op, const FactorAxes& axes) const {
    return operatorTime(graph_, machineOf(op), op, ruleOf(op), axes);
  }

  // Itself or as a view of it.
  bool isReadInBackward(int value) const {
    const std::vector<GraphView::Use>& uses = view_.usesOf(value);
    return std::any_of(uses.begin(), uses.end(), [&](const GraphView::Use& use) {
      if (use.op == GraphView::kStep) {
        return false;
      }
      const bool isView = isForward(use.op) && view_.op(use.op).facts.view != ViewKind::kNone;
      return view_.op(use.op).phase == Phase::kBackward || (isView && isReadInBackward(view_.resultOf(use.op, 0)));
    });
  }

  // Of a parameter that is read so, with its gradient and states.
  int64_t storedBytes(int parameter, int64_t mesh, const Layout& read) const {
    const int64_t level = graph_.zeroLevelOf(parameter);
    const int64_t whole = localBytes(graph_, parameter, read);
    const int64_t shard = level > 0 ? localBytes(graph_, parameter, stateOf(parameter, mesh, read)) : whole;
    return (level >= 3 ? shard : whole) + (level >= 2 ? shard : whole) + kStates * shard;
  }

  // A result that is dropped is made again.
  Picoseconds memoryPrice(int op, const FactorAxes& axes) const {
    if (bytePrice_ == 0) {
      return 0;
    }
    const GraphOperator& node = view_.op(op);
    int64_t parameters = 0;
    int64_t made = 0;
    for (unsigned i = 0; i < node.operands.size(); ++i) {
      const int value = view_.operandOf(op, i);
      if (isParameter(value)) {
        parameters += storedBytes(value, graph_.placement.meshNumber(op), ruleOf(op).operandLayout(i, axes));
      }
    }
    for (unsigned r = 0; r < node.results.size(); ++r) {
      if (isReadInBackward(view_.resultOf(op, r))) {
        made += localBytes(graph_, view_.resultOf(op, r), ruleOf(op).resultLayout(r, axes));
      }
    }
    const bool cut = graph_.microBatches.operators[op].perMicroBatch;
    const int64_t kept = made / (cut ? graph_.placement.meshOf(op).microBatches() : 1);
    const auto priceOf = [&](int64_t bytes) {
      return static_cast<Picoseconds>(bytePrice_ * static_cast<double>(bytes));
    };
    return priceOf(parameters) + std::min(priceOf(kept), arithmetic(op, axes));
  }

  absl::Status addValue(int value) {
    std::map<int64_t, std::vector<ReshardEnd>> readers;  // by the number of the mesh
    for (const GraphView::Use& use : view_.usesOf(value)) {
      if (use.op == GraphView::kStep || !isForward(use.op)) {
        continue;
      }
      std::vector<ReshardEnd>& ends = readers[graph_.placement.meshNumber(use.op)];
      const int variable = variableOf(use.op);
      const bool isKnown = std::any_of(ends.begin(), ends.end(), [&](const ReshardEnd& end) {
        return *end.op == variable && end.operand == use.operand;
      });
      if (!isKnown) {  // else it is read as an earlier layer reads it
        ends.push_back(readerEnd(use));
      }
    }
    WEFT_RETURN_IF_ERROR(addLeaving(value));
    for (auto& [mesh, ends] : readers) {
      const std::optional<ReshardEnd> source = sourceEnd(value, mesh, ends);
      if (source) {
        if (isOpenParameter(value, mesh)) {
          WEFT_RETURN_IF_ERROR(addUpdate(value, mesh, ends.front()));
        }
        WEFT_RETURN_IF_ERROR(addReshards(value, mesh, *source, ends));
      }
    }
    return absl::OkStatus();
  }

  // What the step returns leaves with no sum partial. Nothing joins its reduction.
  absl::Status addLeaving(int value) {
    const std::optional<int> producer = view_.producerOf(value);
    const std::vector<GraphView::Use>& uses = view_.usesOf(value);
    const bool leaves = std::ranges::any_of(uses, [](const auto& use) { return use.op == GraphView::kStep; });
    if (!leaves || !producer || !isForward(*producer)) {
      return absl::OkStatus();
    }
    const int64_t mesh = graph_.placement.meshNumber(*producer);
    const ReshardEnd made = *sourceEnd(value, mesh, {});
    ReshardEnd returned = made;
    std::ranges::transform(made.layouts, returned.layouts.begin(), whole);
    const ResharedValue reshared = {value, mesh, ReshardWay::kToEnd, alike_.values[value]};
    return valuesOf(made) > 1 ? reshards_.add(reshared, made, {returned}) : absl::OkStatus();
  }

  // Does its first reader decide how it is stored?
  bool isOpenParameter(int value, int64_t mesh) const {
    return isParameter(value) && !shardings_.arguments[value].at(mesh).layout;
  }

  ReshardEnd readerEnd(const GraphView::Use& use) const {
    ReshardEnd end{variableOf(use.op), {}, {}, use.operand};
    for (const FactorAxes& axes : candidates_.of[use.op]) {
      const Layout layout = ruleOf(use.op).operandLayout(use.operand, axes);
      end.layouts.push_back(layout);
      end.gradients.push_back(contribution(layout, axes));
    }
    return end;
  }

  // The gradient of an operand is a sum over the factors that the operand does not have.
  static Layout contribution(Layout layout, const FactorAxes& axes) {
    std::vector<Partial> sums;
    for (const AxisList& list : axes) {
      for (const Axis& axis : list) {
        if (!layout.uses(axis)) {
          sums.push_back({axis, ReduceKind::kSum});
        }
      }
    }
    layout.setPartial(std::move(sums));
    return layout.canonical();
  }

  // How a value lies before it is read on a mesh; nothing for what comes from another mesh. An argument whose layout
  // the user left open gets that of its first reader.
  std::optional<ReshardEnd> sourceEnd(int value, int64_t mesh, const std::vector<ReshardEnd>& readers) const {
    const std::optional<int> producer = view_.producerOf(value);
    if (!producer) {
      const ArgumentSharding& sharding = shardings_.arguments[value].at(mesh);
      const bool isInput = view_.graph().arguments[value].kind == ArgumentKind::kInput;
      if (sharding.layout && (!isInput || sharding.origin == "user")) {
        return storedEnd(value, mesh, {std::nullopt, {*sharding.layout}, {whole(*sharding.layout)}});
      }
      return storedEnd(value, mesh, {readers.front().op, readers.front().layouts, readers.front().layouts});
    }
    if (!isForward(*producer) || graph_.placement.meshNumber(*producer) != mesh) {
      return std::nullopt;
    }
    const OperatorSharding& sharding = shardings_.operators[*producer];
    const unsigned index = view_.indexOf(value);
    const auto wanted = sharding.wanted.find(index);
    ReshardEnd end{variableOf(*producer), {}, {}};
    for (const FactorAxes& axes : candidates_.of[*producer]) {
      end.layouts.push_back(wanted != sharding.wanted.end()
                                ? wanted->second
                                : sharding.rule.resultLayout(index, axes, view_.op(*producer).facts.reduceOf(index)));
      end.gradients.push_back(whole(end.layouts.back()));
    }
    return end;
  }

  Layout stateOf(int parameter, int64_t mesh, const Layout& layout) const {
    return stateLayoutOf(graph_, parameter, mesh, layout);
  }

  // The gradient of a parameter is wanted as its state lies, and with ZeRO-3 the parameter is stored so.
  ReshardEnd storedEnd(int value, int64_t mesh, ReshardEnd end) const {
    for (size_t i = 0; isParameter(value) && i < end.layouts.size(); ++i) {
      end.gradients[i] = stateOf(value, mesh, whole(end.layouts[i]));
      end.layouts[i] = graph_.zeroLevelOf(value) >= 3 ? end.gradients[i] : end.layouts[i];
    }
    return end;
  }

  // What the update of a parameter takes, where the operator that decides how it lies has a choice: on the part of the
  // state that a rank has, and to gather the new value from these parts unless it is stored in them.
  absl::Status addUpdate(int value, int64_t mesh, const ReshardEnd& reader) {
    const auto update = updates_.find(value);
    if (!trains_ || update == updates_.end() || valuesOf(reader) == 1 ||
        graph_.placement.meshNumber(update->second) != mesh) {
      return absl::OkStatus();
    }
    const Rule& rule = ruleOf(update->second);
    CostTable table{{*reader.op}, {}};
    for (const Layout& layout : reader.layouts) {
      const Layout state = stateOf(value, mesh, layout);
      Picoseconds gather = 0;
      if (graph_.zeroLevelOf(value) < 3) {
        WEFT_ASSIGN_OR_RETURN(gather, reshards_.joining(value, mesh, state, layout));
      }
      table.costs.push_back(alike_.values[value] *
                            (gather + arithmetic(update->second, rule.projectResult(0, state).axes)));
    }
    problem_.tables.push_back(std::move(table));
    return absl::OkStatus();
  }

  absl::Status addReshards(int value, int64_t mesh, const ReshardEnd& source, const std::vector<ReshardEnd>& readers) {
    const bool choice =
        std::any_of(readers.begin(), readers.end(), [&](const ReshardEnd& r) { return valuesOf(r) > 1; }) ||
        valuesOf(source) > 1;
    if (!choice) {
      return absl::OkStatus();
    }
    const auto add = [&](ReshardWay way) {
      return reshards_.add({value, mesh, way, alike_.values[value], callsOf(value, mesh, way)}, source, readers);
    };
    WEFT_RETURN_IF_ERROR(add(ReshardWay::kToReaders));
    return trains_ && depends_[value] ? add(ReshardWay::kFromReaders) : absl::OkStatus();
  }

  // Calls of a step that reshard a value. A price is that of all micro-batches, but of a parameter and its gradient
  // that of one: ZeRO-2 and 3 scatter what each micro-batch adds, and with regather each gathers.
  int64_t callsOf(int value, int64_t mesh, ReshardWay way) const {
    const int64_t each = isParameter(value) ? graph_.placement.meshes.withNumber(mesh).microBatches() : 1;
    if (way == ReshardWay::kFromReaders) {
      return isParameter(value) && graph_.zeroLevelOf(value) >= 2 ? each : 1;
    }
    const int64_t passes = trains_ && isReadInBackward(value) ? 2 : 1;
    return graph_.regather ? passes * each : 1;
  }

  int valuesOf(const ReshardEnd& end) const { return end.op ? problem_.values[*end.op] : 1; }

  void apply(const std::vector<int>& values) {
    for (int op = 0; op < view_.operators(); ++op) {
      const int chosen = values[variableOf(op)];
      OperatorSharding& sharding = shardings_.operators[op];
      sharding.settled = candidates_.of[op].size() > 1;
      if (chosen == 0) {
        continue;
      }
      const FactorAxes& axes = candidates_.of[op][chosen];
      for (size_t f = 0; f < axes.size(); ++f) {
        if (!sharding.fixed[f]) {
          sharding.axes[f] = axes[f];
        }
      }
      sharding.origin = "least cost";
      if (needsAlternative(sharding.rule, axes)) {
        shardings_.expansions.push_back(view_.op(op).id);
      }
    }
  }

  const SettledGraph& graph_;
  const GraphView& view_;
  SubmeshMachines machines_;
  double bytePrice_;
  double slack_;
  const Decisions* begin_;
  EliminationMemo own_;
  EliminationMemo& minimized_;  // from one round to the next few costs change
  const Candidates& candidates_;
  Shardings& shardings_;
  ReshardMemo& memo_;
  ReshardTables reshards_;
  AlternativePrices alternatives_;
  bool trains_;
  std::map<int, int> updates_;               // of each parameter: the operator that makes its new value
  std::vector<bool> depends_;                // of each value: on a parameter
  std::vector<std::vector<int>> gradients_;  // of each forward operator: backward operators
  AlikeLayers alike_;
  absl::flat_hash_set<std::string> madeByProducts_;  // parameters whose gradients are products, as they are made
  AssignmentProblem problem_;                        // variables: the operators, then what forms are made
};

}  // namespace

absl::Status settleConflicts(const SettledGraph& graph, const PricedMachine& machine, const Candidates& candidates,
                             Shardings& shardings) {
  return candidates.conflict ? Settler(graph, machine, candidates, shardings).run() : absl::OkStatus();
}

}  // namespace weft
