#include "planner/derive/notes.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

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

std::string placeOf(const SourcePlace& line) {
  return line.file.empty() ? "" : absl::StrCat(" (", line.file, ":", line.line, ")");
}

// What several operators share of a dropped split, and the first of them.
struct Dropped {
  int op = 0;
  int count = 0;
};

void noteDropped(const SettledGraph& graph, const Shardings& shardings, const std::vector<RefusedSplit>& refused,
                 std::vector<std::string>& notes) {
  std::vector<std::string> causes;
  std::map<std::string, Dropped> dropped;
  for (const RefusedSplit& split : refused) {
    const OperatorSharding& sharding = shardings.operators[split.op];
    const GraphOperator& op = graph.view.op(split.op);
    const bool repeated =
        op.facts.flopsPerPoint > 0 &&
        std::none_of(split.axes.begin(), split.axes.end(), [&](const Axis& axis) { return splits(sharding, axis); });
    if (!repeated) {
      continue;
    }
    const Factor& factor = sharding.rule.factors()[split.factor];
    const std::string cause = absl::StrCat(
        ": factor ", factor.name, " of size ", factor.size, " does not divide into ", partsOf(split.axes), " parts ",
        Layout({split.axes}).print(graph.placement.meshOf(split.op)), "; each of these ranks computes all of it");
    const auto [entry, isNew] = dropped.try_emplace(absl::StrCat(op.facts.kind, cause), Dropped{split.op});
    ++entry->second.count;
    if (isNew) {
      causes.push_back(entry->first);
    }
  }
  for (const std::string& cause : causes) {
    const Dropped& entry = dropped[cause];
    const GraphOperator& op = graph.view.op(entry.op);
    notes.push_back(absl::StrCat(op.label(), placeOf(op.line),
                                 entry.count > 1 ? absl::StrCat(" and ", entry.count - 1, " more like it") : "",
                                 cause.substr(op.facts.kind.size())));
  }
}

}  // namespace

std::vector<std::string> notesOf(const SettledGraph& graph, const Shardings& shardings,
                                 const std::vector<RefusedSplit>& refused) {
  std::vector<std::string> notes;
  noteUnusedAxes(graph, shardings, notes);
  noteDropped(graph, shardings, refused, notes);
  return notes;
}

}  // namespace weft
