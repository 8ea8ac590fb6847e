// Names, groups and prices of collectives.
#include <algorithm>
#include <utility>

#include "ir/layout/reshard_space.h"

namespace weft {
namespace {

std::vector<std::vector<int64_t>> cyclesOf(const std::vector<int64_t>& source) {
  std::vector<int64_t> receiver(source.size());
  for (size_t rank = 0; rank < source.size(); ++rank) {
    receiver[source[rank]] = static_cast<int64_t>(rank);
  }
  std::vector<std::vector<int64_t>> cycles;
  std::vector<bool> seen(source.size(), false);
  for (size_t first = 0; first < source.size(); ++first) {
    std::vector<int64_t> cycle;
    for (size_t rank = first; !seen[rank]; rank = receiver[rank]) {
      seen[rank] = true;
      cycle.push_back(static_cast<int64_t>(rank));
    }
    if (cycle.size() > 1) {
      cycles.push_back(std::move(cycle));
    }
  }
  return cycles;
}

}  // namespace

std::string collectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kSlice:
      return "slice";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kPermute:
      return "permute";
  }
  return "?";
}

std::vector<std::vector<int64_t>> groupsOf(const ReshardStep& step, const Mesh& mesh) {
  return step.kind == CollectiveKind::kPermute ? cyclesOf(step.source) : mesh.groups(step.axes);
}

Picoseconds collectiveCost(const Machine& machine, CollectiveKind kind, int64_t groupSize, int64_t bytesReceived) {
  reshard::Price price = reshard::priceOf(kind, groupSize, 0);
  price.bytes = bytesReceived;
  return picosecondsOf(reshard::seconds(machine, price));
}

}  // namespace weft
