#include "planner/submesh_machines.h"

#include <map>
#include <string>
#include <utility>

namespace weft {

SubmeshMachines::SubmeshMachines(const Machine& machine, const StageMeshes& meshes)
    : all_(machine.of(0, meshes.ranks())) {
  const int64_t submeshes = submeshCount(meshes.submeshes);
  if (machine.kinds.empty()) {
    machines_ = {machine};
    numbers_.assign(submeshes, 0);
    return;
  }
  std::map<std::string, int64_t> known;
  int64_t firstRank = 0;
  for (int64_t submesh = 0; submesh < submeshes; ++submesh) {
    const int64_t ranks = meshes.withNumber(meshes.numberOfSubmesh(submesh)).ranks();
    Machine mine = machine.of(firstRank, ranks);
    const auto [number, isNew] = known.try_emplace(mine.print(), static_cast<int64_t>(machines_.size()));
    if (isNew) {
      machines_.push_back(std::move(mine));
    }
    numbers_.push_back(number->second);
    firstRank += ranks;
  }
}

}  // namespace weft
