#include "planner/search/sketches.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/search/choose_open.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// By how many times its time an estimate counts as longer for each time the limit that it exceeds the limit by.
constexpr double kExcess = 8;

// 0, 1, ..., count - 1.
std::vector<int> upTo(int64_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

constexpr int kAllShared = 3;  // the level of ZeRO at which ranks share all that they hold

}  // namespace

absl::StatusOr<std::unique_ptr<Sketches>> Sketches::create(const GraphFor& graphs, const CompileOptions& request,
                                                           ReshardMemo& memo) {
  WEFT_ASSIGN_OR_RETURN(const int64_t limit, memoryLimitOf(request));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  std::unique_ptr<Sketches> made(new Sketches(graphs, request, limit, machine, memo));
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
  std::map<std::string, std::vector<Entry>> groups;  // by the axes beside the batch
  std::vector<std::string> order;
  for (const StageGrid& grid : grids) {
    const absl::StatusOr<Mesh> mesh = Mesh::parse(grid.mesh);
    const int64_t parts = !grid.mesh.empty() && mesh.ok() ? partsOf(defaultAxes(*mesh, request_.fill)) : 1;
    for (const int64_t micro : microBatchCounts(program->graph(), request_, parts)) {
      Entry entry = {{baseOf(grid, micro, parts), grid, {}, {}}, Known::kGuessed, parts, 0, 0};
      const std::string group = costs_.groupOf(askOf(entry, 0));
      if (groups[group].empty()) {
        order.push_back(group);
      }
      groups[group].push_back(std::move(entry));
    }
  }
  for (const std::string& name : order) {
    const std::vector<std::string> parents = costs_.parentsOf(askOf(groups[name].front(), 0));
    if (std::none_of(parents.begin(), parents.end(), [&](const auto& parent) { return groups.count(parent) > 0; })) {
      askFirst(groups[name]);
    }
  }
  for (const std::string& name : order) {
    for (Entry& entry : groups[name]) {
      guess(entry);  // of what nothing is known is asked first
      push(std::move(entry));
    }
  }
  return open_.empty() ? refusal_ : absl::OkStatus();
}

// The first that can be, of those that cut the batch into most and into fewest parts: all others are guessed from them.
void Sketches::askFirst(const std::vector<Entry>& group) {
  for (const bool most : {false, true}) {
    std::vector<const Entry*> order;
    for (const Entry& entry : group) {
      order.push_back(&entry);
    }
    // Of alike ones that of the smallest mesh that has a batch axis: it is the quickest to ask about.
    const auto rank = [&](const Entry* e) {
      const int64_t cuts = e->parts * e->sketch.request.microBatches();
      return std::tuple(e->sketch.grid.stages() == 1, e->parts == 1, most ? -cuts : cuts, e->parts);
    };
    std::stable_sort(order.begin(), order.end(), [&](const Entry* a, const Entry* b) { return rank(a) < rank(b); });
    for (const Entry* entry : order) {
      if (!variantsOf(*entry).empty()) {
        break;
      }
    }
  }
}

// The request with ZeRO of the first level where that is open.
CompileOptions Sketches::baseOf(const StageGrid& grid, int64_t micro, int64_t parts) const {
  CompileOptions closed = request_;
  closed.mode = request_.may(Freedom::kTensorSplits) ? Mode::kLayouts : Mode::kSemi;
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

BlockAsk Sketches::askOf(const Entry& entry, double bytePrice) {
  return {entry.sketch.request, entry.sketch.grid.stages() == 1, entry.parts, bytePrice};
}

bool Sketches::isLong(const Entry& entry) {
  const absl::StatusOr<const BlockProgram*> program = programFor(entry.sketch.request.microBatches());
  return program.ok() && (*program)->isLong();
}

// The estimate of memory leaves out that parts of a saving cannot be taken: a plan that exceeds the limit by a little
// may fit, at a price.
double Sketches::expected(const StageCut& cut) const {
  const double excess = cut.fits ? 0 : static_cast<double>(cut.peakBytes) / static_cast<double>(limit_) - 1;
  return static_cast<double>(cut.time) * (1 + kExcess * std::max(excess, 0.0));
}

void Sketches::push(Entry entry) {
  entry.expected = expected(entry.sketch.cut);
  entry.order = made_++;
  open_.push(std::move(entry));
}

// Nothing is known of any relative of it: false.
bool Sketches::guess(Entry& entry) {
  bool made = false;
  for (BlockTotals& totals : costs_.guess(askOf(entry, 0))) {
    const SegmentCosts all = atLevel({{std::move(totals.all)}, {}, 0}, 0, levelOf(entry), entry.parts);
    StageCut cut =
        fluidCut(all.segments[0], totals.longest, entry.sketch.grid, entry.sketch.request.microBatches(), limit_);
    if (!made || expected(cut) < expected(entry.sketch.cut)) {
      entry.sketch.cut = std::move(cut);
    }
    made = true;
  }
  return made;
}

std::optional<Sketch> Sketches::next() {
  while (!open_.empty()) {
    Entry entry = open_.top();
    open_.pop();
    switch (entry.known) {
      case Known::kGuessed:
        refine(std::move(entry));
        continue;
      case Known::kAlike:
        makeLevels(std::move(entry));
        continue;
      case Known::kLevel:
        make(std::move(entry));
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

// The level of ZeRO of an entry; where that is open, as if all were shared.
int Sketches::levelOf(const Entry& entry) const {
  const CompileOptions& closed = entry.sketch.request;
  return entry.known < Known::kLevel && leavesLevelOpen(closed) ? kAllShared : closed.zeroLevel();
}

// Guesses again, as more is known by now; where that changes nothing, asks, unless something alike was asked about.
void Sketches::refine(Entry entry) {
  if (costs_.alike(askOf(entry, 0)).empty()) {
    const double before = entry.expected;
    guess(entry);
    if (expected(entry.sketch.cut) > before) {
      push(std::move(entry));
      return;
    }
    if (variantsOf(entry).empty()) {
      return;
    }
  }
  std::vector<Variant> variants;
  for (SegmentCosts& costs : costs_.alike(askOf(entry, 0))) {
    variants.push_back({atLevel(std::move(costs), entry.sketch.request.zeroLevel(), levelOf(entry), entry.parts), 0});
  }
  if (std::optional<Choice> best = bestOf(variants, shapesOf(entry))) {
    entry.sketch.cut = std::move(best->cut);
    entry.known = Known::kAlike;
    push(std::move(entry));
  }
}

// A sketch for each level of ZeRO, from what sketches alike need.
void Sketches::makeLevels(Entry entry) {
  const bool isOpen = leavesLevelOpen(entry.sketch.request);
  const std::vector<SegmentCosts> alike = costs_.alike(askOf(entry, 0));
  const std::optional<Choice> plain = bestOf({{alike.front(), 0}}, shapesOf(entry));
  if (!plain) {
    return;
  }
  CompileOptions open = entry.sketch.request;
  open.zero = kFindZero;
  const int own = entry.sketch.request.zeroLevel();
  for (const CompileOptions& level : isOpen ? withZero(open, true) : std::vector{entry.sketch.request}) {
    const bool isUseless = level.zeroLevel() == 0  ? plain->cut.limited || isLong(entry)
                           : level.zeroLevel() > 1 ? isLong(entry) && !plain->cut.limited
                                                   : false;
    std::vector<Variant> here;
    for (const SegmentCosts& each : isUseless&& isOpen ? std::vector<SegmentCosts>() : alike) {
      const absl::StatusOr<SegmentCosts> costs =
          isOpen ? withZeroTimes(atLevel(each, own, level.zeroLevel(), entry.parts), level, entry.parts) : each;
      if (costs.ok()) {
        here.push_back({*costs, 0});
      }
    }
    if (std::optional<Choice> best = bestOf(here, shapesOf(entry))) {
      push({{level, entry.sketch.grid, std::move(best->cut), {}}, Known::kLevel, entry.parts, 0, 0});
    }
  }
}

// Of long programs a sketch for each kind of schedule, of others one for all.
void Sketches::make(Entry entry) {
  entry.known = Known::kMade;
  const std::vector<Variant> variants = variantsOf(entry);
  const std::vector<PipelineShape> shapes = shapesOf(entry);
  if (!isLong(entry)) {
    if (std::optional<Choice> best = bestOf(variants, shapes)) {
      entry.sketch.cut = std::move(best->cut);
      push(std::move(entry));
    }
    return;
  }
  for (const PipelineShape& shape : shapes) {
    std::optional<Choice> best = bestOf(variants, {shape});
    if (!best) {
      continue;
    }
    Entry made = entry;
    made.sketch.cut = std::move(best->cut);
    made.sketch.bytePrice = best->bytePrice;
    if (made.sketch.request.schedule == "auto" && !shape.schedule.empty()) {
      made.sketch.request.schedule = shape.schedule;
    }
    push(std::move(made));
  }
}

// Asks what the blocks need, without a price of memory and, where it is short, with some. Empty: refused.
std::vector<Sketches::Variant> Sketches::variantsOf(const Entry& entry) {
  const absl::StatusOr<SegmentCosts>& plain = costs_.of(askOf(entry, 0));
  if (!plain.ok()) {
    refuse(plain.status());
    return {};
  }
  std::vector<Variant> variants = {{*plain, 0}};
  const SegmentCosts here = atLevel(*plain, entry.sketch.request.zeroLevel(), levelOf(entry), entry.parts);
  const std::optional<Choice> best = bestOf({{here, 0}}, shapesOf(entry));
  if (!best || !best->cut.limited || !request_.may(Freedom::kMemoryPrices)) {
    return variants;
  }
  for (const double factor : kMemoryPrices) {
    const double price = factor * memoryPrice(best->cut.time, limit_);
    const absl::StatusOr<SegmentCosts>& priced = costs_.of(askOf(entry, price));
    if (priced.ok()) {
      variants.push_back({*priced, price});
    }
    // Of sketches that may turn out useless, and of long programs, one price says enough.
    if (entry.known < Known::kLevel || isLong(entry)) {
      break;
    }
  }
  return variants;
}

// Nothing: no schedule serves the numbers.
std::optional<Sketches::Choice> Sketches::bestOf(const std::vector<Variant>& variants,
                                                 const std::vector<PipelineShape>& shapes) const {
  std::optional<Choice> best;
  for (const Variant& variant : variants) {
    for (const PipelineShape& shape : shapes) {
      StageCut cut = cutWith(variant.costs, shape);
      const auto rank = [&](const StageCut& c) { return std::tuple(expected(c), c.peakBytes); };
      if (!best || rank(cut) < rank(best->cut)) {
        best = Choice{std::move(cut), variant.bytePrice};
      }
    }
  }
  return best;
}

std::vector<PipelineShape> Sketches::shapesOf(const Entry& entry) {
  const StageGrid& grid = entry.sketch.grid;
  const int64_t micro = entry.sketch.request.microBatches();
  const int64_t telling = tellingMicroBatches(grid.submeshes, micro);
  const auto [known, added] = shapes_.try_emplace({grid.submeshes, grid.virtualStages, telling});
  if (added) {
    known->second = pipelineShapes(request_, grid.submeshes, grid.virtualStages, telling, trains_);
  }
  std::vector<PipelineShape> shapes = known->second;
  for (PipelineShape& shape : shapes) {
    shape.microBatches = micro;
  }
  return shapes;
}

void Sketches::refuse(const absl::Status& status) {
  refusal_ = refused_++ == 0 ? status : refusal_;
}

StageCut Sketches::cutWith(const SegmentCosts& costs, const PipelineShape& shape) const {
  const bool isCut = areStages_ || shape.stages() == 1;  // into as many stages as there are costs
  if (!isCut && !request_.may(Freedom::kUnevenStages)) {
    return withStages(costs, shape, limit_, evenStages(static_cast<int64_t>(costs.segments.size()), shape.stages()));
  }
  return isCut ? withStages(costs, shape, limit_, upTo(shape.stages())) : cutStages(costs, shape, limit_);
}

}  // namespace weft
