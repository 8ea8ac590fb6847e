#include "planner/derive/strategies.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/layout/annotation.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Entry `mesh` of a list of layouts "[{dp}];[{}]"; a list of one serves all meshes.
std::string layoutOfSubmesh(const std::string& text, int64_t mesh) {
  const std::vector<std::string> layouts = absl::StrSplit(text, ';');
  return mesh < static_cast<int64_t>(layouts.size()) ? layouts[mesh] : layouts[0];
}

class Reader {
 public:
  Reader(const SettledGraph& graph, int64_t priority, Shardings& shardings)
      : graph_(graph), view_(graph.view), priority_(priority), shardings_(shardings) {}

  absl::Status run(const UserLayouts& layouts) {
    WEFT_RETURN_IF_ERROR(readArguments(layouts));
    for (int op = 0; op < view_.operators(); ++op) {
      if (view_.op(op).strategy && priority_ == 0) {
        shardings_.operators[op].origin = view_.op(op).strategy->isSearched ? "search" : "user";
        WEFT_RETURN_IF_ERROR(view_.op(op).strategy->byName ? readNames(op) : readSplits(op));
      }
      if (!view_.op(op).constraint.empty()) {
        WEFT_ASSIGN_OR_RETURN(const Annotation annotation,
                              parse(view_.op(op).constraint, view_.resultOf(op, 0), meshOf(op), view_.op(op).line));
        constrain(op, annotation);
      }
    }
    return absl::OkStatus();
  }

  // The least priority behind priority_ that anything has.
  const std::optional<int64_t>& next() const { return next_; }

 private:
  const Mesh& meshOf(int op) const { return graph_.placement.meshOf(op); }

  // Is the dimension's turn still to come? Notes when.
  bool isLater(const Annotation& annotation, size_t dim) {
    const int64_t priority = annotation.priorityOf(dim);
    if (priority > priority_) {
      next_ = std::min(next_.value_or(priority), priority);
    }
    return priority > priority_;
  }

  absl::Status readArguments(const UserLayouts& layouts) {
    for (unsigned i = 0; i < shardings_.arguments.size(); ++i) {
      for (auto& [number, sharding] : shardings_.arguments[i]) {
        const std::string text = layouts.of(i, number);
        if (!text.empty()) {
          WEFT_ASSIGN_OR_RETURN(const Annotation annotation,
                                parse(text, static_cast<int>(i), graph_.placement.meshes.withNumber(number),
                                      view_.graph().arguments[i].line));
          place(annotation, sharding);
        }
      }
    }
    return absl::OkStatus();
  }

  void place(const Annotation& annotation, ArgumentSharding& sharding) {
    const auto isOpen = [&](size_t d) { return annotation.open[d] && annotation.layout.dim(d).empty(); };
    Layout layout = annotation.layout;
    bool says = false;
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      says = says || !isOpen(d);
      if (isLater(annotation, d)) {
        layout.setDim(d, {});
      }
      sharding.heard = sharding.heard || annotation.priorities[d];
    }
    // Open dimensions without axes alone are as good as no layout.
    if (says || layout.dimensions() == 0) {
      sharding.layout = std::move(layout);
      sharding.origin = "user";
      sharding.open = annotation.open;
    }
  }

  // The operator is element-wise: each dimension of its result is a factor. Axes whose turn is still to come are kept
  // for their dimension.
  void constrain(int op, const Annotation& annotation) {
    OperatorSharding& sharding = shardings_.operators[op];
    const FactorAxes axes = sharding.rule.projectResult(0, annotation.layout).axes;
    sharding.held.clear();
    for (size_t d = 0; d < annotation.layout.dimensions(); ++d) {
      const bool later = isLater(annotation, d);
      for (const int factor : sharding.rule.results()[0][d]) {
        if (later) {
          sharding.fixFactor(factor, {});
          sharding.held.insert(sharding.held.end(), axes[factor].begin(), axes[factor].end());
        } else if (annotation.priorityOf(d) == priority_) {
          annotation.open[d] ? sharding.keepFactor(factor, axes[factor]) : sharding.fixFactor(factor, axes[factor]);
        }
      }
    }
    sharding.origin = "user";
  }

  // The stored shape stands in for the tensor's; a pad was taken into it before.
  absl::StatusOr<Annotation> parse(const std::string& text, int value, const Mesh& mesh,
                                   const SourcePlace& line) const {
    absl::StatusOr<Annotation> annotation = parseAnnotation(text, mesh);
    if (!annotation.ok()) {
      return errorAt(line, std::string(annotation.status().message()));
    }
    Layout& layout = annotation->layout;
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      layout.setPad(d, 0);
    }
    if (const absl::Status status = layout.check(graph_.stored.of(value), mesh); !status.ok()) {
      return errorAt(line, std::string(status.message()));
    }
    if (layout.isPartial()) {
      return errorAt(line, absl::StrCat("layout ", text, " is partial; a value cannot be asked to be a partial sum"));
    }
    return annotation;
  }

  absl::Status refuse(int op, const absl::Status& status) const {
    return errorAt(view_.op(op).strategy->line,
                   absl::StrCat(view_.op(op).label(), ": ", std::string(status.message())));
  }

  absl::Status readSplits(int op) {
    const UserStrategy& strategy = *view_.op(op).strategy;
    OperatorSharding& sharding = shardings_.operators[op];
    absl::StatusOr<SplitStrategy> split =
        resolveSplits(sharding.rule, strategy.inSplits, strategy.outSplits, meshOf(op));
    if (!split.ok()) {
      return refuse(op, split.status());
    }
    for (size_t f = 0; f < split->axes.size(); ++f) {
      if (split->said[f]) {
        sharding.fixFactor(f, split->axes[f]);
      }
    }
    for (size_t r = 0; r < strategy.outSplits.size(); ++r) {
      if (!strategy.outSplits[r].empty()) {
        sharding.wanted[static_cast<unsigned>(r)] = split->results[r];
      }
    }
    return absl::OkStatus();
  }

  // A list of names for each tensor; an empty one of a tensor with dimensions says nothing. Lists too many are refused
  // where the strategy is resolved.
  template <typename ValueOf>
  absl::StatusOr<Annotations> namesOf(int op, const std::vector<std::vector<std::string>>& lists, size_t count,
                                      const ValueOf& valueOf) const {
    Annotations tensors(lists.size());
    for (unsigned i = 0; i < lists.size() && i < count; ++i) {
      if (!lists[i].empty()) {
        WEFT_ASSIGN_OR_RETURN(tensors[i],
                              parse(annotationText(lists[i]), valueOf(i), meshOf(op), view_.op(op).strategy->line));
      }
    }
    return tensors;
  }

  absl::Status readNames(int op) {
    const UserStrategy& strategy = *view_.op(op).strategy;
    OperatorSharding& sharding = shardings_.operators[op];
    const GraphOperator& node = view_.op(op);
    WEFT_ASSIGN_OR_RETURN(const Annotations in, namesOf(op, strategy.inNames, node.operands.size(),
                                                        [&](unsigned i) { return view_.operandOf(op, i); }));
    WEFT_ASSIGN_OR_RETURN(const Annotations out, namesOf(op, strategy.outNames, node.results.size(),
                                                         [&](unsigned r) { return view_.resultOf(op, r); }));
    absl::StatusOr<NamedStrategy> named = resolveNames(sharding.rule, in, out, meshOf(op));
    if (!named.ok()) {
      return refuse(op, named.status());
    }
    for (size_t f = 0; f < named->axes.size(); ++f) {
      if (!named->axes[f].empty() && sharding.rule.factors()[f].mayExpand() && !node.alternatives.empty()) {
        shardings_.expansions.push_back(node.id);
        return absl::OkStatus();
      }
    }
    if (absl::Status status = sharding.rule.check(named->axes, meshOf(op)); !status.ok()) {
      return refuse(op, status);
    }
    for (size_t f = 0; f < named->axes.size(); ++f) {
      if (named->said[f]) {
        named->open[f] ? sharding.keepFactor(f, named->axes[f]) : sharding.fixFactor(f, named->axes[f]);
      }
    }
    for (unsigned r = 0; r < out.size(); ++r) {
      if (out[r]) {
        sharding.wanted[r] = out[r]->layout;
      }
    }
    return absl::OkStatus();
  }

  const SettledGraph& graph_;
  const GraphView& view_;
  const int64_t priority_;
  std::optional<int64_t> next_;
  Shardings& shardings_;
};

// The stored shape that the user's layout of an argument asks for; it is noted whether that names pads.
absl::StatusOr<Shape> storedAs(const GraphView& view, const Placement& placement, unsigned index,
                               const UserLayouts& layouts, std::set<unsigned>& named) {
  const GraphArgument& argument = view.graph().arguments[index];
  Shape stored = argument.type.shape;
  std::set<int64_t> numbers = readingMeshes(view, placement, static_cast<int>(index));
  if (numbers.empty()) {
    numbers.insert(0);
  }
  for (const int64_t number : numbers) {
    const std::string text = layouts.of(index, number);
    if (text.empty()) {
      continue;
    }
    const absl::StatusOr<Annotation> annotation = parseAnnotation(text, placement.meshes.withNumber(number));
    const Layout layout = annotation.ok() ? annotation->layout : Layout();
    if (!annotation.ok() || layout.dimensions() != stored.size()) {
      return errorAt(argument.line,
                     absl::StrCat(argumentKindName(argument.kind), " '", argument.name, "': ",
                                  annotation.ok()
                                      ? absl::StrCat("layout ", text, " has ", layout.dimensions(), " dimensions, the ",
                                                     argumentKindName(argument.kind), " ", stored.size())
                                      : std::string(annotation.status().message())));
    }
    if (layout.hasPad()) {
      named.insert(index);
    }
    const Shape padded = layout.storedShape(argument.type.shape);
    for (size_t d = 0; d < stored.size(); ++d) {
      stored[d] = std::max(stored[d], padded[d]);
    }
  }
  return stored;
}

// The parts into which the strategies by names of the operators that read an argument split a dimension of it: their
// least common multiple. What is no list of axes is refused where the strategy is read.
int64_t namedParts(const GraphView& view, const Placement& placement, unsigned argument, int64_t dim) {
  int64_t common = 1;
  for (const GraphView::Use& use : view.usesOf(static_cast<int>(argument))) {
    if (use.op == GraphView::kStep || !view.op(use.op).strategy) {
      continue;
    }
    const std::vector<std::vector<std::string>>& names = view.op(use.op).strategy->inNames;
    if (use.operand < names.size() && dim < static_cast<int64_t>(names[use.operand].size())) {
      const absl::StatusOr<Annotation> annotation =
          parseAnnotation(annotationText({names[use.operand][dim]}), placement.meshOf(use.op));
      common = annotation.ok() ? std::lcm(common, annotation->layout.parts(0)) : common;
    }
  }
  return common;
}

// Of the batch of all inputs.
int64_t partsOfBatch(const GraphView& view, const Placement& placement) {
  int64_t common = 1;
  for (unsigned i = 0; i < view.graph().arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    if (argument.hasBatch()) {
      common = std::lcm(common, namedParts(view, placement, i, argument.batchDim));
    }
  }
  return common;
}

}  // namespace

UserLayouts::UserLayouts(const ProgramGraph& graph, const std::vector<std::pair<std::string, std::string>>& patterns) {
  for (const GraphArgument& argument : graph.arguments) {
    const auto matches = [&](const auto& entry) { return globMatches(entry.first, argument.name); };
    const auto pattern = argument.kind == ArgumentKind::kParameter
                             ? std::find_if(patterns.begin(), patterns.end(), matches)
                             : patterns.end();
    texts_.push_back(!argument.layout.empty() ? argument.layout : pattern == patterns.end() ? "" : pattern->second);
  }
}

std::string UserLayouts::of(unsigned index, int64_t mesh) const {
  return layoutOfSubmesh(texts_[index], mesh);
}

absl::StatusOr<std::optional<int64_t>> readUserWords(const SettledGraph& graph, const UserLayouts& layouts,
                                                     int64_t priority, Shardings& shardings) {
  Reader reader(graph, priority, shardings);
  WEFT_RETURN_IF_ERROR(reader.run(layouts));
  return reader.next();
}

absl::StatusOr<PaddedArguments> paddedArguments(const GraphView& view, const Placement& placement, int64_t rows,
                                                const UserLayouts& layouts) {
  PaddedArguments arguments;
  // A batch that is padded divides as the user splits it, too.
  const int64_t padded = std::lcm(rows, partsOfBatch(view, placement) * placement.meshes.ofStage(0).microBatches());
  for (unsigned i = 0; i < view.graph().arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    WEFT_ASSIGN_OR_RETURN(Shape shape, storedAs(view, placement, i, layouts, arguments.named));
    if (argument.hasBatch() && shape[argument.batchDim] % rows != 0) {
      shape[argument.batchDim] = alignUp(shape[argument.batchDim], padded);
    }
    if (shape != argument.type.shape) {
      arguments.stored[i] = shape;
    }
  }
  return arguments;
}

std::map<unsigned, Shape> strategyPads(const GraphView& view, const Placement& placement) {
  std::map<unsigned, Shape> pads;
  for (unsigned i = 0; i < view.graph().arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    Shape stored = argument.type.shape;
    for (size_t d = 0; argument.kind == ArgumentKind::kParameter && d < stored.size(); ++d) {
      stored[d] = alignUp(stored[d], namedParts(view, placement, i, static_cast<int64_t>(d)));
    }
    if (stored != argument.type.shape) {
      pads[i] = stored;
    }
  }
  return pads;
}

}  // namespace weft
