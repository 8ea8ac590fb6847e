#include "planner/search/sketches.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/search/choose_open.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr int kAllShared = 3;  // the level of ZeRO at which ranks share all that they hold

// The request of one sketch, with ZeRO of the first level where that is open.
CompileOptions baseOf(const CompileOptions& request, const StageGrid& grid, int64_t micro, bool shares) {
  CompileOptions closed = request;
  closed.mode = request.may(Freedom::kTensorSplits) ? Mode::kLayouts : Mode::kSemi;
  closed.mesh = grid.mesh;
  closed.devices = 1;
  closed.micro = micro;
  closed.zero = request.zeroLevel();
  const std::vector<CompileOptions> levels = withZero(closed, shares);
  const auto first = std::find_if(levels.begin(), levels.end(), [](const auto& each) { return each.zeroLevel() == 1; });
  return first == levels.end() ? levels.front() : *first;
}

bool leavesLevelOpen(const CompileOptions& request, const CompileOptions& closed) {
  return request.zeroLevel() == kFindZero && closed.zeroLevel() == 1;
}

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
  cuts_.emplace(request_, limit_, trains_, program->areStages());
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<StageGrid> grids,
      stageGrids(program->graph(), request_, program->areStages() ? program->blocks() : 1, program->blocks()));
  std::map<Relative, std::vector<Entry>> groups;
  for (const StageGrid& grid : grids) {
    const absl::StatusOr<Mesh> mesh = Mesh::parse(grid.mesh);
    const int64_t parts = !grid.mesh.empty() && mesh.ok() ? partsOf(defaultAxes(*mesh, request_.fill)) : 1;
    for (const int64_t micro : microBatchCounts(program->graph(), request_, parts)) {
      Entry entry = {{baseOf(request_, grid, micro, trains_ && parts > 1), grid, {}, {}}, Known::kGuessed, parts, 0, 0};
      groups[costs_.relativeOf(askOf(entry, 0))].push_back(std::move(entry));
    }
  }
  for (const auto& [relative, group] : groups) {
    const std::vector<Relative> smaller = smallerThan(relative);
    if (std::none_of(smaller.begin(), smaller.end(), [&](const Relative& r) { return groups.count(r) > 0; })) {
      askFirst(group);
    }
  }
  for (auto& [relative, group] : groups) {
    for (Entry& entry : group) {
      guess(entry);
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

BlockAsk Sketches::askOf(const Entry& entry, double bytePrice) {
  return {entry.sketch.request, entry.sketch.grid.stages() == 1, entry.parts, bytePrice};
}

bool Sketches::isLong(const Entry& entry) {
  const absl::StatusOr<const BlockProgram*> program = programFor(entry.sketch.request.microBatches());
  return program.ok() && (*program)->isLong();
}

void Sketches::push(Entry entry) {
  entry.expected = cuts_->expected(entry.sketch.cut);
  entry.order = made_++;
  open_.push(std::move(entry));
}

// Of what no relative is known nothing is expected: it is asked first.
void Sketches::guess(Entry& entry) {
  std::optional<StageCut> best;
  for (BlockTotals& totals : costs_.guess(askOf(entry, 0))) {
    const SegmentCosts all = atLevel({{std::move(totals.all)}, {}, 0}, 0, levelOf(entry), entry.parts);
    StageCut cut =
        cuts_->fluid(all.segments[0], totals.longest, entry.sketch.grid, entry.sketch.request.microBatches());
    best = !best || cuts_->expected(cut) < cuts_->expected(*best) ? std::move(cut) : std::move(*best);
  }
  entry.sketch.cut = best.value_or(StageCut());
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
  return entry.known < Known::kLevel && leavesLevelOpen(request_, closed) ? kAllShared : closed.zeroLevel();
}

// Guesses again, as more is known by now; where that changes nothing, asks, unless something alike was asked about.
void Sketches::refine(Entry entry) {
  if (costs_.alike(askOf(entry, 0)).empty()) {
    const double before = entry.expected;
    guess(entry);
    if (cuts_->expected(entry.sketch.cut) > before) {
      push(std::move(entry));
      return;
    }
    if (variantsOf(entry).empty()) {
      return;
    }
  }
  std::vector<PricedBlocks> variants;
  for (SegmentCosts& costs : costs_.alike(askOf(entry, 0))) {
    variants.push_back({atLevel(std::move(costs), entry.sketch.request.zeroLevel(), levelOf(entry), entry.parts), 0});
  }
  if (std::optional<ChosenCut> best = cuts_->best(variants, shapesOf(entry))) {
    entry.sketch.cut = std::move(best->cut);
    entry.known = Known::kAlike;
    push(std::move(entry));
  }
}

// A sketch for each level of ZeRO, from what sketches alike need.
void Sketches::makeLevels(Entry entry) {
  const CompileOptions& base = entry.sketch.request;
  const std::vector<PipelineShape> shapes = shapesOf(entry);
  const std::vector<SegmentCosts> alike = costs_.alike(askOf(entry, 0));
  std::vector<CompileOptions> levels = {base};
  if (leavesLevelOpen(request_, base)) {
    const std::optional<ChosenCut> plain = cuts_->best({{alike.front(), 0}}, shapes);
    const bool isShort = plain && plain->cut.limited;  // of memory
    CompileOptions open = base;
    open.zero = kFindZero;
    levels = withZero(open, true);
    std::erase_if(levels, [&](const CompileOptions& level) {
      return level.zeroLevel() == 0 ? isShort || isLong(entry) : level.zeroLevel() > 1 && isLong(entry) && !isShort;
    });
  }
  for (const CompileOptions& level : levels) {
    std::vector<PricedBlocks> here;
    for (const SegmentCosts& each : alike) {
      SegmentCosts costs = atLevel(each, base.zeroLevel(), level.zeroLevel(), entry.parts);
      absl::StatusOr<SegmentCosts> timed =
          level.zeroLevel() == base.zeroLevel() ? std::move(costs) : costs_.withZeroTimes(costs, level, entry.parts);
      if (timed.ok()) {
        here.push_back({*std::move(timed), 0});
      }
    }
    if (std::optional<ChosenCut> best = cuts_->best(here, shapes)) {
      push({{level, entry.sketch.grid, std::move(best->cut), {}}, Known::kLevel, entry.parts, 0, 0});
    }
  }
}

// Of long programs a sketch for each kind of schedule, of others one for all.
void Sketches::make(Entry entry) {
  entry.known = Known::kMade;
  const std::vector<PricedBlocks> variants = variantsOf(entry);
  const std::vector<PipelineShape> shapes = shapesOf(entry);
  if (!isLong(entry)) {
    if (std::optional<ChosenCut> best = cuts_->best(variants, shapes)) {
      entry.sketch.cut = std::move(best->cut);
      push(std::move(entry));
    }
    return;
  }
  for (const PipelineShape& shape : shapes) {
    std::optional<ChosenCut> best = cuts_->best(variants, {shape});
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
std::vector<PricedBlocks> Sketches::variantsOf(const Entry& entry) {
  const absl::StatusOr<SegmentCosts>& plain = costs_.of(askOf(entry, 0));
  if (!plain.ok()) {
    refuse(plain.status());
    return {};
  }
  std::vector<PricedBlocks> variants = {{*plain, 0}};
  const SegmentCosts here = atLevel(*plain, entry.sketch.request.zeroLevel(), levelOf(entry), entry.parts);
  const std::optional<ChosenCut> best = cuts_->best({{here, 0}}, shapesOf(entry));
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

std::vector<PipelineShape> Sketches::shapesOf(const Entry& entry) {
  return cuts_->shapesOf(entry.sketch.grid, entry.sketch.request.microBatches());
}

void Sketches::refuse(const absl::Status& status) {
  refusal_ = refused_++ == 0 ? status : refusal_;
}

}  // namespace weft
