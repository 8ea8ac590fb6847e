#include "planner/search/unlike_meshes.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "planner/search/plan_space.h"

namespace weft {
namespace {

// How many times as many ranks the one has that is given some.
constexpr double kMoreRanks = 1.5;
// Meshes of a new size that are asked about for one plan, and for all.
constexpr int64_t kAskedOfSize = 2;
constexpr int64_t kMostAsked = 16;

}  // namespace

bool UnlikeMeshes::mayBeside(const StageGrid& grid) const {
  return mayHaveUnlikeMeshes(request_) && grid.submeshes > 1 && grid.virtualStages == 1;
}

bool UnlikeMeshes::mayTrade(const StageGrid& grid) const {
  const absl::StatusOr<Mesh> mesh = Mesh::parse(grid.mesh);
  return mayBeside(grid) && grid.submeshes <= kMostTrading && mesh.ok() && mesh->ranks() % 2 == 0;
}

double UnlikeMeshes::mayGainOfLongest(const StageGrid& grid) const {
  return mayTrade(grid) ? 1 / kMoreRanks : 1;
}

double UnlikeMeshes::mayGain(const SegmentCosts& costs, const StageGrid& grid,
                             const std::vector<PipelineShape>& shapes) {
  if (!mayTrade(grid)) {
    return 1;
  }
  const int64_t ranks = Mesh::parse(grid.mesh)->ranks();
  choices_ = {choiceOf(grid.mesh, ranks, costs), choiceOf(grid.mesh, ranks / 2, scaled(costs, 2)),
              choiceOf(grid.mesh, ranks / 2 * 3, scaled(costs, 1 / kMoreRanks))};
  double equal = std::numeric_limits<double>::infinity();
  double unlike = equal;
  for (const PipelineShape& shape : shapes) {
    Sized first = alike(grid, shape);
    equal = std::min(equal, cuts_.expected(first.cut));
    unlike = std::min(unlike, cuts_.expected(traded(std::move(first), shape).cut));
  }
  return unlike < equal ? unlike / equal : 1;
}

UnlikeMeshes::Choice UnlikeMeshes::choiceOf(std::string mesh, int64_t ranks, SegmentCosts costs) {
  auto summed = std::make_shared<const SummedCosts>(costs);
  return {std::move(mesh), ranks, std::move(costs), std::move(summed)};
}

// Each submesh has as many ranks as the first choice.
UnlikeMeshes::Sized UnlikeMeshes::alike(const StageGrid& grid, const PipelineShape& shape) const {
  return cutOf(std::vector<int64_t>(grid.submeshes, choices_[0].ranks), shape);
}

UnlikeMeshes::Sized UnlikeMeshes::traded(Sized made, const PipelineShape& shape) const {
  while (std::optional<Sized> more = bestTrade(made, choices_[0].ranks, shape)) {
    made = *std::move(more);
  }
  return made;
}

std::optional<UnlikeMeshes::Plan> UnlikeMeshes::beside(const CompileOptions& closed, const StageGrid& grid,
                                                       const std::vector<PipelineShape>& shapes) {
  choices_.clear();
  if (!mayBeside(grid) || !add(closed, grid.mesh, false)) {
    return std::nullopt;
  }
  const Choice first = choices_[0];
  const bool trades = mayGain(first.costs, grid, shapes) < 1 - kLeastGainOfMeshes;
  choices_.clear();
  add(closed, grid.mesh, false);
  std::vector<StageCut> own;
  for (const PipelineShape& shape : shapes) {
    own.push_back(alike(grid, shape).cut);
  }
  addKnown(closed, first.ranks);
  if (trades) {
    addAsked(closed, first.ranks / 2);
    addAsked(closed, first.ranks / 2 * 3);
  }
  std::optional<Plan> best;
  for (const PipelineShape& shape : shapes) {
    const StageCut made = traded(alike(grid, shape), shape).cut;
    std::set<std::string> meshes;
    for (const int number : made.meshes) {
      meshes.insert(choices_[number].mesh);
    }
    const bool isShorter = !best || cuts_.expected(made) < cuts_.expected(best->cut);
    if (meshes.size() > 1 && isShorter &&
        std::all_of(own.begin(), own.end(), [&](const StageCut& each) { return gains(made, each); })) {
      best = Plan{textOf(made), made};
    }
  }
  return best;
}

bool UnlikeMeshes::gains(const StageCut& cut, const StageCut& before) const {
  return cuts_.expected(cut) < (1 - kLeastGainOfMeshes) * cuts_.expected(before);
}

// Those over which the batch divides without padding.
std::vector<std::string> UnlikeMeshes::meshesOf(const CompileOptions& closed, int64_t ranks) {
  const absl::StatusOr<const BlockProgram*> program = costs_.programFor(closed.microBatches());
  const absl::StatusOr<std::vector<OrderedMesh>> all =
      program.ok() ? meshesOfRanks((*program)->graph(), request_, ranks) : program.status();
  std::vector<std::string> meshes;
  for (const OrderedMesh& mesh : all.ok() ? *all : std::vector<OrderedMesh>()) {
    meshes.push_back(mesh.text);
  }
  std::erase_if(meshes, [&](const std::string& text) {
    const int64_t parts = batchParts(text, request_.fill);
    const std::vector<int64_t> counts = microBatchCounts((*program)->graph(), request_, parts);
    return std::find(counts.begin(), counts.end(), closed.microBatches()) == counts.end();
  });
  return meshes;
}

// The needs on a mesh at the level of ZeRO of `closed`, with a price of memory and without, as far as they are known;
// else asked about if it may be. Answers whether there are any.
bool UnlikeMeshes::add(const CompileOptions& closed, const std::string& text, bool asks) {
  const int64_t parts = batchParts(text, request_.fill);
  const absl::StatusOr<const BlockProgram*> program = costs_.programFor(closed.microBatches());
  const bool shares = program.ok() && (*program)->graph().trains() && parts > 1;
  const CompileOptions first = firstRequest(request_, text, closed.microBatches(), shares);
  const BlockAsk ask = {first, false, parts, 0};
  if (costs_.alike(ask).empty() && (!asks || !costs_.of(ask).ok())) {
    return false;
  }
  CompileOptions here = closed;
  here.mesh = text;
  for (const SegmentCosts& known : costs_.alike(ask)) {
    SegmentCosts made = atLevel(known, first.zeroLevel(), here.zeroLevel(), parts);
    if (parts > 1 && here.zeroLevel() != first.zeroLevel()) {
      absl::StatusOr<SegmentCosts> timed = costs_.withZeroTimes(std::move(made), here, parts);
      if (!timed.ok()) {
        continue;
      }
      made = *std::move(timed);
    }
    choices_.push_back(choiceOf(text, Mesh::parse(text)->ranks(), std::move(made)));
  }
  return true;
}

void UnlikeMeshes::addKnown(const CompileOptions& closed, int64_t ranks) {
  for (const std::string& mesh : meshesOf(closed, ranks)) {
    if (mesh != choices_[0].mesh) {
      add(closed, mesh, false);
    }
  }
}

// Also the meshes that are expected to be the shortest.
void UnlikeMeshes::addAsked(const CompileOptions& closed, int64_t ranks) {
  std::vector<std::pair<Picoseconds, std::string>> meshes;
  for (const std::string& text : meshesOf(closed, ranks)) {
    const int64_t parts = batchParts(text, request_.fill);
    CompileOptions here = closed;
    here.mesh = text;
    const std::vector<BlockTotals> guesses = costs_.guess({here, false, parts, 0});
    meshes.emplace_back(guesses.empty() ? kLongestTime : guesses.front().all.time, text);
  }
  std::stable_sort(meshes.begin(), meshes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < meshes.size(); ++i) {
    const int64_t before = costs_.asked();
    add(closed, meshes[i].second, static_cast<int64_t>(i) < kAskedOfSize && asked_ < kMostAsked);
    asked_ += costs_.asked() - before;
  }
}

UnlikeMeshes::Sized UnlikeMeshes::cutOf(const std::vector<int64_t>& ranks, const PipelineShape& shape) const {
  MeshChoices choices;
  choices.ofSubmesh.resize(ranks.size());
  for (size_t i = 0; i < choices_.size(); ++i) {
    choices.costs.push_back(choices_[i].summed);
    for (size_t s = 0; s < ranks.size(); ++s) {
      if (choices_[i].ranks == ranks[s]) {
        choices.ofSubmesh[s].push_back(static_cast<int>(i));
      }
    }
  }
  return {ranks, cuts_.withMeshes(choices, cuts_.onRanks(shape, ranks))};
}

// Is priced as it lies: two neighboring submeshes of as many ranks, which trade half of those of one.
bool UnlikeMeshes::liesWell(int64_t first, int64_t ranks) const {
  const int64_t node = machine_.devicesPerNode;
  const int64_t begin = first * ranks;
  const bool areOnOneNode = node == 0 || begin / node == (begin + 2 * ranks - 1) / node;
  return areOnOneNode || (ranks / 2) % node == 0;
}

std::optional<UnlikeMeshes::Sized> UnlikeMeshes::bestTrade(const Sized& before, int64_t ranks,
                                                           const PipelineShape& shape) const {
  const auto has = [&](int64_t size) {
    return std::any_of(choices_.begin(), choices_.end(), [&](const Choice& each) { return each.ranks == size; });
  };
  std::optional<Sized> best;
  if (ranks % 2 != 0 || !has(ranks / 2) || !has(ranks / 2 * 3)) {
    return best;
  }
  for (size_t s = 0; s + 1 < before.ranks.size(); ++s) {
    const bool haveTraded = before.ranks[s] != ranks || before.ranks[s + 1] != ranks;
    for (const bool gives : {false, true}) {
      if (haveTraded || !liesWell(static_cast<int64_t>(s), ranks)) {
        continue;
      }
      std::vector<int64_t> sizes = before.ranks;
      sizes[s] = gives ? ranks / 2 : ranks / 2 * 3;
      sizes[s + 1] = 2 * ranks - sizes[s];
      Sized made = cutOf(sizes, shape);
      const StageCut& least = best ? best->cut : before.cut;
      if (gains(made.cut, before.cut) && cuts_.expected(made.cut) < cuts_.expected(least)) {
        best = std::move(made);
      }
    }
  }
  return best;
}

std::string UnlikeMeshes::textOf(const StageCut& cut) const {
  return absl::StrJoin(cut.meshes, ";", [&](std::string* out, int number) { out->append(choices_[number].mesh); });
}

}  // namespace weft
