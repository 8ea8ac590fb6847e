#include "planner/derive/settle_conflicts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "kernels/describe/kernel_spec.h"
#include "planner/assign/least_cost.h"
#include "planner/derive/alike_layers.h"
#include "planner/derive/alternative_prices.h"
#include "planner/derive/operator_time.h"
#include "planner/derive/reshard_prices.h"
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
// Values of a variable that says whether a form is made.
constexpr int kMade = 0;
constexpr int kNotMade = 1;
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
        pricesSlices_(machine.pricesSlices),
        minimized_(machine.minimized != nullptr ? *machine.minimized : own_),
        candidates_(candidates),
        shardings_(shardings),
        memo_(machine.memo),
        prices_(graph, machines_.all(), machine.memo),
        bucketed_(graph, withoutLatency(machines_.all()), machine.memo),
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
    const auto reshards = this->reshards();
    const std::vector<int> begin = beginning();
    for (const ReshardMemo::Searched& known : memo_.searched()) {
      if (known.problem == problem_ && known.reshards == reshards && known.slack == slack_ && known.begin == begin) {
        apply(known.values);
        return absl::OkStatus();
      }
    }
    return settle(begin);
  }

 private:
  // Takes the assignment of the least cost, all of whose reshards have their price.
  absl::Status settle(const std::vector<int>& begin) {
    std::optional<ReshardMemo::Searched> searched;
    std::vector<int> best;
    Picoseconds least = kImpossible;
    for (;;) {
      const Assignment assignment =
          leastCost(problem_, kMostEntries, &minimized_,
                    {.values = searched ? best : begin, .isElimination = searched.has_value()});
      if (assignment.searched && !searched) {
        searched = {problem_, reshards(), slack_, begin, {}};
      }
      WEFT_RETURN_IF_ERROR(priceChosen(assignment));
      const Picoseconds cost = costOf(problem_, assignment.values);
      if (best.empty() || cost <= least) {
        best = assignment.values;
        least = cost;
      }
      // Its cost was held against the others' with reshards at their least: where it is exact no assignment has less.
      const double above = static_cast<double>(least) - static_cast<double>(assignment.cost);
      const double slack = searched ? std::max(slack_, kSlackOfSearched) : slack_;
      if (above <= slack * static_cast<double>(least)) {
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
  std::vector<int> beginning() const {
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
    std::fill(values.begin() + view_.operators(), values.end(), kNotMade);
    for (const CostTable& table : problem_.tables) {
      const bool isOfForm = table.variables.size() == 2 && table.variables[1] >= view_.operators();
      if (isOfForm && table.costs[2 * values[table.variables[0]] + kNotMade] >= kImpossible) {
        values[table.variables[1]] = kMade;
      }
    }
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

  // In the problem, and how often each counts.
  std::vector<std::pair<const ReshardMemo::Price*, int64_t>> reshards() const {
    std::vector<std::pair<const ReshardMemo::Price*, int64_t>> all;
    for (const Form& form : forms_) {
      for (const ReshardMemo::Price* price : form.prices) {
        all.emplace_back(price, form.times);
      }
    }
    return all;
  }

  // Where a value goes: to its readers; its gradient from these; out of the step.
  enum class Way : uint8_t { kToReaders, kFromReaders, kToEnd };

  // The reshards of a value into one form, in a table of the problem: first what each takes at the least, which is
  // quick to know, then what the chosen ones take. An assignment all of whose reshards have their price is the best of
  // all: the others were held against it with less than they take.
  struct Form {
    int table = 0;
    std::optional<int> source;  // variable; none: the table is of `reader` alone
    int reader = 0;             // variable
    std::vector<bool> reads;    // of each value of `reader`
    int value = 0;
    int64_t mesh = 0;
    Way way = Way::kToReaders;
    bool bucketed = false;
    // Beyond those that the price has: of alike layers each, and ZeRO-2 and 3 scatter what each micro-batch adds.
    int64_t times = 1;
    Layout form;
    // Of each value of the source, in order; of each value of the reader where it is one. Forms of one value share it.
    std::shared_ptr<const std::vector<Layout>> made;
    std::vector<bool> isExact;                      // of each of `made`
    std::vector<const ReshardMemo::Price*> prices;  // likewise; none of what only slices
  };

  // A layout that a value lies in or is read in, for each candidate of an operator; of none: always the same.
  struct Side {
    std::optional<int> op;          // the variable
    std::vector<Layout> layouts;    // of the value
    std::vector<Layout> gradients;  // of its gradient: as it is wanted, or as a reader contributes to it
    unsigned operand = 0;           // of a reader
  };

  static Machine withoutLatency(Machine machine) {
    machine.linkLatency = 0;
    machine.networkLatency = 0;
    machine.launchLatency = 0;
    return machine;
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
    std::map<int64_t, std::vector<Side>> readers;  // by the number of the mesh
    for (const GraphView::Use& use : view_.usesOf(value)) {
      if (use.op == GraphView::kStep || !isForward(use.op)) {
        continue;
      }
      std::vector<Side>& sides = readers[graph_.placement.meshNumber(use.op)];
      const int variable = variableOf(use.op);
      const bool isKnown = std::any_of(sides.begin(), sides.end(), [&](const Side& side) {
        return *side.op == variable && side.operand == use.operand;
      });
      if (!isKnown) {  // else it is read as an earlier layer reads it
        sides.push_back(readerSide(use));
      }
    }
    WEFT_RETURN_IF_ERROR(addLeaving(value));
    for (auto& [mesh, sides] : readers) {
      const std::optional<Side> source = sourceSide(value, mesh, sides);
      if (source) {
        if (isOpenParameter(value, mesh)) {
          WEFT_RETURN_IF_ERROR(addUpdate(value, mesh, sides.front()));
        }
        WEFT_RETURN_IF_ERROR(addReshards(value, mesh, *source, sides));
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
    const Side made = *sourceSide(value, mesh, {});
    Side returned = made;
    std::ranges::transform(made.layouts, returned.layouts.begin(), whole);
    return valuesOf(made) > 1 ? addReshards(value, mesh, made, {returned}, &Side::layouts, Way::kToEnd)
                              : absl::OkStatus();
  }

  // Does its first reader decide how it is stored?
  bool isOpenParameter(int value, int64_t mesh) const {
    return isParameter(value) && !shardings_.arguments[value].at(mesh).layout;
  }

  Side readerSide(const GraphView::Use& use) const {
    Side side{variableOf(use.op), {}, {}, use.operand};
    for (const FactorAxes& axes : candidates_.of[use.op]) {
      const Layout layout = ruleOf(use.op).operandLayout(use.operand, axes);
      side.layouts.push_back(layout);
      side.gradients.push_back(contribution(layout, axes));
    }
    return side;
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
  std::optional<Side> sourceSide(int value, int64_t mesh, const std::vector<Side>& readers) const {
    const std::optional<int> producer = view_.producerOf(value);
    if (!producer) {
      const ArgumentSharding& sharding = shardings_.arguments[value].at(mesh);
      const bool isInput = view_.graph().arguments[value].kind == ArgumentKind::kInput;
      if (sharding.layout && (!isInput || sharding.origin == "user")) {
        return storedSide(value, mesh, {std::nullopt, {*sharding.layout}, {whole(*sharding.layout)}});
      }
      return storedSide(value, mesh, {readers.front().op, readers.front().layouts, readers.front().layouts});
    }
    if (!isForward(*producer) || graph_.placement.meshNumber(*producer) != mesh) {
      return std::nullopt;
    }
    const OperatorSharding& sharding = shardings_.operators[*producer];
    const unsigned index = view_.indexOf(value);
    const auto wanted = sharding.wanted.find(index);
    Side side{variableOf(*producer), {}, {}};
    for (const FactorAxes& axes : candidates_.of[*producer]) {
      side.layouts.push_back(wanted != sharding.wanted.end()
                                 ? wanted->second
                                 : sharding.rule.resultLayout(index, axes, view_.op(*producer).facts.reduceOf(index)));
      side.gradients.push_back(whole(side.layouts.back()));
    }
    return side;
  }

  Layout stateOf(int parameter, int64_t mesh, const Layout& layout) const {
    return stateLayoutOf(graph_, parameter, mesh, layout);
  }

  // The gradient of a parameter is wanted as its state lies, and with ZeRO-3 the parameter is stored so.
  Side storedSide(int value, int64_t mesh, Side side) const {
    for (size_t i = 0; isParameter(value) && i < side.layouts.size(); ++i) {
      side.gradients[i] = stateOf(value, mesh, whole(side.layouts[i]));
      side.layouts[i] = graph_.zeroLevelOf(value) >= 3 ? side.gradients[i] : side.layouts[i];
    }
    return side;
  }

  // What the update of a parameter takes, where the operator that decides how it lies has a choice: on the part of the
  // state that a rank has, and to gather the new value from these parts unless it is stored in them.
  absl::Status addUpdate(int value, int64_t mesh, const Side& reader) {
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
        WEFT_ASSIGN_OR_RETURN(gather, bucketed_.of(value, mesh, state, layout));
      }
      table.costs.push_back(alike_.values[value] *
                            (gather + arithmetic(update->second, rule.projectResult(0, state).axes)));
    }
    problem_.tables.push_back(std::move(table));
    return absl::OkStatus();
  }

  absl::Status addReshards(int value, int64_t mesh, const Side& source, const std::vector<Side>& readers) {
    const bool choice = std::any_of(readers.begin(), readers.end(), [&](const Side& r) { return valuesOf(r) > 1; }) ||
                        valuesOf(source) > 1;
    if (!choice) {
      return absl::OkStatus();
    }
    WEFT_RETURN_IF_ERROR(addReshards(value, mesh, source, readers, &Side::layouts, Way::kToReaders));
    return trains_ && depends_[value] ? addReshards(value, mesh, source, readers, &Side::gradients, Way::kFromReaders)
                                      : absl::OkStatus();
  }

  int valuesOf(const Side& side) const { return side.op ? problem_.values[*side.op] : 1; }

  // The reshards of a value for its readers, back from them, or for the end of the step.
  absl::Status addReshards(int value, int64_t mesh, const Side& source, const std::vector<Side>& readers,
                           std::vector<Layout> Side::* layouts, Way way) {
    const bool back = way == Way::kFromReaders;
    const int64_t level = isParameter(value) ? graph_.zeroLevelOf(value) : 0;
    const bool bucketed = (view_.typeOf(value).shape.empty() && way != Way::kToEnd) ||
                          (back && !view_.producerOf(value)) || (!back && level >= 3);
    const auto made = std::make_shared<const std::vector<Layout>>(source.*layouts);
    std::vector<Layout> forms;  // in which it is read, each made once
    for (const Side& reader : readers) {
      for (const Layout& layout : reader.*layouts) {
        if (std::find(forms.begin(), forms.end(), layout) == forms.end()) {
          forms.push_back(layout);
        }
      }
    }
    for (const Layout& layout : forms) {
      Form form = {.source = source.op, .value = value, .mesh = mesh, .way = way, .bucketed = bucketed};
      form.times = alike_.values[value];
      if (back && level >= 2) {
        form.times *= graph_.placement.meshes.withNumber(mesh).microBatches();
      }
      form.form = layout;
      form.made = made;
      form.isExact.assign(made->size(), false);
      form.prices.assign(made->size(), nullptr);
      std::vector<Picoseconds> costs;  // of making it, for each candidate of the source
      for (size_t each = 0; each < made->size(); ++each) {
        WEFT_ASSIGN_OR_RETURN(costs.emplace_back(), priceOf(form, each));
      }
      const bool isFree = std::all_of(form.isExact.begin(), form.isExact.end(), [](bool exact) { return exact; });
      if (!isFree || std::any_of(costs.begin(), costs.end(), [](Picoseconds cost) { return cost > 0; })) {
        addForm(std::move(form), costs, readers, layouts);
      }
    }
    return absl::OkStatus();
  }

  static bool isBack(const Form& form) { return form.way == Way::kFromReaders; }

  // What a reshard takes at the least. What only slices takes nothing, and that is exact.
  absl::StatusOr<Picoseconds> priceOf(Form& form, size_t made) {
    const Layout& from = isBack(form) ? form.form : (*form.made)[made];
    const Layout& to = isBack(form) ? (*form.made)[made] : form.form;
    form.isExact[made] = onlySlices(from, to);
    if (form.isExact[made]) {
      const bool isCopied = pricesSlices_ && !(from == to);
      const Picoseconds copy = isCopied ? copyTime(machines_.of(form.mesh), 2 * localBytes(graph_, form.value, to)) : 0;
      return alike_.values[form.value] * copy;
    }
    WEFT_ASSIGN_OR_RETURN(form.prices[made], pricesOf(form).atLeast(form.value, form.mesh, from, to));
    return form.times * *form.prices[made]->least;
  }

  // After that its `prices` has the time.
  absl::Status findPrice(const Form& form, size_t made) {
    const Layout& from = isBack(form) ? form.form : (*form.made)[made];
    const Layout& to = isBack(form) ? (*form.made)[made] : form.form;
    return pricesOf(form).of(form.value, form.mesh, from, to).status();
  }

  ReshardPrices& pricesOf(const Form& form) { return form.bucketed ? bucketed_ : prices_; }

  // Does every dimension of `to` begin with what it has in `from`, and is nothing reduced?
  static bool onlySlices(const Layout& from, const Layout& to) {
    bool only = from.partial() == to.partial();
    for (size_t d = 0; only && d < from.dimensions(); ++d) {
      const AxisList& before = from.dim(d);
      const AxisList& after = to.dim(d);
      only = before.size() <= after.size() && std::equal(before.begin(), before.end(), after.begin());
    }
    return only;
  }

  // Finds the prices of the reshards of an assignment, and with them those of all that are equal. What a memo knows
  // beyond them is left alone: where elimination is not exact the answer would depend on what was asked before.
  absl::Status priceChosen(const Assignment& assignment) {
    for (const Form& form : forms_) {
      const int reader = assignment.values[form.reader];
      const int made = form.source ? assignment.values[*form.source] : form.made->size() > 1 ? reader : 0;
      if (form.reads[reader] && !form.isExact[made]) {
        WEFT_RETURN_IF_ERROR(findPrice(form, made));
        chosen_.insert(form.prices[made]);
      }
    }
    for (Form& form : forms_) {
      for (size_t made = 0; made < form.isExact.size(); ++made) {
        if (!form.isExact[made] && chosen_.contains(form.prices[made])) {
          form.isExact[made] = true;
          setPrice(form, static_cast<int>(made), form.times * *form.prices[made]->time);
        }
      }
    }
    return absl::OkStatus();
  }

  void setPrice(const Form& form, int made, Picoseconds price) {
    std::vector<Picoseconds>& costs = problem_.tables[form.table].costs;
    const auto values = static_cast<int>(form.reads.size());
    const bool isPair = form.source.has_value();
    for (int value = 0; value < values; ++value) {
      if (form.reads[value] && (isPair || form.made->size() == 1 || value == made)) {
        costs[isPair ? made * values + value : value] = price;
      }
    }
  }

  // A form is made if some reader reads it: of one reader a table says so, of several a variable, kMade or kNotMade.
  void addForm(Form form, const std::vector<Picoseconds>& costs, const std::vector<Side>& readers,
               std::vector<Layout> Side::* layouts) {
    if (readers.size() == 1) {
      form.reader = *readers.front().op;
      for (const Layout& layout : readers.front().*layouts) {
        form.reads.push_back(layout == form.form);
      }
      addTable(std::move(form), costs);
      return;
    }
    const int isMade = static_cast<int>(problem_.values.size());
    problem_.values.push_back(2);
    for (const Side& reader : readers) {
      CostTable table{{*reader.op, isMade}, {}};
      bool reads = false;
      for (const Layout& layout : reader.*layouts) {
        table.costs.push_back(0);
        table.costs.push_back(layout == form.form ? kImpossible : 0);
        reads = reads || layout == form.form;
      }
      if (reads) {
        problem_.tables.push_back(std::move(table));
      }
    }
    form.reader = isMade;
    form.reads = {true, false};
    addTable(std::move(form), costs);
  }

  // Of one reader each candidate reads one form, so those of one value are one table.
  static bool areOfOneTable(const Form& a, const Form& b) {
    return a.value == b.value && a.mesh == b.mesh && a.way == b.way && a.source == b.source && a.reader == b.reader;
  }

  // The costs of the source's candidates where the reader reads.
  void addTable(Form form, const std::vector<Picoseconds>& costs) {
    if (form.source == form.reader) {
      form.source.reset();
    }
    const bool isNew = forms_.empty() || !areOfOneTable(forms_.back(), form);
    form.table = static_cast<int>(problem_.tables.size()) - (isNew ? 0 : 1);
    const auto values = static_cast<int64_t>(form.reads.size());
    const int64_t sources = form.source ? static_cast<int64_t>(costs.size()) : 1;
    if (isNew) {
      CostTable& table = problem_.tables.emplace_back();
      if (form.source) {
        table.variables.push_back(*form.source);
      }
      table.variables.push_back(form.reader);
      table.costs.assign(sources * values, 0);
    }
    std::vector<Picoseconds>& entries = problem_.tables[form.table].costs;
    for (int64_t made = 0; made < sources; ++made) {
      for (int64_t value = 0; value < values; ++value) {
        if (form.reads[value]) {
          entries[made * values + value] = costs[form.source ? made : costs.size() > 1 ? value : 0];
        }
      }
    }
    forms_.push_back(std::move(form));
  }

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
  bool pricesSlices_;
  EliminationMemo own_;
  EliminationMemo& minimized_;  // from one round to the next few costs change
  const Candidates& candidates_;
  Shardings& shardings_;
  ReshardMemo& memo_;
  ReshardPrices prices_;
  ReshardPrices bucketed_;  // of parameters' gradients, and of scalars: one launch reduces many
  AlternativePrices alternatives_;
  bool trains_;
  std::map<int, int> updates_;               // of each parameter: the operator that makes its new value
  std::vector<bool> depends_;                // of each value: on a parameter
  std::vector<std::vector<int>> gradients_;  // of each forward operator: backward operators
  AlikeLayers alike_;
  absl::flat_hash_set<std::string> madeByProducts_;  // parameters whose gradients are products, as they are made
  std::vector<Form> forms_;
  absl::flat_hash_set<const ReshardMemo::Price*> chosen_;  // by assignments so far
  AssignmentProblem problem_;                              // variables: the operators, then what forms are made
};

}  // namespace

absl::Status settleConflicts(const SettledGraph& graph, const PricedMachine& machine, const Candidates& candidates,
                             Shardings& shardings) {
  return candidates.conflict ? Settler(graph, machine, candidates, shardings).run() : absl::OkStatus();
}

}  // namespace weft
