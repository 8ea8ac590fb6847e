#include "planner/search/sketches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/search/choose_open.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// By how many times its time an estimate counts as longer for each time the limit that it exceeds the limit by.
constexpr double kExcess = 8;
// Of long programs larger meshes beside the batch are not asked about once the best plan on one of them is expected to
// take so many times as long as the best on a smaller one, and the next larger one longer still.
constexpr double kHopeless = 1.1;

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
    costs.push_back({between(a[s].time, b[s].time, share), between(a[s].forwardTime, b[s].forwardTime, share),
                     between(a[s].onceTime, b[s].onceTime, share), between(a[s].heldBytes, b[s].heldBytes, share),
                     between(a[s].activationBytes, b[s].activationBytes, share),
                     between(a[s].passingBytes, b[s].passingBytes, share)});
  }
  return costs;
}

SegmentCosts between(const SegmentCosts& a, const SegmentCosts& b, double share) {
  return {between(a.kept, b.kept, share), between(a.recomputed, b.recomputed, share),
          between(a.transfer, b.transfer, share)};
}

// The axes of a mesh that do not split the batch, with their sizes.
std::string axesBesideBatch(const Mesh& mesh, Fill fill) {
  const std::vector<Axis> batch = defaultAxes(mesh, fill);
  std::string text;
  for (const NamedAxis& named : mesh.axes()) {
    if (std::find(batch.begin(), batch.end(), named.axis) == batch.end()) {
      absl::StrAppend(&text, named.name, "=", named.axis.size, ",");
    }
  }
  return text;
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

absl::StatusOr<std::unique_ptr<Sketches>> Sketches::create(const GraphFor& graphs, const CompileOptions& request,
                                                           ReshardMemo& memo) {
  WEFT_ASSIGN_OR_RETURN(const int64_t limit, memoryLimitOf(request));
  std::unique_ptr<Sketches> made(new Sketches(graphs, request, limit, memo));
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
  std::map<std::pair<int64_t, std::string>, std::vector<Entry>> groups;  // by their ranks beside the batch
  for (const StageGrid& grid : grids) {
    const absl::StatusOr<Mesh> mesh = Mesh::parse(grid.mesh);
    const bool isKnown = !grid.mesh.empty() && mesh.ok();
    const int64_t parts = isKnown ? partsOf(defaultAxes(*mesh, request_.fill)) : 1;
    const std::string own = absl::StrCat(grid.mesh, " ", grid.submeshes, " ", grid.virtualStages);
    std::vector<Entry>& group =
        groups[isKnown && program->isLong() ? std::pair(mesh->ranks() / parts, axesBesideBatch(*mesh, request_.fill))
                                            : std::pair(int64_t{1}, own)];
    for (const int64_t micro : microBatchCounts(program->graph(), request_, parts)) {
      group.push_back({{baseOf(grid, micro, parts), grid, {}}, Known::kGuessed, parts, 0, 0});
    }
  }
  double best = 0;     // expected of any group
  double largest = 0;  // and of those with as many ranks beside the batch as the last one
  int64_t ranks = 0;
  for (auto it = groups.begin(); it != groups.end(); ++it) {
    if (it->first.first != ranks) {
      if (program->isLong() && ranks > 1 && best > 0 && largest > kHopeless * best) {
        break;
      }
      ranks = it->first.first;
      largest = 0;
    }
    const double mine = beginGroup(std::move(it->second));
    largest = largest == 0 ? mine : std::min(largest, mine);
    best = best == 0 ? mine : std::min(best, mine);
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

// Guesses all from two of them: those whose micro-batches have most and fewest rows. What is expected of the best.
double Sketches::beginGroup(std::vector<Entry> group) {
  // Of alike ones that of the smallest mesh that has a batch axis: it is the quickest to ask about.
  const auto rank = [](const Entry& e, int64_t rowsOrder) {
    return std::tuple(e.sketch.grid.stages() == 1, e.parts == 1, rowsOrder, e.parts);
  };
  const auto cuts = [](const Entry& e) { return e.parts * e.sketch.request.microBatches(); };
  const Entry largest = *std::min_element(
      group.begin(), group.end(), [&](const Entry& a, const Entry& b) { return rank(a, cuts(a)) < rank(b, cuts(b)); });
  const Entry smallest = *std::min_element(group.begin(), group.end(), [&](const Entry& a, const Entry& b) {
    return rank(a, -cuts(a)) < rank(b, -cuts(b));
  });
  double best = 0;
  for (Entry& entry : group) {
    if (!guess(largest, smallest, entry)) {
      ask(std::move(entry));
      continue;
    }
    const double mine = expected(entry.sketch.cut);
    best = best == 0 ? mine : std::min(best, mine);
    push(std::move(entry));
  }
  return best;
}

// From two sketches that split the batch into more and fewer parts. False: they are of different programs, or one
// cannot be.
bool Sketches::guess(const Entry& largest, const Entry& smallest, Entry& entry) {
  const absl::StatusOr<const BlockProgram*> program = programFor(entry.sketch.request.microBatches());
  for (const Entry* end : {&largest, &smallest}) {
    const absl::StatusOr<const BlockProgram*> other = programFor(end->sketch.request.microBatches());
    if (!program.ok() || !other.ok() || *other != *program) {
      return false;
    }
  }
  const auto rows = [](const Entry& e) { return 1 / static_cast<double>(e.parts * e.sketch.request.microBatches()); };
  const double range = rows(smallest) - rows(largest);
  const double share = range == 0 ? 0 : (rows(entry) - rows(largest)) / range;
  const std::vector<SegmentCosts> first = asBlocksOf(entry, baseCosts(largest));
  const std::vector<SegmentCosts> second = asBlocksOf(entry, baseCosts(smallest));
  bool made = false;
  for (size_t i = 0; i < std::max(first.size(), second.size()) && !first.empty() && !second.empty(); ++i) {
    const SegmentCosts& a = first[std::min(i, first.size() - 1)];
    const SegmentCosts& b = second[std::min(i, second.size() - 1)];
    if (a.kept.size() != b.kept.size()) {
      return false;
    }
    keepBetter(cutShared(between(a, b, share), entry), made, entry);
  }
  return made;
}

// Costs of blocks as an entry's are: of one without stages as those of one block.
std::vector<SegmentCosts> Sketches::asBlocksOf(const Entry& entry, const std::vector<const SegmentCosts*>& all) {
  std::vector<SegmentCosts> costs;
  for (const SegmentCosts* each : all) {
    costs.push_back(entry.sketch.grid.stages() == 1 ? together(*each) : *each);
  }
  return costs;
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
  const absl::StatusOr<const BlockProgram*> program = programFor(entry.sketch.request.microBatches());
  const bool isLong = program.ok() && (*program)->isLong();
  const bool all = own->limited || !isLong;
  CompileOptions open = entry.sketch.request;
  open.zero = kFindZero;
  for (const CompileOptions& level : isOpen ? withZero(open, true) : std::vector<CompileOptions>()) {
    const bool isUseless = level.zeroLevel() == 0 ? own->limited || isLong : !all;
    if (level.zeroLevel() == 1 || isUseless) {
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
  const absl::StatusOr<const BlockProgram*> program = programFor(entry.sketch.request.microBatches());
  const bool isLong = program.ok() && (*program)->isLong();
  bool made = true;
  for (const double factor : kMemoryPrices) {
    if (isLong && factor != kMemoryPrices[0]) {
      break;
    }
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
             .emplace(key, program.ok() ? (*program)->costs(closed, uncut, bytePrice, memo_)
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
  const bool splits = trains_ && (closed.schedule == "auto" || closed.schedule.rfind("zb", 0) == 0);
  const PipelineShape shape = {grid.stages(), grid.virtualStages, closed.microBatches(), splits};
  const bool isCut = areStages_ || grid.stages() == 1;  // into as many stages as there are costs
  return isCut ? withStages(costs, shape, limit_, upTo(grid.stages())) : cutStages(costs, shape, limit_);
}

}  // namespace weft
