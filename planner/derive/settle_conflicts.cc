#include "planner/derive/settle_conflicts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "ir/layout/reshard.h"
#include "planner/assign/least_cost.h"
#include "planner/graph/flops.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Entries of one table of an elimination; where there are larger ones the answer is searched, near the best of all.
constexpr int64_t kMostEntries = 1 << 18;
// Arithmetic of an operator with its gradients, as a multiple of its own.
constexpr int kWithGradients = 3;
// A parameter with its gradient and the two states that most optimizers keep.
constexpr int kWithStates = 4;

Layout whole(Layout layout) {
  layout.setPartial({});
  return layout;
}

// The prices of reshards, each asked once.
class ReshardPrices {
 public:
  ReshardPrices(const SettledGraph& graph, const Machine& machine) : graph_(graph) {
    for (const Mesh& mesh : graph.placement.meshes.ofSubmesh) {
      planners_.push_back(std::make_unique<ReshardPlanner>(mesh, machine));
    }
  }

  // Of a value on a mesh, in all micro-batches of a step.
  absl::StatusOr<Picoseconds> of(int value, int64_t mesh, const Layout& from, const Layout& to) {
    if (from == to) {
      return 0;
    }
    const DType type = graph_.view.typeOf(value).type;
    Shape shape = graph_.stored.of(value);
    const int batch = graph_.microBatches.batchDim[value];
    int64_t times = batch >= 0 ? graph_.placement.meshes.withNumber(mesh).microBatches() : 1;
    // The prologue reads all micro-batches at once, split into more parts than the rows of one may have.
    if (times > 1 && (!divides(shape[batch] / times, from, batch) || !divides(shape[batch] / times, to, batch))) {
      times = 1;
    }
    if (batch >= 0) {
      shape[batch] /= times;
    }
    const auto [it, isNew] = known_.try_emplace({shape, type, times, mesh, keyOf(from), keyOf(to)}, 0);
    if (isNew) {
      WEFT_ASSIGN_OR_RETURN(const ReshardPlan plan, planners_[mesh]->plan(shape, type, from, to));
      it->second = plan.cost * times;
    }
    return it->second;
  }

 private:
  static bool divides(int64_t size, const Layout& layout, int dim) { return size % partsOf(layout.dim(dim)) == 0; }

  using Key = std::pair<std::vector<AxisList>, AxisList>;
  static Key keyOf(const Layout& layout) {
    AxisList sums;
    for (const Partial& sum : layout.partial()) {
      sums.push_back(sum.axis);
    }
    return {layout.dims(), sums};
  }

  const SettledGraph& graph_;
  std::vector<std::unique_ptr<ReshardPlanner>> planners_;  // by number of the mesh
  std::map<std::tuple<Shape, DType, int64_t, int64_t, Key, Key>, Picoseconds> known_;
};

class Settler {
 public:
  Settler(const SettledGraph& graph, const Machine& machine, double bytePrice, const Candidates& candidates,
          Shardings& shardings)
      : graph_(graph),
        view_(graph.view),
        machine_(machine),
        bytePrice_(bytePrice),
        candidates_(candidates),
        shardings_(shardings),
        prices_(graph, machine),
        bucketed_(graph, withoutLatency(machine)),
        trains_(graph.view.graph().trains()) {}

  absl::Status run() {
    findDependents();
    for (int op = 0; op < view_.operators(); ++op) {
      problem_.values.push_back(std::max<int>(1, static_cast<int>(candidates_.of[op].size())));
      addArithmetic(op);
    }
    for (int value = 0; value < view_.values(); ++value) {
      WEFT_RETURN_IF_ERROR(addValue(value));
    }
    apply(leastCost(problem_, kMostEntries));
    return absl::OkStatus();
  }

 private:
  // A layout that a value lies in or is read in, for each candidate of an operator; of none: always the same.
  struct Side {
    std::optional<int> op;
    std::vector<Layout> layouts;    // of the value
    std::vector<Layout> gradients;  // of its gradient: as it is wanted, or as a reader contributes to it
  };

  static Machine withoutLatency(Machine machine) {
    machine.linkLatency = 0;
    machine.networkLatency = 0;
    machine.launchLatency = 0;
    return machine;
  }

  bool isForward(int op) const { return view_.op(op).phase == Phase::kForward; }
  const Rule& ruleOf(int op) const { return shardings_.operators[op].rule; }

  // The values that depend on a parameter: they have gradients.
  void findDependents() {
    depends_.resize(view_.values());
    for (int value = 0; value < view_.values(); ++value) {
      const std::optional<int> producer = view_.producerOf(value);
      const bool isFloat = view_.typeOf(value).type == DType::kF32 || view_.typeOf(value).type == DType::kF64;
      if (!producer) {
        depends_[value] = isFloat && view_.graph().arguments[value].kind == ArgumentKind::kParameter;
        continue;
      }
      for (unsigned i = 0; isFloat && i < view_.op(*producer).operands.size(); ++i) {
        depends_[value] = depends_[value] || depends_[view_.operandOf(*producer, i)];
      }
    }
  }

  void addArithmetic(int op) {
    const GraphOperator& node = view_.op(op);
    if (candidates_.of[op].size() < 2 || node.facts.view != ViewKind::kNone || node.facts.isConstant) {
      return;
    }
    CostTable table{{op}, {}};
    for (const FactorAxes& axes : candidates_.of[op]) {
      int64_t bytes = 0;
      for (unsigned i = 0; i < node.operands.size(); ++i) {
        bytes += localBytes(view_.operandOf(op, i), ruleOf(op).operandLayout(i, axes));
      }
      for (unsigned r = 0; r < node.results.size(); ++r) {
        bytes += localBytes(view_.resultOf(op, r), ruleOf(op).resultLayout(r, axes));
      }
      const Picoseconds time = kernelTime(machine_, node.results[0].type, flopsOf(node.facts, ruleOf(op), axes), bytes);
      table.costs.push_back((trains_ ? time * kWithGradients : time) + memoryPrice(op, axes));
    }
    problem_.tables.push_back(std::move(table));
  }

  Picoseconds memoryPrice(int op, const FactorAxes& axes) const {
    if (bytePrice_ == 0) {
      return 0;
    }
    const GraphOperator& node = view_.op(op);
    int64_t parameters = 0;
    int64_t made = 0;
    for (unsigned i = 0; i < node.operands.size(); ++i) {
      const int value = view_.operandOf(op, i);
      if (!view_.producerOf(value) && view_.graph().arguments[value].kind == ArgumentKind::kParameter) {
        parameters += localBytes(value, ruleOf(op).operandLayout(i, axes));
      }
    }
    for (unsigned r = 0; r < node.results.size(); ++r) {
      made += localBytes(view_.resultOf(op, r), ruleOf(op).resultLayout(r, axes));
    }
    const bool cut = graph_.microBatches.operators[op].perMicroBatch;
    const int64_t bytes = parameters * kWithStates + made / (cut ? graph_.placement.meshOf(op).microBatches() : 1);
    return static_cast<Picoseconds>(bytePrice_ * static_cast<double>(bytes));
  }

  int64_t localBytes(int value, const Layout& layout) const {
    return TensorType{layout.localShape(graph_.stored.of(value)), view_.typeOf(value).type}.bytes();
  }

  absl::Status addValue(int value) {
    std::map<int64_t, std::vector<Side>> readers;  // by the number of the mesh
    for (const GraphView::Use& use : view_.usesOf(value)) {
      if (use.op != GraphView::kStep && isForward(use.op)) {
        readers[graph_.placement.meshNumber(use.op)].push_back(readerSide(use));
      }
    }
    for (auto& [mesh, sides] : readers) {
      const std::optional<Side> source = sourceSide(value, mesh, sides);
      if (source) {
        WEFT_RETURN_IF_ERROR(addReshards(value, mesh, *source, sides));
      }
    }
    return absl::OkStatus();
  }

  Side readerSide(const GraphView::Use& use) const {
    Side side{use.op, {}, {}};
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
        return Side{std::nullopt, {*sharding.layout}, {whole(*sharding.layout)}};
      }
      Side side{readers.front().op, readers.front().layouts, readers.front().layouts};
      return side;
    }
    if (!isForward(*producer) || graph_.placement.meshNumber(*producer) != mesh) {
      return std::nullopt;
    }
    const OperatorSharding& sharding = shardings_.operators[*producer];
    const unsigned index = view_.indexOf(value);
    const auto wanted = sharding.wanted.find(index);
    Side side{*producer, {}, {}};
    for (const FactorAxes& axes : candidates_.of[*producer]) {
      side.layouts.push_back(wanted != sharding.wanted.end()
                                 ? wanted->second
                                 : sharding.rule.resultLayout(index, axes, view_.op(*producer).facts.reduceOf(index)));
      side.gradients.push_back(whole(side.layouts.back()));
    }
    return side;
  }

  absl::Status addReshards(int value, int64_t mesh, const Side& source, const std::vector<Side>& readers) {
    const bool choice = std::any_of(readers.begin(), readers.end(), [&](const Side& r) { return valuesOf(r) > 1; }) ||
                        valuesOf(source) > 1;
    if (!choice) {
      return absl::OkStatus();
    }
    WEFT_RETURN_IF_ERROR(addReshards(value, mesh, source, readers, &Side::layouts, false));
    return trains_ && depends_[value] ? addReshards(value, mesh, source, readers, &Side::gradients, true)
                                      : absl::OkStatus();
  }

  int valuesOf(const Side& side) const { return side.op ? problem_.values[*side.op] : 1; }

  // The reshards of a value for its readers, or back from them.
  absl::Status addReshards(int value, int64_t mesh, const Side& source, const std::vector<Side>& readers,
                           std::vector<Layout> Side::* layouts, bool back) {
    const bool bucketed = view_.typeOf(value).shape.empty() || (back && !view_.producerOf(value));
    ReshardPrices& prices = bucketed ? bucketed_ : prices_;
    const auto price = [&](const Layout& made, const Layout& read) {
      return back ? prices.of(value, mesh, read, made) : prices.of(value, mesh, made, read);
    };
    std::vector<Layout> forms;  // in which it is read, each made once
    for (const Side& reader : readers) {
      for (const Layout& layout : reader.*layouts) {
        if (std::find(forms.begin(), forms.end(), layout) == forms.end()) {
          forms.push_back(layout);
        }
      }
    }
    for (const Layout& form : forms) {
      std::vector<Picoseconds> costs;  // of making it, for each candidate of the source
      for (const Layout& made : source.*layouts) {
        WEFT_ASSIGN_OR_RETURN(costs.emplace_back(), price(made, form));
      }
      if (std::any_of(costs.begin(), costs.end(), [](Picoseconds cost) { return cost > 0; })) {
        addForm(source, costs, readers, form, layouts);
      }
    }
    return absl::OkStatus();
  }

  // A form is made if some reader reads it: of one reader a table says so, of several a variable, 0 where it is made.
  void addForm(const Side& source, const std::vector<Picoseconds>& costs, const std::vector<Side>& readers,
               const Layout& form, std::vector<Layout> Side::* layouts) {
    if (readers.size() == 1) {
      addPair(source, costs, readers.front().op,
              [&](int candidate) { return (readers.front().*layouts)[candidate] == form ? Reads::kYes : Reads::kNo; });
      return;
    }
    const int isMade = static_cast<int>(problem_.values.size());
    problem_.values.push_back(2);
    addPair(source, costs, isMade, [](int made) { return made == 0 ? Reads::kYes : Reads::kNo; });
    for (const Side& reader : readers) {
      CostTable table{{*reader.op, isMade}, {}};
      bool reads = false;
      for (const Layout& layout : reader.*layouts) {
        table.costs.push_back(0);
        table.costs.push_back(layout == form ? kImpossible : 0);
        reads = reads || layout == form;
      }
      if (reads) {
        problem_.tables.push_back(std::move(table));
      }
    }
  }

  enum class Reads : bool { kNo, kYes };

  // The costs of the source's candidates where `other` reads.
  template <typename Does>
  void addPair(const Side& source, const std::vector<Picoseconds>& costs, std::optional<int> other, const Does& reads) {
    CostTable table;
    const bool same = source.op == other;
    if (source.op && !same) {
      table.variables.push_back(*source.op);
    }
    table.variables.push_back(*other);
    for (size_t made = 0; made < (same ? 1 : costs.size()); ++made) {
      for (int value = 0; value < problem_.values[*other]; ++value) {
        table.costs.push_back(reads(value) == Reads::kYes ? costs[same ? value : made] : 0);
      }
    }
    problem_.tables.push_back(std::move(table));
  }

  void apply(const Assignment& assignment) {
    for (int op = 0; op < view_.operators(); ++op) {
      const int chosen = assignment.values[op];
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
    }
  }

  const SettledGraph& graph_;
  const GraphView& view_;
  const Machine& machine_;
  double bytePrice_;
  const Candidates& candidates_;
  Shardings& shardings_;
  ReshardPrices prices_;
  ReshardPrices bucketed_;  // of parameters' gradients, and of scalars: one launch reduces many
  bool trains_;
  std::vector<bool> depends_;  // of each value: on a parameter
  AssignmentProblem problem_;  // variables: the operators, then what forms are made
};

}  // namespace

absl::Status settleConflicts(const SettledGraph& graph, const Machine& machine, double bytePrice,
                             const Candidates& candidates, Shardings& shardings) {
  return candidates.conflict ? Settler(graph, machine, bytePrice, candidates, shardings).run() : absl::OkStatus();
}

}  // namespace weft
