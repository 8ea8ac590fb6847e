// What each operator of a program takes at the least on a submesh, however a plan splits it.
//
// A plan gives each factor of an operator some of the axes of its submesh, so that on P ranks the parts of all factors
// multiply to at most P; the batch is cut into m micro-batches besides. The kernel of a rank is priced by kernelTime(),
// as in every plan, and that only falls where a factor has more parts. So the least is found among the ways to use all
// P ranks:
//
//   a product   its batch, rows, columns and sums in b r c s = P parts, each size rounded up: every kernel has the
//               waves of tiles that it does not fill. Where its sums are surely added in each micro-batch
//               (sure_sums.h), a value of V bytes that is partial over s ranks has at least V s / P bytes on each. To
//               add it each rank receives 1 - 1/s of that, in whatever steps (a step over n of them leaves 1/n of what
//               it reduces, and s/n): V (s - 1) / P, no faster than over the fastest link. With d devices to a node
//               they lie on s/d nodes at the least, and V (s/d - 1) / P come over each rank's share of the network
//   all else    all P ranks share arithmetic and bytes evenly
//
// The products of a family (product_families.h) are split alike, so that none can have the split that serves it best:
// of all splits of the one in the forward pass, over P ranks or fewer, with each gradient also split over what is left
// as serves it best, that counts for which all together take least. Where submeshes have k P ranks the same holds on P:
// a split of them is one on P ranks with each part made of k, for all members alike, and takes no more rank time.
//
// Factors that stand in the same tensors count as one, and nothing is padded: both only make kernels smaller. Where
// products were measured (Machine::profiles) a larger one may take less, and the least is leastKernelSeconds().
//
// An operator that an alternative may stand for takes what takes less, its own kernel or those of the alternative, each
// with its arithmetic and bytes shared evenly by all P ranks, by leastKernelSeconds(). One that has the operator's own
// product among its kernels, as that of a convolution over blocks of rows, takes no less. One that exists only to be
// expanded, as a batch norm, takes what its alternative does for the results that are read.
//
// Nothing is counted
//   - of views and constants, and of what no result of the step needs;
//   - of operators that nothing may stand for, or what has no kernels, and of what only they need;
//   - of what has an element for each micro-batch (`~` in rules), whose size a graph has from the number that it was
//     made for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/alternative_kernels.h"
#include "planner/cost/product_families.h"
#include "planner/graph/graph_view.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"
#include "planner/machine/times.h"

namespace weft {

// How a plan divides ranks and batch: each of its submeshes has so many ranks, its step so many micro-batches.
struct WorkGrid {
  int64_t ranks = 1;
  int64_t microBatches = 1;
};

// When an operator runs in every plan.
//   kPerhapsNever   counts nothing
//   kAtLeastOnce    once in a step or, with work as large, more often
//   kWholeBatch     together for the whole batch: it depends on inputs alone and may run before the micro-batches
//   kPerMicroBatch  for each micro-batch
enum class WorkRuns : uint8_t { kPerhapsNever, kAtLeastOnce, kWholeBatch, kPerMicroBatch };

class LeastWork {
 public:
  struct Options {
    bool cutsBatch = true;          // into more than one micro-batch
    bool hidesCollectives = false;  // may collectives run beside kernels? Then adding sums takes no time of its own
  };
  // Errors: a rule that does not fit, a defect; a batch that cannot be cut, at the user's line.
  static absl::StatusOr<LeastWork> of(const GraphView& view, const Machine& machine, const Options& options);

  WorkRuns runs(int op) const { return classOf_[op] < 0 ? WorkRuns::kPerhapsNever : classes_[classOf_[op]].runs; }
  // Does its arithmetic take longer than its bytes?
  bool isHeavy(int op) const { return classOf_[op] >= 0 && classes_[classOf_[op]].isHeavy; }
  // The dimension of a value that carries the batch, where it is cut; -1: none does.
  int batchDim(int value) const { return batchDims_[value]; }

  // Products that are split alike (product_families.h).
  const std::vector<std::vector<int>>& families() const { return families_; }

  struct Times {
    // Of the kernel of each operator, on each rank of its submesh; 0 of what perhaps never runs.
    std::vector<Picoseconds> ofCall;
    // In picoseconds: of the kernels and sums of all operators, all calls of a step and all ranks together.
    double ofRanks = 0;
    std::vector<double> ofOperator;  // the part of that of each operator, however others are split
    std::vector<double> ofFamily;    // the rest: what each family takes beyond its operators, which are split alike
    // By how much each delays what reads it: the same, unless submeshes have unlike numbers of ranks (bound.h).
    std::vector<Picoseconds> delays;
  };
  Times times(const WorkGrid& grid) const;

 private:
  // What a tensor of the whole program has.
  struct Tensor {
    double bytes = 0;
    unsigned roles = 0;  // a bit for each role of a factor that stands in it
  };
  // Operators that cost the same.
  struct Class {
    KernelWork work;                              // of the whole program
    std::vector<std::vector<KernelWork>> others;  // the kernels of each alternative that may take less
    bool mayExpand = false;                       // has it any alternative?
    bool mustExpand = false;                      // has it no kernel of its own?
    int64_t sums = 1;                             // of a product: how many terms each of them has
    std::vector<Tensor> tensors;
    int batchRole = -1;   // of the factor that carries the batch
    int64_t sureSum = 0;  // bytes, of the whole batch
    WorkRuns runs = WorkRuns::kAtLeastOnce;
    bool isHeavy = false;
    int64_t operators = 0;
  };
  using Parts = std::array<int64_t, kRoles>;  // of each role
  // Operators of a family, the first that of the forward pass, with the role there of each of their roles.
  struct Member {
    int ofClass = 0;
    std::array<int, kRoles> roles = {};
    friend auto operator<=>(const Member&, const Member&) = default;
  };
  using Members = std::vector<Member>;

  LeastWork(const Machine& machine, const Options& options) : machine_(machine), options_(options) {}
  // Of one call.
  struct Least {
    Picoseconds kernel = kLongestTime;
    double kernelAndSums = static_cast<double>(kLongestTime);  // of the split for which they are least together
  };

  absl::Status addFamilies(const GraphView& view);
  absl::Status addClass(const GraphView& view, int op, int batch, WorkRuns runs);
  absl::Status addAlternatives(const GraphOperator& node, int op, const std::vector<bool>& read,
                               const AlternativeKernels& kernels);
  KernelWork shareOf(const Class& of, const Parts& parts) const;
  Least leastOf(const Class& of, const WorkGrid& grid) const;
  Least leastOfAll(const Class& of, const WorkGrid& grid) const;
  static Parts cut(const Class& of, const WorkGrid& grid, const Parts& split);
  double callsTime(const Class& of, const WorkGrid& grid, const Parts& split) const;
  double familyTime(const Members& members, const std::vector<double>& alone, const WorkGrid& grid) const;
  double sumTime(const Class& of, const WorkGrid& grid, int64_t parts) const;

  Machine machine_;
  Options options_;
  std::vector<Class> classes_;
  std::vector<int> classOf_;  // of each operator; -1: it counts nothing
  std::vector<int> batchDims_;
  std::vector<Members> familyKinds_;  // families of one kind take as long
  std::vector<int> kindOf_;           // of each family
  std::vector<std::vector<int>> families_;
};

}  // namespace weft
