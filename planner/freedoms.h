// What mode kAuto may decide, one by one, so that each can be taken from it: `--without recompute,zero`.
//
//   recompute       what is recomputed beside what the user says         without: nothing
//   zero            the level of ZeRO                                    without: 0
//   zero-classes    another level of ZeRO for some classes of weights    without: one for all
//   gathers         when parameters under ZeRO 3 are gathered            without: once in a step
//                   and how many of them together                        without: as many as the largest has room for
//   pipeline        stages beside those that the program names           without: none
//   virtual-stages  several stages on a submesh                          without: one
//   uneven-stages   stages of different numbers of blocks                without: as equal as can be
//   stage-meshes    meshes of unlike shape and size for the stages        without: one for all
//   axis-order      which axis of a mesh lies inside nodes                without: the last
//   zero-bubble     schedules that split the backward pass               without: none of them
//   memory-prices   splits that save memory at a price of time           without: those that take the least time
//   offload         what lies in the host's memory, asked for    without: nothing
//   tensor-splits   splits of any dimension, over any axis               without: the user's, and those of the batch
//   batch-axes      splits of other dimensions over the batch's axes     without: these split the batch alone
//   pads            of parameters, so that more splits divide            without: those that the user's words ask for
//   together        mesh and splits with all else                        without: first, for the shortest step of a
//                                                                        plan with one stage, one micro-batch, no limit
//
// What the user says of the same stays: he loses what he left open.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

enum class Freedom : uint8_t {
  kRecompute,
  kZero,
  kZeroClasses,
  kGathers,
  kPipeline,
  kVirtualStages,
  kUnevenStages,
  kStageMeshes,
  kAxisOrder,
  kZeroBubble,
  kMemoryPrices,
  kOffload,
  kTensorSplits,
  kBatchAxes,
  kPads,
  kTogether,
};

using Freedoms = std::set<Freedom>;

const std::vector<Freedom>& allFreedoms();
std::string freedomName(Freedom freedom);  // "virtual-stages"

// "recompute,zero"; "" is none. Error: an unknown name, with the nearest.
absl::StatusOr<Freedoms> parseFreedoms(const std::string& names);
std::string printFreedoms(const Freedoms& freedoms);

}  // namespace weft
