#include "planner/search/block_costs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/layout/reshard.h"
#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Where only fewer rows were asked about, more of them take at least so much of what they would in proportion.
constexpr double kOfProportion = 0.9;

// What a mesh with an axis p times as large takes at the least, of what it would take if all its work were shared;
// between nodes, whose links are slower.
constexpr double kLarger = 1.01;
constexpr double kLargerThanNode = 1.05;

int64_t times(int64_t number, double factor) {
  return static_cast<int64_t>(std::llround(static_cast<double>(number) * factor));
}

// Time and bytes of a micro-batch, and where `all` those of the step.
SegmentCost scaled(SegmentCost cost, double factor, bool all) {
  for (int64_t* number : {&cost.time, &cost.forwardTime, &cost.activations.toInputs, &cost.activations.toWeights,
                          &cost.activations.between, &cost.passingBytes}) {
    *number = times(*number, factor);
  }
  for (Saving& saving : cost.savings) {
    saving = {times(saving.bytes, factor), times(saving.time, factor)};
  }
  if (all) {
    for (int64_t* number :
         {&cost.onceTime, &cost.parameterBytes, &cost.gradientBytes, &cost.stateBytes, &cost.heldBytes}) {
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

std::string textOf(const std::vector<std::pair<std::string, int64_t>>& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) {
    absl::StrAppend(&text, name, "=", size, ",");
  }
  return text;
}

}  // namespace

SegmentCosts atLevel(SegmentCosts costs, int from, int to, int64_t parts) {
  const auto number = static_cast<double>(parts);
  const auto factor = [&](int first) { return (from >= first ? number : 1) / (to >= first ? number : 1); };
  for (std::vector<SegmentCost>* all : {&costs.segments, &costs.cutSegments}) {
    for (SegmentCost& cost : *all) {
      cost.stateBytes = times(cost.stateBytes, factor(1));
      cost.gradientBytes = times(cost.gradientBytes, factor(2));
      cost.parameterBytes = times(cost.parameterBytes, factor(3));
    }
  }
  return costs;
}

absl::StatusOr<SegmentCosts> withZeroTimes(SegmentCosts costs, const CompileOptions& closed, int64_t parts) {
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(closed));
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::parse(closed.mesh));
  const GroupSpan span = spanOf(machine, mesh.ranks(), defaultAxes(mesh, closed.fill));
  const auto of = [&](CollectiveKind kind, int64_t shared) {
    return collectiveCost(machine, kind, span, shared * (parts - 1));
  };
  for (std::vector<SegmentCost>* all : {&costs.segments, &costs.cutSegments}) {
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
    }
    return &it->second;
  };
  return programFor_.emplace(microBatches, make()).first->second;
}

const absl::StatusOr<SegmentCosts>& BlockCosts::of(const BlockAsk& ask) {
  const CompileOptions& closed = ask.closed;
  const AskKey key(closed.mesh, closed.microBatches(), closed.zeroLevel(), closed.regather, ask.uncut, ask.bytePrice);
  auto it = costs_.find(key);
  if (it == costs_.end()) {
    const absl::StatusOr<const BlockProgram*> program = programFor(closed.microBatches());
    it = costs_
             .emplace(key, program.ok() ? (*program)->costs(closed, ask.uncut, ask.bytePrice, memo_)
                                        : absl::StatusOr<SegmentCosts>(program.status()))
             .first;
    if (it->second.ok()) {
      learn(ask, **program, *it->second);
    }
  }
  return it->second;
}

// Blocks of long programs are asked about as stages in any case.
BlockCosts::Relative BlockCosts::relativeOf(const BlockAsk& ask, const BlockProgram& program) const {
  return {&program, besideBatch(ask.closed), ask.uncut && !program.isLong(), ask.closed.microBatches() == 1};
}

void BlockCosts::learn(const BlockAsk& ask, const BlockProgram& program, const SegmentCosts& costs) {
  const bool priced = ask.bytePrice > 0;
  const Relative relative = relativeOf(ask, program);
  const int64_t cuts = ask.parts * ask.closed.microBatches();
  const SegmentCosts unshared = atLevel(costs, ask.closed.zeroLevel(), 0, ask.parts);
  // Of long programs those without stages are the sum of their blocks, which are not known apart.
  if (!(ask.uncut && program.isLong())) {
    alike_[{relative, cuts}].try_emplace(priced, unshared);
  }
  BlockTotals totals = {together(unshared).segments[0], 0};
  for (const SegmentCost& each : unshared.segments) {
    totals.longest = std::max(totals.longest, ask.uncut ? 0 : each.time);
  }
  totals_[{relative, priced}].try_emplace(cuts, std::move(totals));
}

std::vector<SegmentCosts> BlockCosts::alike(const BlockAsk& ask) {
  const absl::StatusOr<const BlockProgram*> program = programFor(ask.closed.microBatches());
  std::vector<SegmentCosts> found;
  if (!program.ok()) {
    return found;
  }
  const auto known = alike_.find({relativeOf(ask, **program), ask.parts * ask.closed.microBatches()});
  if (known != alike_.end()) {
    for (const auto& [priced, costs] : known->second) {
      const SegmentCosts here = atLevel(costs, 0, ask.closed.zeroLevel(), ask.parts);
      found.push_back(ask.uncut ? together(here) : here);
    }
  }
  return found;
}

std::vector<BlockTotals> BlockCosts::guess(const BlockAsk& ask) {
  const absl::StatusOr<const BlockProgram*> program = programFor(ask.closed.microBatches());
  std::vector<BlockTotals> found;
  if (!program.ok()) {
    return found;
  }
  for (const Priced priced : {false, true}) {
    if (std::optional<BlockTotals> made =
            guessed(relativeOf(ask, **program), ask.parts * ask.closed.microBatches(), priced)) {
      found.push_back(*std::move(made));
    }
  }
  return found;
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
    made = scaled(nearest, proportion > 1 ? std::max(1.0, kOfProportion * proportion) : proportion, false);
  }
  int64_t ranks = 1;
  for (const auto& [name, size] : relative.beside) {
    ranks *= size;
  }
  for (size_t axis = 0; axis < relative.beside.size(); ++axis) {
    if (relative.beside[axis].second > 1) {
      Relative smaller = relative;
      const int64_t prime = smallestPrime(relative.beside[axis].second);
      smaller.beside[axis].second /= prime;
      const std::optional<BlockTotals> other = guessed(smaller, cuts, priced);
      if (other && (!made || other->all.time / prime > made->all.time)) {
        made = scaled(*other, 1 / static_cast<double>(prime), true);
        const double more = ranks > machine_.devicesPerNode && machine_.devicesPerNode > 0 ? kLargerThanNode : kLarger;
        made->all.time = times(made->all.time, more);
        made->longest = times(made->longest, more);
      }
    }
  }
  return made;
}

// The axes of the mesh that do not split the batch. Of a mesh for each stage: its text.
BlockCosts::Sizes BlockCosts::besideBatch(const CompileOptions& closed) const {
  const absl::StatusOr<Mesh> mesh = Mesh::parse(closed.mesh);
  if (closed.mesh.empty() || !mesh.ok()) {
    return {{closed.stageMeshes, 1}};
  }
  const std::vector<Axis> batch = defaultAxes(*mesh, closed.fill);
  Sizes sizes;
  for (const NamedAxis& named : mesh->axes()) {
    if (std::find(batch.begin(), batch.end(), named.axis) == batch.end()) {
      sizes.emplace_back(named.name, named.axis.size);
    }
  }
  return sizes;
}

std::string BlockCosts::groupOf(const BlockAsk& ask) {
  const absl::StatusOr<const BlockProgram*> program = programFor(ask.closed.microBatches());
  const bool uncut = ask.uncut && !(program.ok() && (*program)->isLong());
  return absl::StrCat(textOf(besideBatch(ask.closed)), uncut ? " uncut" : "",
                      ask.closed.microBatches() == 1 ? " alone" : "");
}

std::vector<std::string> BlockCosts::parentsOf(const BlockAsk& ask) {
  const Sizes beside = besideBatch(ask.closed);
  const std::string rest = groupOf(ask).substr(textOf(beside).size());
  std::vector<std::string> parents;
  for (size_t axis = 0; axis < beside.size(); ++axis) {
    if (beside[axis].second > 1) {
      Sizes smaller = beside;
      smaller[axis].second /= smallestPrime(beside[axis].second);
      parents.push_back(textOf(smaller) + rest);
    }
  }
  return parents;
}

}  // namespace weft
