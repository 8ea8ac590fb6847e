// GPT as Megatron-LM trained it, for what was published of it: throughputs, FLOPs, bytes.
#pragma once

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"

namespace weft::testing {

inline constexpr int64_t kTokens = 2048;
inline constexpr int64_t kVocabulary = 51200;

struct PublishedRun {
  double parameters;  // 10^9
  int64_t heads, width, layers, tp, pp, devices, batch;
  int64_t rows;            // of a micro-batch on one data-parallel rank
  int64_t virtualStages;   // of each rank
  double measured;         // TFLOP/s per device
  bool recomputes = true;  // every layer

  int64_t dp() const { return devices / (tp * pp); }
};
// Of a step, recomputation included: 96 B s L h^2 (1 + s / 6h + V / 16 L h), appendix of Narayanan et al. (2021).
double publishedFlops(const PublishedRun& run);

// On the machine a100-80g, as it was run.
CompileOptions requestOf(const PublishedRun& run);

// The program with bf16 values, as its kernels are: scores are stored, and what is fused there (a bias with what
// follows it, dropout with the residual sum, scale and mask with the softmax) is one operator that reads and writes as
// much.
absl::StatusOr<ProgramGraph> graphOf(const PublishedRun& run);

}  // namespace weft::testing
