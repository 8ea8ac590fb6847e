// Offsets of all storages, and the plan's buffers: a buffer is a storage seen with a type and a shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "passes/plan/storage.h"
#include "planner/memory/rings.h"

namespace weft {

// Type and shape of a value as kernels see it.

class BufferTable {
 public:
  // Gives every storage its offset: classes that live long lie one after another, activations are packed over forward
  // and backward, each ring by itself, transients over their function; all functions share one transient region.
  // `stages`: of each function; `calls`: the step of one rank.
  BufferTable(const StorageAssignment& assignment, const std::vector<int64_t>& stages, const std::vector<Call>& calls,
              plan::Plan& plan);

  // The plan's buffer of a storage in the type and shape of `like`; added on first use.
  uint32_t of(mlir::Value like, int storage);
  uint32_t of(mlir::Value value) { return of(value, assignment_.of.lookup(value)); }

  // Room for `capacity` messages of the type and shape of `like`.
  uint32_t mailbox(mlir::Value like, int64_t capacity);

  // Writes the plan's regions and peak; `workspace` is the most scratch memory that any instruction needs.
  void writeRegions(int64_t workspace);

 private:
  struct Extent {
    int64_t bytes = 0;
    int64_t maxLive = 0;
    int64_t lowerBound = 0;
    int64_t slots = 1;
    int64_t stage = 0;
  };
  using RegionKey = std::pair<plan::MemoryClass, uint32_t>;  // class and ring

  void layInOrder();
  void packActivations(const std::vector<int64_t>& stages, const std::vector<Call>& calls);
  void packTransients();
  Extent pack(const std::vector<size_t>& storages, int64_t effort);

  const StorageAssignment& assignment_;
  plan::Plan& plan_;
  std::vector<int64_t> offsets_;
  std::vector<uint32_t> rings_;  // of each storage
  std::map<RegionKey, Extent> regions_;
  std::map<std::string, uint32_t> buffers_;
};

}  // namespace weft
