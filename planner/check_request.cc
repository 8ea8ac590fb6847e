#include "planner/check_request.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/open_mesh.h"
#include "planner/schedule/table.h"
#include "runtime/base/finite.h"
#include "runtime/base/limits.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

absl::Status refuse(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

// More than anybody says of a program.
constexpr int64_t kMostDepartures = 1000;

absl::Status checkInteger(const std::string& name, int64_t value, int64_t least, int64_t most) {
  return value >= least && value <= most
             ? absl::OkStatus()
             : refuse(absl::StrCat(name, " = ", value, "; give a number from ", least, " to ", most));
}

// --- meshes ---

// In mode kAuto the devices may be those of several stages.
absl::Status checkOpenMesh(const CompileOptions& options) {
  if (options.mode != Mode::kAuto) {
    return closedMeshes(options.mesh, options.devices).status();
  }
  absl::Status first;
  for (int64_t stages = 1; stages <= options.devices; ++stages) {
    const absl::Status status = options.devices % stages == 0
                                    ? closedMeshes(options.mesh, options.devices / stages).status()
                                    : absl::OkStatus();
    if (options.devices % stages == 0 && status.ok()) {
      return status;
    }
    first = stages == 1 ? status : first;
  }
  return first;
}

absl::StatusOr<Mesh> sharedMesh(const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(checkInteger("devices", options.devices, 1, kMaxRanks));
  if (isOpenMesh(options.mesh)) {
    WEFT_RETURN_IF_ERROR(checkOpenMesh(options));
  }
  if (options.mesh.empty() || isOpenMesh(options.mesh)) {
    return Mesh::parse(absl::StrCat(options.devices));
  }
  WEFT_ASSIGN_OR_RETURN(Mesh mesh, Mesh::parse(options.mesh));
  for (const NamedAxis& named : mesh.axes()) {
    if (named.axis.kind == AxisKind::kTime) {
      return refuse(absl::StrCat("mesh '", options.mesh, "': '", named.name,
                                 "' is the time axis of the micro-batches, no axis of ranks; leave it out and ask for "
                                 "micro = ",
                                 named.axis.size));
    }
  }
  if (options.mode == Mode::kAuto && options.devices % mesh.ranks() == 0) {
    return Mesh::parse(absl::StrCat(options.devices));
  }
  if (options.devices != 1 && options.devices != mesh.ranks()) {
    return refuse(absl::StrCat("devices = ", options.devices, " beside mesh '", options.mesh, "', which has ",
                               mesh.ranks(), " ranks; leave devices out, or make the mesh fill them"));
  }
  return mesh;
}

// The first of the submeshes' meshes, which have to go with what else is said of ranks.
absl::StatusOr<Mesh> firstStageMesh(const CompileOptions& options) {
  if (!options.mesh.empty()) {
    return refuse(absl::StrCat("mesh '", options.mesh, "' and stage meshes '", options.stageMeshes,
                               "' are both given; give one mesh for all stages or one for each"));
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, parseStageMeshes(options.stageMeshes, 1));
  int64_t ranks = 0;
  for (const Mesh& mesh : meshes) {
    ranks += mesh.ranks();
  }
  if (ranks > kMaxRanks) {
    return refuse(absl::StrCat("the stage meshes ", options.stageMeshes, " have ", ranks,
                               " ranks together; a program has at most ", kMaxRanks));
  }
  if (options.devices != 1 && options.devices != ranks) {
    return refuse(absl::StrCat("the stage meshes ", options.stageMeshes, " have ", ranks,
                               " ranks together, but devices = ", options.devices,
                               "; make the meshes fill the devices, or leave devices out"));
  }
  return meshes[0];
}

// --- schedule, recomputation, optimizer ---

constexpr char kTable[] = "table";
constexpr char kAuto[] = "auto";

absl::StatusOr<schedule::Kind> knownKind(const std::string& name) {
  std::vector<std::string> names = {kAuto, kTable};
  for (const schedule::Kind kind : schedule::allKinds()) {
    if (kind != schedule::Kind::kSeq1F1B) {  // not executed
      names.push_back(schedule::kindName(kind));
    }
  }
  const absl::StatusOr<schedule::Kind> kind = schedule::parseKind(name);
  return kind.ok() ? kind
                   : refuse(absl::StrCat("schedule = '", name, "' is unknown; did you mean '", nearestName(name, names),
                                         "'? There are ", absl::StrJoin(names, ", ")));
}

absl::Status checkSchedule(const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(checkInteger("virtualStages", options.virtualStages, 0, kMaxRanks));
  const bool table = options.schedule == kTable;
  if (table && options.scheduleTable.empty()) {
    return refuse("schedule = 'table', but the table is empty; give one line per rank in scheduleTable");
  }
  if (!table && !options.scheduleTable.empty()) {
    return refuse(absl::StrCat("a schedule table is given, but schedule = '", options.schedule,
                               "'; ask for schedule = 'table', or leave the table out"));
  }
  if (table) {
    return schedule::parseCsv(options.scheduleTable).status();
  }
  return options.schedule == kAuto ? absl::OkStatus() : knownKind(options.schedule).status();
}

absl::Status checkSearch(const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(checkInteger("departures", options.departures, 0, kMostDepartures));
  if (!options.from.empty() && options.mode != Mode::kAuto) {
    return refuse(absl::StrCat("from = a record in mode ", modeName(options.mode),
                               "; the search of mode auto begins from it: ask for that mode, or give the record as "
                               "decisions to be realized"));
  }
  return options.departures == 0 || options.mode == Mode::kAuto
             ? absl::OkStatus()
             : refuse(absl::StrCat("departures = ", options.departures, " in mode ", modeName(options.mode),
                                   "; words are left open for the search of mode auto: ask for that mode, or for no "
                                   "departures"));
}

absl::Status checkOffload(const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(options));
  return options.offload == Offload::kNone || machine.hostBandwidth > 0
             ? absl::OkStatus()
             : refuse(absl::StrCat("offload = ", offloadName(options.offload), " on machine '", machine.name,
                                   "', whose host_bandwidth is not known; give it in the machine's file, or ask for "
                                   "offload = none"));
}

absl::Status checkRecomputeWords(const std::string& recompute) {
  const std::vector<std::string> words = absl::StrSplit(recompute, ',');
  for (const std::string& word : words) {
    if (absl::StripAsciiWhitespace(word) == kAuto && recompute != kAuto) {
      return refuse(absl::StrCat("recompute = '", recompute, "': '", kAuto, "' stands alone; write '", kAuto,
                                 "', or patterns without it"));
    }
  }
  return absl::OkStatus();
}

// A pattern is printed in a list with commas.
absl::Status checkZeroOf(const ZeroPatterns& patterns) {
  for (const auto& [pattern, level] : patterns) {
    if (level < 0 || level > kMostZeroLevel) {
      return refuse(absl::StrCat("zeroOf: '", pattern, "' = ", level, "; the ZeRO level is 0, 1, 2 or 3"));
    }
    if (pattern.empty() || pattern.find(',') != std::string::npos) {
      return refuse(absl::StrCat("zeroOf: '", pattern,
                                 "' is no pattern of parameter names; write one for each level, as h*.fc.*"));
    }
  }
  return absl::OkStatus();
}

absl::Status checkStagesOf(const std::string& parameter, const std::vector<int64_t>& stages) {
  if (stages.empty()) {
    return refuse(absl::StrCat("stages of parameter '", parameter, "' are none; give at least one, or leave it out"));
  }
  int64_t least = 0;
  for (const int64_t stage : stages) {
    WEFT_RETURN_IF_ERROR(
        checkInteger(absl::StrCat("the stage of parameter '", parameter, "'"), stage, least, kMaxRanks - 1));
    least = stage + 1;
  }
  return absl::OkStatus();
}

// --- against the program ---

// That the program names, or the request for it.
int64_t stagesOf(const CompileOptions& options, const ProgramOutline& program) {
  int64_t stages = std::max<int64_t>(1, program.stages);
  for (const auto& [parameter, ofParameter] : options.stages) {
    stages = std::max(stages, ofParameter.back() + 1);
  }
  return stages;
}

absl::Status checkStages(const CompileOptions& options, const ProgramOutline& program) {
  if (options.schedule != kAuto && options.schedule != kTable) {
    WEFT_RETURN_IF_ERROR(executableKind(options.schedule).status());
  }
  const int64_t stages = stagesOf(options, program);
  if (options.mode == Mode::kAuto && stages == 1) {
    return absl::OkStatus();
  }
  return options.virtualStages <= stages
             ? absl::OkStatus()
             : refuse(absl::StrCat("virtualStages = ", options.virtualStages, ", but the program has ", stages,
                                   stages == 1 ? " pipeline stage" : " pipeline stages",
                                   "; cut it into more stages (Graph::stage), or leave virtualStages out"));
}

// Parameters that a pattern matches, less those that earlier patterns took. Also whether it matches any at all.
struct Matches {
  bool any = false;
  bool own = false;
};

std::vector<Matches> matchesOf(const std::vector<std::string>& patterns, const std::vector<std::string>& parameters) {
  std::vector<Matches> matches(patterns.size());
  for (const std::string& name : parameters) {
    bool taken = false;
    for (size_t i = 0; i < matches.size(); ++i) {
      const bool match = globMatches(patterns[i], name);
      matches[i].any |= match;
      matches[i].own |= match && !taken;
      taken |= match;
    }
  }
  return matches;
}

std::string matchesNothing(const std::string& what, const std::string& pattern, const std::vector<std::string>& names) {
  return absl::StrCat(
      what, " '", pattern, "'",
      names.empty() ? "; there is none" : absl::StrCat("; the nearest is '", nearestName(pattern, names), "'"));
}

// The patterns of an option, in their order, against the names of the parameters.
absl::Status checkPatterns(const std::string& option, const std::vector<std::string>& patterns, const Request& request,
                           const ProgramOutline& program, std::vector<std::string>& notes) {
  const std::vector<Matches> matches = matchesOf(patterns, program.parameters);
  for (size_t i = 0; i < matches.size(); ++i) {
    if (!matches[i].any) {
      const std::string text =
          matchesNothing(absl::StrCat(option, ": no parameter matches"), patterns[i], program.parameters);
      // A forward program takes what is said of the one that trains, and may have a part of its parameters.
      if (request.optimizer) {
        return refuse(text);
      }
      notes.push_back(text);
    } else if (!matches[i].own) {
      notes.push_back(absl::StrCat(option, ": '", patterns[i], "' has no effect: patterns before it match the same"));
    }
  }
  return absl::OkStatus();
}

template <typename Value>
std::vector<std::string> patternsOf(const std::vector<std::pair<std::string, Value>>& entries) {
  std::vector<std::string> patterns;
  for (const auto& [pattern, value] : entries) {
    patterns.push_back(pattern);
  }
  return patterns;
}

void addNotes(const Request& request, const ProgramOutline& program, int64_t ranks, std::vector<std::string>& notes) {
  const CompileOptions& options = request.options;
  if (options.schedule != kAuto && program.stages == 1 && options.mode != Mode::kAuto) {
    notes.push_back(absl::StrCat("schedule = '", options.schedule,
                                 "' has no effect: the program has no pipeline stages (Graph::stage)"));
  }
  if (program.rows > 0 && options.microBatches() > program.rows) {
    notes.push_back(absl::StrCat("micro = ", *options.micro, ", but a batch has ", program.rows,
                                 " rows: ", *options.micro - program.rows, " micro-batches hold nothing but padding"));
  }
  if (options.zeroLevel() > 0 && ranks == 1) {
    notes.push_back(absl::StrCat("zero = ", options.zeroLevel(), " has no effect on 1 rank"));
  }
  if (!options.zeroOf.empty() && ranks == 1 && options.mode != Mode::kAuto && !isOpenMesh(options.mesh)) {
    notes.push_back(absl::StrCat("zeroOf = '", printZeroOf(options.zeroOf), "' has no effect on 1 rank"));
  }
  if (!request.optimizer && !recomputePatterns(options.recompute).empty()) {
    notes.push_back(
        absl::StrCat("recompute = '", options.recompute, "' has no effect: a forward program has no backward pass"));
  }
  for (const char* setting : {"nesterov", "dampening"}) {
    if (request.optimizer && request.optimizer->setting(setting) != 0 && request.optimizer->setting("momentum") == 0) {
      notes.push_back(absl::StrCat(setting, " has no effect without momentum"));
    }
  }
}

}  // namespace

absl::StatusOr<Mesh> meshOf(const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, options.stageMeshes.empty() ? sharedMesh(options) : firstStageMesh(options));
  const int64_t micro = options.microBatches();
  if (micro < 1) {
    return refuse(absl::StrCat("micro = ", micro, "; a step has at least 1 micro-batch"));
  }
  WEFT_RETURN_IF_ERROR(checkInteger("micro", micro, 1, kMaxMicroBatches));
  return micro > 1 ? mesh.withMicro(micro) : mesh;
}

void openLine(CompileOptions& options) {
  const absl::StatusOr<Mesh> line = Mesh::parse(options.mesh);
  const bool isLine = !options.mesh.empty() && line.ok() && line->print() == absl::StrCat(line->ranks());
  if (options.mode == Mode::kAuto && isLine) {
    options.devices = line->ranks();
    options.mesh.clear();
  }
}

absl::StatusOr<Machine> machineOf(const CompileOptions& options) {
  return Machine::parse(options.machine);
}

absl::StatusOr<MemoryLimits> memoryLimitsOf(const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Machine machine, machineOf(options));
  return MemoryLimits(std::move(machine), options.memoryLimit);
}

absl::StatusOr<int64_t> memoryLimitOf(const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(options));
  return limits.least();
}

absl::StatusOr<schedule::Kind> executableKind(const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const schedule::Kind kind, knownKind(name));
  if (kind == schedule::Kind::kSeq1F1B) {
    return refuse("seq1f1b cuts micro-batches along the sequence, which is simulated, not executed; take 1f1b");
  }
  return kind;
}

absl::Status checkInitial(const std::string& distribution, double a, double b) {
  static const std::set<std::string> known = {"zeros", "ones", "constant", "normal", "uniform"};
  if (known.count(distribution) == 0) {
    return refuse(
        absl::StrCat("the distribution '", distribution, "' is unknown; there are ", absl::StrJoin(known, ", ")));
  }
  if (!isFiniteInF32(a) || !isFiniteInF32(b)) {
    return refuse(absl::StrCat("first values ", distribution, "(", a, ", ", b, ") are not finite"));
  }
  if (distribution == "normal" && b < 0) {
    return refuse(absl::StrCat("first values normal with deviation ", b, "; a deviation is at least 0"));
  }
  if (distribution == "uniform" && a > b) {
    return refuse(absl::StrCat("first values uniform from ", a, " to ", b, "; the first is the smaller"));
  }
  return absl::OkStatus();
}

absl::Status checkRequest(const Request& request) {
  const CompileOptions& options = request.options;
  WEFT_RETURN_IF_ERROR(meshOf(options).status());
  WEFT_RETURN_IF_ERROR(checkOffload(options));
  const int zero = options.zeroLevel();
  if (zero < kFindZero || zero > kMostZeroLevel) {
    return refuse(absl::StrCat("zero = ", zero, "; the ZeRO level is 0, 1, 2 or 3, or ", kFindZero,
                               " for the planner to find one"));
  }
  WEFT_RETURN_IF_ERROR(checkZeroOf(options.zeroOf));
  if (!isFiniteInF32(options.clipNorm) || options.clipNorm < 0) {
    return refuse(absl::StrCat("clipNorm = ", options.clipNorm, "; it is a finite number of at least 0 (0 = none)"));
  }
  if (options.clipNorm > 0 && request.optimizer && request.optimizer->isOwn()) {
    return refuse(absl::StrCat("clipNorm = ", options.clipNorm,
                               " with optim::Own; it clips gradients that an optimizer gets from the loss: scale your "
                               "own in the graph, or leave it out"));
  }
  if (options.gatherBucket < 0) {
    return refuse(absl::StrCat("gatherBucket = ", options.gatherBucket,
                               "; give bytes that one gather of parameters makes, 0 = those of the largest"));
  }
  if (options.memoryLimit < 0) {
    return refuse(absl::StrCat("memoryLimit = ", options.memoryLimit, "; give bytes of one rank, 0 = no limit"));
  }
  WEFT_RETURN_IF_ERROR(checkInteger("maxStages", options.maxStages, 0, kMaxRanks));
  WEFT_RETURN_IF_ERROR(checkSearch(options));
  for (const auto& [parameter, stages] : options.stages) {
    WEFT_RETURN_IF_ERROR(checkStagesOf(parameter, stages));
  }
  WEFT_RETURN_IF_ERROR(checkSchedule(options));
  WEFT_RETURN_IF_ERROR(checkRecomputeWords(options.recompute));
  return request.optimizer ? checkOptimizer(*request.optimizer) : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> checkRequest(const Request& request, const ProgramOutline& program) {
  WEFT_RETURN_IF_ERROR(checkRequest(request));
  const CompileOptions& options = request.options;
  if (!options.without.empty() && options.mode != Mode::kAuto) {
    return refuse(absl::StrCat("without = '", printFreedoms(options.without), "' in mode ", modeName(options.mode),
                               "; it takes from what mode auto may decide: ask for that mode, or leave it out"));
  }
  WEFT_RETURN_IF_ERROR(checkStages(options, program));
  std::vector<std::string> notes;
  WEFT_RETURN_IF_ERROR(checkPatterns("layouts", patternsOf(options.layouts), request, program, notes));
  WEFT_RETURN_IF_ERROR(checkPatterns("zeroOf", patternsOf(options.zeroOf), request, program, notes));
  if (request.optimizer) {
    WEFT_RETURN_IF_ERROR(checkPatterns("groups", patternsOf(request.optimizer->groups), request, program, notes));
  }
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, meshOf(request.options));
  addNotes(request, program, mesh.ranks(), notes);
  return notes;
}

absl::Status checkRecompute(const std::string& recompute, const std::vector<std::string>& operators) {
  for (const std::string& pattern : recomputePatterns(recompute)) {
    const auto matches = [&](const std::string& name) { return globMatches(pattern, name); };
    if (std::none_of(operators.begin(), operators.end(), matches)) {
      return refuse(matchesNothing("recompute: no operator of the forward pass matches", pattern, operators));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
