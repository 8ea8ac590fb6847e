// Random training programs and random words about where their tensors lie.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/equivalence/training_step.h"

namespace weft::testing {

struct RandomProgram {
  TrainingProgram program;
  // Every operator treats the rows of the batch alone, so that the step may be cut into micro-batches.
  bool rowWise = false;
  int64_t batch = 0;
};

// Operators that a program may have. kFew are always the same ones: a seed is always the same program.
enum class DrawnOperators { kAll, kFew };

// 5 to 40 operators. Programs that are not row-wise mix all dimensions, the batch is then a multiple of `ranks`.
RandomProgram randomProgram(std::mt19937_64& generator, int64_t ranks, DrawnOperators drawn = DrawnOperators::kAll);

struct MeshAxis {
  std::string name;  // empty: a line of ranks without named axes
  int64_t size = 1;
};
// On 2, 3, 4, 6 or 8 ranks.
std::vector<MeshAxis> randomAxes(std::mt19937_64& generator);
std::string meshText(const std::vector<MeshAxis>& axes, int64_t microBatches);

struct StrategyRequest {
  std::vector<MeshAxis> axes;
  int64_t microBatches = 1;
  int64_t batch = 0;  // size of the batch of a row-wise program, which no other dimension has; 0: not row-wise
  int64_t stages = 1;
  bool searchSchedule = false;           // leave the schedule to the compiler where the module says none
  std::optional<uint64_t> percent = {};  // of the operators that get a strategy; none: random too
};
// The module with random legal strategies on some of its operators, and where `stages` is above 1 with its forward
// operators cut into as many pipeline stages.
absl::StatusOr<std::string> withRandomStrategies(const std::string& module, const StrategyRequest& request,
                                                 std::mt19937_64& generator);

// A whole case: mesh, options, and a module text with strategies.
struct RandomCase {
  RandomProgram random;
  CompileRequest request;
  std::string text;
};
absl::StatusOr<RandomCase> randomCase(uint64_t seed);

}  // namespace weft::testing
