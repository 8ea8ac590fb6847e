// Does what a user asks for make sense? The one place that answers, for the C++ API, the tools and modules in files.
// Errors name the option, its value and one remedy.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/mesh.h"
#include "planner/machine/machine.h"
#include "planner/memory_limits.h"
#include "planner/request.h"
#include "planner/schedule/generate.h"

namespace weft {

// What can be said without the program: numbers and their ranges, meshes, names of schedules and optimizers, options
// that contradict each other.
absl::Status checkRequest(const Request& request);

// Also against the program: stages, and patterns of parameters. The result are the notes: what is no error, but has no
// effect or is likely not meant, one line each.
absl::StatusOr<std::vector<std::string>> checkRequest(const Request& request, const ProgramOutline& program);

// Checks the option `recompute` of a training program: each pattern matches the name or the kind of an operator of the
// forward pass. The compiler asks when it knows the operators that run.
absl::Status checkRecompute(const std::string& recompute, const std::vector<std::string>& operators);

// First values of a parameter or state: a known distribution of finite numbers.
absl::Status checkInitial(const std::string& distribution, double a, double b);

// The mesh of a request: with stage meshes the first of them; with open sizes (open_mesh.h) its ranks without names,
// in mode kAuto those of all stages; with micro-batches their time axis. Errors: as checkRequest.
absl::StatusOr<Mesh> meshOf(const CompileOptions& options);

// In mode kAuto a mesh without named axes only says how many devices there are: it becomes `devices`.
void openLine(CompileOptions& options);

// The machine of a request. Errors: a line of its text, with the known keys.
absl::StatusOr<Machine> machineOf(const CompileOptions& options);

// Bytes that ranks may need: the limit of the request, else the memory of their devices; where these are of several
// kinds the lower of both.
absl::StatusOr<MemoryLimits> memoryLimitsOf(const CompileOptions& options);
// The least of them; 0: no rank has a limit.
absl::StatusOr<int64_t> memoryLimitOf(const CompileOptions& options);

// The schedule of that name, which the runtime can execute. Errors: an unknown name, with the nearest; a kind that is
// only simulated.
absl::StatusOr<schedule::Kind> executableKind(const std::string& name);

}  // namespace weft
