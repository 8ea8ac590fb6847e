#include "planner/search/block_costs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/layout/reshard.h"
#include "planner/derive/defaults.h"
#include "planner/search/plan_space.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Where only fewer rows were asked about, more of them take at least so much of what they would as smaller meshes do.
constexpr double kOfProportion = 0.9;

// What a mesh with an axis p times as large takes at the least, of what it would take if all its work were shared;
// between nodes, whose links are slower.
constexpr double kLarger = 1.01;
constexpr double kLargerThanNode = 1.05;

// What is reduced once in a step may take of the time that it takes between nodes where the batch's axes lie inside of
// them.
constexpr double kBatchInside = 0.5;

int64_t times(int64_t number, double factor) {
  return static_cast<int64_t>(std::llround(static_cast<double>(number) * factor));
}

// Time and bytes of a micro-batch, and where `all` those of the step.
SegmentCost scaled(SegmentCost cost, double factor, bool all) {
  for (int64_t* number : {&cost.time, &cost.activations.toInputs, &cost.activations.toWeights,
                          &cost.activations.between, &cost.passingBytes}) {
    *number = times(*number, factor);
  }
  for (Saving& saving : cost.savings) {
    saving = {times(saving.bytes, factor), times(saving.time, factor)};
  }
  if (all) {
    for (int64_t* number : {&cost.onceTime, &cost.offloadTime, &cost.parameterBytes, &cost.gradientBytes,
                            &cost.stateBytes, &cost.bufferBytes, &cost.heldBytes}) {
      *number = times(*number, factor);
    }
  }
  return cost;
}

BlockTotals scaled(const BlockTotals& totals, double factor, bool all) {
  return {scaled(totals.all, factor, all), times(totals.longest, factor)};
}

// Needs that lie `share` of the way from `a` to `b`.
BlockTotals between(const BlockTotals& a, const BlockTotals& b, double share) {
  const auto mix = [&](int64_t x, int64_t y) { return x + times(y - x, share); };
  const double factor =
      a.all.time == 0 ? 1 : static_cast<double>(mix(a.all.time, b.all.time)) / static_cast<double>(a.all.time);
  BlockTotals made = {scaled(a.all, factor, false), mix(a.longest, b.longest)};
  made.all.activations.toInputs = mix(a.all.activations.toInputs, b.all.activations.toInputs);
  made.all.onceTime = mix(a.all.onceTime, b.all.onceTime);
  made.all.parameterBytes = mix(a.all.parameterBytes, b.all.parameterBytes);
  made.all.gradientBytes = mix(a.all.gradientBytes, b.all.gradientBytes);
  made.all.stateBytes = mix(a.all.stateBytes, b.all.stateBytes);
  made.all.offloadTime = mix(a.all.offloadTime, b.all.offloadTime);
  made.all.bufferBytes = mix(a.all.bufferBytes, b.all.bufferBytes);
  made.all.heldBytes = mix(a.all.heldBytes, b.all.heldBytes);
  return made;
}

int64_t smallestPrime(int64_t number) {
  int64_t prime = 2;
  while (number % prime != 0) {
    ++prime;
  }
  return prime;
}

// The axes of the mesh that split something else than the batch. Of a mesh for each stage: its text.
std::vector<BesideAxis> besideBatch(const CompileOptions& closed, const Machine& machine) {
  const absl::StatusOr<Mesh> mesh = Mesh::parse(closed.mesh);
  if (closed.mesh.empty() || !mesh.ok()) {
    return {{closed.stageMeshes}};
  }
  const AxisList batch = defaultAxes(*mesh, closed.fill);
  const int64_t mostStride = mesh->ranks() > machine.devicesPerNode ? std::max<int64_t>(1, machine.devicesPerNode) : 1;
  std::vector<BesideAxis> axes;
  int64_t inside = 1;  // ranks of the batch's axes
  for (auto named = mesh->axes().rbegin(); named != mesh->axes().rend(); ++named) {
    if (std::find(batch.begin(), batch.end(), named->axis) != batch.end()) {
      inside *= named->axis.size;
    } else if (named->axis.size > 1) {
      axes.push_back({named->name, named->axis.size, std::min(inside, mostStride)});
    }
  }
  std::reverse(axes.begin(), axes.end());
  return axes;
}

int64_t ranksBeside(const Relative& relative) {
  int64_t ranks = 1;
  for (const BesideAxis& axis : relative.beside) {
    ranks *= axis.size;
  }
  return ranks;
}

bool isInside(const BesideAxis& axis) {
  return axis.stride == 1;
}

// What is known of axes that lie inside of those of the batch, where they lie apart: each doubling goes over the
// network.
BlockTotals apart(BlockTotals totals, const Relative& relative) {
  for (const BesideAxis& axis : relative.beside) {
    const double factor = isInside(axis) ? 1 : std::pow(kLargerThanNode, std::log2(static_cast<double>(axis.size)));
    totals.all.time = times(totals.all.time, factor);
    totals.longest = times(totals.longest, factor);
  }
  totals.all.onceTime = times(totals.all.onceTime, kBatchInside);
  return totals;
}

}  // namespace

SegmentCosts atLevel(SegmentCosts costs, int from, int to, int64_t parts) {
  const auto number = static_cast<double>(parts);
  const auto factor = [&](int first) { return (from >= first ? number : 1) / (to >= first ? number : 1); };
  for (std::vector<SegmentCost>* all : costs.all()) {
    for (SegmentCost& cost : *all) {
      for (int64_t* state : {&cost.stateBytes, &cost.offloadTime, &cost.bufferBytes}) {
        *state = times(*state, factor(1));
      }
      cost.gradientBytes = times(cost.gradientBytes, factor(2));
      cost.parameterBytes = times(cost.parameterBytes, factor(3));
    }
  }
  return costs;
}

SegmentCosts scaled(SegmentCosts costs, double factor) {
  for (std::vector<SegmentCost>* all : costs.all()) {
    for (SegmentCost& cost : *all) {
      cost = scaled(std::move(cost), factor, true);
    }
  }
  return costs;
}

std::vector<Relative> smallerThan(const Relative& relative) {
  std::vector<Relative> smaller;
  if (!std::all_of(relative.beside.begin(), relative.beside.end(), isInside)) {
    for (BesideAxis& axis : smaller.emplace_back(relative).beside) {
      axis.stride = 1;
    }
    return smaller;
  }
  for (size_t axis = 0; axis < relative.beside.size(); ++axis) {
    if (relative.beside[axis].size > 1) {
      int64_t& size = smaller.emplace_back(relative).beside[axis].size;
      size /= smallestPrime(size);
      std::erase_if(smaller.back().beside, [](const BesideAxis& sized) { return sized.size == 1; });
    }
  }
  return smaller;
}

int64_t BlockCosts::kindOf(int64_t firstRank, int64_t ranks) {
  if (machine_.kinds.empty() && !kinds_.empty()) {
    return 0;
  }
  Machine kind = machine_.of(firstRank, ranks);
  const std::string text = kind.print();
  const auto known =
      std::find_if(kinds_.begin(), kinds_.end(), [&](const Machine& other) { return other.print() == text; });
  if (known != kinds_.end()) {
    return known - kinds_.begin();
  }
  kinds_.push_back(std::move(kind));
  return static_cast<int64_t>(kinds_.size()) - 1;
}

absl::StatusOr<SegmentCosts> BlockCosts::withZeroTimes(SegmentCosts costs, const CompileOptions& closed, int64_t parts,
                                                       int64_t kind) const {
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::parse(closed.mesh));
  const Machine& machine = kinds_[kind];
  const GroupSpan span = spanOf(machine, mesh.ranks(), defaultAxes(mesh, closed.fill));
  const auto of = [&](CollectiveKind kind, int64_t shared) {
    return collectiveCost(machine, kind, span, shared * (parts - 1));
  };
  for (std::vector<SegmentCost>* all : costs.all()) {
    for (SegmentCost& cost : *all) {
      const auto repeat = [&](CollectiveKind kind, int64_t shared, int64_t timesEach) {
        const Picoseconds one = of(kind, shared);
        cost.time += timesEach * one;
        cost.onceTime = std::max<Picoseconds>(cost.onceTime - one, 0);
      };
      if (closed.zeroLevel() >= 2) {
        repeat(CollectiveKind::kReduceScatter, cost.gradientBytes, 1);
      }
      if (closed.zeroLevel() >= 3 && closed.regather) {
        repeat(CollectiveKind::kAllGather, cost.parameterBytes, 2);
      } else if (closed.zeroLevel() >= 3) {
        cost.heldBytes += cost.parameterBytes * (parts - 1);  // gathered they lie whole until the end of the step
      }
    }
  }
  return costs;
}

absl::StatusOr<const BlockProgram*> BlockCosts::programFor(int64_t microBatches) {
  const auto known = programFor_.find(microBatches);
  if (known != programFor_.end()) {
    return known->second;
  }
  const auto make = [&]() -> absl::StatusOr<const BlockProgram*> {
    WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramGraph> graph, graphs_(microBatches));
    const ProgramGraph* key = graph.get();
    auto it = programs_.find(key);
    if (it == programs_.end()) {
      WEFT_ASSIGN_OR_RETURN(BlockProgram program, BlockProgram::create(std::move(graph), request_));
      it = programs_.emplace(key, std::move(program)).first;
      inOrder_.push_back(&it->second);
    }
    return &it->second;
  };
  return programFor_.emplace(microBatches, make()).first->second;
}

absl::StatusOr<SegmentCosts> BlockCosts::of(const BlockAsk& ask) {
  const CompileOptions& closed = ask.closed;
  const Relative relative = relativeOf(ask);
  const AskKey key(closed.mesh, closed.microBatches(), closed.zeroLevel(), closed.regather, relative.uncut,
                   ask.bytePrice, ask.kind);
  auto it = costs_.find(key);
  if (it == costs_.end()) {
    it = costs_.emplace(key, this->ask(ask, relative.uncut)).first;
    // Others are guessed from what is known: without the collectives that the higher levels have in each micro-batch.
    const bool hasTimesOfLevel0 = closed.zeroLevel() < 2 || ask.parts == 1;
    if (it->second.ok() && hasTimesOfLevel0) {
      learn(ask, relative, *it->second);
    }
  }
  return it->second.ok() && ask.uncut && !relative.uncut ? together(*it->second) : it->second;
}

// What was found before is taken where the same program was asked on the same terms: blocks know no memory limit and no
// number of stages, and of the freedoms, most of which the closed request has decided, only that to pad.
absl::StatusOr<SegmentCosts> BlockCosts::ask(const BlockAsk& ask, bool uncut) {
  const absl::StatusOr<const BlockProgram*> program = programFor(ask.closed.microBatches());
  if (!program.ok()) {
    ++asked_;
    return program.status();
  }
  SearchQuestion question = {(*program)->sharedGraph(), ask.closed, ask.bytePrice, uncut};
  question.closed.machine = machine_.kinds.empty() ? ask.closed.machine : kinds_[ask.kind].print();
  question.closed.memoryLimit = 0;
  question.closed.maxStages = 0;
  question.closed.virtualStages = 0;
  std::erase_if(question.closed.without, [](Freedom freedom) { return freedom != Freedom::kPads; });
  question.programZero = request_.zeroOf.empty() ? 0 : request_.zeroLevel();
  const absl::StatusOr<SegmentCosts>* known = known_.before.blocks.find(question);
  if (known == nullptr) {
    ++asked_;
    CompileOptions onKind = ask.closed;
    onKind.machine = question.closed.machine;
    known =
        &known_.before.blocks.keep(std::move(question), (*program)->costs(onKind, uncut, ask.bytePrice, known_.memo));
  }
  return *known;
}

// Blocks of long programs are asked about as stages in any case: one stage is their sum.
Relative BlockCosts::relativeOf(const BlockAsk& ask) {
  const absl::StatusOr<const BlockProgram*> program = programFor(ask.closed.microBatches());
  const bool isLong = program.ok() && (*program)->isLong();
  const auto number = program.ok() ? std::find(inOrder_.begin(), inOrder_.end(), *program) - inOrder_.begin() : -1;
  return {static_cast<int>(number), besideBatch(ask.closed, machine_), ask.uncut && !isLong,
          ask.closed.microBatches() == 1, ask.kind};
}

// Where the batch does not divide, ranks hold as many rows as where it is cut into fewer parts.
int64_t BlockCosts::cutsOf(const BlockAsk& ask) {
  const int64_t cuts = ask.parts * ask.closed.microBatches();
  const absl::StatusOr<const BlockProgram*> program = programFor(ask.closed.microBatches());
  const int64_t rows = program.ok() ? batchRows((*program)->graph()) : 0;
  return rows == 0 ? cuts : rows / ((rows + cuts - 1) / cuts);
}

void BlockCosts::learn(const BlockAsk& ask, const Relative& relative, const SegmentCosts& costs) {
  const bool priced = ask.bytePrice > 0;
  const SegmentCosts unshared = atLevel(costs, ask.closed.zeroLevel(), 0, ask.parts);
  alike_[{relative, cutsOf(ask)}].try_emplace(priced, unshared);
  BlockTotals totals = {together(unshared).segments[0], 0};
  for (const SegmentCost& each : unshared.segments) {
    totals.longest = std::max(totals.longest, relative.uncut ? 0 : each.time);
  }
  totals_[{relative, priced}].try_emplace(cutsOf(ask), std::move(totals));
}

bool BlockCosts::isKnown(const BlockAsk& ask, Priced priced) {
  const auto known = alike_.find({relativeOf(ask), cutsOf(ask)});
  return known != alike_.end() && known->second.count(priced) > 0;
}

std::vector<SegmentCosts> BlockCosts::alike(const BlockAsk& ask) {
  std::vector<SegmentCosts> found;
  const auto known = alike_.find({relativeOf(ask), cutsOf(ask)});
  if (known != alike_.end()) {
    for (const auto& [priced, costs] : known->second) {
      const SegmentCosts here = atLevel(costs, 0, ask.closed.zeroLevel(), ask.parts);
      found.push_back(ask.uncut ? together(here) : here);
    }
  }
  return found;
}

std::vector<BlockTotals> BlockCosts::guess(const BlockAsk& ask) {
  std::vector<BlockTotals> found;
  for (const Priced priced : {false, true}) {
    Relative relative = relativeOf(ask);
    std::optional<BlockTotals> made = guessed(relative, cutsOf(ask), priced);
    if (relative.uncut) {
      // Blocks that are stages need no less than as one stage, and more of them is known.
      relative.uncut = false;
      std::optional<BlockTotals> stages = guessed(relative, cutsOf(ask), priced);
      if (stages && (!made || stages->all.time < made->all.time)) {
        made = BlockTotals{std::move(stages->all), 0};
      }
    }
    if (made && !found.empty()) {  // splits with a price of memory take no less time than those without
      made->all.time = std::max(made->all.time, found.front().all.time);
    }
    if (made) {
      found.push_back(*std::move(made));
    }
  }
  return found;
}

// How many times as long the rows of `cuts` take as those of `parts`, which are fewer, by what is known of smaller
// meshes; in proportion to the rows at most.
double BlockCosts::growth(const Relative& relative, int64_t parts, int64_t cuts, Priced priced) const {
  double growth = static_cast<double>(parts) / static_cast<double>(cuts);
  for (const Relative& smaller : smallerThan(relative)) {
    const std::optional<BlockTotals> few = guessed(smaller, parts, priced);
    const std::optional<BlockTotals> many = guessed(smaller, cuts, priced);
    if (few && many && few->all.time > 0) {
      growth = std::min(growth, static_cast<double>(many->all.time) / static_cast<double>(few->all.time));
    }
  }
  return growth;
}

std::optional<BlockTotals> BlockCosts::guessed(const Relative& relative, int64_t cuts, Priced priced) const {
  std::optional<BlockTotals> made;
  const auto known = totals_.find({relative, priced});
  if (known != totals_.end()) {
    const ByParts& all = known->second;
    const auto fewerRows = all.lower_bound(cuts);
    if (fewerRows != all.end() && (fewerRows->first == cuts || fewerRows != all.begin())) {
      if (fewerRows->first == cuts) {
        return fewerRows->second;
      }
      const auto moreRows = std::prev(fewerRows);
      const auto rows = [](int64_t parts) { return 1 / static_cast<double>(parts); };
      return between(moreRows->second, fewerRows->second,
                     (rows(cuts) - rows(moreRows->first)) / (rows(fewerRows->first) - rows(moreRows->first)));
    }
    const auto& [parts, nearest] = fewerRows == all.end() ? *all.rbegin() : *fewerRows;
    const double proportion = static_cast<double>(parts) / static_cast<double>(cuts);
    made = scaled(nearest,
                  proportion > 1 ? std::max(1.0, kOfProportion * growth(relative, parts, cuts, priced)) : proportion,
                  false);
  }
  const int64_t perNode = kinds_[relative.kind].devicesPerNode;
  const bool onOneNode = perNode == 0 || ranksBeside(relative) <= perNode;
  for (const Relative& smaller : smallerThan(relative)) {
    const std::optional<BlockTotals> other = guessed(smaller, cuts, priced);
    const double share = static_cast<double>(ranksBeside(smaller)) / static_cast<double>(ranksBeside(relative));
    if (other && !made && ranksBeside(smaller) == ranksBeside(relative)) {
      made = apart(*other, relative);
    } else if (other && (!made || times(other->all.time, share) > made->all.time)) {
      made = scaled(*other, share, true);
      made->all.time = times(made->all.time, onOneNode ? kLarger : kLargerThanNode);
      made->longest = times(made->longest, onOneNode ? kLarger : kLargerThanNode);
    }
  }
  return made;
}

}  // namespace weft
