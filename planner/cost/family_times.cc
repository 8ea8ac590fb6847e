#include "planner/cost/family_times.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/layout/divisors.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool isPowerOfTwo(int64_t number) {
  return std::has_single_bit(static_cast<uint64_t>(number));
}

}  // namespace

absl::StatusOr<FamilyTimes> FamilyTimes::of(const GraphView& view, const Machine& machine, const LeastMoves& moves,
                                            const WorkOf& workOf, const std::vector<ProductRead>& reads,
                                            const std::vector<int>& blockOf) {
  FamilyTimes made(machine, moves);
  WEFT_ASSIGN_OR_RETURN(std::vector<ProductFamily> families,
                        productFamilies(view, [&](int op) { return workOf(op) != nullptr; }));
  std::vector<Kind> ofFamily;
  for (ProductFamily& family : families) {
    Kind& kind = ofFamily.emplace_back();
    bool runsPerMicroBatch = true;
    for (size_t i = 0; i < family.operators.size(); ++i) {
      kind.members.push_back({workOf(family.operators[i]), family.roles[i]});
      runsPerMicroBatch = runsPerMicroBatch && kind.members.back().work->runs == WorkRuns::kPerMicroBatch;
    }
    kind.weight = runsPerMicroBatch ? weightOf(view, family) : Weight();
    made.weightBytes_ += kind.weight.bytes;
    made.gradientBytes_ += kind.weight.gradientBytes;
    made.operators_.push_back(std::move(family.operators));
  }
  made.addReads(reads, blockOf, ofFamily);
  std::map<Kind, int> known;
  for (Kind& kind : ofFamily) {
    const auto [entry, isNew] = known.try_emplace(kind, static_cast<int>(made.kinds_.size()));
    if (isNew) {
      made.kinds_.push_back(std::move(kind));
    }
    made.kindOf_.push_back(entry->second);
  }
  return made;
}

// Does a product take longer than to send what is read of it? Else all ranks that read it may make it.
bool FamilyTimes::isDearerToMake(const SplitWork& maker, double bytes) const {
  const Spread far = {2, machine_.devicesPerNode == 0 ? 2 : 1};
  return static_cast<double>(kernelTime(machine_, maker.share({1, 1, 1, 1}))) > moves_.time(bytes, far);
}

// What two products of a family read, as those of its gradients do, is received once.
void FamilyTimes::addReads(const std::vector<ProductRead>& reads, const std::vector<int>& blockOf,
                           std::vector<Kind>& kinds) {
  struct Known {
    const ProductRead* read;
    size_t family, member;
  };
  std::map<int, std::pair<size_t, size_t>> memberOf;  // of each operator: its family, and which of that it is
  for (size_t family = 0; family < operators_.size(); ++family) {
    for (size_t member = 0; member < operators_[family].size(); ++member) {
      memberOf[operators_[family][member]] = {family, member};
    }
  }
  std::map<int, std::map<size_t, Known>> readersOf;  // of each maker, by family
  for (const ProductRead& read : reads) {
    const auto reader = memberOf.find(read.reader);
    if (reader == memberOf.end() || !memberOf.contains(read.maker) || blockOf[read.reader] < 0 ||
        blockOf[read.maker] < 0) {
      continue;
    }
    const auto [family, member] = reader->second;
    const auto [ofMaker, maker] = memberOf[read.maker];
    const bool isRead = member == 0 || member != kinds[family].weight.gradient;
    if (isRead && isDearerToMake(*kinds[ofMaker].members[maker].work, read.bytes)) {
      readersOf[read.maker].try_emplace(family, Known{&read, family, member});
    }
  }
  crossed_.resize(operators_.size(), {0, 0});
  for (const auto& [maker, readers] : readersOf) {
    Member& made = kinds[memberOf[maker].first].members[memberOf[maker].second];
    for (const auto& [family, known] : readers) {
      const int from = blockOf[maker];
      const int to = blockOf[known.read->reader];
      const double bytes = known.read->bytes / static_cast<double>(readers.size());
      kinds[family].members[known.member].reads.push_back({known.read->operand, bytes, from == to});
      made.readBytes += bytes;
      if (from == to) {
        made.readBytesInBlock += bytes;
        continue;
      }
      auto& [begin, end] = crossed_[family];
      begin = end == 0 ? std::min(from, to) : std::min({begin, from, to});
      end = std::max({end, from, to});
    }
  }
}

// A parameter that others read may lie as these read it, and of a gradient that is a sum a product makes only a part.
FamilyTimes::Weight FamilyTimes::weightOf(const GraphView& view, const ProductFamily& family) {
  const int first = family.operators[0];
  for (unsigned operand = 0; operand < view.op(first).operands.size(); ++operand) {
    const int value = view.operandOf(first, operand);
    if (view.producerOf(value) || view.graph().arguments[value].kind != ArgumentKind::kParameter) {
      continue;
    }
    Weight weight = {static_cast<double>(view.typeOf(value).bytes()), operand};
    bool isRead = false;  // by others
    for (const GraphView::Use& use : view.usesOf(value)) {
      const bool isInPass = use.op != GraphView::kStep && view.op(use.op).phase != Phase::kUpdate;
      const bool isMember = std::ranges::find(family.operators, use.op) != family.operators.end();
      isRead = isRead || (isInPass && !isMember);
      weight.reads += isInPass ? 1 : 0;
    }
    for (size_t member = 1; member < family.operators.size(); ++member) {
      const int made = view.resultOf(family.operators[member], 0);
      const std::vector<GraphView::Use>& uses = view.usesOf(made);
      if (uses.size() == 1 && uses[0].op != GraphView::kStep &&
          view.op(uses[0].op).gradientOf == view.graph().arguments[value].name) {
        weight.gradient = member;
        weight.gradientBytes = static_cast<double>(view.typeOf(made).bytes());
      }
    }
    if (!isRead && weight.gradient > 0) {
      return weight;
    }
  }
  return {};
}

Parts FamilyTimes::Member::partsOf(const Parts& first, const Parts& extra) const {
  Parts parts = {};
  for (int role = 0; role < kRoles; ++role) {
    parts[role] = first[roles[role]] * extra[roles[role]];
  }
  return parts;
}

// Kernels of a family's members, of all ranks and calls of a step; each split is priced once.
class FamilyTimes::KernelTimes {
 public:
  // All outlive it.
  KernelTimes(const Machine& machine, const Kind& kind, const WorkGrid& grid)
      : machine_(machine), kind_(kind), grid_(grid), known_(kind.members.size()) {}

  double of(size_t member, const Parts& split) {
    const auto [known, isNew] = known_[member].try_emplace(split, 0);
    if (isNew) {
      const SplitWork& work = *kind_.members[member].work;
      known->second = static_cast<double>(kernelTime(machine_, work.share(grid_, split))) *
                      static_cast<double>(work.calls(grid_) * grid_.ranks);
    }
    return known->second;
  }

 private:
  const Machine& machine_;
  const Kind& kind_;
  WorkGrid grid_;
  std::vector<absl::flat_hash_map<Parts, double>> known_;  // of each member
};

std::vector<double> FamilyTimes::othersOfKinds(const std::vector<double>& ofOperator) const {
  std::vector<double> all;
  for (size_t family = 0; family < operators_.size(); ++family) {
    if (kindOf_[family] == std::ssize(all)) {
      double ofOthers = 0;
      for (size_t i = 1; i < operators_[family].size(); ++i) {
        ofOthers += ofOperator[operators_[family][i]];
      }
      all.push_back(ofOthers);
    }
  }
  return all;
}

template <typename T>
std::vector<T> FamilyTimes::ofFamilies(const std::vector<T>& ofKinds) const {
  std::vector<T> all;
  for (const int kind : kindOf_) {
    all.push_back(ofKinds[kind]);
  }
  return all;
}

std::vector<double> FamilyTimes::least(const WorkGrid& grid, const std::vector<double>& ofOperator) const {
  const std::vector<double> ofOthers = othersOfKinds(ofOperator);
  std::vector<double> ofKind;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    ofKind.push_back(leastOf(kinds_[kind], grid, ofOthers[kind]));
  }
  return ofFamilies(ofKind);
}

// Where nothing is read of others no member gains by ranks that it leaves unused.
double FamilyTimes::leastOf(const Kind& kind, const WorkGrid& grid, double ofOthers) const {
  KernelTimes kernels(machine_, kind, grid);
  const auto timeOf = [&](size_t member, const Parts& split) {
    const auto sum = static_cast<double>(kind.members[member].work->sureSum);
    return kernels.of(member, split) + moves_.time(sum, moves_.close(split[kSums]));
  };
  struct First {
    double time = 0;
    int64_t unused = 1;
    Parts parts = {};
  };
  const bool hasBatch = kind.hasBatch();
  std::vector<First> firsts;
  for (const int64_t unused : divisorsOf(grid.ranks)) {
    for (const Parts& split : splitsOf(grid.ranks / unused, hasBatch)) {
      firsts.push_back({timeOf(0, split), unused, split});
    }
  }
  std::ranges::stable_sort(firsts, {}, &First::time);
  double least = kNever;
  for (const First& first : firsts) {
    if (first.time + ofOthers >= least) {
      break;
    }
    const std::vector<Parts> extras = splitsOf(first.unused, hasBatch);
    double time = first.time;
    for (size_t member = 1; member < kind.members.size() && time < least; ++member) {
      double best = kNever;
      for (const Parts& extra : extras) {
        best = std::min(best, timeOf(member, kind.members[member].partsOf(first.parts, extra)));
      }
      time += best;
    }
    least = std::min(least, time);
  }
  return least;
}

// What one kind of family takes at the least.
class FamilyTimes::OnGrid::Question {
 public:
  // `ofOthers`: what the members behind the first take at the least, however others are split.
  Question(const FamilyTimes& times, const Kind& kind, const WorkGrid& grid, Nodes nodes, double ofOthers)
      : moves_(times.moves_),
        kind_(kind),
        grid_(grid),
        kernels_(times.machine_, kind, grid),
        perNode_(moves_.perNode(grid.ranks)),
        areBoxes_(nodes == Nodes::kInOrder && isPowerOfTwo(grid.ranks) && isPowerOfTwo(perNode_)),
        hasBatch_(kind.hasBatch()) {
    for (const int64_t unused : divisorsOf(grid.ranks)) {
      for (const Parts& split : splitsOf(grid.ranks / unused, hasBatch_)) {
        Candidate& made =
            candidates_.emplace_back(Candidate{unused, {split, {1, 1, 1, 1}, unused, kernels_.of(0, split)}});
        made.atLeast = made.first.kernels + ofOthers;
        for (const Member& member : kind_.members) {
          made.atLeast -= madeAgain(member.readBytes, unused);
        }
      }
    }
    std::ranges::stable_sort(candidates_, {}, &Candidate::atLeast);
  }

  Least least(double bytePrice) {
    bytePrice_ = bytePrice;
    least_ = kNone;
    // Each byte of the weight, and of a gradient that is accumulated, lies on some rank.
    const double lyingOnce = kind_.weight.bytes + (grid_.microBatches > 1 ? kind_.weight.gradientBytes : 0);
    for (Candidate& candidate : candidates_) {
      if (candidate.atLeast + bytePrice * lyingOnce >= std::max(least_.inBlocks, least_.withReads)) {
        break;
      }
      consider(candidate);
    }
    return least_;
  }

 private:
  // A split of a member with its kernels' time.
  struct Split {
    Parts parts = {};
    Parts extra = {};  // of that, over axes that the forward product leaves
    int64_t unused = 1;
    double kernels = 0;
  };
  // A split of the forward product.
  struct Candidate {
    int64_t unused = 1;
    Split first;
    double atLeast = 0;  // with what the others take
    // Of each member behind the first; empty until they are asked about.
    std::vector<std::vector<Split>> gradients = {};
  };

  // Axes that split no loop of the first may split loops of the others. Where a member reads what others made, or they
  // what it makes, some may stay unused: then its operands are needed on fewer ranks, and what it makes is on more.
  void addGradients(Candidate& candidate) {
    for (size_t member = 1; member < kind_.members.size(); ++member) {
      const bool mayLeaveRanks = !kind_.members[member].reads.empty() || kind_.members[member].readBytes > 0;
      std::vector<Split>& mine = candidate.gradients.emplace_back();
      for (const int64_t unused : mayLeaveRanks ? divisorsOf(candidate.unused) : std::vector<int64_t>{1}) {
        for (const Parts& extra : splitsOf(candidate.unused / unused, hasBatch_)) {
          mine.push_back(gradientSplit(candidate.first, member, extra, unused));
        }
      }
    }
  }

  Split gradientSplit(const Split& first, size_t member, const Parts& extra, int64_t unused) {
    Split made = {.parts = kind_.members[member].partsOf(first.parts, extra), .unused = unused};
    for (int role = 0; role < kRoles; ++role) {
      made.extra[role] = extra[kind_.members[member].roles[role]];
    }
    made.kernels = kernels_.of(member, made.parts);
    return made;
  }

  void consider(Candidate& candidate) {
    if (candidate.gradients.empty()) {
      addGradients(candidate);
    }
    if (!areBoxes_) {
      considerBox(candidate, {{perNode_, perNode_, perNode_, perNode_}, perNode_});
      return;
    }
    for (const int64_t unused : divisorsOf(std::min(candidate.unused, perNode_))) {
      for (const Parts& parts : splitsOf(perNode_ / unused, hasBatch_)) {
        if (std::ranges::equal(parts, candidate.first.parts, std::ranges::less_equal())) {
          considerBox(candidate, {parts, unused});
        }
      }
    }
  }

  void considerBox(const Candidate& candidate, const Box& box) {
    const Weight& weight = kind_.weight;
    Least time = timeOf(0, candidate.first, box);
    for (size_t member = 1; member < kind_.members.size(); ++member) {
      if (weight.bytes == 0 || member != weight.gradient) {
        Least best = kNone;
        for (const Split& split : candidate.gradients[member - 1]) {
          best = lesserOf(best, timeOf(member, split, box));
        }
        time = sumOf(time, best);
      }
    }
    if (weight.bytes == 0) {
      least_ = lesserOf(least_, time);
      return;
    }
    const Spread readers = {grid_.ranks / weightTensor().parts(candidate.first.parts), copiesIn(box)};
    const std::vector<int64_t>& shards = divisors(readers.ranks);
    for (const Split& split : candidate.gradients[weight.gradient - 1]) {
      const Spread partial = partialOver(weight.gradient, split, box);
      const double added = split.kernels + sumTime(weight.gradient, split, box) + gradientTime(split, partial);
      for (const int64_t each : shards) {
        const double mine = added + parameterTime(readers, each);
        const double updated = mine + updateTime(partial, readers.ranks / each);
        least_ = lesserOf(least_, sumOf(time, {mine, updated, updated}));
      }
    }
  }

  static constexpr Least kNone = {kNever, kNever, kNever};

  static Least lesserOf(const Least& one, const Least& other) {
    return {std::min(one.inBlocks, other.inBlocks), std::min(one.withUpdates, other.withUpdates),
            std::min(one.withReads, other.withReads)};
  }
  static Least sumOf(const Least& one, const Least& other) {
    return {one.inBlocks + other.inBlocks, one.withUpdates + other.withUpdates, one.withReads + other.withReads};
  }

  // Kernels and sums of a member, with what it reads of other products, without updates.
  Least timeOf(size_t member, const Split& split, const Box& box) const {
    const Member& of = kind_.members[member];
    const double time = split.kernels + sumTime(member, split, box);
    double inBlock = 0;
    double all = 0;
    for (const Read& read : of.reads) {
      const double mine = moves_.time(read.bytes, copiesOf(member, read.operand, split, box));
      inBlock += read.isInBlock ? mine : 0;
      all += mine;
    }
    const double made = madeAgain(of.readBytes, split.unused);
    return {time + inBlock - madeAgain(of.readBytesInBlock, split.unused), time + inBlock - made, time + all - made};
  }

  // The ranks that read each element of an operand.
  Spread copiesOf(size_t member, unsigned operand, const Split& split, const Box& box) const {
    const Member& of = kind_.members[member];
    Spread copies;
    int64_t extra = 1;
    for (int role = 0; role < kRoles; ++role) {
      if ((of.work->tensors[operand].roles >> role & 1U) == 0) {
        copies.ranks *= split.parts[role];
        copies.perNode = std::min(copies.perNode * box.parts[of.roles[role]], perNode_);
        extra *= split.extra[role];
      }
    }
    copies.perNode = std::min({copies.ranks, copies.perNode * std::min(extra, box.unused), perNode_});
    return copies;
  }

  // What it takes at the most to receive on so many ranks what each of them has made itself.
  double madeAgain(double bytes, int64_t ranks) const {
    return moves_.time(bytes, {ranks, perNode_ < grid_.ranks ? 1 : ranks});
  }

  const SplitWork::Tensor& weightTensor() const { return kind_.members[0].work->tensors[kind_.weight.operand]; }

  // Of the ranks of a node, how many have the same part of the weight.
  int64_t copiesIn(const Box& box) const {
    int64_t copies = box.unused;
    for (int role = 0; role < kRoles && copies < perNode_; ++role) {
      copies *= (weightTensor().roles >> role & 1U) == 0 ? box.parts[role] : 1;
    }
    return std::min(copies, perNode_);
  }

  // The ranks over which what a member makes is partial.
  Spread partialOver(size_t member, const Split& split, const Box& box) const {
    const int64_t inBox = box.parts[kind_.members[member].roles[kSums]] * std::min(split.extra[kSums], box.unused);
    return {split.parts[kSums], std::min({split.parts[kSums], inBox, perNode_})};
  }

  double sumTime(size_t member, const Split& split, const Box& box) const {
    return moves_.time(static_cast<double>(kind_.members[member].work->sureSum), partialOver(member, split, box));
  }

  static Spread within(const Spread& spread, int64_t ranks) { return {ranks, std::min(ranks, spread.perNode)}; }

  // Of the parameter, split over so many of its readers, with the price of its bytes.
  double parameterTime(const Spread& readers, int64_t shards) const {
    const int64_t times = grid_.microBatches > 1 ? kind_.weight.reads * grid_.microBatches : 1;
    const double bytes = kind_.weight.bytes * static_cast<double>(readers.ranks / shards);
    return bytePrice_ * bytes + static_cast<double>(times) * moves_.time(bytes, within(readers, shards));
  }

  // To pass on so often what the update makes of a gradient that was added up.
  double updateTime(const Spread& partial, int64_t copies) const {
    const bool isAdded = kind_.members[kind_.weight.gradient].work->sureSum > 0;
    return isAdded ? moves_.time(kind_.weight.bytes, within(partial, std::min(copies, partial.ranks))) : 0;
  }

  // Of the gradient, beyond adding it up once, with the price of its bytes.
  double gradientTime(const Split& split, const Spread& partial) {
    if (grid_.microBatches == 1) {
      return 0;
    }
    const SplitWork& work = *kind_.members[kind_.weight.gradient].work;
    const int64_t copies = grid_.ranks / work.tensors.back().parts(split.parts);
    double least = kNever;
    for (const int64_t shards : divisors(partial.ranks)) {
      const double sums = static_cast<double>(work.sureSum) * static_cast<double>(partial.ranks / shards);
      const double room = kind_.weight.gradientBytes * static_cast<double>(copies / shards);
      least = std::min(least, bytePrice_ * room + static_cast<double>(grid_.microBatches - 1) *
                                                      moves_.time(sums, within(partial, shards)));
    }
    return least;
  }

  // Of what divides the ranks. The same few are asked for again and again.
  const std::vector<int64_t>& divisors(int64_t number) {
    const auto [known, isNew] = divisors_.try_emplace(number);
    if (isNew) {
      known->second = divisorsOf(number);
    }
    return known->second;
  }

  const LeastMoves& moves_;
  const Kind& kind_;
  WorkGrid grid_;
  KernelTimes kernels_;
  std::map<int64_t, std::vector<int64_t>> divisors_;
  int64_t perNode_;
  bool areBoxes_;
  bool hasBatch_;
  std::vector<Candidate> candidates_;  // those whose first product takes least first
  double bytePrice_ = 0;
  Least least_;
};

FamilyTimes::OnGrid::OnGrid(const FamilyTimes& times, const WorkGrid& grid, const std::vector<double>& ofOperator,
                            const Submeshes& submeshes)
    : times_(times), borders_(submeshes.borders) {
  const std::vector<double> ofOthers = times.othersOfKinds(ofOperator);
  for (size_t kind = 0; kind < times.kinds_.size(); ++kind) {
    questions_.emplace_back(times, times.kinds_[kind], grid, submeshes.nodes, ofOthers[kind]);
  }
}

FamilyTimes::OnGrid::~OnGrid() = default;

std::vector<FamilyTimes::Least> FamilyTimes::OnGrid::least(double bytePrice) {
  std::vector<Least> ofKind;
  for (Question& question : questions_) {
    ofKind.push_back(question.least(bytePrice));
  }
  return times_.ofFamilies(ofKind);
}

double FamilyTimes::OnGrid::ofStep(const std::vector<Least>& least) const {
  double all = 0;
  std::vector<double> ofBorder;  // what is sent where two stages meet there, and not received again
  for (size_t family = 0; family < least.size(); ++family) {
    all += least[family].withReads;
    const auto [begin, end] = times_.crossed_[family];
    ofBorder.resize(std::max(ofBorder.size(), static_cast<size_t>(end)), 0);
    for (int border = begin; border < end; ++border) {
      ofBorder[border] += least[family].withReads - least[family].withUpdates;
    }
  }
  const size_t dearest = std::min(ofBorder.size(), static_cast<size_t>(borders_));
  std::ranges::nth_element(ofBorder, ofBorder.begin() + static_cast<int64_t>(dearest), std::greater());
  return std::accumulate(ofBorder.begin(), ofBorder.begin() + static_cast<int64_t>(dearest), all, std::minus());
}

}  // namespace weft
