// Changes of a program graph that decisions ask for. passes/decide/apply_rewrites.h makes the same of the module: the
// graph built from its result equals the one made here, ids included.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/decisions.h"
#include "planner/graph/program_graph.h"

namespace weft {

// Puts the alternative of operator `id` in its place; its operators get new ids. What the user's strategy says of an
// operand or result counts for each of them that reads or makes it in the same phase. What is the gradient of an
// operator that must be expanded becomes that of the one that makes its first result. Errors: it has none.
absl::Status takeAlternative(ProgramGraph& graph, int64_t id);

// Copies the operators behind operand `rewrite.operand` of operator `rewrite.id` into the prologue, each behind the one
// it copies, and makes the operand read the copies. Errors: the operand depends on a parameter (at the user's line),
// there is no such operand.
absl::Status hoistToPrologue(ProgramGraph& graph, const Rewrite& rewrite);

// Drops operators that nothing reads.
void eraseUnused(ProgramGraph& graph);

// The program as the rewrites of a record leave it. Errors: as above, and rewrites of another program.
absl::StatusOr<ProgramGraph> withRewrites(ProgramGraph graph, const std::vector<Rewrite>& rewrites);

}  // namespace weft
