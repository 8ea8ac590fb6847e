#include "planner/derive/defaults.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/decisions.h"
#include "planner/graph/place_text.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr char kDefaultBatch[] = "default: batch over the data-parallel axes";

// The layout with the batch of an input over the data-parallel axes; nothing where it has none or does not divide.
std::optional<Layout> defaultLayout(const SettledGraph& graph, unsigned index, int64_t mesh, Fill fill) {
  const Mesh& axes = graph.placement.meshes.withNumber(mesh);
  const AxisList dataAxes = defaultAxes(axes, fill);
  const GraphArgument& argument = graph.view.graph().arguments[index];
  const Shape& shape = graph.stored.of(static_cast<int>(index));
  const bool inside = argument.batchDim >= 0 && argument.batchDim < static_cast<int64_t>(shape.size());
  if (dataAxes.empty() || !inside || shape[argument.batchDim] % (partsOf(dataAxes) * axes.microBatches()) != 0) {
    return std::nullopt;
  }
  Layout layout(shape.size());
  layout.setDim(argument.batchDim, dataAxes);
  return layout;
}

// Calls visit(operator, operand) for each reader of an input on the mesh.
template <typename Visit>
void eachReader(const SettledGraph& graph, unsigned index, int64_t mesh, const Visit& visit) {
  for (const GraphView::Use& use : graph.view.usesOf(static_cast<int>(index))) {
    if (use.op != GraphView::kStep && graph.placement.meshNumber(use.op) == mesh) {
      visit(use.op, use.operand);
    }
  }
}

bool batchIsOpen(const SettledGraph& graph, unsigned index, int64_t mesh, const Shardings& shardings) {
  const int64_t dim = graph.view.graph().arguments[index].batchDim;
  bool open = true;
  eachReader(graph, index, mesh, [&](int op, unsigned operand) {
    for (const int factor : shardings.operators[op].rule.operands()[operand][dim]) {
      open = open && !shardings.operators[op].axes[factor];
    }
  });
  return open;
}

// Does every dimension of `more` begin with the axes that it has in `layout`?
bool refines(const Layout& more, const Layout& layout) {
  bool refines = true;
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    const AxisList& axes = layout.dim(d);
    refines = refines && axes.size() <= more.dim(d).size() && std::equal(axes.begin(), axes.end(), more.dim(d).begin());
  }
  return refines;
}

// What the first reader that splits anything wants of an input.
std::optional<ArgumentSharding> wantedByReader(const SettledGraph& graph, unsigned index, int64_t mesh,
                                               const Shardings& shardings) {
  std::optional<ArgumentSharding> wanted;
  eachReader(graph, index, mesh, [&](int op, unsigned operand) {
    const OperatorSharding& reader = shardings.operators[op];
    if (!wanted && reader.splitsAnything()) {
      wanted = {reader.rule.operandLayout(operand, reader.closed()), "reader " + graph.view.op(op).label()};
    }
  });
  return wanted;
}

// Adds what `axes` has behind a dimension's own, if nothing else of the layout uses it.
void extend(ArgumentSharding& sharding, int64_t dim, const AxisList& axes) {
  const AxisList& own = sharding.layout->dim(dim);
  const bool begins = axes.size() > own.size() && std::equal(own.begin(), own.end(), axes.begin());
  if (begins && std::none_of(axes.begin() + static_cast<int64_t>(own.size()), axes.end(),
                             [&](const Axis& axis) { return sharding.layout->uses(axis); })) {
    sharding.layout->setDim(dim, axes);
  }
}

void seedInput(const SettledGraph& graph, unsigned index, int64_t mesh, Fill fill, Shardings& shardings) {
  ArgumentSharding& sharding = shardings.arguments[index][mesh];
  std::optional<ArgumentSharding> wanted = wantedByReader(graph, index, mesh, shardings);
  const bool isDefault = sharding.origin == kDefaultBatch;
  if (!sharding.layout && !wanted) {
    std::optional<Layout> layout = defaultLayout(graph, index, mesh, fill);
    if (layout && batchIsOpen(graph, index, mesh, shardings)) {
      sharding = {std::move(layout), kDefaultBatch};
    }
  } else if (wanted && !(sharding.layout && *wanted->layout == *sharding.layout) &&
             (!isDefault || refines(*wanted->layout, *sharding.layout))) {
    sharding = *std::move(wanted);
  }
}

// Calls visit(argument, mesh, its sharding) for each input whose layout the user left open.
template <typename Visit>
void eachOpenInput(const SettledGraph& graph, Shardings& shardings, const Visit& visit) {
  for (unsigned i = 0; i < shardings.arguments.size(); ++i) {
    for (auto& [mesh, sharding] : shardings.arguments[i]) {
      if (graph.view.graph().arguments[i].kind == ArgumentKind::kInput && sharding.origin != "user") {
        visit(i, mesh, sharding);
      }
    }
  }
}

// Calls visit(argument, dimension of the batch) for each input that is cut into micro-batches and lies on the mesh.
template <typename Visit>
absl::Status eachInput(const SettledGraph& graph, const Shardings& shardings, int64_t mesh, const Visit& visit) {
  const ProgramGraph& program = graph.view.graph();
  for (unsigned i = 0; i < program.arguments.size(); ++i) {
    const int dim = graph.microBatches.batchDim[i];
    if (program.arguments[i].kind == ArgumentKind::kInput && dim >= 0 && shardings.arguments[i].count(mesh) > 0 &&
        graph.placement.meshes.withNumber(mesh).microBatches() > 1) {
      WEFT_RETURN_IF_ERROR(visit(i, dim));
    }
  }
  return absl::OkStatus();
}

AxisList commonPrefix(const AxisList& a, const AxisList& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return {a.begin(), end};
}

void replicateOpen(const GraphArgument& argument, std::map<int64_t, ArgumentSharding>& byMesh) {
  for (auto& [mesh, sharding] : byMesh) {
    if (!sharding.layout) {
      sharding = {Layout(argument.type.shape.size()), "default: replicated"};
    }
  }
}

// The first input on the mesh whose batch is split otherwise: ", 'y' (model.cc:7) as [{},{}]".
std::string otherInput(const SettledGraph& graph, int64_t number, const Shardings& shardings, const AxisList& axes) {
  std::string text;
  const absl::Status found = eachInput(graph, shardings, number, [&](unsigned i, int dim) {
    const Layout& layout = *shardings.arguments[i].at(number).layout;
    const GraphArgument& argument = graph.view.graph().arguments[i];
    if (text.empty() && layout.dim(dim) != axes) {
      text = absl::StrCat(", '", argument.name, "'", placeText(argument.line), " as ",
                          layout.print(graph.placement.meshes.withNumber(number)));
    }
    return absl::OkStatus();
  });
  return found.ok() ? text : "";
}

absl::Status alignInputsOn(const SettledGraph& graph, int64_t number, Shardings& shardings) {
  const Mesh& mesh = graph.placement.meshes.withNumber(number);
  std::optional<AxisList> common;
  WEFT_RETURN_IF_ERROR(eachInput(graph, shardings, number, [&](unsigned i, int dim) {
    const AxisList& axes = shardings.arguments[i].at(number).layout->dim(dim);
    common = common ? commonPrefix(*common, axes) : axes;
    return absl::OkStatus();
  }));
  return eachInput(graph, shardings, number, [&](unsigned i, int dim) {
    ArgumentSharding& sharding = shardings.arguments[i].at(number);
    Layout& layout = *sharding.layout;
    if (layout.dim(dim) == *common) {
      return absl::OkStatus();
    }
    const GraphArgument& argument = graph.view.graph().arguments[i];
    const bool isUsers = sharding.origin == "user" && !sharding.isOpen(dim);
    if (isUsers || graph.stored.of(static_cast<int>(i)) != argument.type.shape) {
      return errorAt(
          argument.line,
          absl::StrCat("with ", mesh.microBatches(), " micro-batches the inputs' batch must be split alike: '",
                       argument.name, "' as ", layout.print(mesh),
                       otherInput(graph, number, shardings, layout.dim(dim)), "; give all the same layout"));
    }
    layout.setDim(dim, *common);
    sharding.origin += "; batch split as that of the other inputs, for the micro-batches";
    return absl::OkStatus();
  });
}

}  // namespace

bool batchIsUsers(const ProgramGraph& graph, const Mesh& mesh) {
  return mesh.axes().empty() && std::any_of(graph.operators.begin(), graph.operators.end(),
                                            [](const GraphOperator& op) { return op.strategy.has_value(); });
}

void seedBatches(const SettledGraph& graph, Fill fill, Shardings& shardings) {
  const ProgramGraph& program = graph.view.graph();
  for (unsigned i = 0; i < shardings.arguments.size(); ++i) {
    for (auto& [mesh, sharding] : shardings.arguments[i]) {
      const std::optional<Layout> layout = defaultLayout(graph, i, mesh, fill);
      const bool isInput = program.arguments[i].kind == ArgumentKind::kInput;
      if (!isInput || !layout || batchIsUsers(program, graph.placement.meshes.withNumber(mesh)) ||
          !batchIsOpen(graph, i, mesh, shardings)) {
        continue;
      }
      const int64_t batch = program.arguments[i].batchDim;
      if (sharding.origin != "user") {
        sharding = {layout, kDefaultBatch};
      } else if (sharding.isOpen(batch) && sharding.layout->dim(batch).empty()) {
        extend(sharding, batch, layout->dim(batch));
      }
    }
  }
}

void seedInputs(const SettledGraph& graph, Fill fill, Shardings& shardings) {
  eachOpenInput(graph, shardings, [&](unsigned index, int64_t mesh, const ArgumentSharding&) {
    seedInput(graph, index, mesh, fill, shardings);
  });
}

void closeArguments(const SettledGraph& graph, Shardings& shardings) {
  const GraphView& view = graph.view;
  for (int op = 0; op < view.operators(); ++op) {
    for (unsigned i = 0; i < view.op(op).operands.size() && view.op(op).phase != Phase::kUpdate; ++i) {
      const GraphValue& operand = view.op(op).operands[i];
      if (!operand.isArgument()) {
        continue;
      }
      ArgumentSharding& sharding = shardings.arguments[operand.index][graph.placement.meshNumber(op)];
      const OperatorSharding& reader = shardings.operators[op];
      const Layout needed = reader.rule.operandLayout(i, reader.closed());
      if (!sharding.layout) {
        sharding = {needed, "first reader " + view.op(op).label()};
      }
      for (size_t d = 0; d < sharding.open.size(); ++d) {
        if (sharding.open[d]) {
          extend(sharding, static_cast<int64_t>(d), needed.dim(d));
        }
      }
    }
  }
  for (size_t i = 0; i < shardings.arguments.size(); ++i) {
    if (view.graph().arguments[i].kind != ArgumentKind::kState) {
      replicateOpen(view.graph().arguments[i], shardings.arguments[i]);
    }
  }
}

void closeStates(const SettledGraph& graph, Shardings& shardings) {
  const GraphView& view = graph.view;
  for (const GraphResult& result : view.graph().results) {
    const int value = view.valueOf(result.value);
    const std::optional<int> producer = view.producerOf(value);
    if (!result.updates || !producer || graph.stored.of(value) != graph.stored.of(static_cast<int>(*result.updates))) {
      continue;
    }
    ArgumentSharding& sharding = shardings.arguments[*result.updates][graph.placement.meshNumber(*producer)];
    if (!sharding.layout) {
      const OperatorSharding& source = shardings.operators[*producer];
      Layout layout = source.rule.resultLayout(view.indexOf(value), source.closed());
      layout.setPartial({});
      sharding = {std::move(layout), "replaced by " + view.op(*producer).label()};
    }
  }
  for (size_t i = 0; i < shardings.arguments.size(); ++i) {
    replicateOpen(view.graph().arguments[i], shardings.arguments[i]);
  }
}

void layInputsAsPriced(const SettledGraph& graph, Shardings& shardings) {
  eachOpenInput(graph, shardings, [&](unsigned index, int64_t mesh, ArgumentSharding& sharding) {
    bool isFirst = true;
    eachReader(graph, index, mesh, [&](int op, unsigned operand) {
      const OperatorSharding& reader = shardings.operators[op];
      if (isFirst && reader.settled) {
        sharding = {reader.rule.operandLayout(operand, reader.closed()), "reader " + graph.view.op(op).label()};
      }
      isFirst = false;
    });
  });
}

void closeOperators(Shardings& shardings) {
  for (OperatorSharding& sharding : shardings.operators) {
    for (auto& axes : sharding.axes) {
      axes = axes.value_or(AxisList());
    }
    if (sharding.origin.empty()) {
      sharding.origin = "default: replicated";
    }
  }
}

AxisList defaultAxes(const Mesh& mesh, Fill fill) {
  return fill == Fill::kReplicate ? AxisList() : dataParallelAxes(mesh);
}

absl::Status alignInputs(const SettledGraph& graph, Shardings& shardings) {
  for (size_t mesh = 0; mesh < graph.placement.meshes.ofSubmesh.size(); ++mesh) {
    WEFT_RETURN_IF_ERROR(alignInputsOn(graph, static_cast<int64_t>(mesh), shardings));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> countStripes(const SettledGraph& graph, Fill fill, const Shardings& shardings) {
  const StageMeshes& meshes = graph.placement.meshes;
  if (meshes.same()) {
    return 0;
  }
  int64_t stripes = 1;
  const auto count = static_cast<int64_t>(meshes.ofSubmesh.size());
  for (int64_t mesh = 0; mesh < count; ++mesh) {
    stripes = std::lcm(stripes, partsOf(defaultAxes(meshes.withNumber(mesh), fill)));
    WEFT_RETURN_IF_ERROR(eachInput(graph, shardings, mesh, [&](unsigned i, int dim) {
      stripes = std::lcm(stripes, shardings.arguments[i].at(mesh).layout->parts(dim));
      return absl::OkStatus();
    }));
  }
  for (int64_t mesh = 0; mesh < count; ++mesh) {
    WEFT_RETURN_IF_ERROR(eachInput(graph, shardings, mesh, [&](unsigned i, int dim) {
      const int64_t microBatches = meshes.withNumber(mesh).microBatches();
      const int64_t rows = graph.stored.of(static_cast<int>(i))[dim];
      const GraphArgument& argument = graph.view.graph().arguments[i];
      return rows % (stripes * microBatches) == 0
                 ? absl::OkStatus()
                 : errorAt(argument.line,
                           absl::StrCat("the batch of '", argument.name, "' has ", rows, " rows, but the stage meshes ",
                                        printStageMeshes(meshes.ofSubmesh), " and ", microBatches,
                                        " micro-batches need a multiple of ", stripes * microBatches,
                                        "; give so many rows"));
    }));
  }
  return stripes;
}

}  // namespace weft
