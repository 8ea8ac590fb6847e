#include "planner/search/sketches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/search/choose_open.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// By how many times its time an estimate counts as longer for each time the limit that it exceeds the limit by.
constexpr double kExcess = 8;
// Sketches that have all levels of ZeRO made though memory is not short.
constexpr size_t kWithAllLevels = 8;

// 0, 1, ..., count - 1.
std::vector<int> upTo(int64_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

template <typename Number>
Number between(Number a, Number b, double share) {
  return static_cast<Number>(
      std::llround(static_cast<double>(a) + share * (static_cast<double>(b) - static_cast<double>(a))));
}

// Needs that lie `share` of the way from `a` to `b`.
std::vector<SegmentCost> between(const std::vector<SegmentCost>& a, const std::vector<SegmentCost>& b, double share) {
  std::vector<SegmentCost> costs;
  for (size_t s = 0; s < a.size(); ++s) {
    costs.push_back({between(a[s].time, b[s].time, share), between(a[s].onceTime, b[s].onceTime, share),
                     between(a[s].heldBytes, b[s].heldBytes, share),
                     between(a[s].activationBytes, b[s].activationBytes, share),
                     between(a[s].passingBytes, b[s].passingBytes, share)});
  }
  return costs;
}

SegmentCosts between(const SegmentCosts& a, const SegmentCosts& b, double share) {
  return {between(a.kept, b.kept, share), between(a.recomputed, b.recomputed, share),
          between(a.transfer, b.transfer, share)};
}

// As if ZeRO shared all that is held by so many ranks.
SegmentCosts withSharedState(SegmentCosts costs, int64_t parts) {
  for (std::vector<SegmentCost>* list : {&costs.kept, &costs.recomputed}) {
    for (SegmentCost& cost : *list) {
      cost.heldBytes /= parts;
    }
  }
  return costs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sketches>> Sketches::create(const GraphFor& graphs, const CompileOptions& request) {
  WEFT_ASSIGN_OR_RETURN(const int64_t limit, memoryLimitOf(request));
  std::unique_ptr<Sketches> made(new Sketches(graphs, request, limit));
  WEFT_RETURN_IF_ERROR(made->begin());
  return made;
}

absl::Status Sketches::begin() {
  WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, programFor(request_.microBatches()));
  trains_ = program->graph().trains();
  areStages_ = program->areStages();
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<StageGrid> grids,
      stageGrids(program->graph(), request_, program->areStages() ? program->blocks() : 1, program->blocks()));
  for (const StageGrid& grid : grids) {
    WEFT_RETURN_IF_ERROR(beginOn(grid));
  }
  return open_.empty() ? refusal_ : absl::OkStatus();
}

absl::StatusOr<const BlockProgram*> Sketches::programFor(int64_t microBatches) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramGraph> graph, graphs_(microBatches));
  const ProgramGraph* key = graph.get();
  auto it = programs_.find(key);
  if (it == programs_.end()) {
    WEFT_ASSIGN_OR_RETURN(BlockProgram program, BlockProgram::create(std::move(graph), request_));
    it = programs_.emplace(key, std::move(program)).first;
  }
  return &it->second;
}

// The request with ZeRO of the first level where that is open.
CompileOptions Sketches::baseOf(const StageGrid& grid, int64_t micro, int64_t parts) const {
  CompileOptions closed = request_;
  closed.mode = Mode::kLayouts;
  closed.mesh = grid.mesh;
  closed.devices = 1;
  closed.micro = micro;
  closed.zero = request_.zeroLevel();
  const std::vector<CompileOptions> levels = withZero(closed, trains_ && parts > 1);
  const auto first = std::find_if(levels.begin(), levels.end(), [](const auto& each) { return each.zeroLevel() == 1; });
  return first == levels.end() ? levels.front() : *first;
}

bool Sketches::leavesLevelOpen(const CompileOptions& closed) const {
  return request_.zeroLevel() == kFindZero && closed.zeroLevel() == 1;
}

absl::Status Sketches::beginOn(const StageGrid& grid) {
  WEFT_ASSIGN_OR_RETURN(const BlockProgram* any, programFor(request_.microBatches()));
  const absl::StatusOr<Mesh> mesh = Mesh::parse(grid.mesh);
  const int64_t parts = grid.mesh.empty() || !mesh.ok() ? 1 : partsOf(defaultAxes(*mesh, request_.fill));
  const std::vector<int64_t> counts = microBatchCounts(any->graph(), request_, parts);
  const auto [fewest, most] = std::minmax_element(counts.begin(), counts.end());
  const Entry largest = {{baseOf(grid, *fewest, parts), grid, {}}, Known::kGuessed, parts, 0, 0};
  const Entry smallest = {{baseOf(grid, *most, parts), grid, {}}, Known::kGuessed, parts, 0, 0};
  for (const int64_t micro : counts) {
    Entry entry = {{baseOf(grid, micro, parts), grid, {}}, Known::kGuessed, parts, 0, 0};
    const bool isEnd = micro == *fewest || micro == *most;
    if (!isEnd && guess(largest, smallest, entry)) {
      push(std::move(entry));
    } else {
      ask(std::move(entry));
    }
  }
  return absl::OkStatus();
}

// Between two sketches that differ in micro-batches alone. False: they are of different programs, or one cannot be.
bool Sketches::guess(const Entry& largest, const Entry& smallest, Entry& entry) {
  const int64_t micro = entry.sketch.request.microBatches();
  const int64_t fewest = largest.sketch.request.microBatches();
  const int64_t most = smallest.sketch.request.microBatches();
  const absl::StatusOr<const BlockProgram*> program = programFor(micro);
  for (const int64_t end : {fewest, most}) {
    const absl::StatusOr<const BlockProgram*> other = programFor(end);
    if (!program.ok() || !other.ok() || *other != *program) {
      return false;
    }
  }
  const auto rows = [](int64_t count) { return 1 / static_cast<double>(count); };
  const double share = (rows(micro) - rows(fewest)) / (rows(most) - rows(fewest));
  const std::vector<const SegmentCosts*> first = baseCosts(largest);
  const std::vector<const SegmentCosts*> second = baseCosts(smallest);
  bool made = false;
  for (size_t i = 0; i < first.size() && !second.empty(); ++i) {
    const SegmentCosts costs = between(*first[i], *second[std::min(i, second.size() - 1)], share);
    keepBetter(cutShared(costs, entry), made, entry);
  }
  for (size_t i = first.size(); i < second.size() && !first.empty(); ++i) {
    keepBetter(cutShared(between(*first.back(), *second[i], share), entry), made, entry);
  }
  return made;
}

void Sketches::keepBetter(StageCut cut, bool& made, Entry& entry) const {
  const auto rank = [&](const StageCut& c) { return std::tuple(expected(c), c.peakBytes); };
  if (!made || rank(cut) < rank(entry.sketch.cut)) {
    entry.sketch.cut = std::move(cut);
  }
  made = true;
}

// With state as if ZeRO shared it, where its level is open.
StageCut Sketches::cutShared(const SegmentCosts& costs, const Entry& entry) const {
  return cutWith(leavesLevelOpen(entry.sketch.request) ? withSharedState(costs, entry.parts) : costs, entry.sketch.grid,
                 entry.sketch.request);
}

// What the blocks need, without a price of memory and, where it is short, with one. Empty: refused.
std::vector<const SegmentCosts*> Sketches::baseCosts(const Entry& entry) {
  const Sketch& sketch = entry.sketch;
  const SegmentCosts* costs = costsOf(sketch.grid, sketch.request, 0);
  if (costs == nullptr) {
    return {};
  }
  std::vector<const SegmentCosts*> all = {costs};
  const StageCut cut = cutShared(*costs, entry);
  if (cut.limited) {
    const SegmentCosts* priced = costsOf(sketch.grid, sketch.request, kMemoryPrices[0] * memoryPrice(cut.time, limit_));
    if (priced != nullptr) {
      all.push_back(priced);
    }
  }
  return all;
}

// The estimate of memory leaves out that parts of a segment can be recomputed: a plan that exceeds the limit by a
// little may fit, at a price.
double Sketches::expected(const StageCut& cut) const {
  const double excess = cut.fits ? 0 : static_cast<double>(cut.peakBytes) / static_cast<double>(limit_) - 1;
  return static_cast<double>(cut.time) * (1 + kExcess * std::max(excess, 0.0));
}

void Sketches::push(Entry entry) {
  entry.expected = expected(entry.sketch.cut);
  entry.order = made_++;
  open_.push(std::move(entry));
}

void Sketches::refuse(const absl::Status& status) {
  refusal_ = refused_++ == 0 ? status : refusal_;
}

std::optional<Sketch> Sketches::next() {
  while (!open_.empty()) {
    Entry entry = open_.top();
    open_.pop();
    switch (entry.known) {
      case Known::kGuessed:
        ask(std::move(entry));
        continue;
      case Known::kAsked:
        makeLevels(std::move(entry));
        continue;
      case Known::kMade:
        break;
    }
    if (isNew(entry.sketch)) {
      return std::move(entry.sketch);
    }
  }
  return std::nullopt;
}

// Meshes over which the same is split under other names give plans that are the same.
bool Sketches::isNew(const Sketch& sketch) {
  Figures figures(sketch.cut.time, sketch.cut.peakBytes, sketch.cut.first, sketch.request.microBatches(),
                  sketch.grid.submeshes);
  const bool isNew = std::find(given_.begin(), given_.end(), figures) == given_.end();
  given_.push_back(std::move(figures));
  return isNew;
}

void Sketches::ask(Entry entry) {
  bool made = false;
  for (const SegmentCosts* costs : baseCosts(entry)) {
    keepBetter(cutShared(*costs, entry), made, entry);
  }
  if (made) {
    entry.known = Known::kAsked;
    push(std::move(entry));
  }
}

void Sketches::makeLevels(Entry entry) {
  const std::optional<StageCut> own = cutOf(entry.sketch.grid, entry.sketch.request, 0);
  if (!own) {
    return;
  }
  entry.known = Known::kMade;
  entry.sketch.cut = *own;
  const bool isOpen = leavesLevelOpen(entry.sketch.request);
  const bool all = own->limited || levelsMade_++ < kWithAllLevels;
  CompileOptions open = entry.sketch.request;
  open.zero = kFindZero;
  for (const CompileOptions& level : isOpen ? withZero(open, true) : std::vector<CompileOptions>()) {
    if (level.zeroLevel() == 1 || (level.zeroLevel() > 1 && !all)) {
      continue;
    }
    if (const std::optional<StageCut> cut = cutOf(entry.sketch.grid, level, 0)) {
      price({{level, entry.sketch.grid, *cut}, Known::kMade, entry.parts, 0, 0});
    }
  }
  price(std::move(entry));
}

// The prediction in full finds the price of memory anew.
void Sketches::price(Entry entry) {
  if (!entry.sketch.cut.limited) {
    push(std::move(entry));
    return;
  }
  const double price = memoryPrice(entry.sketch.cut.time, limit_);
  bool made = true;
  for (const double factor : kMemoryPrices) {
    if (std::optional<StageCut> cut = cutOf(entry.sketch.grid, entry.sketch.request, factor * price)) {
      keepBetter(*std::move(cut), made, entry);
    }
  }
  push(std::move(entry));
}

const SegmentCosts* Sketches::costsOf(const StageGrid& grid, const CompileOptions& closed, double bytePrice) {
  const bool uncut = grid.stages() == 1;
  const auto key = CostsKey(grid.mesh, closed.microBatches(), closed.zeroLevel(), closed.regather, uncut, bytePrice);
  auto it = costs_.find(key);
  if (it == costs_.end()) {
    const absl::StatusOr<const BlockProgram*> program = programFor(closed.microBatches());
    it = costs_
             .emplace(key, program.ok() ? (*program)->costs(closed, uncut, bytePrice)
                                        : absl::StatusOr<SegmentCosts>(program.status()))
             .first;
    if (!it->second.ok()) {
      refuse(it->second.status());
    }
  }
  return it->second.ok() ? &*it->second : nullptr;
}

std::optional<StageCut> Sketches::cutOf(const StageGrid& grid, const CompileOptions& closed, double bytePrice) {
  const SegmentCosts* costs = costsOf(grid, closed, bytePrice);
  return costs == nullptr ? std::nullopt : std::optional(cutWith(*costs, grid, closed));
}

StageCut Sketches::cutWith(const SegmentCosts& costs, const StageGrid& grid, const CompileOptions& closed) const {
  const PipelineShape shape = {grid.stages(), grid.virtualStages, closed.microBatches()};
  const bool isCut = areStages_ || grid.stages() == 1;  // into as many stages as there are costs
  return isCut ? withStages(costs, shape, limit_, upTo(grid.stages())) : cutStages(costs, shape, limit_);
}

}  // namespace weft
