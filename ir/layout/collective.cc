// Names, groups and prices of collectives.
#include <algorithm>
#include <numeric>
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

int64_t receivedBytes(CollectiveKind kind, int64_t n, int64_t before) {
  switch (kind) {
    case CollectiveKind::kPermute:
      return before;
    case CollectiveKind::kSlice:
      return 0;
    case CollectiveKind::kAllGather:
      return before * (n - 1);
    case CollectiveKind::kAllReduce:
      return (2 * (n - 1) * before + n - 1) / n;
    default:
      return before / n * (n - 1);
  }
}

GroupSpan spanOf(const Machine& machine, int64_t meshRanks, const AxisList& axes) {
  const int64_t onNode = machine.perNode(meshRanks);
  GroupSpan span;
  for (const Axis& axis : axes) {
    if (axis.kind == AxisKind::kTime) {
      continue;
    }
    const int64_t stride = meshRanks / axis.end();
    span.ranks *= axis.size;
    span.perNode *= onNode % stride == 0 ? std::gcd(onNode / stride, axis.size) : 1;
  }
  return span;
}

Picoseconds collectiveCost(const Machine& machine, CollectiveKind kind, const GroupSpan& span, int64_t bytesReceived) {
  if (kind == CollectiveKind::kSlice || span.ranks == 1) {
    return 0;
  }
  const auto bytes = static_cast<double>(bytesReceived);
  const auto inNode = static_cast<double>(span.perNode - 1);
  const auto others = static_cast<double>(span.ranks - 1);
  const double rounds = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const double steps = kind == CollectiveKind::kPermute ? 1 : rounds * others;
  if (span.nodes() == 1) {
    return picosecondsOf(machine.launchLatency + steps * machine.linkLatency + bytes / machine.linkBandwidth);
  }
  const double share = machine.networkShare();
  if (kind == CollectiveKind::kPermute) {
    return picosecondsOf(machine.launchLatency + machine.networkLatency + bytes / share);
  }
  if (kind == CollectiveKind::kAllToAll) {
    const double latency = inNode * machine.linkLatency + (others - inNode) * machine.networkLatency;
    const double inside = bytes * inNode / others / machine.linkBandwidth;
    const double outside = bytes * (others - inNode) / others / share;
    return picosecondsOf(machine.launchLatency + latency + std::max(inside, outside));
  }
  const double ring = steps * machine.networkLatency +
                      bytes / std::min(machine.linkBandwidth, static_cast<double>(span.perNode) * share);
  const auto betweenNodes = static_cast<double>(span.nodes() - 1);
  const double hierarchical = rounds * (inNode * machine.linkLatency + betweenNodes * machine.networkLatency) +
                              bytes * (others - betweenNodes) / others / machine.linkBandwidth +
                              bytes * betweenNodes / others / share;
  return picosecondsOf(machine.launchLatency + std::min(ring, hierarchical));
}

}  // namespace weft
