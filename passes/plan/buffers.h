// The plan's buffers and regions, written from the planned memory: a buffer is a storage seen with a type and a shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "planner/step/step_memory.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

class BufferTable {
 public:
  // Reads the storages, places and regions of a submesh of the scheduled state; the plan must outlive the table.
  BufferTable(mlir::ModuleOp submesh, plan::Plan& plan);

  // The plan's buffer of the value's storage in its type and shape; added on first use.
  uint32_t of(mlir::Value value);
  const std::string& labelOf(mlir::Value value) const;  // of its storage

  // Room for `capacity` messages of the type and shape of `like`, at this offset.
  uint32_t mailbox(mlir::Value like, int64_t capacity, int64_t offset);

  // Writes the plan's regions and peak.
  void writeRegions();

 private:
  const std::vector<Storage> storages_;
  const StepMemory memory_;
  plan::Plan& plan_;
  std::map<std::string, uint32_t> buffers_;
};

}  // namespace weft
