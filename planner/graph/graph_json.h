// The program graph as JSON: what planner tests, fuzzing and questions from outside are made of, without MLIR.
//
//   {"arguments": [{"name": "x", "kind": "input", "type": "f32[8,4]", "batch_dim": 0}, ...],
//    "operators": [{"id": 0, "kind": "matmul", "rule": "m k+, k+ n -> m n", "linear": [[0], [1]],
//                   "flops_per_point": 2.0, "attributes": {"transpose_a": 0, "transpose_b": 0},
//                   "operands": ["%0", "%1"], "results": ["f32[8,2]"]}, ...],
//    "results": [{"value": "7#0"}, ...], "next_id": 12}
//
// A value is "%3" (argument 3) or "7#0" (result 0 of operator 7; in an alternative's body the operator at index 7, and
// "%3" is operand 3 of the operator that it stands for). Fields that hold their default are left out.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"

namespace weft {

std::string printProgramGraph(const ProgramGraph& graph);

// Errors name the entry, what was found and what was expected; a value that is not made before it is read is one.
absl::StatusOr<ProgramGraph> parseProgramGraph(const std::string& text);

}  // namespace weft
