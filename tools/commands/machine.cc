#include "tools/commands/machine.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/machine/machine.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"
#include "runtime/exec/rank_threads.h"
#include "runtime/plan/plan_file.h"
#include "tools/commands/flags.h"
#include "tools/measure/measure_machine.h"
#include "tools/measure/measure_plan.h"

namespace weft::tools {
namespace {

constexpr char kName[] = "machine";
constexpr int64_t kMostRanks = 64;
constexpr int64_t kStepsOfAPlan = 20;

const std::vector<Flag>& machineFlags() {
  static const std::vector<Flag> flags{
      {"ranks", Flag::kOptional, "ranks that measure at once, collectives of 2 to so many; default: the cores"},
      {"threads", Flag::kOptional, "threads of each rank; default: its share of the cores"},
      {"seconds", Flag::kOptional, "time for all, about; default 60"},
      {"plans", Flag::kOptional, "plans, with commas: their kernels are measured in their steps, too"},
      {"output", Flag::kOptional, "measure this host and write its machine file"}};
  return flags;
}

absl::StatusOr<MeasureOptions> optionsOf(const Flags& flags) {
  MeasureOptions options;
  WEFT_ASSIGN_OR_RETURN(options.ranks, flags.integer("ranks", std::max<int64_t>(2, hostCores()), {2, kMostRanks}));
  WEFT_ASSIGN_OR_RETURN(const int64_t threads,
                        flags.integer("threads", std::max<int64_t>(1, hostCores() / options.ranks), {1, 1024}));
  WEFT_ASSIGN_OR_RETURN(const int64_t seconds, flags.integer("seconds", 60, {1, 86400}));
  options.threads = static_cast<int>(threads);
  options.seconds = static_cast<double>(seconds);
  return options;
}

// Bytes of the host's memory for each of so many ranks.
int64_t memoryOf(int64_t ranks) {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) / ranks;
}

std::string percent(std::vector<double> deviations, double share) {
  std::sort(deviations.begin(), deviations.end());
  const size_t at =
      std::min(deviations.size() - 1, static_cast<size_t>(share * static_cast<double>(deviations.size())));
  return absl::StrFormat("%.0f %%", 100 * deviations[at]);
}

std::string deviationTable(const Deviation& deviation) {
  std::vector<std::vector<std::string>> rows{{"price against measured", "count", "median off by", "90 % within"}};
  const auto add = [&](const std::string& what, const std::vector<double>& deviations) {
    rows.push_back({what, absl::StrCat(deviations.size()), percent(deviations, 0.5), percent(deviations, 0.9)});
  };
  add("products", deviation.products);
  add("element-wise operators (small ones lie in caches)", deviation.streams);
  add("collectives", deviation.collectives);
  return table(rows);
}

// What was measured beside products, as comments of the machine file.
std::string measuredText(const Measurement& measurement) {
  std::string text;
  text += "\n# measured: element-wise operators, bytes read and written, seconds\n";
  for (const StreamTime& stream : measurement.streams) {
    absl::StrAppendFormat(&text, "#   %10d  %.3g\n", stream.bytes, stream.seconds);
  }
  text += "# measured: collectives, ranks, bytes received by each, seconds\n";
  for (const CollectiveTime& time : measurement.collectives) {
    absl::StrAppendFormat(&text, "#   %-14s %2d  %10d  %.3g\n", collectiveName(time.kind), time.ranks,
                          time.bytesReceived, time.seconds);
  }
  return text;
}

// What the kernels of the plans take in their steps.
absl::StatusOr<std::vector<KernelProfile>> kernelsOf(const std::string& plans) {
  const std::vector<std::string> paths = absl::StrSplit(plans, ',', absl::SkipEmpty());
  std::vector<plan::Plan> measured;
  for (const std::string& path : paths) {
    std::cerr << "       steps of " << path << "\n";
    WEFT_ASSIGN_OR_RETURN(measured.emplace_back(), readPlan(path));
  }
  KernelMeasurement measurement;
  WEFT_RETURN_IF_ERROR(measurement.add(measured, kStepsOfAPlan));
  return measurement.profiles();
}

absl::Status measure(const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(MeasureOptions options, optionsOf(flags));
  options.progress = [last = std::string()](const std::string& what, int64_t done, int64_t of) mutable {
    if (what != last || done == of) {
      std::cerr << absl::StrFormat("%3d %%  %s\n", 100 * done / of, what);
      last = what;
    }
  };
  // First: a plan that cannot be read or run is told before a minute is spent on the host.
  WEFT_ASSIGN_OR_RETURN(std::vector<KernelProfile> kernels, kernelsOf(flags.text("plans")));
  WEFT_ASSIGN_OR_RETURN(const Measurement measurement, measureHost(options));
  Machine machine = fitted(measurement, memoryOf(options.ranks));
  machine.name = "this-host";
  machine.source = absl::StrCat("measured by weft machine: ", options.ranks, " CPU ranks of ", options.threads,
                                options.threads == 1 ? " thread" : " threads", " each at once");
  const Deviation deviation = deviationOf(measurement, machine);  // of the formulas, without the measured products
  machine.profiles = profilesOf(measurement);
  machine.kernels = std::move(kernels);
  std::cout << machine.print() << deviationTable(deviation);
  FileWriter file(flags.text("output"));
  file.write(machine.print() + measuredText(measurement));
  return file.finish();
}

absl::Status show(const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, Machine::textOf(name.empty() ? "cpu" : name));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, Machine::parse(text));
  std::cout << machine.print();
  return absl::OkStatus();
}

}  // namespace

int machineCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(absl::StrCat("weft machine [NAME|FILE]: the figures that costs come from, of ",
                                       absl::StrJoin(Machine::names(), ", "), " or a file; with -o those of this host"),
                          machineFlags());
    return 0;
  }
  const std::string name = takePath(argc, argv);
  const absl::StatusOr<Flags> flags = Flags::parse(machineFlags(), argc, argv);
  if (!flags.ok()) {
    return usageError(kName, flags.status());
  }
  if (flags->has("plans") && !flags->has("output")) {
    return usageError(kName, absl::InvalidArgumentError("--plans measures this host; name the file for it with -o"));
  }
  if (!name.empty() && flags->has("output")) {
    return usageError(kName, absl::InvalidArgumentError(absl::StrCat("-o measures this host, '", name,
                                                                     "' names a machine; give one of them")));
  }
  const absl::Status status = flags->has("output") ? measure(*flags) : show(name);
  return status.ok() ? 0 : fail(kName, status);
}

}  // namespace weft::tools
