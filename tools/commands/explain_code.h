// `weft explain PLAN --as-code --module MODEL.mlir`: a plan's decisions as lines of the program.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "passes/compile.h"
#include "runtime/plan/plan.pb.h"

namespace weft::tools {

// The decisions about a program as lines of it. Errors: decisions about another program.
absl::StatusOr<std::string> codeOf(const PlannerProblem& problem, const Decisions& decisions);

// A plan does not hold the program, which has the operators that the lines name: `module` is the logical module that it
// was compiled from, 00-input.mlir of a dump. Errors: a plan without decisions; a module that is no logical one, or of
// another program.
absl::StatusOr<std::string> codeOf(const plan::Plan& plan, const std::string& module);

// weft explain (explain.h), --as-code included.
int explainWithCodeCommand(int argc, char** argv);

}  // namespace weft::tools
