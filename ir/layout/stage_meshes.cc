#include "ir/layout/stage_meshes.h"

#include <algorithm>

namespace weft {

int64_t submeshCount(const std::vector<int64_t>& submeshes) {
  return *std::max_element(submeshes.begin(), submeshes.end()) + 1;
}

int64_t StageMeshes::ranks() const {
  int64_t ranks = 0;
  for (int64_t submesh = submeshCount(submeshes) - 1; submesh >= 0; --submesh) {
    ranks += withNumber(numberOfSubmesh(submesh)).ranks();
  }
  return ranks;
}

int64_t StageMeshes::numberOfSubmesh(int64_t submesh) const {
  if (same()) {
    return 0;
  }
  return std::find(ofSubmesh.begin(), ofSubmesh.end(), ofSubmesh[submesh]) - ofSubmesh.begin();
}

int64_t StageMeshes::stageWith(int64_t number) const {
  int64_t stage = 0;
  while (stage + 1 < static_cast<int64_t>(submeshes.size()) && this->number(stage) != number) {
    ++stage;
  }
  return stage;
}

}  // namespace weft
