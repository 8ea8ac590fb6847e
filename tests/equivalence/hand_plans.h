// Plans that people write by hand, as requests that leave nothing open but what every training script leaves to a
// library: the schedule, and what is recomputed where memory is short.
//
//   data parallel, ZeRO 1 to 3    all devices over dp (Rajbhandari et al., "ZeRO", 2019); fully sharded with full
//                                 recomputation as FSDP runs it
//   Megatron                      tp in {2, 4, 8} x stages x dp, several numbers of micro-batches (Shoeybi et al.,
//                                 2019; Narayanan et al., 2021)
//   sequence                      the same with the residual stream over tp (Korthikanti et al., 2022)
//   Alpa                          tensor and data parallelism inside of a node, stages between nodes, one stage or two
//                                 on each (Zheng et al., "Alpa", 2022)
//   mesh by hand                  mesh, stages, micro-batches and ZeRO as above, the splits as mode layouts finds them
#pragma once

#include <string>
#include <vector>

#include "planner/request.h"
#include "tests/equivalence/known_models.h"

namespace weft::testing {

struct HandPlan {
  std::string family;  // "zero 3", "megatron tp=4"
  CompileOptions options;
  bool sequence = false;  // of the model that is built with it
};

struct HandCase {
  const KnownModel& model;
  std::vector<std::string> parameters;  // of the program
  int64_t devices = 1;
  int64_t perNode = 8;
  std::string machine;      // as CompileOptions has it
  int64_t memoryLimit = 0;  // likewise
};

// Those that divide: batch and devices, and at least one layer for each stage.
std::vector<HandPlan> handPlans(const HandCase& of);

}  // namespace weft::testing
