#include "examples/common/flags.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/check_request.h"
#include "planner/machine/machine.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/limits.h"
#include "runtime/base/names.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"

namespace weft::examples {
void Flags::add(const std::string& name, Flag flag) {
  order_.push_back(name);
  flags_[name] = std::move(flag);
}

void Flags::text(const std::string& name, std::string* value, const std::string& help) {
  add(name, {help, *value, false, [value](const std::string& given) {
               *value = given;
               return absl::OkStatus();
             }});
}

void Flags::contents(const std::string& name, std::string* value, const std::string& help) {
  add(name, {help, "", false, [value, name](const std::string& given) -> absl::Status {
               std::ostringstream text;
               text << std::ifstream(given).rdbuf();
               *value = text.str();
               return value->empty() ? absl::InvalidArgumentError(absl::StrCat(
                                           "--", name, " '", given, "': there is no such file, or nothing in it"))
                                     : absl::OkStatus();
             }});
}

namespace {

struct Given {
  std::string flag;
  std::string text;
  std::string kind;  // of what the flag takes: "an integer"
};

// Stores the number that a flag was given, or says what it should have been.
template <typename T, typename Range, typename Value>
absl::Status store(const Given& given, const absl::StatusOr<T>& number, const Range& range, Value* value) {
  if (absl::IsOutOfRange(number.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", given.flag, " ", given.text, ": give a number from ", range.least, " to ", range.most));
  }
  if (!number.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", given.flag, " takes ", given.kind, ", not '", given.text, "'"));
  }
  *value = *number;
  return absl::OkStatus();
}

}  // namespace

void Flags::integer(const std::string& name, int64_t* value, const std::string& help, IntegerRange range) {
  add(name, {help, std::to_string(*value), false, [value, name, range](const std::string& given) {
               return store({name, given, "an integer"}, parseInteger(given, range), range, value);
             }});
}

void Flags::integer(const std::string& name, std::optional<int64_t>* value, const std::string& help,
                    IntegerRange range) {
  add(name, {help, "", false, [value, name, range](const std::string& given) {
               return store({name, given, "an integer"}, parseInteger(given, range), range, value);
             }});
}

void Flags::integerOr(const std::string& otherwise, int64_t meaning, const std::string& name,
                      std::optional<int64_t>* value, const std::string& help, IntegerRange range) {
  add(name, {help, "", false, [=](const std::string& given) {
               const absl::StatusOr<int64_t> number = given == otherwise ? meaning : parseInteger(given, range);
               return store({name, given, "an integer or " + otherwise}, number, range, value);
             }});
}

void Flags::real(const std::string& name, double* value, const std::string& help, RealRange range) {
  add(name, {help, absl::StrCat(*value), false, [value, name, range](const std::string& given) {
               return store({name, given, "a number"}, parseReal(given, range), range, value);
             }});
}

void Flags::real(const std::string& name, std::optional<double>* value, const std::string& help, RealRange range) {
  add(name, {help, "", false, [value, name, range](const std::string& given) {
               return store({name, given, "a number"}, parseReal(given, range), range, value);
             }});
}

void Flags::bytes(const std::string& name, int64_t* value, const std::string& help) {
  add(name, {help, std::to_string(*value), false, [value, name](const std::string& given) {
               return store({name, given, "bytes (40g, 512mi)"}, parseBytes(given), IntegerRange{.least = 0}, value);
             }});
}

void Flags::machine(const std::string& name, std::string* value, const std::string& help) {
  add(name, {help, "cpu", false, [value](const std::string& given) -> absl::Status {
               WEFT_ASSIGN_OR_RETURN(*value, Machine::textOf(given));
               return Machine::parse(*value).status();
             }});
}

void Flags::mode(const std::string& name, Mode* value, const std::string& help) {
  add(name, {help, modeName(*value), false, [value](const std::string& given) -> absl::Status {
               WEFT_ASSIGN_OR_RETURN(*value, parseMode(given));
               return absl::OkStatus();
             }});
}

void Flags::freedoms(const std::string& name, Freedoms* value, const std::string& help) {
  add(name, {help, "", false, [value](const std::string& given) -> absl::Status {
               WEFT_ASSIGN_OR_RETURN(*value, parseFreedoms(given));
               return absl::OkStatus();
             }});
}

void Flags::offload(const std::string& name, Offload* value, const std::string& help) {
  add(name, {help, offloadName(*value), false, [value](const std::string& given) -> absl::Status {
               WEFT_ASSIGN_OR_RETURN(*value, parseOffload(given));
               return absl::OkStatus();
             }});
}

void Flags::zeroOf(const std::string& name, ZeroPatterns* value, const std::string& help) {
  add(name, {help, "", false, [value](const std::string& given) -> absl::Status {
               WEFT_ASSIGN_OR_RETURN(*value, parseZeroOf(given));
               return absl::OkStatus();
             }});
}

void Flags::toggle(const std::string& name, bool* value, const std::string& help) {
  add(name, {help, "off", true, [value](const std::string&) {
               *value = true;
               return absl::OkStatus();
             }});
}

absl::Status Flags::unknown(const std::string& name) const {
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag --", name, "; did you mean --", nearestName(name, order_), "? --help lists all"));
}

absl::Status Flags::parse(int argc, char** argv, bool* helped) {
  *helped = false;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no flag; flags begin with --"));
    }
    name = name.substr(2);
    if (name == "help") {
      printHelp(argv[0]);
      *helped = true;
      return absl::OkStatus();
    }
    const size_t equals = name.find('=');
    std::string value = equals == std::string::npos ? "" : name.substr(equals + 1);
    name = name.substr(0, equals);
    const auto it = flags_.find(name);
    if (it == flags_.end()) {
      return unknown(name);
    }
    if (it->second.isSwitch && equals != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " takes no value, not '", value, "'"));
    }
    if (!it->second.isSwitch && equals == std::string::npos) {
      if (i + 1 >= argc) {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      }
      value = argv[++i];
    }
    if (absl::Status status = it->second.set(value); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

void Flags::printHelp(const std::string& program) const {
  std::printf("%s [flags]\n", program.c_str());
  for (const std::string& name : order_) {
    const Flag& flag = flags_.at(name);
    std::printf("  --%-18s %s%s%s%s\n", name.c_str(), flag.help.c_str(), flag.fallback.empty() ? "" : " [",
                flag.fallback.c_str(), flag.fallback.empty() ? "" : "]");
  }
}

void CommonFlags::addCompilingTo(Flags& flags) {
  flags.mode("mode", &mode, "how much is left to the planner: semi, layouts (all splits), auto (all that is open)");
  flags.integer("devices", &devices, "ranks, where no mesh is given; in mode auto of all stages", {1, kMaxRanks});
  flags.text("mesh", &mesh, "mesh with named axes, as dp=2,tp=2");
  flags.text("stage-meshes", &stageMeshes, "a mesh for each submesh of pipeline stages, as 'dp=2,tp=2;dp=4'");
  flags.integerOr("auto", kFindZero, "zero", &zero,
                  "ZeRO level 0, 1, 2 or 3; auto: the planner finds it, as in mode auto", {0, 3});
  flags.zeroOf("zero-of", &zeroOf,
               "ZeRO levels by parameter, the first pattern that matches: 'h*.fc.*=3,wte=1'; --zero of the others");
  flags.integer("micro", &micro, absl::StrCat("micro-batches of one step; found in mode auto, else ", defaultMicro),
                {1, kMaxMicroBatches});
  flags.text("schedule", &schedule, "order of the micro-batches on pipeline stages: auto, 1f1b, zb_h1, ...");
  flags.contents("schedule-file", &scheduleTable, "a schedule of your own: a table as of weft schedule --csv");
  flags.machine("machine", &machine, "the machine that costs are for: a name (a100-80g) or a file of figures");
  flags.bytes("memory-limit", &memoryLimit, "most bytes of one rank (40g), 0 = the machine's memory, if known");
  flags.integer("virtual", &virtualStages, "pipeline stages on each rank, 0 = as the schedule has it", {0, kMaxRanks});
  flags.text("recompute", &recompute,
             "recomputed in backward: auto (as --memory-limit asks for), none, full, or patterns with commas");
  flags.integer("departures", &departures, "in mode auto: the best plan that departs from so many of your words");
  flags.contents("from", &from, "in mode auto: begin from the decisions in this file (weft plan -o)");
  flags.freedoms("without", &without, "what mode auto may not decide, with commas: recompute, zero, pipeline, ...");
  flags.toggle("regather", &regather, "gather values again in backward instead of keeping them");
  flags.bytes("gather-bucket", &gatherBucket,
              "most bytes of parameters that one gather in each call makes (2g), 0 = those of the largest");
  flags.toggle("overlap", &overlap,
               "ask for collectives beside computation: of what weft plan makes of --dump-dir's 00-input.mlir");
  flags.offload("offload", &offload,
                "ask for what lies in the host's memory, none, state or auto: likewise of weft plan alone");
  flags.text("dump-dir", &dumpDir, "write the IR after every phase there");
  flags.text("plan-only", &planOnly, "write the plan to this file and stop");
}

void CommonFlags::addTo(Flags& flags) {
  addCompilingTo(flags);
  flags.integer("steps", &steps, "training steps", kCount);
  flags.text("init", &init, "first parameters from this safetensors file");
  flags.text("save", &save, "parameters to this safetensors file at the end, or when SIGINT or SIGTERM stops it");
  flags.toggle("save-nonfinite", &saveNonFinite, "save also parameters that are nan or infinite");
  flags.integer("seed", &seed, "seed of initial values and data order");
  flags.integer("threads", &threads, "threads per rank, 0 = share of the cores", {0, kMostThreadsPerRank});
  flags.text("trace", &trace, "write a Chrome trace of the run");
  flags.toggle("check-finite", &checkFinite, "stop at the first operator that makes a nan or infinity; slow");
}

CompileOptions CommonFlags::options() const {
  CompileOptions options;
  options.mode = mode;
  options.mesh = mesh;
  options.stageMeshes = stageMeshes;
  options.devices = devices;
  options.micro = micro;
  if (!micro && mode != Mode::kAuto && defaultMicro > 1) {
    options.micro = defaultMicro;
  }
  if (zero) {
    options.zero = static_cast<int>(*zero);
  }
  options.zeroOf = zeroOf;
  options.regather = regather;
  options.gatherBucket = gatherBucket;
  options.departures = departures;
  options.without = without;
  options.from = from;
  options.overlap = overlap;
  options.offload = offload;
  options.recompute = recompute;
  options.schedule = schedule;
  options.memoryLimit = memoryLimit;
  options.machine = machine;
  options.scheduleTable = scheduleTable;
  if (!scheduleTable.empty() && schedule == CompileOptions().schedule) {
    options.schedule = "table";
  }
  options.virtualStages = virtualStages;
  options.dumpDir = dumpDir;
  options.seed = seed;
  return options;
}

nn::Parallel CommonFlags::parallel(bool sequence) const {
  const std::string meshes = mesh + stageMeshes;
  const bool dataAxis = meshes.empty() || meshes.find("dp=") != std::string::npos;  // found where none is given
  return {dataAxis ? "dp" : "", "tp", sequence};
}

TrainerOptions CommonFlags::trainerOptions() const {
  return {.threadsPerRank = static_cast<int>(threads),
          .profile = !trace.empty(),
          .stop = stop.get(),
          .checkFinite = checkFinite};
}

absl::Status CommonFlags::checkPaths() const {
  for (const std::string* path : {&save, &trace, &planOnly}) {
    WEFT_RETURN_IF_ERROR(path->empty() ? absl::OkStatus() : canWrite(*path));
  }
  return dumpDir.empty() ? absl::OkStatus() : canWriteInto(dumpDir);
}

absl::Status CommonFlags::train(Trainer& trainer, const std::function<absl::Status()>& body) const {
  WEFT_RETURN_IF_ERROR(trainer.status());
  WEFT_RETURN_IF_ERROR(init.empty() ? absl::OkStatus() : trainer.load(init));
  const StopOnSignals signals(*stop);
  std::fflush(stdout);  // what was compiled is seen while it trains
  const absl::Status trained = body();
  if (!trained.ok() && !absl::IsCancelled(trained)) {
    return trained;
  }
  WEFT_RETURN_IF_ERROR(trace.empty() ? absl::OkStatus() : trainer.executor().writeTrace(trace));
  const NonFiniteValues nonFinite = saveNonFinite ? NonFiniteValues::kSave : NonFiniteValues::kRefuse;
  WEFT_RETURN_IF_ERROR(save.empty() ? absl::OkStatus() : trainer.save(save, Saved::kParameters, nonFinite));
  if (trained.ok()) {
    return trained;
  }
  return absl::CancelledError(absl::StrCat(
      std::string(trained.message()), "; ",
      save.empty() ? "nothing was saved, as --save was not given" : absl::StrCat("parameters saved to ", save)));
}

bool CommonFlags::wrotePlan(const Program& program, absl::Status* status) const {
  if (planOnly.empty()) {
    return false;
  }
  *status = writePlan(program.plan, planOnly);
  return true;
}

void printProgram(const Program& program) {
  const PlanStatistics statistics = statisticsOf(program.plan);
  std::printf("mesh %s, %lld ranks, %lld micro-batches\n", program.plan.mesh().c_str(),
              static_cast<long long>(program.plan.ranks()), static_cast<long long>(program.plan.micro_batches()));
  for (const auto& [kind, count] : statistics.collectives) {
    std::printf("  %-15s %4lld per step, %lld tensors, %.1f KiB received per rank\n", kind.c_str(),
                static_cast<long long>(count.calls), static_cast<long long>(count.tensors),
                static_cast<double>(count.bytesReceived) / 1024);
  }
  std::printf("  memory per rank %.2f MiB:", static_cast<double>(statistics.peakBytes) / (1 << 20));
  for (const auto& [memory, bytes] : statistics.memory) {
    if (bytes > 0) {
      std::printf(" %s %.2f", memory.c_str(), static_cast<double>(bytes) / (1 << 20));
    }
  }
  std::printf("\n");
  if (program.compilations > 1) {
    std::printf("  compiled %d times: the memory was predicted too low before\n", program.compilations);
  }
  for (const std::string& note : program.notes) {
    std::printf("note: %s\n", note.c_str());
  }
}

std::string lossesText(const std::vector<double>& losses) {
  return losses.empty() ? "none, there was no step"
                        : absl::StrFormat("first step %.4f, last step %.4f", losses.front(), losses.back());
}

int runExample(int argc, char** argv, const CommonFlags& common, Flags& flags,
               const std::function<absl::Status()>& run) {
  bool helped = false;
  absl::Status status = flags.parse(argc, argv, &helped);
  if (status.ok() && !helped) {
    status = common.checkPaths();
    status = status.ok() ? run() : status;
  }
  const absl::Status printed = flushStandardOutput();
  status = status.ok() ? printed : status;
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }
  return absl::IsCancelled(status) ? exitStatusOf(common.stop->signal()) : status.ok() ? 0 : 1;
}

}  // namespace weft::examples
