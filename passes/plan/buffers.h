// The plan's buffers and regions, written from the planned memory: a buffer is a storage seen with a type and a shape.
#pragma once

#include <map>
#include <string>

#include "passes/plan/step_program.h"
#include "planner/step/step_memory.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

class BufferTable {
 public:
  // All must outlive the table.
  BufferTable(const SubmeshStep& step, const StorageAssignment& assignment, const StepMemory& memory, plan::Plan& plan)
      : step_(step), assignment_(assignment), memory_(memory), plan_(plan) {}

  // The plan's buffer of a storage in the type and shape of `like`; added on first use.
  uint32_t of(mlir::Value like, int storage);
  uint32_t of(mlir::Value value) { return of(value, assignment_.of[step_.numbers.lookup(value)]); }

  // Room for `capacity` messages of the type and shape of `like`; one for each receive, in their order.
  uint32_t mailbox(mlir::Value like, int64_t capacity);

  // Writes the plan's regions and peak.
  void writeRegions();

 private:
  const SubmeshStep& step_;
  const StorageAssignment& assignment_;
  const StepMemory& memory_;
  plan::Plan& plan_;
  std::map<std::string, uint32_t> buffers_;
  size_t mailboxes_ = 0;  // made so far
};

}  // namespace weft
