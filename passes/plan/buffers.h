// Offsets of all storages, and the plan's buffers: a buffer is a storage seen with a type and a shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/describe/kernel_spec.h"
#include "passes/plan/storage.h"

namespace weft {

// Type and shape of a value as kernels see it.
TensorSpec tensorSpec(mlir::Value value);

class BufferTable {
 public:
  // Gives every storage its offset: classes that live long lie one after another, activations are packed over forward
  // and backward, transients over their function; all functions share one transient region.
  BufferTable(const StorageAssignment& assignment, plan::Plan& plan);

  // The plan's buffer of a storage in the type and shape of `like`; added on first use.
  uint32_t of(mlir::Value like, int storage);
  uint32_t of(mlir::Value value) { return of(value, assignment_.of.lookup(value)); }

  // Room for `capacity` messages of the type and shape of `like`.
  uint32_t mailbox(mlir::Value like, int64_t capacity);

  // Writes the plan's regions and peak; `workspace` is the most scratch memory that any instruction needs, `slots` the
  // most pieces whose activations live at once.
  void writeRegions(int64_t workspace, int64_t slots);

 private:
  struct Extent {
    int64_t bytes = 0;
    int64_t maxLive = 0;
    int64_t lowerBound = 0;
  };

  void layInOrder();
  void pack(plan::MemoryClass memory);

  const StorageAssignment& assignment_;
  plan::Plan& plan_;
  std::vector<int64_t> offsets_;
  std::map<plan::MemoryClass, Extent> regions_;
  std::map<std::string, uint32_t> buffers_;
};

}  // namespace weft
