#include "planner/search/free_batch_axes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/search/block_program.h"
#include "planner/search/neighbor_plans.h"
#include "planner/search/plan_space.h"

namespace weft {
namespace {

// Plans on so many grids are asked about: as many as have so many operators together, within these bounds. A third of
// them are on near meshes.
constexpr size_t kFreedOperators = 2400;
constexpr size_t kFewestFreed = 3;
constexpr size_t kMostFreed = 12;

size_t mostFreed(const ClosedRequest& plan) {
  return std::clamp(kFreedOperators / plan.graph->operators.size(), kFewestFreed, kMostFreed);
}

int64_t largestAxis(const std::string& text) {
  int64_t largest = 1;
  const absl::StatusOr<Mesh> mesh = Mesh::parse(text);
  for (const NamedAxis& named : mesh.ok() ? mesh->axes() : std::vector<NamedAxis>()) {
    largest = std::max(largest, named.axis.size);
  }
  return largest;
}

// Of the same plan on near meshes. Those of many small axes first: on them one factor may have all axes, or several
// factors one each.
std::vector<Sketch> nearMeshes(const Sketch& sketch, const ClosedRequest& plan, const CompileOptions& request) {
  std::vector<Sketch> near = neighborsOf(sketch, *plan.graph, request);
  std::erase_if(near, [&](const Sketch& each) {
    return each.grid.mesh == sketch.grid.mesh || each.request.micro != sketch.request.micro;
  });
  std::stable_sort(near.begin(), near.end(), [](const Sketch& a, const Sketch& b) {
    return largestAxis(a.grid.mesh) < largestAxis(b.grid.mesh);
  });
  near.resize(std::min(near.size(), mostFreed(plan) / 3));
  return near;
}

// What plans are on: the number of submeshes, the mesh and, in tiny programs, the number of micro-batches.
using Grid = std::tuple<int64_t, std::string, int64_t>;

Grid gridOf(const Sketch& sketch, const ClosedRequest& plan) {
  return {sketch.grid.submeshes, sketch.grid.mesh, isTiny(*plan.graph) ? sketch.request.microBatches() : 0};
}

// Of finalists the first of each grid.
std::vector<ClosedRequest> plansToFree(const ClosedRequest& plan, const std::vector<Finalist>& finalists,
                                       const CompileOptions& request) {
  std::vector<ClosedRequest> found = {plan};
  const Sketch& sketch = finalists.front().sketch;
  std::set<Grid> grids = {gridOf(sketch, plan)};
  const bool sharesBatch = batchParts(sketch.grid.mesh, request.fill) > 1;
  for (const Sketch& each : nearMeshes(sketch, plan, request)) {
    grids.insert(gridOf(each, plan));
    std::vector<CompileOptions> levels = {each.request};
    if (!sharesBatch) {  // its level is the first that there is
      std::ranges::copy(atOtherLevels(each.request, *plan.graph, request), std::back_inserter(levels));
    }
    for (CompileOptions& level : levels) {
      found.push_back(plan);
      found.back().request = std::move(level);
      found.back().request.virtualStages = plan.request.virtualStages;
    }
  }
  for (size_t i = 1; i < finalists.size() && grids.size() < mostFreed(plan); ++i) {
    if (grids.insert(gridOf(finalists[i].sketch, plan)).second) {
      found.push_back(finalists[i].plan);
    }
  }
  return found;
}

// Takes the place of `plan` where it is better with the batch's axes free.
void keepBetter(ClosedRequest other, PlanPredictions& plans, ClosedRequest& plan) {
  other.request.without.erase(Freedom::kBatchAxes);
  absl::StatusOr<Attempt> made =
      plans.ofChanged(other.graph, other.request, other.bytePrice, uselessBeside(plan.attempt));
  if (made.ok() && isBetter(*made, plan.attempt)) {
    other.attempt = *std::move(made);
    other.ticks = plan.ticks;
    other.notes = plan.notes;
    plan = std::move(other);
  }
}

}  // namespace

ClosedRequest withBatchAxesFree(ClosedRequest plan, const std::vector<Finalist>& finalists,
                                const CompileOptions& request, PlanPredictions& plans) {
  if (!request.may(Freedom::kBatchAxes) || plan.request.mode == Mode::kSemi) {
    return plan;
  }
  const Picoseconds before = plan.attempt.time;
  for (ClosedRequest& other : plansToFree(plan, finalists, request)) {
    keepBetter(std::move(other), plans, plan);
  }
  const ClosedRequest best = plan;
  for (CompileOptions& level : atOtherLevels(best.request, *best.graph, request)) {
    ClosedRequest other = best;
    other.request = std::move(level);
    keepBetter(std::move(other), plans, plan);
  }
  if (plan.request.may(Freedom::kBatchAxes)) {
    plan.notes.push_back(
        absl::StrFormat("axes of the batch split more than the batch: mesh %s, %.4g ms instead of %.4g ms",
                        plan.request.mesh.empty() ? plan.request.stageMeshes : plan.request.mesh,
                        1e3 * inSeconds(plan.attempt.time), 1e3 * inSeconds(before)));
  }
  return plan;
}

}  // namespace weft
