#include "ir/layout/stage_mesh_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

bool isNamed(const Mesh& mesh) {
  return std::any_of(mesh.axes().begin(), mesh.axes().end(),
                     [](const NamedAxis& a) { return a.axis.kind == AxisKind::kSpace; });
}

bool hasName(const Mesh& mesh, const std::string& name) {
  return std::any_of(mesh.axes().begin(), mesh.axes().end(), [&](const NamedAxis& a) { return a.name == name; });
}

// Axes that other meshes name, with size 1.
absl::StatusOr<Mesh> withAxesOf(const Mesh& mesh, const std::vector<Mesh>& others) {
  std::string text = mesh.print();
  Mesh made = mesh;
  for (const Mesh& other : others) {
    for (const NamedAxis& named : other.axes()) {
      if (isNamed(mesh) && !hasName(made, named.name)) {
        absl::StrAppend(&text, ",", named.name, "=1");
        WEFT_ASSIGN_OR_RETURN(made, Mesh::parse(text));
      }
    }
  }
  return made;
}

}  // namespace

absl::StatusOr<std::vector<Mesh>> parseStageMeshes(const std::string& text, int64_t microBatches) {
  std::vector<Mesh> meshes;
  const std::vector<std::string> parts = absl::StrSplit(text, ';');
  for (const std::string& part : parts) {
    WEFT_ASSIGN_OR_RETURN(Mesh mesh, Mesh::parse(part));
    if (mesh.microBatches() > 1 || hasName(mesh, "micro")) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage meshes '", text,
                       "': micro-batches are cut alike on all stages; say micro for the whole "
                       "program, not in '",
                       part, "'"));
    }
    meshes.push_back(std::move(mesh));
  }
  std::vector<Mesh> made;
  for (const Mesh& mesh : meshes) {
    WEFT_ASSIGN_OR_RETURN(Mesh whole, withAxesOf(mesh, meshes));
    made.push_back(microBatches > 1 ? whole.withMicro(microBatches) : whole);
  }
  return made;
}

std::string printStageMeshes(const std::vector<Mesh>& meshes) {
  return absl::StrJoin(meshes, ";", [](std::string* out, const Mesh& mesh) {
    // The time axis is the whole program's.
    std::string text = mesh.print();
    const size_t time = text.find(",micro=");
    absl::StrAppend(out, text.substr(0, time));
  });
}

}  // namespace weft
