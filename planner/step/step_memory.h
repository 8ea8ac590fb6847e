// The memory of a step, to the byte: an offset for every storage, the regions they lie in, and the peak.
//
// Classes that live long lie one after another. Activations are packed over forward and backward, each ring of slots by
// itself (planner/memory/rings.h). Transients are packed over their function; all functions share one region, because
// no two of them run at once. Mailboxes lie one after another in the order of their receives; the workspace is as large
// as the most that any instruction needs.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/memory/known_packings.h"
#include "planner/memory/rings.h"
#include "planner/step/storage.h"
#include "planner/step/storage_lives.h"

namespace weft {

// One region of a rank's memory: a memory class, or one ring of activations.
struct StepRegion {
  plan::MemoryClass memory = plan::TRANSIENT;
  int ring = 0;            // ACTIVATION only: number among the rings
  int64_t bytes = 0;       // of one slot
  int64_t maxLive = 0;     // greatest sum of sizes alive at once
  int64_t lowerBound = 0;  // no packing is smaller: the packer's certificate
  int64_t slots = 1;       // 1 but for ACTIVATION
  int64_t stage = 0;       // ACTIVATION only: whose functions make what lies in it
};

struct StepMemory {
  std::vector<int64_t> offsets;     // of each storage, from the start of its region; in a ring, of its slot
  std::vector<int> rings;           // of each storage; 0 but for ACTIVATION
  std::vector<int64_t> mailboxes;   // offset of the mailbox of each receive, in the order of instructions
  std::vector<StepRegion> regions;  // ascending by class, then ring
  int64_t peakBytes = 0;            // peakOf(regions)
  std::vector<StorageLife> lives;   // of each storage
};

// The sum of bytes x slots.
int64_t peakOf(const std::vector<StepRegion>& regions);

// The most scratch that any instruction needs; `views` as in StorageAssignment.
int64_t mostWorkspace(const StepProgram& program, const std::vector<std::vector<bool>>& views);

// `calls`: of one step, callsOf(). `effort`: elementary steps of the packer for the transients, and as many for all
// activations together (planner/memory/pack.h). `packings`: what was found before, where something alike was asked.
StepMemory planStepMemory(const StepProgram& program, const StorageAssignment& assignment,
                          const std::vector<FunctionCall>& calls, int64_t effort, KnownPackings* packings = nullptr);

}  // namespace weft
