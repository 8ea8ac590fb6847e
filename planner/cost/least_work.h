// What each operator of a program takes at the least on a submesh, however a plan splits it.
//
// The kernel of a rank (split_work.h) is priced by kernelTime(), as in every plan, and that only falls where a factor
// has more parts. So the least is found among the ways to use all P ranks:
//
//   a product   its batch, rows, columns and sums in b r c s = P parts: every kernel has the waves of tiles that it
//               does not fill. Where its sums are surely added in each micro-batch (sure_sums.h), a value of V bytes
//               that is partial over s ranks has at least V s / P bytes on each. To add it each rank receives 1 - 1/s
//               of that, in whatever steps (a step over n of them leaves 1/n of what it reduces, and s/n):
//               V (s - 1) / P
//   all else    all P ranks share arithmetic and bytes evenly
//
// Products of a family are split alike, and receive what others made (family_times.h).
//
// Where products were measured (Machine::profiles) a larger one may take less, and the least is leastKernelSeconds().
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

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/alternative_kernels.h"
#include "planner/cost/family_times.h"
#include "planner/cost/least_moves.h"
#include "planner/cost/split_work.h"
#include "planner/cost/value_trees.h"
#include "planner/graph/graph_view.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"
#include "planner/machine/times.h"

namespace weft {

class LeastWork {
 public:
  struct Options {
    bool cutsBatch = true;          // into more than one micro-batch
    bool hidesCollectives = false;  // may collectives run beside kernels? Then adding sums takes no time of its own
    // Of each operator the block that no stage has a part of; -1: it may run on any stage. Empty: nothing is known.
    std::vector<int> blockOf = {};
  };
  // Errors: a rule that does not fit, a defect; a batch that cannot be cut, at the user's line.
  static absl::StatusOr<LeastWork> of(const GraphView& view, const Machine& machine, const Options& options);

  WorkRuns runs(int op) const { return classOf_[op] < 0 ? WorkRuns::kPerhapsNever : classes_[classOf_[op]].split.runs; }
  // Does its arithmetic take longer than its bytes?
  bool isHeavy(int op) const { return classOf_[op] >= 0 && classes_[classOf_[op]].isHeavy; }
  // The dimension of a value that carries the batch, where it is cut; -1: none does.
  int batchDim(int value) const { return batchDims_[value]; }

  const FamilyTimes& families() const { return *families_; }

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

  // The same with a price of each byte of weights and their gradients. `times`: without; `families`: with them.
  struct Priced {
    double ofRanks = 0;  // with updates that are passed on, and what families read of one another
    // Without updates, and with what is read of the same block; a family that makes the same on more ranks than one may
    // take less than its operators, and those that read it more.
    std::vector<double> ofFamily;
  };
  Priced priced(const Times& times, FamilyTimes::OnGrid& families, double bytePrice) const;

 private:
  // Operators that cost the same.
  struct Class {
    SplitWork split;
    std::vector<std::vector<KernelWork>> others;  // the kernels of each alternative that may take less
    bool mayExpand = false;                       // has it any alternative?
    bool mustExpand = false;                      // has it no kernel of its own?
    bool isHeavy = false;
    int64_t operators = 0;
  };

  LeastWork(const Machine& machine, const Options& options)
      : machine_(machine), options_(options), moves_(machine, options.hidesCollectives) {}
  // Of one call.
  struct Least {
    Picoseconds kernel = kLongestTime;
    double kernelAndSums = static_cast<double>(kLongestTime);  // of the split for which they are least together
  };

  absl::Status addFamilies(const GraphView& view);
  ValueTrees treesOf(const GraphView& view, const std::function<bool(int op)>& isProduct) const;
  absl::Status addClass(const GraphView& view, int op, int batch, WorkRuns runs);
  absl::Status addAlternatives(const GraphOperator& node, int op, const std::vector<bool>& read,
                               const AlternativeKernels& kernels);
  double operatorsTime(const Times& times, size_t family) const;
  Least leastOf(const Class& of, const WorkGrid& grid) const;
  Least leastOfAll(const Class& of, const WorkGrid& grid) const;

  Machine machine_;
  Options options_;
  LeastMoves moves_;
  std::vector<Class> classes_;
  std::vector<int> classOf_;  // of each operator; -1: it counts nothing
  std::vector<int> batchDims_;
  std::unique_ptr<const FamilyTimes> families_;  // of `classes_`, wherever these are moved
};

}  // namespace weft
