// What the products of a family (product_families.h) take together at the least, with what their weight asks for.
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
// Nodes of d ranks: where ranks, nodes and so all axes of meshes are powers of two, a node has a box of the grid that
// the split makes of the ranks. So parts of rows, columns, sums that lie on one node multiply to d, and what is added
// up or passed on along one of them cannot stay on nodes that those along the others fill. Elsewhere each of them may.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/least_moves.h"
#include "planner/cost/split_work.h"
#include "planner/graph/graph_view.h"
#include "planner/machine/machine.h"

namespace weft {

class FamilyTimes {
 public:
  // `workOf`: of an operator, none of what is in no family.
  using WorkOf = std::function<const SplitWork*(int op)>;
  static absl::StatusOr<FamilyTimes> of(const GraphView& view, const Machine& machine, const LeastMoves& moves,
                                        const WorkOf& workOf);

  // Of each family; the first is that of the forward pass.
  const std::vector<std::vector<int>>& operators() const { return operators_; }
  // Of all weights, lying once.
  double weightBytes() const { return weightBytes_; }
  double gradientBytes() const { return gradientBytes_; }

  // Where submeshes lie.
  enum class Nodes : uint8_t {
    kAnywhere,  // each of a family's collectives as well as it can
    kInOrder,   // one after another, as all of the same size do
  };
  // In picoseconds, of all ranks and calls of a step, with the price of bytes.
  struct Least {
    double time = 0;
    double withUpdates = 0;  // that are passed on; these may be gathered before the first micro-batch
  };
  class OnGrid;

 private:
  // Operators of a family, the first that of the forward pass, with the role there of each of their roles.
  struct Member {
    const SplitWork* work = nullptr;
    std::array<int, kRoles> roles = {};
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
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  // Of the ranks on one node, into how many parts each role of the forward product is split there; and those that it
  // leaves unused.
  struct Box {
    Parts parts = {1, 1, 1, 1};
    int64_t unused = 1;
  };

  FamilyTimes(const Machine& machine, const LeastMoves& moves) : machine_(machine), moves_(moves) {}
  static Weight weightOf(const GraphView& view, const ProductFamily& family);

  Machine machine_;
  LeastMoves moves_;
  std::vector<Kind> kinds_;  // families of one kind take as long
  std::vector<int> kindOf_;  // of each family
  std::vector<std::vector<int>> operators_;
  double weightBytes_ = 0;
  double gradientBytes_ = 0;
};

// The families on submeshes of one grid, for ever other prices. `times` must outlive it.
class FamilyTimes::OnGrid {
 public:
  // `ofOperator`: what each operator takes at the least, however others are split.
  OnGrid(const FamilyTimes& times, const WorkGrid& grid, const std::vector<double>& ofOperator, Nodes nodes);
  ~OnGrid();

  // Of each family. `bytePrice`: of a byte that lies on a rank all the step, in picoseconds of a rank.
  std::vector<Least> least(double bytePrice);

 private:
  class Question;

  const FamilyTimes& times_;
  std::vector<Question> questions_;  // of each kind
};

}  // namespace weft
