#include "planner/search/sketches.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "planner/check_request.h"
#include "planner/search/choose_open.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// What splits without a price of memory may take of the time of those with one, where memory is short.
constexpr double kLessUnpriced = 0.98;
constexpr int64_t kLeastHeld = 3;  // a guess counts a third of the micro-batches that most schedules hold (fluidCut)

// Of plans whose blocks are asked about as `closed` (firstRequest).
std::vector<CompileOptions> levelsFrom(const CompileOptions& request, const CompileOptions& closed) {
  return closed.zeroLevel() == 1 ? atOpenLevels(request, closed) : std::vector{closed};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sketches>> Sketches::create(const GraphFor& graphs, const CompileOptions& request,
                                                           const SearchKnowledge& known) {
  WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(request));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  std::unique_ptr<Sketches> made(new Sketches(graphs, request, limits, machine, known));
  WEFT_RETURN_IF_ERROR(made->begin());
  return made;
}

absl::Status Sketches::begin() {
  WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, programFor(request_.microBatches()));
  trains_ = program->graph().trains();
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<StageGrid> grids,
      stageGrids(program->graph(), request_, program->areStages() ? program->blocks() : 1, program->blocks()));
  const int64_t mean = limits_.mean(std::max<int64_t>(1, request_.devices));
  limit_ = mean > 0 ? mean : limit_;
  cuts_.emplace(request_, CutChooser::Program{limit_, trains_, program->areStages(), machine_}, shapes_);
  if (!costs_.hasKinds()) {  // what a mesh takes would depend on where it lies
    unlike_.emplace(request_, machine_, costs_, *cuts_);
  }
  std::map<Relative, std::vector<Entry>> groups;
  for (const StageGrid& grid : grids) {
    WEFT_ASSIGN_OR_RETURN(const Kinds kinds, kindsOf(grid, program->areStages()));
    int64_t parts = batchParts(grid.mesh, request_.fill);
    for (const std::string& mesh : kinds.meshes) {
      parts = std::lcm(parts, batchParts(mesh, request_.fill));
    }
    for (const int64_t micro : microBatchCounts(program->graph(), request_, parts)) {
      Entry entry = {{firstRequest(request_, grid.mesh, micro, trains_ && parts > 1), grid, {}, {}},
                     Known::kGuessed,
                     parts,
                     kinds};
      entry.onMeshes = onMeshes(entry.sketch.request, kinds);
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
      guess(entry, {cuts_->looseOf(entry.sketch.grid, entry.sketch.request.microBatches())});
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

BlockAsk Sketches::askOf(const Entry& entry, double bytePrice, size_t kind) {
  return {entry.closedOn(kind), entry.sketch.grid.stages() == 1, entry.partsOn(kind), bytePrice,
          entry.kinds.numbers[kind]};
}

// `areStages`: blocks that are the user's stages are asked about on all of his meshes at once.
absl::StatusOr<Sketches::Kinds> Sketches::kindsOf(const StageGrid& grid, bool areStages) {
  Kinds kinds;
  const bool haveMeshes = grid.mesh.empty() && !areStages;
  if (!costs_.hasKinds() && !haveMeshes) {
    return kinds;
  }
  kinds.numbers.clear();
  WEFT_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, meshesOf(grid, request_));
  int64_t firstRank = 0;
  StageMeshes together = {{}, {}};
  for (const Mesh& mesh : meshes) {
    const int64_t number = costs_.kindOf(firstRank, mesh.ranks());
    const std::string text = haveMeshes ? mesh.print() : "";
    size_t kind = 0;
    while (kind < kinds.numbers.size() &&
           (kinds.numbers[kind] != number || (haveMeshes && kinds.meshes[kind] != text))) {
      ++kind;
    }
    kinds.ofSubmesh.push_back(static_cast<int64_t>(kind));
    if (kind == kinds.numbers.size()) {
      kinds.numbers.push_back(number);
      if (haveMeshes) {
        kinds.meshes.push_back(text);
      }
    }
    together.ofSubmesh.push_back(mesh);
    together.submeshes.push_back(static_cast<int64_t>(together.submeshes.size()));
    firstRank += mesh.ranks();
  }
  if (!costs_.hasKinds()) {
    return kinds;
  }
  const std::vector<int64_t> limits = limits_.ofSubmeshes(together);
  kinds.limits.resize(kinds.numbers.size());
  for (size_t submesh = 0; submesh < limits.size(); ++submesh) {
    kinds.limits[kinds.ofSubmesh[submesh]] = limits[submesh];
  }
  return kinds;
}

std::vector<Sketches::OnMesh> Sketches::onMeshes(const CompileOptions& closed, const Kinds& kinds) const {
  std::vector<OnMesh> made;
  for (const std::string& mesh : kinds.meshes) {
    OnMesh& here = made.emplace_back(closed, batchParts(mesh, request_.fill));
    here.closed.mesh = mesh;
    here.closed.stageMeshes.clear();
  }
  return made;
}

SubmeshCosts Sketches::onKinds(const Entry& entry, std::vector<SegmentCosts> costs) const {
  SubmeshCosts made;
  made.kinds = std::move(costs);
  made.kindOf = entry.kinds.ofSubmesh;
  made.limits = entry.kinds.limits;
  return made;
}

absl::StatusOr<SubmeshCosts> Sketches::costsOf(const Entry& entry, double bytePrice) {
  std::vector<SegmentCosts> costs;
  for (size_t kind = 0; kind < entry.kinds.numbers.size(); ++kind) {
    WEFT_ASSIGN_OR_RETURN(costs.emplace_back(), costs_.of(askOf(entry, bytePrice, kind)));
  }
  return onKinds(entry, std::move(costs));
}

// Each kind is known with and without a price of memory, or with one of both: the last stands for what is not known.
std::vector<SubmeshCosts> Sketches::alike(const Entry& entry) {
  std::vector<std::vector<SegmentCosts>> known;
  size_t most = 0;
  for (size_t kind = 0; kind < entry.kinds.numbers.size(); ++kind) {
    known.push_back(costs_.alike(askOf(entry, 0, kind)));
    if (known.back().empty()) {
      return {};
    }
    most = std::max(most, known.back().size());
  }
  std::vector<SubmeshCosts> found;
  for (size_t i = 0; i < most; ++i) {
    std::vector<SegmentCosts> costs;
    for (const std::vector<SegmentCosts>& kind : known) {
      costs.push_back(kind[std::min(i, kind.size() - 1)]);
    }
    found.push_back(onKinds(entry, std::move(costs)));
  }
  return found;
}

bool Sketches::isKnown(const Entry& entry, BlockCosts::Priced priced) {
  for (size_t kind = 0; kind < entry.kinds.numbers.size(); ++kind) {
    if (!costs_.isKnown(askOf(entry, 0, kind), priced)) {
      return false;
    }
  }
  return true;
}

bool Sketches::isLong(const Sketch& sketch) {
  const absl::StatusOr<const BlockProgram*> program = programFor(sketch.request.microBatches());
  return program.ok() && (*program)->isLong();
}

void Sketches::push(Entry entry) {
  entry.expected = entry.mayGain * (entry.isPricedAlone ? kLessUnpriced : 1) * cuts_->expected(entry.sketch.cut);
  entry.order = made_++;
  open_.push(std::move(entry));
}

// Of what no relative is known nothing is expected: it is asked first.
void Sketches::guess(Entry& entry, const std::vector<LoosePipeline>& pipelines) {
  std::vector<std::vector<BlockTotals>> known;
  size_t most = 0;
  for (size_t kind = 0; kind < entry.kinds.numbers.size(); ++kind) {
    known.push_back(costs_.guess(askOf(entry, 0, kind)));
    most = known.back().empty() ? 0 : std::max(most, known.back().size());
    if (known.back().empty()) {
      break;
    }
  }
  std::optional<StageCut> best;
  const double mayGainOfLongest = unlike_ ? unlike_->mayGainOfLongest(entry.sketch.grid) : 1;
  for (size_t i = 0; i < most; ++i) {
    std::vector<SegmentCosts> all;
    Picoseconds longest = kLongestTime;  // on the fastest of the kinds
    for (const std::vector<BlockTotals>& kind : known) {
      BlockTotals totals = kind[std::min(i, kind.size() - 1)];
      if (entry.partsOn(all.size()) == 1) {
        totals.all.onceTime = 0;  // relatives reduce gradients then, it has none to reduce
      }
      all.push_back({{totals.all}, {}, 0});
      longest = std::min(longest, totals.longest);
    }
    longest = static_cast<Picoseconds>(mayGainOfLongest * static_cast<double>(longest));
    for (const CompileOptions& level : levelsFrom(request_, entry.sketch.request)) {
      const absl::StatusOr<SubmeshCosts> costs = costsAt(entry, level, onKinds(entry, all), 0);
      if (costs.ok()) {
        StageCut cut = cuts_->fluid(meanOf(*costs), longest, pipelines);
        best = !best || cuts_->expected(cut) < cuts_->expected(*best) ? std::move(cut) : std::move(*best);
      }
    }
  }
  entry.sketch.cut = best.value_or(StageCut());
}

std::optional<Sketch> Sketches::next(double most) {
  while (!open_.empty() && open_.top().expected < most) {
    Entry entry = open_.top();
    open_.pop();
    switch (entry.known) {
      case Known::kGuessed:
        refine(std::move(entry));
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

// Guesses again, as more is known by now, also under which schedules; where that changes nothing, asks, unless
// something alike was asked about.
void Sketches::refine(Entry entry) {
  std::vector<LoosePipeline> pipelines;
  for (const PipelineShape& shape : shapesOf(entry)) {
    pipelines.push_back(LoosePipeline::of(shape));
  }
  const double before = entry.expected;
  if (!pipelines.empty()) {
    guess(entry, pipelines);
  }
  if (cuts_->expected(entry.sketch.cut) > before) {
    push(std::move(entry));
    return;
  }
  if (alike(entry).empty() && !askAlike(entry)) {
    return;
  }
  std::vector<Entry> levels = atLevels(entry);
  const auto isLimited = [](const Entry& level) { return level.sketch.cut.limited; };
  if (!isKnown(entry, false) && !std::all_of(levels.begin(), levels.end(), isLimited)) {
    levels = costsOf(entry, 0).ok() ? atLevels(entry) : std::move(levels);
  }
  const auto limited = std::find_if(levels.begin(), levels.end(), isLimited);
  if (!isKnown(entry, true) && limited != levels.end() && request_.may(Freedom::kMemoryPrices)) {
    const double price = memoryPrice(limited->sketch.cut.time, limit_);
    levels = costsOf(entry, price).ok() ? atLevels(entry) : std::move(levels);
  }
  for (Entry& level : levels) {
    push(std::move(level));
  }
}

// Where memory may be short, splits that save it are asked about first: others are hardly better there, and asked about
// once that may matter. Answers whether anything can be.
bool Sketches::askAlike(const Entry& entry) {
  const StageCut& cut = entry.sketch.cut;
  const bool mayBeShort = cut.limited || cut.peakBytes > limit_ / kLeastHeld;
  if (limit_ > 0 && mayBeShort && request_.may(Freedom::kMemoryPrices) &&
      costsOf(entry, memoryPrice(cut.time, limit_)).ok()) {
    return true;
  }
  return !variantsOf(entry).empty();
}

// Needs whose times are those of the entry's level of ZeRO and whose bytes are those of the level `from`, at another.
// Error: of the mesh.
absl::StatusOr<SubmeshCosts> Sketches::costsAt(const Entry& entry, const CompileOptions& level, SubmeshCosts costs,
                                               int from) const {
  const std::vector<OnMesh> meshes = onMeshes(level, entry.kinds);
  for (size_t kind = 0; kind < costs.kinds.size(); ++kind) {
    SegmentCosts& mine = costs.kinds[kind];
    const int64_t parts = entry.partsOn(kind);
    mine = atLevel(std::move(mine), from, level.zeroLevel(), parts);
    if (level.zeroLevel() != entry.sketch.request.zeroLevel()) {
      const CompileOptions& here = meshes.empty() ? level : meshes[kind].closed;
      WEFT_ASSIGN_OR_RETURN(mine, costs_.withZeroTimes(std::move(mine), here, parts, entry.kinds.numbers[kind]));
    }
  }
  return costs;
}

// A sketch for each level of ZeRO, from what sketches alike need.
std::vector<Sketches::Entry> Sketches::atLevels(const Entry& entry) {
  const std::vector<PipelineShape> shapes = shapesOf(entry);
  const std::vector<SubmeshCosts> alike = this->alike(entry);
  std::vector<CompileOptions> levels = levelsFrom(request_, entry.sketch.request);
  std::optional<ChosenCut> first;  // at the level of the entry, of the first alike
  if (levels.size() > 1) {
    first = cuts_->best({{alike.front(), 0}}, shapes);
    const bool isShort = first && first->cut.limited;  // of memory
    std::erase_if(levels, [&](const CompileOptions& level) {
      return level.zeroLevel() == 0 ? isShort || isLong(entry.sketch)
                                    : level.zeroLevel() > 1 && isLong(entry.sketch) && !isShort;
    });
  }
  std::vector<Entry> made;
  for (const CompileOptions& level : levels) {
    std::vector<PricedBlocks> here;
    for (const SubmeshCosts& each : alike) {
      absl::StatusOr<SubmeshCosts> costs = costsAt(entry, level, each, entry.sketch.request.zeroLevel());
      if (costs.ok()) {
        here.push_back({*std::move(costs), 0});
      }
    }
    const bool isFirst = first && alike.size() == 1 && level.zeroLevel() == entry.sketch.request.zeroLevel();
    if (std::optional<ChosenCut> best = isFirst ? first : cuts_->best(here, shapes)) {
      made.push_back({{level, entry.sketch.grid, std::move(best->cut), {}}, Known::kLevel, entry.parts, entry.kinds});
      made.back().onMeshes = onMeshes(level, entry.kinds);
      made.back().isPricedAlone = !isKnown(entry, false);
      made.back().mayGain = unlike_ ? unlike_->mayGain(here.front().costs.kinds.front(), entry.sketch.grid, shapes) : 1;
    }
  }
  return made;
}

// Of long programs a sketch for each kind of schedule, of others one for all. Where a pipeline is short of memory, one
// with and one without a price of it: which needs less recomputation than is expected of it shows when it is predicted.
void Sketches::make(Entry entry) {
  entry.known = Known::kMade;
  entry.isPricedAlone = false;
  entry.mayGain = 1;
  const std::vector<PricedBlocks> variants = variantsOf(entry);
  const std::vector<PipelineShape> shapes = shapesOf(entry);
  if (!isLong(entry.sketch)) {
    if (std::optional<ChosenCut> best = cuts_->best(variants, shapes)) {
      entry.sketch.cut = std::move(best->cut);
      pushUnlike(entry, shapes);
      push(std::move(entry));
    }
    return;
  }
  for (const PipelineShape& shape : shapes) {
    std::vector<Entry> made;
    for (const PricedBlocks& variant : variants) {
      if (std::optional<ChosenCut> best = cuts_->best({variant}, {shape})) {
        Entry& mine = made.emplace_back(entry);
        mine.sketch.cut = std::move(best->cut);
        mine.sketch.bytePrice = best->bytePrice;
        if (mine.sketch.request.schedule == "auto" && !shape.schedule.empty()) {
          mine.sketch.request.schedule = shape.schedule;
        }
      }
    }
    std::ranges::stable_sort(made, std::less<>(), [&](const Entry& each) { return cuts_->expected(each.sketch.cut); });
    if (shape.stages() == 1 && made.size() > 1) {
      made.resize(1);
    }
    if (!made.empty()) {
      pushUnlike(made.front(), {shape});
    }
    std::ranges::for_each(made, [&](Entry& each) { push(std::move(each)); });
  }
}

void Sketches::pushUnlike(const Entry& entry, const std::vector<PipelineShape>& shapes) {
  const Sketch& alike = entry.sketch;
  if (std::optional<UnlikeMeshes::Plan> plan =
          unlike_ ? unlike_->beside(alike.request, alike.grid, shapes) : std::nullopt) {
    Entry made = entry;
    made.sketch.request.mesh.clear();
    made.sketch.request.stageMeshes = std::move(plan->meshes);
    made.sketch.grid.mesh.clear();
    made.sketch.cut = std::move(plan->cut);
    push(std::move(made));
  }
}

// Asks what the blocks need, without a price of memory and, where it is short, with some. Empty: refused.
std::vector<PricedBlocks> Sketches::variantsOf(const Entry& entry) {
  const absl::StatusOr<SubmeshCosts> plain = costsOf(entry, 0);
  if (!plain.ok()) {
    refuse(plain.status());
    return {};
  }
  std::vector<PricedBlocks> variants = {{*plain, 0}};
  const int level = entry.sketch.request.zeroLevel();
  int most = level;
  if (entry.known == Known::kGuessed) {
    for (const CompileOptions& each : levelsFrom(request_, entry.sketch.request)) {
      most = std::max(most, each.zeroLevel());
    }
  }
  SubmeshCosts here = *plain;
  for (size_t kind = 0; kind < here.kinds.size(); ++kind) {
    here.kinds[kind] = atLevel(std::move(here.kinds[kind]), level, most, entry.partsOn(kind));
  }
  const std::optional<ChosenCut> best = cuts_->best({{here, 0}}, shapesOf(entry));
  if (!best || !best->cut.limited || !request_.may(Freedom::kMemoryPrices)) {
    return variants;
  }
  for (const double factor : kMemoryPrices) {
    const double price = factor * memoryPrice(best->cut.time, limit_);
    const absl::StatusOr<SubmeshCosts> priced = costsOf(entry, price);
    if (priced.ok()) {
      variants.push_back({*priced, price});
    }
    // Of sketches that may turn out useless, and of long programs, one price says enough.
    if (entry.known < Known::kLevel || isLong(entry.sketch)) {
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
