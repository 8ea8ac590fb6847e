#include "planner/open_mesh.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/layout/mesh.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr char kOpen = '?';

// Adds what the axes from `first` on can be if they make up `ranks`.
void addMeshes(const std::vector<std::string>& axes, size_t first, int64_t ranks, std::vector<std::string>& chosen,
               std::vector<std::string>& meshes) {
  if (first == axes.size()) {
    if (ranks == 1) {
      meshes.push_back(absl::StrJoin(chosen, ","));
    }
    return;
  }
  const std::string& axis = axes[first];
  const bool isOpen = axis.back() == kOpen;
  for (int64_t size = ranks; size >= 1; --size) {
    const std::string text = isOpen ? absl::StrCat(axis.substr(0, axis.size() - 1), size) : axis;
    if (ranks % size == 0 && (isOpen || absl::EndsWith(axis, absl::StrCat("=", size)))) {
      chosen.push_back(text);
      addMeshes(axes, first + 1, ranks / size, chosen, meshes);
      chosen.pop_back();
    }
  }
}

}  // namespace

bool isOpenMesh(const std::string& mesh) {
  return mesh.find(kOpen) != std::string::npos;
}

absl::StatusOr<std::vector<std::string>> closedMeshes(const std::string& mesh, int64_t ranks) {
  std::vector<std::string> axes;
  const std::vector<std::string> words = absl::StrSplit(mesh, ',');
  for (const std::string& word : words) {
    std::string axis(absl::StripAsciiWhitespace(word));
    // What stands for the size is checked as the sizes of any mesh are.
    std::string sized = axis;
    if (!axis.empty() && axis.back() == kOpen) {
      sized.back() = '1';
    }
    if (const absl::StatusOr<Mesh> parsed = Mesh::parse(sized); !parsed.ok() || parsed->axes().size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "mesh '", mesh, "': '", axis, "' is no axis; write name=size, or name=? for a size to be found"));
    }
    axes.push_back(std::move(axis));
  }
  std::vector<std::string> chosen;
  std::vector<std::string> meshes;
  addMeshes(axes, 0, ranks, chosen, meshes);
  if (meshes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh '", mesh, "' on ", ranks, ranks == 1 ? " device" : " devices",
                     ": no sizes make up so many; change the sizes that are given, or devices"));
  }
  WEFT_RETURN_IF_ERROR(Mesh::parse(meshes.front()).status());
  return meshes;
}

}  // namespace weft
