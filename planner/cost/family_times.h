// What the products of a family (product_families.h) take together at the least, with what their weight asks for and
// what they read of other products.
//
// They are split alike, so that none can have the split that serves it best: of all splits of the one in the forward
// pass, over P ranks or fewer, with each gradient also split over what is left as serves it best, that counts for which
// all together take least, their kernels and sums that are surely added (sure_sums.h). Where submeshes have k P ranks
// the same holds on P: a split of them is one on P ranks with each part made of k, for all members alike, and takes no
// more rank time.
//
// A weight is a parameter of N bytes that a family alone reads, and of whose gradient one of its products makes all. It
// is read on r = P / (parts that the split makes of it) ranks, and its gradient is partial over s of them. In m
// micro-batches, however ZeRO or the user's layouts have it:
//
//   parameter   lies r/g times, with r N / g bytes in all. What the update makes of the gradient that was added up is
//               passed on to as many ranks: by the second half of an all-reduce, an all-gather behind the update, or a
//               gather before the first micro-batch (planner/derive/gathers.h). Where g > 1, g ranks each receive from
//               one another what they lack, in the forward and in the backward pass of each micro-batch
//   gradient    lies where it is made, partial; or over g of the s ranks it is added up in each micro-batch, and takes
//               the g-th part of the room. Of one micro-batch nothing is accumulated
//
// With a price on bytes that lie on ranks all the step the dearer splits of these may be the better ones: those of the
// weight itself, by columns and sums, whose own sums cost more.
//
// A value of V bytes that a product made (product_reads.h) is needed on c ranks by one that is split into c parts along
// what the value does not have: c - 1 of them receive it. So of a weight's products x is gathered over the columns and
// dy over the sums. That counts beside adding up what the maker made: the first rank that has all of it has received
// what was added up there, each other one the last that it lacks. Where the maker leaves u ranks unused, these may have
// made it as well, so u - 1 times V bytes are taken off what its family takes, once for all that read it. Nothing is
// counted of what takes less to make than to send. What n families read counts for each with the n-th part. What a
// stage reads of another one is sent, and need not be received again: of all borders of blocks those with the dearest
// reads are taken off, as many as the stages have between them.
//
// Nodes of d ranks: where ranks, nodes and so all axes of meshes are powers of two, a node has a box of the grid that
// the split makes of the ranks. So parts of rows, columns, sums that lie on one node multiply to d, and what is added
// up or passed on along one of them cannot stay on nodes that those along the others fill. Elsewhere each of them may.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/least_moves.h"
#include "planner/cost/product_reads.h"
#include "planner/cost/split_work.h"
#include "planner/graph/graph_view.h"
#include "planner/machine/machine.h"

namespace weft {

class FamilyTimes {
 public:
  // `workOf`: of an operator, none of what is in no family.
  using WorkOf = std::function<const SplitWork*(int op)>;
  // `blockOf`: of each operator the block that no stage has a part of; -1: it may run on any stage.
  static absl::StatusOr<FamilyTimes> of(const GraphView& view, const Machine& machine, const LeastMoves& moves,
                                        const WorkOf& workOf, const std::vector<ProductRead>& reads,
                                        const std::vector<int>& blockOf);

  // Of each family; the first is that of the forward pass.
  const std::vector<std::vector<int>>& operators() const { return operators_; }
  // Of all weights, lying once.
  double weightBytes() const { return weightBytes_; }
  double gradientBytes() const { return gradientBytes_; }

  // Of each family without what it reads and updates and without a price, each of its collectives as well as it can: in
  // picoseconds, of all ranks and calls of a step. `ofOperator`: what each operator takes at the least, however others
  // are split.
  std::vector<double> least(const WorkGrid& grid, const std::vector<double>& ofOperator) const;

  // Where submeshes lie.
  enum class Nodes : uint8_t {
    kAnywhere,  // each of a family's collectives as well as it can
    kInOrder,   // one after another, as all of the same size do
  };
  // In picoseconds, of all ranks and calls of a step, with the price of bytes.
  struct Least {
    double inBlocks = 0;     // with what is read of the same block
    double withUpdates = 0;  // also with updates that are passed on, which may be gathered before the first micro-batch
    double withReads = 0;    // also with what is read of other blocks
  };
  struct Submeshes {
    Nodes nodes = Nodes::kInOrder;
    int64_t borders = 0;  // of stages, at most
  };
  class OnGrid;

 private:
  struct Read {
    unsigned operand = 0;
    double bytes = 0;
    bool isInBlock = false;
    friend auto operator<=>(const Read&, const Read&) = default;
  };
  // Operators of a family, the first that of the forward pass, with the role there of each of their roles.
  struct Member {
    const SplitWork* work = nullptr;
    std::array<int, kRoles> roles = {};
    std::vector<Read> reads = {};
    double readBytes = 0;         // of what it makes, as far as others read it
    double readBytesInBlock = 0;  // of its own block
    // Where the forward product is split so, and its own loops also over axes that leaves: `extra`, by its roles.
    Parts partsOf(const Parts& first, const Parts& extra) const;
    friend auto operator<=>(const Member&, const Member&) = default;
  };
  struct Weight {
    double bytes = 0;          // 0: there is none
    size_t operand = 0;        // of the first
    size_t gradient = 0;       // the member that makes it
    double gradientBytes = 0;  // of it
    int64_t reads = 0;         // of the weight in each micro-batch: in the forward pass, in the backward pass
    friend auto operator<=>(const Weight&, const Weight&) = default;
  };
  struct Kind {
    std::vector<Member> members;
    Weight weight;
    bool hasBatch() const { return members[0].work->work.product->batch > 1; }
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  class KernelTimes;
  // Of the ranks on one node, into how many parts each role of the forward product is split there; and those that it
  // leaves unused.
  struct Box {
    Parts parts = {1, 1, 1, 1};
    int64_t unused = 1;
  };

  FamilyTimes(const Machine& machine, const LeastMoves& moves) : machine_(machine), moves_(moves) {}
  // `ofOthers`: what the members behind the first take at the least, however others are split.
  double leastOf(const Kind& kind, const WorkGrid& grid, double ofOthers) const;
  // That of each kind.
  std::vector<double> othersOfKinds(const std::vector<double>& ofOperator) const;
  // Of each family what its kind has.
  template <typename T>
  std::vector<T> ofFamilies(const std::vector<T>& ofKinds) const;
  static Weight weightOf(const GraphView& view, const ProductFamily& family);
  bool isDearerToMake(const SplitWork& maker, double bytes) const;
  void addReads(const std::vector<ProductRead>& reads, const std::vector<int>& blockOf, std::vector<Kind>& kinds);

  Machine machine_;
  LeastMoves moves_;
  std::vector<Kind> kinds_;  // families of one kind take as long
  std::vector<int> kindOf_;  // of each family
  std::vector<std::vector<int>> operators_;
  // Of each family: the borders of blocks, [begin, end), that what it reads crosses.
  std::vector<std::array<int, 2>> crossed_;
  double weightBytes_ = 0;
  double gradientBytes_ = 0;
};

// The families on submeshes of one grid, for ever other prices. `times` must outlive it.
class FamilyTimes::OnGrid {
 public:
  // `ofOperator`: what each operator takes at the least, however others are split.
  OnGrid(const FamilyTimes& times, const WorkGrid& grid, const std::vector<double>& ofOperator,
         const Submeshes& submeshes);
  ~OnGrid();

  // Of each family. `bytePrice`: of a byte that lies on a rank all the step, in picoseconds of a rank.
  std::vector<Least> least(double bytePrice);
  // Of all together with what they read, but for the dearest that stages can send. `least`: of each.
  double ofStep(const std::vector<Least>& least) const;

 private:
  class Question;

  const FamilyTimes& times_;
  int64_t borders_;
  std::vector<Question> questions_;  // of each kind
};

}  // namespace weft
