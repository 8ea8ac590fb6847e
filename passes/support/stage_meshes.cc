#include "passes/support/stage_meshes.h"

#include <algorithm>

namespace weft {

int64_t StageMeshes::numberOfBlock(int64_t block) const {
  if (same()) {
    return 0;
  }
  return std::find(ofBlock.begin(), ofBlock.end(), ofBlock[block]) - ofBlock.begin();
}

int64_t StageMeshes::stageWith(int64_t number) const {
  int64_t stage = 0;
  while (stage + 1 < static_cast<int64_t>(blocks.size()) && this->number(stage) != number) {
    ++stage;
  }
  return stage;
}

}  // namespace weft
