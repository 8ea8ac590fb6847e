// What the blocks of a program need on every mesh that the search considers: asked about once each, and guessed from
// what was asked about relatives.
//
// Per micro-batch a rank needs the same wherever it holds as many rows of the batch on a mesh with the same axes beside
// those of the batch: such asks are alike. The rest is guessed so that it is hardly too much:
//   other rows         between those asked about with more and with fewer, in proportion to the rows (the splits that
//                      are best there take no less anywhere between: least times are concave in the rows); beyond the
//                      fewest rows as if time and bytes were in proportion; beyond the most rows nearly as they grow
//                      on smaller meshes, in proportion at most, as kernels of more rows are more efficient
//   larger meshes      as if a mesh with one axis p times as large took and held a p-th, and a little more time
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/request.h"
#include "planner/search/block_program.h"
#include "planner/search/search_memory.h"

namespace weft {

// A request that leaves nothing open but schedule and recomputation.
struct BlockAsk {
  const CompileOptions& closed;
  bool uncut = false;    // as one stage
  int64_t parts = 1;     // into which its mesh splits the batch
  double bytePrice = 0;  // of memory, where splits are decided
  int64_t kind = 0;      // of its ranks (BlockCosts::kindOf)
};

// All blocks together, and the longest of them.
struct BlockTotals {
  SegmentCost all;
  Picoseconds longest = 0;
};

// What ranks hold of the costs at level `from` of ZeRO, at level `to`: `parts` of them share what it shares.
SegmentCosts atLevel(SegmentCosts costs, int from, int to, int64_t parts);

// Needs `factor` times as large, as if ranks shared all work and bytes evenly.
SegmentCosts scaled(SegmentCosts costs, double factor);

// An axis of a mesh that splits anything but the batch.
struct BesideAxis {
  std::string name;
  int64_t size = 1;
  // How many ranks of the batch's axes lie between neighbors of its groups, at most those of a node: 1 where it is
  // further in, and where all is on one node.
  int64_t stride = 1;

  friend auto operator<=>(const BesideAxis&, const BesideAxis&) = default;
};

// What asks have in common that are guessed from one another.
struct Relative {
  int program = -1;  // its number, in the order in which programs were met; -1: it is refused
  std::vector<BesideAxis> beside;
  bool uncut = false;  // blocks asked about together
  bool alone = false;  // a single micro-batch, which reduces gradients itself
  int64_t kind = 0;    // of the ranks

  friend auto operator<=>(const Relative&, const Relative&) = default;
};

// Those from which it is guessed beside its own: of smaller meshes, one axis at a time; of one whose axes lie between
// those of the batch, the one with the same axes inside of it, alone.
std::vector<Relative> smallerThan(const Relative& relative);

class BlockCosts {
 public:
  using Priced = bool;  // does memory have a price?

  // `request`: of all asks. `known`: of `machine`, and of searches before.
  BlockCosts(const GraphFor& graphs, const CompileOptions& request, const Machine& machine,
             const SearchKnowledge& known)
      : graphs_(graphs), request_(request), machine_(machine), known_(known) {
    kindOf(0, 1);
  }

  // The number of the kind of so many ranks from the first on: 0 where all devices are alike.
  int64_t kindOf(int64_t firstRank, int64_t ranks);
  bool hasKinds() const { return !machine_.kinds.empty(); }

  absl::StatusOr<const BlockProgram*> programFor(int64_t microBatches);
  Relative relativeOf(const BlockAsk& ask);
  // Error: it cannot be.
  absl::StatusOr<SegmentCosts> of(const BlockAsk& ask);
  // Was something alike asked about, with a price of memory or without?
  bool isKnown(const BlockAsk& ask, Priced priced);
  // With prices of memory or without, at the level of ZeRO of the ask; empty where nothing alike was asked about.
  std::vector<SegmentCosts> alike(const BlockAsk& ask);
  // The same, guessed, as at level 0. Empty: nothing is known of any relative.
  std::vector<BlockTotals> guess(const BlockAsk& ask);
  // `costs` at the level of ZeRO of `closed`, with its collectives instead of those of the first level: gradients
  // scattered in each micro-batch instead of once from level 2 on; parameters gathered twice in each micro-batch where
  // level 3 gathers again, else once before the micro-batches instead of after the update. Error: of the mesh.
  absl::StatusOr<SegmentCosts> withZeroTimes(SegmentCosts costs, const CompileOptions& closed, int64_t parts,
                                             int64_t kind = 0) const;
  // How often blocks were asked about, but for what was known from before.
  int64_t asked() const { return asked_; }

 private:
  using AskKey = std::tuple<std::string, int64_t, int, bool, bool, double, int64_t>;
  using AlikeKey = std::pair<Relative, int64_t>;
  // By into how many parts mesh and micro-batches cut the batch.
  using ByParts = std::map<int64_t, BlockTotals>;

  absl::StatusOr<SegmentCosts> ask(const BlockAsk& ask, bool uncut);
  int64_t cutsOf(const BlockAsk& ask);
  void learn(const BlockAsk& ask, const Relative& relative, const SegmentCosts& costs);
  double growth(const Relative& relative, int64_t parts, int64_t cuts, Priced priced) const;
  std::optional<BlockTotals> guessed(const Relative& relative, int64_t cuts, Priced priced) const;

  const GraphFor& graphs_;
  const CompileOptions& request_;
  Machine machine_;
  std::vector<Machine> kinds_;  // by number, each of devices that are alike
  SearchKnowledge known_;
  int64_t asked_ = 0;
  std::map<const ProgramGraph*, BlockProgram> programs_;
  std::vector<const BlockProgram*> inOrder_;                           // as they were met
  std::map<int64_t, absl::StatusOr<const BlockProgram*>> programFor_;  // so many micro-batches
  std::map<AskKey, absl::StatusOr<SegmentCosts>> costs_;
  // By relatives and into how many parts mesh and micro-batches cut the batch; as at level 0 of ZeRO, without a price
  // of memory and with one.
  std::map<AlikeKey, std::map<Priced, SegmentCosts>> alike_;
  std::map<std::pair<Relative, Priced>, ByParts> totals_;
};

}  // namespace weft
