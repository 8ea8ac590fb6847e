#include "planner/cost/family_times.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

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
                                            const WorkOf& workOf) {
  FamilyTimes made(machine, moves);
  WEFT_ASSIGN_OR_RETURN(std::vector<ProductFamily> families,
                        productFamilies(view, [&](int op) { return workOf(op) != nullptr; }));
  std::map<Kind, int> known;
  for (ProductFamily& family : families) {
    Kind kind;
    bool runsPerMicroBatch = true;
    for (size_t i = 0; i < family.operators.size(); ++i) {
      kind.members.push_back({workOf(family.operators[i]), family.roles[i]});
      runsPerMicroBatch = runsPerMicroBatch && kind.members.back().work->runs == WorkRuns::kPerMicroBatch;
    }
    kind.weight = runsPerMicroBatch ? weightOf(view, family) : Weight();
    made.weightBytes_ += kind.weight.bytes;
    made.gradientBytes_ += kind.weight.gradientBytes;
    const auto [entry, isNew] = known.try_emplace(kind, static_cast<int>(made.kinds_.size()));
    if (isNew) {
      made.kinds_.push_back(std::move(kind));
    }
    made.kindOf_.push_back(entry->second);
    made.operators_.push_back(std::move(family.operators));
  }
  return made;
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

// What one kind of family takes at the least.
class FamilyTimes::OnGrid::Question {
 public:
  // `ofOthers`: what the members behind the first take at the least, however others are split.
  Question(const FamilyTimes& times, const Kind& kind, const WorkGrid& grid, Nodes nodes, double ofOthers)
      : times_(times),
        moves_(times.moves_),
        kind_(kind),
        grid_(grid),
        ofOthers_(ofOthers),
        perNode_(moves_.perNode(grid.ranks)),
        areBoxes_(nodes == Nodes::kInOrder && isPowerOfTwo(grid.ranks) && isPowerOfTwo(perNode_)),
        hasBatch_(kind.members[0].work->work.product->batch > 1) {
    for (const int64_t unused : divisorsOf(grid.ranks)) {
      for (const Parts& split : splitsOf(grid.ranks / unused, hasBatch_)) {
        candidates_.push_back({unused, {split, {1, 1, 1, 1}, kernelTime(0, split)}});
      }
    }
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& candidate) { return candidate.first.kernels; });
  }

  Least least(double bytePrice) {
    bytePrice_ = bytePrice;
    least_ = {kNever, kNever};
    for (Candidate& candidate : candidates_) {
      if (candidate.first.kernels + ofOthers_ >= least_.withUpdates) {
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
    double kernels = 0;
  };
  // A split of the forward product.
  struct Candidate {
    int64_t unused = 1;
    Split first;
    // Of each member behind the first; empty until they are asked about.
    std::vector<std::vector<Split>> gradients = {};
  };

  // Of all ranks and calls of a step.
  double kernelTime(size_t member, const Parts& split) const {
    const SplitWork& work = *kind_.members[member].work;
    return static_cast<double>(weft::kernelTime(times_.machine_, work.share(grid_, split))) *
           static_cast<double>(work.calls(grid_) * grid_.ranks);
  }

  // Axes that split no loop of the first may split loops of the others.
  void addGradients(Candidate& candidate) const {
    const std::vector<Parts> extras = splitsOf(candidate.unused, hasBatch_);
    for (size_t member = 1; member < kind_.members.size(); ++member) {
      std::vector<Split>& mine = candidate.gradients.emplace_back();
      for (const Parts& extra : extras) {
        Split& made = mine.emplace_back();
        for (int role = 0; role < kRoles; ++role) {
          const int ofFirst = kind_.members[member].roles[role];
          made.extra[role] = extra[ofFirst];
          made.parts[role] = candidate.first.parts[ofFirst] * extra[ofFirst];
        }
        made.kernels = kernelTime(member, made.parts);
      }
    }
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
    double time = candidate.first.kernels + sumTime(0, candidate.first, box);
    for (size_t member = 1; member < kind_.members.size(); ++member) {
      if (weight.bytes == 0 || member != weight.gradient) {
        double best = kNever;
        for (const Split& split : candidate.gradients[member - 1]) {
          best = std::min(best, split.kernels + sumTime(member, split, box));
        }
        time += best;
      }
    }
    if (weight.bytes == 0) {
      least_.time = least_.withUpdates = std::min(least_.time, time);
      return;
    }
    const Spread readers = {grid_.ranks / weightTensor().parts(candidate.first.parts), copiesIn(box)};
    const std::vector<int64_t> shards = divisorsOf(readers.ranks);
    for (const Split& split : candidate.gradients[weight.gradient - 1]) {
      const Spread partial = partialOver(weight.gradient, split, box);
      const double added = time + split.kernels + sumTime(weight.gradient, split, box) + gradientTime(split, partial);
      for (const int64_t each : shards) {
        const double mine = added + parameterTime(readers, each);
        least_.time = std::min(least_.time, mine);
        least_.withUpdates = std::min(least_.withUpdates, mine + updateTime(partial, readers.ranks / each));
      }
    }
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
  double gradientTime(const Split& split, const Spread& partial) const {
    if (grid_.microBatches == 1) {
      return 0;
    }
    const SplitWork& work = *kind_.members[kind_.weight.gradient].work;
    const int64_t copies = grid_.ranks / work.tensors.back().parts(split.parts);
    double least = kNever;
    for (const int64_t shards : divisorsOf(partial.ranks)) {
      const double sums = static_cast<double>(work.sureSum) * static_cast<double>(partial.ranks / shards);
      const double room = kind_.weight.gradientBytes * static_cast<double>(copies / shards);
      least = std::min(least, bytePrice_ * room + static_cast<double>(grid_.microBatches - 1) *
                                                      moves_.time(sums, within(partial, shards)));
    }
    return least;
  }

  const FamilyTimes& times_;
  const LeastMoves& moves_;
  const Kind& kind_;
  WorkGrid grid_;
  double ofOthers_;
  int64_t perNode_;
  bool areBoxes_;
  bool hasBatch_;
  std::vector<Candidate> candidates_;  // those whose first product takes least first
  double bytePrice_ = 0;
  Least least_;
};

FamilyTimes::OnGrid::OnGrid(const FamilyTimes& times, const WorkGrid& grid, const std::vector<double>& ofOperator,
                            Nodes nodes)
    : times_(times) {
  for (size_t family = 0; family < times.operators_.size(); ++family) {
    if (times.kindOf_[family] == std::ssize(questions_)) {
      double ofOthers = 0;
      for (size_t i = 1; i < times.operators_[family].size(); ++i) {
        ofOthers += ofOperator[times.operators_[family][i]];
      }
      questions_.emplace_back(times, times.kinds_[times.kindOf_[family]], grid, nodes, ofOthers);
    }
  }
}

FamilyTimes::OnGrid::~OnGrid() = default;

std::vector<FamilyTimes::Least> FamilyTimes::OnGrid::least(double bytePrice) {
  std::vector<Least> ofKind;
  for (Question& question : questions_) {
    ofKind.push_back(question.least(bytePrice));
  }
  std::vector<Least> all;
  for (const int kind : times_.kindOf_) {
    all.push_back(ofKind[kind]);
  }
  return all;
}

}  // namespace weft
