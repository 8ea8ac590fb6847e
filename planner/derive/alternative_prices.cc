#include "planner/derive/alternative_prices.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/assign/eliminate.h"
#include "planner/derive/operator_time.h"
#include "planner/derive/propagation.h"
#include "planner/graph/iterations.h"
#include "planner/graph/rewrites.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// `wanted`, partial over no more than `made` is: what a value becomes that is asked for like this.
Layout reducedTo(const Layout& made, Layout wanted) {
  std::vector<Partial> sums;
  for (const Partial& sum : wanted.partial()) {
    if (std::find(made.partial().begin(), made.partial().end(), sum) != made.partial().end()) {
      sums.push_back(sum);
    }
  }
  wanted.setPartial(std::move(sums));
  return wanted;
}

std::vector<unsigned> resultsRead(const GraphView& view, int op) {
  std::vector<unsigned> read;
  for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
    if (!view.usesOf(view.resultOf(op, r)).empty()) {
      read.push_back(r);
    }
  }
  return read;
}

int64_t submeshOf(const SettledGraph& graph, int op) {
  return graph.placement.meshes.submeshes[graph.placement.stages[op]];
}

// The alternative of an operator as a program of its operands that returns what of its results is read.
absl::StatusOr<ProgramGraph> programOf(const SettledGraph& graph, int op) {
  const GraphView& view = graph.view;
  ProgramGraph program;
  GraphOperator& replaced = program.operators.emplace_back(view.op(op));
  for (unsigned i = 0; i < replaced.operands.size(); ++i) {
    const int value = view.operandOf(op, i);
    replaced.operands[i] = {GraphValue::kArgument, i};
    program.arguments.push_back(
        {ArgumentKind::kInput, "", view.typeOf(value), graph.microBatches.batchDim[value], "", replaced.line});
  }
  for (const unsigned r : resultsRead(view, op)) {
    program.results.push_back({{replaced.id, r}, std::nullopt});
  }
  program.nextId = replaced.id + 1;
  WEFT_RETURN_IF_ERROR(takeAlternative(program, replaced.id));
  eraseUnused(program);
  return program;
}

}  // namespace

std::vector<std::vector<bool>> factorsOfAlternatives(const SettledGraph& graph, const Shardings& shardings) {
  const GraphView& view = graph.view;
  std::vector<std::vector<bool>> may(view.operators());
  for (int op = 0; op < view.operators(); ++op) {
    const GraphOperator& node = view.op(op);
    const OperatorSharding& sharding = shardings.operators[op];
    const bool has = node.phase == Phase::kForward && !node.prologueOf && !node.alternatives.empty();
    for (size_t f = 0; f < sharding.axes.size(); ++f) {
      may[op].push_back(has && sharding.rule.factors()[f].mayExpand());
    }
    const std::optional<int> forward = node.forward ? view.find(*node.forward) : std::nullopt;
    for (size_t f = 0; forward && *forward < op && node.alternatives.empty() && f < sharding.axes.size(); ++f) {
      const int same = sharding.forwardFactors[f];
      if (same != kNoFactor && !sharding.rule.splittable(static_cast<int>(f))) {
        may[*forward][same] = false;
      }
    }
  }
  return may;
}

bool needsAlternative(const Rule& rule, const FactorAxes& axes) {
  for (size_t f = 0; f < axes.size(); ++f) {
    if (!axes[f].empty() && rule.factors()[f].mayExpand()) {
      return true;
    }
  }
  return false;
}

// The program of one alternative, on the mesh of the operator that it may stand for.
class AlternativePrices::Body {
 public:
  // Errors: the alternative cannot stand for the operator where the program is so padded and cut into micro-batches.
  static absl::StatusOr<std::unique_ptr<Body>> of(const SettledGraph& graph, const SubmeshMachines& machines,
                                                  ReshardMemo& memo, int op) {
    WEFT_ASSIGN_OR_RETURN(ProgramGraph program, programOf(graph, op));
    auto body = std::make_unique<Body>(std::move(program), machines.of(submeshOf(graph, op)));
    const GraphView& view = body->view_;
    const std::vector<int64_t> stages(view.operators(), 0);
    const Mesh& mesh = graph.placement.meshOf(op);
    WEFT_ASSIGN_OR_RETURN(MicroBatchAnalysis cut, analyzeMicroBatches(view, stages, mesh.microBatches()));
    if (!cut.needed.empty()) {
      return absl::InvalidArgumentError("the alternative needs values of all micro-batches");
    }
    std::map<unsigned, Shape> padded;
    for (unsigned i = 0; i < view.graph().arguments.size(); ++i) {
      const Shape& stored = graph.stored.of(graph.view.operandOf(op, i));
      if (stored != view.graph().arguments[i].type.shape) {
        padded[i] = stored;
      }
    }
    WEFT_ASSIGN_OR_RETURN(StoredShapes stored, spreadPads(view, padded));
    body->settled_.emplace(SettledGraph{view, {stages, {{mesh}, {0}}}, std::move(cut), std::move(stored)});
    WEFT_ASSIGN_OR_RETURN(body->open_, openShardings(*body->settled_));
    body->prices_.emplace(*body->settled_, machines.all(), memo);
    return body;
  }

  Body(ProgramGraph program, const Machine& machine)
      : program_(std::move(program)), view_(program_), machine_(machine) {}

  // The price where factors of the operator have these axes, if it was asked for.
  std::optional<Picoseconds> known(const FactorAxes& axes) const {
    const auto found = known_.find(axes);
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }
  void learn(const FactorAxes& axes, Picoseconds price) { known_.emplace(axes, price); }

  // Where its arguments lie like this, and its results are to.
  absl::StatusOr<Picoseconds> price(const std::vector<Layout>& arguments, const std::vector<Layout>& results) {
    Shardings shardings = open_;
    for (size_t i = 0; i < arguments.size(); ++i) {
      shardings.arguments[i][0].layout = arguments[i];
    }
    Propagation(*settled_, shardings).run(Phase::kForward);
    Picoseconds time = 0;
    std::vector<Layout> made = arguments;                    // of each value
    std::vector<std::vector<Layout>> forms(view_.values());  // in which it is read, each made once
    for (int op = 0; op < view_.operators(); ++op) {
      const Rule& rule = shardings.operators[op].rule;
      const FactorAxes axes = shardings.operators[op].closed();
      time += operatorTime(*settled_, machine_, op, rule, axes);
      for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
        addForm(rule.operandLayout(i, axes), forms[view_.operandOf(op, i)]);
      }
      for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
        made.push_back(rule.resultLayout(r, axes, view_.op(op).facts.reduceOf(r)));
      }
    }
    for (size_t r = 0; r < results.size(); ++r) {
      const int value = view_.valueOf(program_.results[r].value);
      addForm(reducedTo(made[value], results[r]), forms[value]);
    }
    for (int value = 0; value < view_.values(); ++value) {
      for (const Layout& form : forms[value]) {
        WEFT_ASSIGN_OR_RETURN(const Picoseconds reshard, prices_->of(value, 0, made[value], form));
        time += reshard;
      }
    }
    return time;
  }

 private:
  static void addForm(const Layout& layout, std::vector<Layout>& forms) {
    if (std::find(forms.begin(), forms.end(), layout) == forms.end()) {
      forms.push_back(layout);
    }
  }

  const ProgramGraph program_;
  const GraphView view_;
  const Machine& machine_;
  std::optional<SettledGraph> settled_;
  Shardings open_;
  std::optional<ReshardPrices> prices_;
  std::map<FactorAxes, Picoseconds> known_;
};

AlternativePrices::AlternativePrices(const SettledGraph& graph, const SubmeshMachines& machines, ReshardMemo& memo)
    : graph_(graph), machines_(machines), memo_(memo) {}

AlternativePrices::~AlternativePrices() = default;

// Do they have the same alternative, of operands that are stored and cut alike, for the same readers?
bool AlternativePrices::areAlike(int a, int b) const {
  const GraphView& view = graph_.view;
  const GraphOperator& one = view.op(a);
  const GraphOperator& other = view.op(b);
  bool alike = one.facts == other.facts && one.operands.size() == other.operands.size() &&
               one.results == other.results && submeshOf(graph_, a) == submeshOf(graph_, b) &&
               resultsRead(view, a) == resultsRead(view, b);
  for (unsigned i = 0; alike && i < one.operands.size(); ++i) {
    const int mine = view.operandOf(a, i);
    const int theirs = view.operandOf(b, i);
    alike = view.typeOf(mine) == view.typeOf(theirs) && graph_.stored.of(mine) == graph_.stored.of(theirs) &&
            graph_.microBatches.batchDim[mine] == graph_.microBatches.batchDim[theirs];
  }
  return alike && one.alternatives == other.alternatives;
}

AlternativePrices::Body* AlternativePrices::bodyOf(int op) {
  const auto [known, isNew] = bodies_.try_emplace(op);
  if (isNew) {
    auto made = std::find_if(made_.begin(), made_.end(), [&](const Made& other) { return areAlike(other.op, op); });
    if (made == made_.end()) {
      absl::StatusOr<std::unique_ptr<Body>> body = Body::of(graph_, machines_, memo_, op);
      made = made_.insert(made_.end(), {op, body.ok() ? *std::move(body) : nullptr});
    }
    known->second = made->body.get();
  }
  return known->second;
}

absl::StatusOr<Picoseconds> AlternativePrices::of(int op, const Rule& rule, const FactorAxes& axes) {
  Body* const body = bodyOf(op);
  if (body == nullptr) {
    return kImpossible;
  }
  if (const std::optional<Picoseconds> known = body->known(axes)) {
    return *known;
  }
  const GraphOperator& node = graph_.view.op(op);
  std::vector<Layout> arguments;
  for (unsigned i = 0; i < node.operands.size(); ++i) {
    arguments.push_back(rule.operandLayout(i, axes));
  }
  std::vector<Layout> results;
  for (const unsigned r : resultsRead(graph_.view, op)) {
    results.push_back(rule.resultLayout(r, axes, node.facts.reduceOf(r)));
  }
  WEFT_ASSIGN_OR_RETURN(const Picoseconds price, body->price(arguments, results));
  body->learn(axes, price);
  return price;
}

}  // namespace weft
