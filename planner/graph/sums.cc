#include "planner/graph/sums.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

bool addsOneType(const GraphView& view, int op) {
  const GraphOperator& node = view.op(op);
  if (!node.facts.isSum || node.operands.size() != 2) {
    return false;
  }
  return view.typeOf(view.operandOf(op, 0)) == node.results[0] && view.typeOf(view.operandOf(op, 1)) == node.results[0];
}

// The operator that a sum takes in with this value.
std::optional<int> takenIn(const GraphView& view, int value, Phase phase) {
  const std::optional<int> producer = view.producerOf(value);
  const bool inner =
      producer && view.op(*producer).phase == phase && addsOneType(view, *producer) && view.usesOf(value).size() == 1;
  return inner ? producer : std::nullopt;
}

// The end of the sum that a value is a term of.
std::optional<int> endOfSumOf(const GraphView& view, int value, Phase phase) {
  std::optional<int> end;
  for (;;) {
    const std::vector<GraphView::Use>& uses = view.usesOf(value);
    const bool added = uses.size() == 1 && uses[0].op != GraphView::kStep && view.op(uses[0].op).phase == phase &&
                       addsOneType(view, uses[0].op);
    if (!added) {
      return end;
    }
    end = uses[0].op;
    value = view.resultOf(*end, 0);
  }
}

bool holds(const AxisList& sums, const Axis& axis) {
  return std::any_of(sums.begin(), sums.end(), [&](const Axis& sum) {
    return sum.kind == axis.kind && axis.pre % sum.pre == 0 && sum.end() % axis.end() == 0;
  });
}

bool isGradientOfParameter(const GraphView& view, int value) {
  const std::vector<GraphView::Use>& uses = view.usesOf(value);
  return uses.size() == 1 && uses[0].op != GraphView::kStep && !view.op(uses[0].op).gradientOf.empty();
}

int64_t elementsOf(const GraphView& view, int value) {
  return boundedElements(view.typeOf(value).shape);
}

}  // namespace

Sum sumEndingIn(const GraphView& view, int op) {
  Sum sum;
  if (!addsOneType(view, op)) {
    return sum;
  }
  const std::vector<GraphView::Use>& uses = view.usesOf(view.resultOf(op, 0));
  const bool part = uses.size() == 1 && uses[0].op != GraphView::kStep && addsOneType(view, uses[0].op) &&
                    view.op(uses[0].op).phase == view.op(op).phase;
  if (!part) {
    std::vector<int> left = {view.resultOf(op, 0)};  // values to take in, the next one last
    while (!left.empty()) {
      const int value = left.back();
      left.pop_back();
      const std::optional<int> inner =
          value == view.resultOf(op, 0) ? std::optional<int>(op) : takenIn(view, value, view.op(op).phase);
      if (inner) {
        sum.operators.push_back(*inner);
        left.push_back(view.operandOf(*inner, 1));
        left.push_back(view.operandOf(*inner, 0));
      } else {
        sum.terms.push_back(value);
      }
    }
    std::sort(sum.operators.begin(), sum.operators.end());
  }
  return sum;
}

bool passesOn(const GraphView& view, int op, const std::vector<unsigned>& holders) {
  const GraphOperator& node = view.op(op);
  return node.facts.passesSums && node.gradientOf.empty() && !holders.empty() &&
         (holders.size() > 1 || view.usesOf(view.operandOf(op, holders[0])).size() == 1);
}

AxisList ownSumsOf(const Rule& rule, const FactorAxes& axes, ReduceKind kind) {
  const Layout layout = rule.resultLayout(0, axes, kind).canonical();
  AxisList sums;
  for (const Partial& sum : layout.partial()) {
    if (sum.axis.kind == AxisKind::kSpace && sum.kind == ReduceKind::kSum) {
      sums.push_back(sum.axis);
    }
  }
  return sums;
}

bool fitsBeside(const FactorAxes& axes, const Axis& axis) {
  return std::all_of(axes.begin(), axes.end(), [&](const AxisList& list) {
    return std::all_of(list.begin(), list.end(), [&](const Axis& other) { return compatible(other, axis); });
  });
}

bool productsPass(const GraphView& view, int value, const Axis& axis, const OwnSums& own) {
  int64_t saved = elementsOf(view, value);  // minus what is reduced instead
  for (const GraphView::Use& use : view.usesOf(value)) {
    if (use.op == GraphView::kStep) {
      return false;
    }
    const GraphOperator& node = view.op(use.op);
    const std::vector<std::vector<unsigned>>& linear = node.facts.linear;
    const bool alone = std::find(linear.begin(), linear.end(), std::vector<unsigned>{use.operand}) != linear.end();
    if (!alone || node.facts.passesSums || node.phase != Phase::kBackward || node.results.size() != 1) {
      return false;
    }
    const int made = view.resultOf(use.op, 0);
    if (isGradientOfParameter(view, made)) {
      saved -= elementsOf(view, made);
      continue;
    }
    const std::optional<int> end = endOfSumOf(view, made, node.phase);
    const Sum sum = end ? sumEndingIn(view, *end) : Sum();
    const bool reduced = std::any_of(sum.terms.begin(), sum.terms.end(), [&](int term) {
      const std::optional<int> producer = view.producerOf(term);
      return producer && term != made && view.indexOf(term) == 0 && holds(own(*producer), axis);
    });
    if (!reduced) {
      return false;
    }
    saved += elementsOf(view, made);
  }
  return saved >= 0;
}

absl::StatusOr<std::vector<Addition>> additionsOf(const std::vector<std::vector<unsigned>>& groups, size_t terms,
                                                  const std::string& where) {
  std::vector<bool> seen(terms);
  size_t count = 0;
  for (const std::vector<unsigned>& group : groups) {
    for (const unsigned term : group) {
      if (term >= terms || seen[term]) {
        return absl::InvalidArgumentError(absl::StrCat("decisions: ", where, " has the terms 0 to ", terms - 1,
                                                       ", each to be added once; found ", term,
                                                       term < terms ? " twice" : ""));
      }
      seen[term] = true;
      ++count;
    }
  }
  if (count != terms) {
    return absl::InvalidArgumentError(absl::StrCat("decisions: ", where, " has ", terms, " terms, its groups ", count));
  }
  std::vector<Addition> additions;
  const auto add = [&](size_t left, size_t right) {
    additions.push_back({left, right});
    return terms + additions.size() - 1;
  };
  std::optional<size_t> all;
  for (const std::vector<unsigned>& group : groups) {
    std::optional<size_t> sum;
    for (const unsigned term : group) {
      sum = sum ? add(*sum, term) : term;
    }
    all = all && sum ? add(*all, *sum) : sum ? sum : all;
  }
  return additions;
}

absl::Status regroupSum(ProgramGraph& graph, const Rewrite& rewrite) {
  std::vector<int64_t> operators;
  std::vector<GraphValue> terms;
  {
    const GraphView view(graph);
    const std::optional<int> op = view.find(rewrite.id);
    const Sum sum = op ? sumEndingIn(view, *op) : Sum();
    for (const int member : sum.operators) {
      operators.push_back(view.op(member).id);
    }
    for (const int value : sum.terms) {
      const std::optional<int> producer = view.producerOf(value);
      terms.push_back({producer ? view.op(*producer).id : GraphValue::kArgument, view.indexOf(value)});
    }
  }
  if (operators.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("decisions: no sum ends in operator ", rewrite.id));
  }
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<Addition> additions,
      additionsOf(rewrite.groups, terms.size(), absl::StrCat("the sum that ends in operator ", rewrite.id)));
  const auto find = [&](int64_t id) {
    return std::find_if(graph.operators.begin(), graph.operators.end(), [&](const auto& op) { return op.id == id; });
  };
  for (size_t i = 0; i < additions.size(); ++i) {
    const auto op = find(operators[i]);
    op->operands = {terms[additions[i].left], terms[additions[i].right]};
    const auto later = std::max(find(op->operands[0].producer), find(op->operands[1].producer), [&](auto a, auto b) {
      // An argument is not found: it is there from the start.
      return (a == graph.operators.end() ? -1 : a - graph.operators.begin()) <
             (b == graph.operators.end() ? -1 : b - graph.operators.begin());
    });
    if (later != graph.operators.end() && later > op) {
      std::rotate(op, op + 1, later + 1);
    }
    terms.push_back({operators[i], 0});
  }
  return absl::OkStatus();
}

}  // namespace weft
