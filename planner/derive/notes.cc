#include "planner/derive/notes.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "planner/derive/even_pads.h"
#include "planner/derive/strategies.h"
#include "planner/graph/place_text.h"

namespace weft {
namespace {

bool overlaps(const AxisList& list, const Axis& axis) {
  return std::any_of(list.begin(), list.end(), [&](const Axis& other) { return overlap(other, axis); });
}

bool splits(const OperatorSharding& sharding, const Axis& axis) {
  return std::any_of(sharding.axes.begin(), sharding.axes.end(),
                     [&](const auto& list) { return list && overlaps(*list, axis); });
}

bool splits(const ArgumentSharding& sharding, const Axis& axis) {
  return sharding.layout && std::any_of(sharding.layout->dims().begin(), sharding.layout->dims().end(),
                                        [&](const AxisList& list) { return overlaps(list, axis); });
}

// Does anything on the meshes of this shape lie or run split over the axis?
bool isUsed(const SettledGraph& graph, const Shardings& shardings, const Mesh& mesh, const Axis& axis) {
  for (int op = 0; op < graph.view.operators(); ++op) {
    if (graph.placement.meshOf(op) == mesh && splits(shardings.operators[op], axis)) {
      return true;
    }
  }
  return std::any_of(shardings.arguments.begin(), shardings.arguments.end(), [&](const auto& byMesh) {
    return std::any_of(byMesh.begin(), byMesh.end(), [&](const auto& entry) {
      return graph.placement.meshes.withNumber(entry.first) == mesh && splits(entry.second, axis);
    });
  });
}

void noteUnusedAxes(const SettledGraph& graph, const Shardings& shardings, std::vector<std::string>& notes) {
  std::vector<Mesh> seen;
  for (const Mesh& mesh : graph.placement.meshes.ofSubmesh) {
    if (std::find(seen.begin(), seen.end(), mesh) != seen.end()) {
      continue;
    }
    seen.push_back(mesh);
    std::vector<NamedAxis> axes = mesh.axes();
    if (axes.empty()) {
      axes.push_back({"all", {AxisKind::kSpace, 1, mesh.ranks()}});
    }
    for (const NamedAxis& named : axes) {
      if (named.axis.kind == AxisKind::kSpace && named.axis.size > 1 && !isUsed(graph, shardings, mesh, named.axis)) {
        notes.push_back(absl::StrCat("axis ", named.name, " of mesh ", mesh.print(), " splits nothing: its ",
                                     named.axis.size, " ranks compute the same; name it in a layout or strategy, or ",
                                     "leave it out"));
      }
    }
  }
}

// Several of which the same is said, and the first of them.
struct Alike {
  int first = 0;
  int count = 0;
};

void count(const std::string& text, int which, std::vector<std::string>& order, std::map<std::string, Alike>& alike) {
  const auto [entry, isNew] = alike.try_emplace(text, Alike{which});
  ++entry->second.count;
  if (isNew) {
    order.push_back(text);
  }
}

std::string othersLike(const Alike& alike) {
  return alike.count > 1 ? absl::StrCat(" and ", alike.count - 1, " more like it") : "";
}

void noteDropped(const SettledGraph& graph, const Shardings& shardings, const std::vector<RefusedSplit>& refused,
                 std::vector<std::string>& notes) {
  std::vector<std::string> causes;
  std::map<std::string, Alike> dropped;
  for (const RefusedSplit& split : refused) {
    const int64_t alike = split.isAsked ? ranksAlike(graph, shardings, split) : 1;
    if (alike <= 1) {
      continue;
    }
    const GraphOperator& op = graph.view.op(split.op);
    const Factor& factor = shardings.operators[split.op].rule.factors()[split.factor];
    const std::string cause = absl::StrCat(
        ": factor ", factor.name, " of size ", factor.size, " does not divide into ", partsOf(split.axes), " parts ",
        Layout({split.axes}).print(graph.placement.meshOf(split.op)),
        alike == partsOf(split.axes) ? "; each of these ranks computes all of it"
                                     : absl::StrCat("; ", alike, " of these ranks each compute the same of it"));
    count(absl::StrCat(op.facts.kind, cause), split.op, causes, dropped);
  }
  for (const std::string& cause : causes) {
    const GraphOperator& op = graph.view.op(dropped[cause].first);
    notes.push_back(
        absl::StrCat(op.label(), placeText(op.line), othersLike(dropped[cause]), cause.substr(op.facts.kind.size())));
  }
}

void notePads(const SettledGraph& graph, const std::map<unsigned, Shape>& pads, const char* reason,
              std::vector<std::string>& notes) {
  std::vector<std::string> said;
  std::map<std::string, Alike> padded;
  for (const auto& [index, shape] : pads) {
    const GraphArgument& argument = graph.view.graph().arguments[index];
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != argument.type.shape[d] && graph.stored.of(static_cast<int>(index))[d] == shape[d]) {
        count(absl::StrCat(": dimension ", d, " of size ", argument.type.shape[d], " is stored with ", shape[d],
                           " elements, so that all that is split with it divides", reason),
              static_cast<int>(index), said, padded);
      }
    }
  }
  for (const std::string& each : said) {
    const GraphArgument& argument = graph.view.graph().arguments[padded[each].first];
    notes.push_back(absl::StrCat(argument.name, placeText(argument.line), othersLike(padded[each]), each));
  }
}

}  // namespace

std::vector<std::string> notesOf(const SettledGraph& graph, const Shardings& shardings,
                                 const std::vector<RefusedSplit>& refused, const std::map<unsigned, Shape>& pads) {
  std::vector<std::string> notes;
  noteUnusedAxes(graph, shardings, notes);
  noteDropped(graph, shardings, refused, notes);
  const std::map<unsigned, Shape> asked = strategyPads(graph.view, graph.placement);
  std::map<unsigned, Shape> chosen = pads;
  std::erase_if(chosen, [&](const auto& entry) { return asked.count(entry.first) > 0; });
  notePads(graph, asked, ", as a strategy asks", notes);
  notePads(graph, chosen, ": the step is shorter so", notes);
  return notes;
}

}  // namespace weft
