#include "planner/derive/reshard_prices.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

bool divides(int64_t size, const Layout& layout, int dim) {
  return size % partsOf(layout.dim(dim)) == 0;
}

ReshardMemo::LayoutKey keyOf(const Layout& layout) {
  AxisList sums;
  for (const Partial& sum : layout.partial()) {
    sums.push_back(sum.axis);
  }
  return {layout.dims(), sums};
}

}  // namespace

int64_t ReshardMemo::space(const Mesh& mesh, const Machine& machine) {
  const std::string text = absl::StrCat(mesh.print(), ";", machine.print());
  return spaces_.try_emplace(text, static_cast<int64_t>(spaces_.size())).first->second;
}

ReshardPrices::ReshardPrices(const SettledGraph& graph, const Machine& machine, ReshardMemo& memo)
    : graph_(graph), memo_(memo) {
  for (const Mesh& mesh : graph.placement.meshes.ofSubmesh) {
    spaces_.push_back(memo.space(mesh, machine));
    planners_.push_back(std::make_unique<ReshardPlanner>(mesh, machine));
  }
}

absl::StatusOr<Picoseconds> ReshardPrices::of(int value, int64_t mesh, const Layout& from, const Layout& to) {
  if (from == to) {
    return 0;
  }
  const Volume volume = volumeOf(value, mesh, from, to);
  ReshardMemo::Price& price = memo_.prices()[keyOf(volume, mesh, from, to)];
  if (!price.time) {
    WEFT_ASSIGN_OR_RETURN(const ReshardPlan plan, planners_[mesh]->plan(volume.shape, volume.type, from, to));
    price.time = plan.cost * volume.times;
  }
  return *price.time;
}

absl::StatusOr<const ReshardMemo::Price*> ReshardPrices::atLeast(int value, int64_t mesh, const Layout& from,
                                                                 const Layout& to) {
  static constexpr ReshardMemo::Price kNothing = {0, 0};
  if (from == to) {
    return &kNothing;
  }
  const Volume volume = volumeOf(value, mesh, from, to);
  ReshardMemo::Price& price = memo_.prices()[keyOf(volume, mesh, from, to)];
  if (!price.least) {
    WEFT_ASSIGN_OR_RETURN(const Picoseconds least, planners_[mesh]->leastCost(volume.shape, volume.type, from, to));
    price.least = least * volume.times;
  }
  return &price;
}

ReshardPrices::Volume ReshardPrices::volumeOf(int value, int64_t mesh, const Layout& from, const Layout& to) const {
  Volume volume = {graph_.stored.of(value), graph_.view.typeOf(value).type};
  const int batch = graph_.microBatches.batchDim[value];
  volume.times = batch >= 0 ? graph_.placement.meshes.withNumber(mesh).microBatches() : 1;
  // The prologue reads all micro-batches at once, split into more parts than the rows of one may have.
  if (volume.times > 1 && (!divides(volume.shape[batch] / volume.times, from, batch) ||
                           !divides(volume.shape[batch] / volume.times, to, batch))) {
    volume.times = 1;
  }
  if (batch >= 0) {
    volume.shape[batch] /= volume.times;
  }
  return volume;
}

ReshardMemo::Key ReshardPrices::keyOf(const Volume& volume, int64_t mesh, const Layout& from, const Layout& to) const {
  return {volume.shape, volume.type, volume.times, spaces_[mesh], weft::keyOf(from), weft::keyOf(to)};
}

}  // namespace weft
