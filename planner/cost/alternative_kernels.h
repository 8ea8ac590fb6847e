// The kernels of what may stand for an operator, or what it exists only to be expanded into, as a bound counts them.
//
// Kernels are those of the whole program, before anything is split. What only results need that nothing reads is not
// there, nor what runs in another pass. What has an element for each micro-batch counts no bytes, and what reads it as
// if it were any other size has no kernel: a graph has these sizes from the number of micro-batches that it was made
// for.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/graph/graph_view.h"
#include "planner/machine/times.h"

namespace weft {

class AlternativeKernels {
 public:
  // `sized`: of each value, has it an element for each micro-batch?
  AlternativeKernels(const GraphView& view, std::vector<bool> sized);

  // Of an alternative of operator `op`; `read`: of its results, those that something reads. Error: a rule that does not
  // fit, a defect.
  absl::StatusOr<std::vector<KernelWork>> of(int op, const Alternative& alternative,
                                             const std::vector<bool>& read) const;

 private:
  struct Operand {
    TensorType type;
    bool isSized = false;
  };
  Operand operandOf(int op, const Alternative& alternative, const GraphValue& value,
                    const std::vector<bool>& sizedParts) const;

  const GraphView& view_;
  std::vector<bool> sized_;
  // Of results of operators that exist only to be expanded: as what is expanded with them reads them.
  std::map<int, TensorType> types_;
};

// Has none of its operators a kernel in the pass of the operator that it may stand for?
bool takesNothing(const Alternative& alternative);

// A gradient may be made by the kernel that adds it to the sum over micro-batches, calls of which may have been
// measured.
std::optional<AddedSum> perhapsAdded(const OperatorFacts& facts);

}  // namespace weft
