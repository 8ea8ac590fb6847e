// Why a plan communicates and recomputes: each collective, each send between submeshes, each operator that the backward
// pass runs again, with its reason and price.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace weft::tools {

struct CollectiveLine {
  std::string function;    // "forward", with several submeshes "submesh0.forward"
  std::string collective;  // "all_reduce", "send"
  std::string name;        // of the operator whose result it moves
  int64_t tensors = 1;
  std::string groups;
  int64_t bytes = 0;  // received per rank, in one call
  double seconds = 0;
  std::string why;
  std::string source;  // file:line
};

struct RecomputedLine {
  std::string name;
  int64_t stage = 0;
  std::string reshard;  // the layout it makes; "": the operator itself
  int64_t bytes = 0;    // not kept of one micro-batch
  double seconds = 0;   // of running it again
  std::string why;
};

struct Explanation {
  std::vector<CollectiveLine> collectives;  // in the order of the plan's functions
  std::vector<RecomputedLine> recomputed;
};

// The error is that of a decisions record that cannot be read. A plan written by hand has no record and explains no
// recomputation.
absl::StatusOr<Explanation> explain(const plan::Plan& plan);

}  // namespace weft::tools
