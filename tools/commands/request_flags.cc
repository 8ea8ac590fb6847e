#include "tools/commands/request_flags.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "passes/logical/request_attributes.h"
#include "planner/check_request.h"
#include "planner/open_mesh.h"
#include "runtime/base/status.h"
#include "tools/commands/machine_flag.h"

namespace weft::tools {
namespace {

absl::StatusOr<int64_t> bytesOf(const Flags& flags, const std::string& name) {
  const absl::StatusOr<int64_t> bytes = parseBytes(flags.text(name));
  return bytes.ok() ? bytes
                    : absl::InvalidArgumentError(
                          absl::StrCat("--", name, " takes bytes (40g, 512mi), not '", flags.text(name), "'"));
}

// Ranges are those of the request.
absl::Status applyFlags(const Flags& flags, CompileOptions& options) {
  if (flags.has("mode")) {
    WEFT_ASSIGN_OR_RETURN(options.mode, parseMode(flags.text("mode")));
  }
  openLine(options);
  if (flags.has("mesh") && flags.has("stage-meshes")) {
    return absl::InvalidArgumentError(
        "--mesh and --stage-meshes are both given; give one mesh for all, or one for each");
  }
  if (flags.has("mesh") || flags.has("stage-meshes")) {
    WEFT_ASSIGN_OR_RETURN(const Mesh before, meshOf(options));
    options.mesh = flags.text("mesh");
    options.devices = isOpenMesh(options.mesh) ? before.ranks() : 1;
    options.stageMeshes = flags.text("stage-meshes");
  }
  if (flags.has("devices")) {
    WEFT_ASSIGN_OR_RETURN(options.devices, flags.integer("devices", 1, {}));
  }
  if (flags.has("max-stages")) {
    WEFT_ASSIGN_OR_RETURN(options.maxStages, flags.integer("max-stages", 0, {}));
  }
  if (flags.has("departures")) {
    WEFT_ASSIGN_OR_RETURN(options.departures, flags.integer("departures", 0, {}));
  }
  if (flags.has("without")) {
    WEFT_ASSIGN_OR_RETURN(options.without, parseFreedoms(flags.text("without")));
  }
  if (flags.has("memory-limit")) {
    WEFT_ASSIGN_OR_RETURN(options.memoryLimit, bytesOf(flags, "memory-limit"));
  }
  if (flags.has("machine")) {
    WEFT_ASSIGN_OR_RETURN(options.machine, machineText(flags));
  }
  if (flags.has("micro")) {
    WEFT_ASSIGN_OR_RETURN(options.micro, flags.integer("micro", 1, {}));
  }
  if (flags.has("zero")) {
    const bool find = flags.text("zero") == "auto";
    WEFT_ASSIGN_OR_RETURN(const int64_t zero, find ? kFindZero : flags.integer("zero", 0, {}));
    options.zero = static_cast<int>(std::clamp<int64_t>(zero, INT_MIN, INT_MAX));  // both ends are refused
  }
  if (flags.has("zero-of")) {
    WEFT_ASSIGN_OR_RETURN(options.zeroOf, parseZeroOf(flags.text("zero-of")));
  }
  options.schedule = flags.has("schedule") ? flags.text("schedule") : options.schedule;
  if (flags.has("virtual-stages")) {
    WEFT_ASSIGN_OR_RETURN(options.virtualStages, flags.integer("virtual-stages", 1, {}));
  }
  options.recompute = flags.has("recompute") ? flags.text("recompute") : options.recompute;
  options.regather = options.regather || flags.has("regather");
  if (flags.has("gather-bucket")) {
    WEFT_ASSIGN_OR_RETURN(options.gatherBucket, bytesOf(flags, "gather-bucket"));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<Flag>& requestFlags() {
  static const std::vector<Flag> flags{
      {"mode", Flag::kOptional, "how much is left to the planner: semi, layouts, auto"},
      {"mesh", Flag::kOptional, "mesh instead of the module's, as dp=2,tp=2; with sizes to be found, as dp=?,tp=?"},
      {"devices", Flag::kOptional,
       "ranks of a mesh with sizes to be found, in mode auto of all stages; default: the module's"},
      {"stage-meshes", Flag::kOptional, "a mesh for each submesh of pipeline stages instead, as 'dp=2,tp=2;dp=4'"},
      {"machine", Flag::kOptional, "the machine that costs are for: a name (a100-80g) or a file"},
      {"micro", Flag::kOptional, "micro-batches of one step"},
      {"max-stages", Flag::kOptional, "most pipeline stages that mode auto considers"},
      {"departures", Flag::kOptional,
       "in mode auto: the best plan that departs from so many of the model's and your words"},
      {"without", Flag::kOptional, "what mode auto may not decide, with commas: recompute, zero, pipeline, ..."},
      {"memory-limit", Flag::kOptional, "most bytes of one rank (40g); default: the module's, else the machine's"},
      {"zero", Flag::kOptional, "ZeRO level 0 to 3, or auto: the planner finds it"},
      {"zero-of", Flag::kOptional,
       "ZeRO levels by parameter, first match first, as 'h*.fc.*=3,wte=1'; --zero of others"},
      {"schedule", Flag::kOptional, "kind of pipeline schedule (weft schedule lists them), or auto"},
      {"virtual-stages", Flag::kOptional, "pipeline stages on each rank"},
      {"recompute", Flag::kOptional, "what backward recomputes: auto, full, none, or names of operators (gelu,h*.ln?)"},
      {"regather", Flag::kSwitch, "gather parameters under ZeRO 3 in each call that reads them"},
      {"gather-bucket", Flag::kOptional,
       "most bytes of parameters that one such gather makes (2g); default: those of the largest"},
  };
  return flags;
}

absl::Status applyRequestFlags(mlir::ModuleOp module, const Flags& flags, std::optional<Mode> mode) {
  WEFT_ASSIGN_OR_RETURN(Request request, requestOf(module));
  request.options.mode = mode.value_or(request.options.mode);
  WEFT_RETURN_IF_ERROR(applyFlags(flags, request.options));
  WEFT_RETURN_IF_ERROR(checkRequest(request));
  setRequest(module, request);
  return absl::OkStatus();
}

}  // namespace weft::tools
