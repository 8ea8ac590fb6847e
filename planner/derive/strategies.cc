#include "planner/derive/strategies.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Axis names per dimension as a layout text: "dp,tp", "" -> "[{dp,tp},{}]".
std::string layoutText(const std::vector<std::string>& names) {
  return absl::StrCat(
      "[",
      absl::StrJoin(names, ",",
                    [](std::string* out, const std::string& name) { absl::StrAppend(out, "{", name, "}"); }),
      "]");
}

// Entry `mesh` of a list of layouts "[{dp}];[{}]"; a list of one serves all meshes.
std::string layoutOfSubmesh(const std::string& text, int64_t mesh) {
  const std::vector<std::string> layouts = absl::StrSplit(text, ';');
  return mesh < static_cast<int64_t>(layouts.size()) ? layouts[mesh] : layouts[0];
}

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Reader {
 public:
  Reader(const SettledGraph& graph, Shardings& shardings) : graph_(graph), view_(graph.view), shardings_(shardings) {}

  absl::Status run(const UserLayouts& layouts) {
    WEFT_RETURN_IF_ERROR(readArguments(layouts));
    for (int op = 0; op < view_.operators(); ++op) {
      if (view_.op(op).strategy) {
        shardings_.operators[op].origin = "user";
        WEFT_RETURN_IF_ERROR(view_.op(op).strategy->byName ? readNames(op) : readSplits(op));
      }
      if (!view_.op(op).constraint.empty()) {
        WEFT_ASSIGN_OR_RETURN(const Layout layout,
                              parse(view_.op(op).constraint, view_.resultOf(op, 0), meshOf(op), view_.op(op).line));
        shardings_.operators[op].fix(layout, "user");
      }
    }
    return absl::OkStatus();
  }

 private:
  const Mesh& meshOf(int op) const { return graph_.placement.meshOf(op); }

  absl::Status readArguments(const UserLayouts& layouts) {
    for (unsigned i = 0; i < shardings_.arguments.size(); ++i) {
      for (auto& [number, sharding] : shardings_.arguments[i]) {
        const std::string text = layouts.of(i, number);
        if (!text.empty()) {
          WEFT_ASSIGN_OR_RETURN(sharding.layout,
                                parse(text, static_cast<int>(i), graph_.placement.meshes.withNumber(number),
                                      view_.graph().arguments[i].line));
          sharding.origin = "user";
        }
      }
    }
    return absl::OkStatus();
  }

  // The stored shape stands in for the tensor's; a pad was taken into it before.
  absl::StatusOr<Layout> parse(const std::string& text, int value, const Mesh& mesh, const SourcePlace& line) const {
    absl::StatusOr<Layout> layout = Layout::parse(text, mesh);
    if (!layout.ok()) {
      return errorAt(line, std::string(layout.status().message()));
    }
    for (size_t d = 0; d < layout->dimensions(); ++d) {
      layout->setPad(d, 0);
    }
    if (const absl::Status status = layout->check(graph_.stored.of(value), mesh); !status.ok()) {
      return errorAt(line, std::string(status.message()));
    }
    if (layout->isPartial()) {
      return errorAt(line, absl::StrCat("layout ", text, " is partial; a value cannot be asked to be a partial sum"));
    }
    return layout;
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
      sharding.fixFactor(f, split->axes[f]);
    }
    for (size_t r = 0; !strategy.outSplits.empty() && r < split->results.size(); ++r) {
      sharding.wanted[static_cast<unsigned>(r)] = split->results[r];
    }
    return absl::OkStatus();
  }

  absl::Status readNames(int op) {
    const UserStrategy& strategy = *view_.op(op).strategy;
    OperatorSharding& sharding = shardings_.operators[op];
    if (strategy.inNames.size() != view_.op(op).operands.size()) {
      return refuse(op, absl::InvalidArgumentError(
                            absl::StrCat("the strategy has ", strategy.inNames.size(), " operands, the operator ",
                                         view_.op(op).operands.size(), "; give one list of axis names per operand")));
    }
    std::vector<Layout> layouts;
    for (unsigned i = 0; i < strategy.inNames.size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(Layout layout,
                            parse(layoutText(strategy.inNames[i]), view_.operandOf(op, i), meshOf(op), strategy.line));
      layouts.push_back(std::move(layout));
    }
    absl::StatusOr<NamedStrategy> named = resolveNames(sharding.rule, layouts, meshOf(op));
    if (!named.ok()) {
      return refuse(op, named.status());
    }
    for (size_t f = 0; f < named->axes.size(); ++f) {
      if (!named->axes[f].empty() && sharding.rule.factors()[f].whole && !view_.op(op).alternatives.empty()) {
        shardings_.expansions.push_back(view_.op(op).id);
        return absl::OkStatus();
      }
    }
    if (absl::Status status = sharding.rule.check(named->axes, meshOf(op)); !status.ok()) {
      return refuse(op, status);
    }
    for (size_t f = 0; f < named->axes.size(); ++f) {
      // Factors that only results have stay open to propagation.
      if (named->said[f]) {
        sharding.fixFactor(f, named->axes[f]);
      }
    }
    return readWanted(op);
  }

  // The layouts asked for of results, by names.
  absl::Status readWanted(int op) {
    const UserStrategy& strategy = *view_.op(op).strategy;
    for (unsigned r = 0; r < strategy.outNames.size(); ++r) {
      if (r >= view_.op(op).results.size()) {
        return refuse(op,
                      absl::InvalidArgumentError(absl::StrCat("the strategy has ", strategy.outNames.size(),
                                                              " results, the operator ", view_.op(op).results.size())));
      }
      WEFT_ASSIGN_OR_RETURN(shardings_.operators[op].wanted[r],
                            parse(layoutText(strategy.outNames[r]), view_.resultOf(op, r), meshOf(op), strategy.line));
    }
    return absl::OkStatus();
  }

  const SettledGraph& graph_;
  const GraphView& view_;
  Shardings& shardings_;
};

// The stored shape that the user's layout of an argument asks for.
absl::StatusOr<Shape> storedAs(const GraphView& view, const Placement& placement, unsigned index,
                               const UserLayouts& layouts) {
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
    const absl::StatusOr<Layout> layout = Layout::parse(text, placement.meshes.withNumber(number));
    if (!layout.ok() || layout->dimensions() != stored.size()) {
      return errorAt(
          argument.line,
          absl::StrCat(argumentKindName(argument.kind), " '", argument.name, "': ",
                       layout.ok() ? absl::StrCat("layout ", text, " has ", layout->dimensions(), " dimensions, the ",
                                                  argumentKindName(argument.kind), " ", stored.size())
                                   : std::string(layout.status().message())));
    }
    const Shape padded = layout->storedShape(argument.type.shape);
    for (size_t d = 0; d < stored.size(); ++d) {
      stored[d] = std::max(stored[d], padded[d]);
    }
  }
  return stored;
}

// The least common multiple of the parts into which strategies by names split the batch of inputs. What is no list of
// axes is refused where the strategy is read.
int64_t partsOfBatch(const GraphView& view, const Placement& placement) {
  int64_t common = 1;
  for (unsigned i = 0; i < view.graph().arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    for (const GraphView::Use& use : view.usesOf(static_cast<int>(i))) {
      if (!argument.hasBatch() || use.op == GraphView::kStep || !view.op(use.op).strategy) {
        continue;
      }
      const std::vector<std::vector<std::string>>& names = view.op(use.op).strategy->inNames;
      if (use.operand < names.size() && argument.batchDim < static_cast<int64_t>(names[use.operand].size())) {
        const absl::StatusOr<Layout> layout =
            Layout::parse(layoutText({names[use.operand][argument.batchDim]}), placement.meshOf(use.op));
        common = layout.ok() ? std::lcm(common, layout->parts(0)) : common;
      }
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

absl::Status readUserWords(const SettledGraph& graph, const UserLayouts& layouts, Shardings& shardings) {
  return Reader(graph, shardings).run(layouts);
}

absl::StatusOr<std::map<unsigned, Shape>> paddedArguments(const GraphView& view, const Placement& placement,
                                                          int64_t rows, const UserLayouts& layouts) {
  std::map<unsigned, Shape> stored;
  // A batch that is padded divides as the user splits it, too.
  const int64_t padded = std::lcm(rows, partsOfBatch(view, placement) * placement.meshes.ofStage(0).microBatches());
  for (unsigned i = 0; i < view.graph().arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    WEFT_ASSIGN_OR_RETURN(Shape shape, storedAs(view, placement, i, layouts));
    if (argument.hasBatch() && shape[argument.batchDim] % rows != 0) {
      shape[argument.batchDim] = roundUp(shape[argument.batchDim], padded);
    }
    if (shape != argument.type.shape) {
      stored[i] = shape;
    }
  }
  return stored;
}

}  // namespace weft
